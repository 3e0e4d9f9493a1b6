/* A request lives until the program has taken its end. An interrupted one is nobody's any more: it
 * stays until the server has said its exit, so that what a program begins and drops is bounded by
 * what the server has let go of.
 *
 * What is to be sent is a state of requests, not a queue of texts: it cannot grow while the server
 * does not read. */
#include "t3/rpc_session.h"

#include "t3/rpc_error.h"

#include <stdlib.h>

enum chunk {
    CHUNK_NONE,   /* the server may send one */
    CHUNK_QUEUED, /* one has come */
    CHUNK_GIVEN,  /* the program has it */
    CHUNK_ACKED,  /* it is consumed, and the server is to be told */
};

struct request {
    struct map_node node;   /* in the session's map, by id */
    struct list sendable;   /* on the session's list while there is something to send */
    uint64_t id;            /* also its hash */
    struct buf text;        /* the request itself, until it is sent */
    bool stream;            /* asked for by t3_rpc_subscribe */
    bool sent;              /* the server knows of it */
    bool interrupted;       /* waits for its exit alone */
    bool to_interrupt;      /* and the server is yet to be told */
    bool ended;             /* its end is an event */
    bool failed;            /* by us: the server's exit is yet to come */
    enum chunk chunk;       /* where the latest is */
    struct rpc_event given; /* the chunk, while it is queued */
    struct rpc_event end;   /* the end, likewise */
};

static struct request *of_node(struct map_node *node)
{
    return container_of(node, struct request, node);
}

static struct request *find(const struct rpc_session *s, uint64_t id)
{
    struct map_node *node = map_find(&s->requests, id);

    return node != NULL ? of_node(node) : NULL;
}

static void want_send(struct rpc_session *s, struct request *r)
{
    if (list_empty(&r->sendable)) {
        list_append(&s->sendable, &r->sendable);
    }
}

/* Whether the text is in the message; "null" may stand for what was not said. */
static bool holds(const struct buf *message, struct slice text)
{
    return message != NULL && text.len > 0 && text.ptr >= message->ptr &&
           text.ptr < message->ptr + message->len;
}

static void add_event(struct rpc_session *s, struct rpc_event *event, struct slice json,
                      struct buf *message)
{
    event->json = json;
    if (holds(message, json)) {
        event->memory = *message;
        buf_init(message, event->memory.max);
    }
    s->event_bytes += event->memory.cap;
    list_append(&s->events, &event->link);
}

static void drop_event(struct rpc_session *s, struct rpc_event *event)
{
    if (!list_empty(&event->link)) {
        list_remove(&event->link);
        s->event_bytes -= event->memory.cap;
        buf_finish(&event->memory);
    }
}

static void free_request(struct rpc_session *s, struct request *r)
{
    drop_event(s, &r->given);
    drop_event(s, &r->end);
    list_remove(&r->sendable);
    map_remove(&s->requests, &r->node);
    s->interrupted -= r->interrupted;
    buf_finish(&r->text);
    free(r);
}

static void free_requests(struct rpc_session *s)
{
    struct map_node *next;

    for (struct map_node *node = map_next(&s->requests, NULL); node != NULL; node = next) {
        next = map_next(&s->requests, node);
        free_request(s, of_node(node));
    }
}

void rpc_session_init(struct rpc_session *s, size_t requests_max)
{
    *s = (struct rpc_session){.requests_max = requests_max};
    s->open.kind = T3_RPC_EVENT_OPEN;
    s->closed.kind = T3_RPC_EVENT_CLOSED;
    map_init(&s->requests);
    list_init(&s->sendable);
    list_init(&s->events);
    list_init(&s->open.link);
    list_init(&s->closed.link);
}

void rpc_session_finish(struct rpc_session *s)
{
    if (s->events.next == NULL) {
        return; /* zeroed */
    }
    free_requests(s);
    drop_event(s, &s->open);
    drop_event(s, &s->closed);
    map_finish(&s->requests);
    buf_finish(&s->given);
}

/* ------------------------------------------------------------------------------- of the program */

static int refuse_closed(struct t3_rpc_error *error)
{
    return rpc_error_set(error, T3_RPC_ERROR_CLOSED, "the connection has ended");
}

static int no_memory(struct t3_rpc_error *error)
{
    return rpc_error_set(error, T3_RPC_ERROR_MEMORY, "out of memory");
}

static int check_room(const struct rpc_session *s, struct t3_rpc_error *error)
{
    if (s->requests.count - s->interrupted >= s->requests_max) {
        return rpc_error_set(error, T3_RPC_ERROR_LIMIT,
                             "%zu requests are under way already, as many as there may be",
                             s->requests_max);
    }
    if (s->interrupted >= s->requests_max) {
        return rpc_error_set(error, T3_RPC_ERROR_LIMIT,
                             "the server has yet to let go of %zu requests that were interrupted",
                             s->interrupted);
    }
    return T3_RPC_OK;
}

int rpc_session_request(struct rpc_session *s, bool stream, struct slice method,
                        struct slice payload, uint64_t *ret_id, struct t3_rpc_error *ret_error)
{
    int code = s->ended || s->closing ? refuse_closed(ret_error) : check_room(s, ret_error);

    if (code != T3_RPC_OK) {
        return code;
    }
    struct request *r = calloc(1, sizeof(*r));

    if (r == NULL) {
        return no_memory(ret_error);
    }
    r->id = s->id_last + 1;
    r->stream = stream;
    list_init(&r->sendable);
    list_init(&r->given.link);
    list_init(&r->end.link);
    r->given.id = r->end.id = r->id;
    r->given.kind = T3_RPC_EVENT_CHUNK;
    buf_init(&r->text, SIZE_MAX);
    t3_frame_request(&r->text, r->id, method, payload);
    if (r->text.failed || map_insert(&s->requests, &r->node, r->id) != 0) {
        buf_finish(&r->text);
        free(r);
        return no_memory(ret_error);
    }
    *ret_id = s->id_last = r->id;
    want_send(s, r);
    return T3_RPC_OK;
}

/* An acknowledgement of what has ended meanwhile is good, and nobody needs it. */
int rpc_session_ack(struct rpc_session *s, uint64_t id, struct t3_rpc_error *ret_error)
{
    struct request *r = find(s, id);

    if (s->ended || s->closing) {
        return refuse_closed(ret_error);
    }
    if (r == NULL || r->interrupted || r->chunk != CHUNK_GIVEN) {
        return rpc_error_set(ret_error, T3_RPC_ERROR_ARGUMENT,
                             "no chunk of request %llu is to be acknowledged",
                             (unsigned long long)id);
    }
    r->chunk = CHUNK_ACKED;
    if (!r->ended) {
        want_send(s, r);
    }
    return T3_RPC_OK;
}

/* From now on it waits for its exit alone. */
static void let_go(struct rpc_session *s, struct request *r)
{
    drop_event(s, &r->given);
    drop_event(s, &r->end);
    r->interrupted = true;
    s->interrupted++;
}

void rpc_session_interrupt(struct rpc_session *s, uint64_t id)
{
    struct request *r = find(s, id);

    if (r == NULL || r->interrupted) {
        return;
    }
    if (s->ended || s->closing || !r->sent || (r->ended && !r->failed)) {
        free_request(s, r); /* the server has done with it, never heard of it, or is left anyway */
        return;
    }
    let_go(s, r);
    if (!r->failed) {
        r->to_interrupt = true;
        want_send(s, r);
    }
}

void rpc_session_close(struct rpc_session *s)
{
    s->closing = true;
}

/* -------------------------------------------------------------------------------- of the server */

void rpc_session_open(struct rpc_session *s)
{
    if (!s->ended && !s->closing) {
        add_event(s, &s->open, SLICE(""), NULL);
    }
}

/* A method that is a stream was asked for one answer: that request fails, by nobody's fault but the
 * program's. */
static void fail_call(struct rpc_session *s, struct request *r)
{
    r->end.kind = T3_RPC_EVENT_ERROR;
    (void)rpc_error_set(&r->end.error, T3_RPC_ERROR_PROTOCOL,
                        "the server answers by a stream: subscribe to this method");
    add_event(s, &r->end, SLICE(""), NULL);
    r->ended = true;
    r->failed = true;
    r->to_interrupt = true;
    want_send(s, r);
}

static int take_chunk(struct rpc_session *s, struct request *r, struct slice json,
                      struct buf *message, struct t3_rpc_error *error)
{
    if (r->interrupted || r->failed) {
        return T3_RPC_OK; /* it was on its way */
    }
    if (r->ended) {
        return rpc_error_set(error, T3_RPC_ERROR_PROTOCOL,
                             "the server sent a chunk of a request that it has ended");
    }
    if (r->chunk != CHUNK_NONE) {
        return rpc_error_set(error, T3_RPC_ERROR_PROTOCOL,
                             "the server sent a chunk before the last one was acknowledged");
    }
    if (!r->stream) {
        fail_call(s, r);
        return T3_RPC_OK;
    }
    r->chunk = CHUNK_QUEUED;
    add_event(s, &r->given, json, message);
    return T3_RPC_OK;
}

static int take_exit(struct rpc_session *s, struct request *r, const struct t3_frame *frame,
                     struct buf *message, struct t3_rpc_error *error)
{
    if (r->interrupted) {
        free_request(s, r);
        return T3_RPC_OK;
    }
    if (r->failed) {
        r->failed = false;
        return T3_RPC_OK;
    }
    if (r->ended) {
        return rpc_error_set(error, T3_RPC_ERROR_PROTOCOL,
                             "the server ended a request that it has ended already");
    }
    r->ended = true;
    list_remove(&r->sendable); /* an acknowledgement means nothing now */
    r->end.kind = frame->error.code == T3_RPC_OK ? T3_RPC_EVENT_DONE : T3_RPC_EVENT_ERROR;
    r->end.error = frame->error;
    add_event(s, &r->end, frame->json, message);
    return T3_RPC_OK;
}

/* Ids that were given out and are under way no more may still be named, by what was on its way. */
static int take_of_request(struct rpc_session *s, const struct t3_frame *frame, struct buf *message,
                           struct t3_rpc_error *error)
{
    struct request *r = find(s, frame->id);

    if (frame->id > s->id_last || (r != NULL && !r->sent)) {
        return rpc_error_set(error, T3_RPC_ERROR_PROTOCOL,
                             "the server answered request %llu, which was never made",
                             (unsigned long long)frame->id);
    }
    if (r == NULL) {
        return T3_RPC_OK;
    }
    return frame->kind == T3_FRAME_CHUNK ? take_chunk(s, r, frame->json, message, error)
                                         : take_exit(s, r, frame, message, error);
}

int rpc_session_take(struct rpc_session *s, const struct t3_frame *frame, struct buf *message,
                     struct t3_rpc_error *ret_error)
{
    if (s->ended || s->closing) {
        return T3_RPC_OK;
    }
    switch (frame->kind) {
    case T3_FRAME_CHUNK:
    case T3_FRAME_EXIT:
        return take_of_request(s, frame, message, ret_error);
    case T3_FRAME_DEFECT:
        if (ret_error != NULL) {
            *ret_error = frame->error;
        }
        return (int)frame->error.code;
    case T3_FRAME_PONG:
    case T3_FRAME_OTHER:
        break;
    }
    return T3_RPC_OK;
}

void rpc_session_end(struct rpc_session *s, const struct t3_rpc_error *error, struct slice defect,
                     struct buf *message)
{
    if (s->ended) {
        return;
    }
    s->ended = true;
    s->closed.error = *error;
    add_event(s, &s->closed, defect, message);
}

/* One message of a request; what is left is sent in its next turn, so that none starves. */
static void send_of(struct request *r, struct buf *out)
{
    list_remove(&r->sendable);
    if (!r->sent) {
        r->sent = true;
        buf_append(out, buf_slice(&r->text));
        buf_finish(&r->text);
    } else if (r->to_interrupt) {
        r->to_interrupt = false;
        t3_frame_interrupt(out, r->id);
    } else if (r->chunk == CHUNK_ACKED) {
        r->chunk = CHUNK_NONE;
        t3_frame_ack(out, r->id);
    }
}

/* Whose turn it is. Before a close only what was interrupted: that is a word of it. */
static struct request *next_to_send(struct rpc_session *s)
{
    LIST_FOR_EACH(node, &s->sendable)
    {
        struct request *r = container_of(node, struct request, sendable);

        if (!s->closing || r->to_interrupt) {
            return r;
        }
    }
    return NULL;
}

bool rpc_session_send(struct rpc_session *s, struct buf *out)
{
    struct request *r = s->ended ? NULL : next_to_send(s);

    if (r != NULL) {
        send_of(r, out);
    }
    return r != NULL;
}

/* --------------------------------------------------------------------------------------- events */

/* The program has it: a request whose end that is, or all of them, are no more. */
static void settle(struct rpc_session *s, enum t3_rpc_event_kind kind, uint64_t id)
{
    struct request *r = find(s, id);

    if (kind == T3_RPC_EVENT_CHUNK) {
        r->chunk = CHUNK_GIVEN;
    } else if ((kind == T3_RPC_EVENT_DONE || kind == T3_RPC_EVENT_ERROR) && r->failed) {
        let_go(s, r);
    } else if (kind == T3_RPC_EVENT_DONE || kind == T3_RPC_EVENT_ERROR) {
        free_request(s, r);
    } else if (kind == T3_RPC_EVENT_CLOSED) {
        free_requests(s);
    }
}

bool rpc_session_next(struct rpc_session *s, struct t3_rpc_event *ret_event)
{
    struct list *node = list_first(&s->events);

    buf_finish(&s->given);
    if (node == NULL) {
        return false;
    }
    struct rpc_event *event = container_of(node, struct rpc_event, link);

    list_remove(node);
    s->event_bytes -= event->memory.cap;
    s->given = event->memory;
    buf_init(&event->memory, 0);
    if (event->json.len > 0 && s->given.ptr != NULL) {
        /* In a message something stands behind every value, were it the closing brace. */
        s->given.ptr[event->json.ptr - s->given.ptr + (ptrdiff_t)event->json.len] = '\0';
    }
    *ret_event = (struct t3_rpc_event){.kind = event->kind,
                                       .id = event->id,
                                       .json = event->json.len > 0 ? event->json.ptr : NULL,
                                       .len = event->json.len,
                                       .error = event->error};
    settle(s, event->kind, event->id);
    return true;
}
