/* A connection (arbe/t3_rpc.h) that does what a test says, and holds whoever uses it to the
 * contract: one connection to a URL at a time, one acknowledgement for each chunk, no call after it
 * was freed. It stands before unit/base/fault.h, whose failures are not for it. */
#ifndef ARBE_TESTS_UNIT_T3_RPC_FAKE_H
#define ARBE_TESTS_UNIT_T3_RPC_FAKE_H

#include "unit/base/unit.h"

#include "arbe/t3_rpc.h"
#include "base/attr.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define FAKE_REQUESTS 512
#define FAKE_EVENTS   512
#define FAKES_MAX     2048 /* connections at once */

struct fake_request {
    char *method;
    char *payload;
    bool over;    /* interrupted, or ended by an event that was pushed */
    bool unacked; /* a chunk of it was given */
};

struct fake_event {
    struct t3_rpc_event event;
    char *json; /* owned */
};

struct t3_rpc {
    char url[128];
    char token[128]; /* empty: none */
    int fd;
    bool closed; /* CLOSED was pushed */
    int request_count;
    struct fake_request requests[FAKE_REQUESTS]; /* id, less 1 */
    size_t first;
    size_t count;
    struct fake_event events[FAKE_EVENTS]; /* from `first` on */
    char *given;                           /* JSON of the event that was given last */
};

static struct t3_rpc *fakes[FAKES_MAX];
static struct t3_rpc *fake;                /* the one that the test speaks of; NULL: none */
static int fake_connects;                  /* tries, in all */
static int fake_acks;                      /* good ones, in all */
static enum t3_rpc_code fake_connect;      /* what the next tries to connect end with */
static enum t3_rpc_code fake_subscribe;    /* what requests end with */
static enum t3_rpc_code fake_ack;          /* what acknowledgements end with */
static bool fake_without_fd;               /* t3_rpc_fd is none */
static const char *fake_token_pointer;     /* where the last token stood */
static struct t3_rpc_options fake_options; /* of the last connection; its texts are gone */

/* Where the connection to a URL is kept, or would be: NULL, none is there and there is no room. */
static inline struct t3_rpc **fake_slot(const char *url)
{
    struct t3_rpc **room = NULL;

    for (size_t i = 0; i < FAKES_MAX; i++) {
        if (fakes[i] == NULL) {
            room = room != NULL ? room : &fakes[i];
        } else if (strcmp(fakes[i]->url, url) == 0) {
            return &fakes[i];
        }
    }
    return room;
}

static inline int fake_fail(struct t3_rpc_error *ret_error, enum t3_rpc_code code)
{
    if (code != T3_RPC_OK && ret_error != NULL) {
        *ret_error = (struct t3_rpc_error){.code = code, .message = "as the test says"};
    }
    return (int)code;
}

void t3_rpc_options_init(struct t3_rpc_options *options)
{
    *options = (struct t3_rpc_options){
        .connect_timeout_ms = 1,
        .pings_missed_max = 1,
        .message_bytes_max = 1,
        .depth_max = 1,
        .requests_max = 256,
    };
}

int t3_rpc_connect(const char *url, const struct t3_rpc_options *options, struct t3_rpc **ret_rpc,
                   struct t3_rpc_error *ret_error)
{
    struct t3_rpc **slot = fake_slot(url);
    struct t3_rpc *rpc;

    assert_non_null(slot);
    assert_null(*slot);
    fake_connects++;
    fake_options = *options;
    fake_token_pointer = options->token;
    if (fake_connect != T3_RPC_OK) {
        return fake_fail(ret_error, fake_connect);
    }
    rpc = calloc(1, sizeof(*rpc));
    assert_non_null(rpc);
    rpc->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    assert_true(rpc->fd >= 0);
    (void)snprintf(rpc->url, sizeof(rpc->url), "%s", url);
    (void)snprintf(rpc->token, sizeof(rpc->token), "%s", options->token ? options->token : "");
    fake = rpc;
    *slot = rpc;
    *ret_rpc = rpc;
    return T3_RPC_OK;
}

void t3_rpc_free(struct t3_rpc *rpc)
{
    if (rpc == NULL) {
        return;
    }
    assert_ptr_equal(*fake_slot(rpc->url), rpc);
    *fake_slot(rpc->url) = NULL;
    fake = fake == rpc ? NULL : fake;
    for (size_t i = 0; i < rpc->count; i++) {
        free(rpc->events[rpc->first + i].json);
    }
    for (int i = 0; i < rpc->request_count; i++) {
        free(rpc->requests[i].method);
        free(rpc->requests[i].payload);
    }
    (void)close(rpc->fd);
    free(rpc->given);
    free(rpc);
}

int t3_rpc_subscribe(struct t3_rpc *rpc, const char *method, const char *payload, uint64_t *ret_id,
                     struct t3_rpc_error *ret_error)
{
    struct fake_request *request;

    assert_ptr_equal(*fake_slot(rpc->url), rpc);
    if (rpc->closed) {
        return fake_fail(ret_error, T3_RPC_ERROR_CLOSED);
    }
    if (fake_subscribe != T3_RPC_OK) {
        return fake_fail(ret_error, fake_subscribe);
    }
    assert_true(rpc->request_count < FAKE_REQUESTS);
    request = &rpc->requests[rpc->request_count++];
    request->method = strdup(method);
    request->payload = strdup(payload);
    *ret_id = (uint64_t)rpc->request_count;
    return T3_RPC_OK;
}

int t3_rpc_call(struct t3_rpc *rpc, const char *method, const char *payload, uint64_t *ret_id,
                struct t3_rpc_error *ret_error)
{
    return t3_rpc_subscribe(rpc, method, payload, ret_id, ret_error);
}

int t3_rpc_ack(struct t3_rpc *rpc, uint64_t id, struct t3_rpc_error *ret_error)
{
    assert_ptr_equal(*fake_slot(rpc->url), rpc);
    assert_in_range(id, 1, rpc->request_count);
    assert_true(rpc->requests[id - 1].unacked);
    if (rpc->closed) {
        return fake_fail(ret_error, T3_RPC_ERROR_CLOSED);
    }
    if (fake_ack != T3_RPC_OK) {
        return fake_fail(ret_error, fake_ack);
    }
    rpc->requests[id - 1].unacked = false;
    fake_acks++;
    return T3_RPC_OK;
}

void t3_rpc_interrupt(struct t3_rpc *rpc, uint64_t id)
{
    size_t kept = rpc->first;

    assert_ptr_equal(*fake_slot(rpc->url), rpc);
    assert_in_range(id, 1, rpc->request_count);
    rpc->requests[id - 1].over = true;
    for (size_t i = rpc->first; i < rpc->first + rpc->count; i++) {
        if (rpc->events[i].event.id == id) {
            free(rpc->events[i].json);
        } else {
            rpc->events[kept++] = rpc->events[i];
        }
    }
    rpc->count = kept - rpc->first;
    if (rpc->count == 0) {
        (void)eventfd_read(rpc->fd, &(eventfd_t){0});
    }
}

void t3_rpc_close(struct t3_rpc *rpc)
{
    (void)rpc;
    fail_msg("a reader ends its connections by t3_rpc_free");
}

int t3_rpc_next(struct t3_rpc *rpc, int timeout_ms, struct t3_rpc_event *ret_event)
{
    struct fake_event *event;

    assert_ptr_equal(*fake_slot(rpc->url), rpc);
    assert_int_equal(timeout_ms, 0);
    free(rpc->given);
    rpc->given = NULL;
    if (rpc->count == 0) {
        return 0;
    }
    event = &rpc->events[rpc->first++];
    rpc->count--;
    if (rpc->count == 0) {
        rpc->first = 0;
        (void)eventfd_read(rpc->fd, &(eventfd_t){0});
    }
    rpc->given = event->json;
    *ret_event = event->event;
    if (event->event.kind == T3_RPC_EVENT_CHUNK) {
        rpc->requests[event->event.id - 1].unacked = true;
    }
    return 1;
}

int t3_rpc_fd(const struct t3_rpc *rpc)
{
    return fake_without_fd ? -1 : rpc->fd;
}

/* ------------------------------------------------------------------ what the test says */

/* Speaks of the connection to that URL from now on. */
static inline void fake_select(const char *url)
{
    fake = *fake_slot(url);
    assert_non_null(fake);
}

static inline void fake_push(struct t3_rpc_event event, const char *json)
{
    struct fake_event *at;

    assert_non_null(fake);
    assert_true(fake->first + fake->count < FAKE_EVENTS);
    assert_false(fake->closed);
    at = &fake->events[fake->first + fake->count++];
    *at = (struct fake_event){.event = event};
    if (json != NULL) {
        at->json = strdup(json);
        at->event.json = at->json;
        at->event.len = strlen(json);
    }
    (void)eventfd_write(fake->fd, 1);
}

static inline void fake_open(void)
{
    fake_push((struct t3_rpc_event){.kind = T3_RPC_EVENT_OPEN}, NULL);
}

/* Of the request that was made as the i-th on this connection, from 1 on. */
static inline void fake_chunk(uint64_t i, const char *json)
{
    assert_in_range(i, 1, fake->request_count);
    assert_false(fake->requests[i - 1].over);
    fake_push((struct t3_rpc_event){.kind = T3_RPC_EVENT_CHUNK, .id = i}, json);
}

static inline void fake_done(uint64_t i)
{
    fake->requests[i - 1].over = true;
    fake_push((struct t3_rpc_event){.kind = T3_RPC_EVENT_DONE, .id = i}, "null");
}

static inline void fake_error(uint64_t i, enum t3_rpc_code code)
{
    struct t3_rpc_event event = {.kind = T3_RPC_EVENT_ERROR, .id = i};

    fake->requests[i - 1].over = true;
    (void)fake_fail(&event.error, code);
    fake_push(event, "[{\"_tag\":\"Fail\"}]");
}

static inline void fake_closed(enum t3_rpc_code code)
{
    struct t3_rpc_event event = {.kind = T3_RPC_EVENT_CLOSED};

    (void)fake_fail(&event.error, code);
    fake_push(event, NULL);
    fake->closed = true;
}

#endif
