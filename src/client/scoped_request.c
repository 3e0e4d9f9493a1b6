/* The functions of arbe/scoped_client.h that are one request each: arguments are checked and become
 * an exchange. Every post has an id, made here if need be, since that is what makes it safe to send
 * again: the server stores an id once. */
#include "client/scoped_exchange.h"

#include "base/json.h"
#include "base/json_value.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

void scoped_answer_finish(struct scoped_answer *answer)
{
    free(answer->body);
    *answer = (struct scoped_answer){.status = 0};
}

/* ----------------------------------------------------------------------------------- composing */

/* The id that a post is to have. */
static int choose_id(struct scoped_client *client, const struct scoped_post *post,
                     char out[static SCOPED_ID_BYTES], struct scoped_error *ret_error)
{
    struct timespec now;
    struct uuid uuid;

    if (post->id != NULL) {
        int code = scoped_check_id("an entry", post->id, ret_error);

        if (code == STREAM_OK) {
            memcpy(out, post->id, strlen(post->id) + 1);
        }
        return code;
    }
    (void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail for this clock */
    if (uuid_source_next(&client->ids,
                         (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000,
                         &uuid) != 0) {
        return scoped_error_set(ret_error, STREAM_ERROR_MEMORY,
                                "the system has no random numbers for an id");
    }
    uuid_format(&uuid, out);
    return STREAM_OK;
}

/* The payload stands in the body as it is, so it must be one object and nothing behind it. */
static int check_payload(const struct scoped_post *post, struct scoped_error *ret_error)
{
    struct slice text = {post->payload, post->payload != NULL ? post->payload_len : 0};
    struct errmsg msg = {.text = ""};
    struct slice value;

    if (json_text_read(text, &value, &msg) != 0) {
        return scoped_error_set(ret_error, STREAM_ERROR_ARGUMENT, "the payload is no JSON: %s",
                                msg.text);
    }
    if (json_kind(value) != JSON_OBJECT) {
        return scoped_error_set(ret_error, STREAM_ERROR_ARGUMENT,
                                "the payload is %s; it must be an object",
                                json_kind_text(json_kind(value)));
    }
    return STREAM_OK;
}

static int compose_post(struct scoped_client *client, const char *thread_id,
                        const struct scoped_post *post, struct scoped_exchange *x,
                        struct scoped_error *ret_error)
{
    int code = scoped_check_id("a thread", thread_id, ret_error);

    scoped_exchange_init(x, client);
    if (code == STREAM_OK) {
        code = check_payload(post, ret_error);
    }
    if (code == STREAM_OK) {
        code = choose_id(client, post, x->entry_id, ret_error);
    }
    if (code != STREAM_OK) {
        return code;
    }
    (void)snprintf(x->what, sizeof(x->what), "cannot post to thread \"%s\"", thread_id);
    memcpy(x->method, "POST", 5);
    x->repeatable = true;
    x->wants_entry = true;
    scoped_exchange_set_entries(x, thread_id);
    buf_append(&x->body, SLICE("{\"id\":"));
    json_append_string(&x->body, slice_of(x->entry_id));
    if (post->author_id != NULL) {
        buf_append(&x->body, SLICE(",\"authorId\":"));
        json_append_string(&x->body, slice_of(post->author_id));
    }
    buf_append(&x->body, SLICE(",\"payload\":"));
    buf_append(&x->body, (struct slice){post->payload, post->payload_len});
    buf_append_char(&x->body, '}');
    return STREAM_OK;
}

static int compose_delete(struct scoped_client *client, const char *thread_id, const char *entry_id,
                          struct scoped_exchange *x, struct scoped_error *ret_error)
{
    int code = scoped_check_id("a thread", thread_id, ret_error);

    scoped_exchange_init(x, client);
    if (code == STREAM_OK) {
        code = scoped_check_id("an entry", entry_id, ret_error);
    }
    if (code != STREAM_OK) {
        return code;
    }
    (void)snprintf(x->what, sizeof(x->what), "cannot delete entry \"%s\"", entry_id);
    memcpy(x->method, "DELETE", 7);
    x->repeatable = true; /* a tombstone is stored once */
    x->wants_entry = true;
    scoped_exchange_set_entries(x, thread_id);
    buf_append_char(&x->path, '/');
    buf_append(&x->path, slice_of(entry_id));
    return STREAM_OK;
}

/* NULL when a request may have that path, else why not. */
static const char *refuse_path(const char *path)
{
    struct slice rest = slice_of(path != NULL ? path : "");
    struct slice segment;

    if (rest.len == 0 || path[0] != '/') {
        return "the path must begin with a slash";
    }
    for (size_t i = 0; i < rest.len; i++) {
        if ((unsigned char)path[i] <= 0x20 || (unsigned char)path[i] >= 0x7f || path[i] == '#') {
            return "the path must be escaped: no spaces, control characters, '#' or bytes above "
                   "ASCII";
        }
    }
    rest.len = strcspn(path, "?");
    while (slice_split(&rest, '/', &segment)) {
        if (slice_equal(segment, SLICE(".")) || slice_equal(segment, SLICE(".."))) {
            return "the path must not have the segments \".\" and \"..\"";
        }
    }
    return NULL;
}

static const char *refuse_request(const struct scoped_request *request)
{
    static const char *const methods[] = {"GET", "POST", "PUT", "PATCH", "DELETE"};
    bool known = false;

    for (size_t i = 0; i < ARRAY_COUNT(methods); i++) {
        known = known || (request->method != NULL && strcmp(request->method, methods[i]) == 0);
    }
    if (!known) {
        return "the method must be GET, POST, PUT, PATCH or DELETE";
    }
    if (request->body != NULL && request->len > 0 && strcmp(request->method, "GET") == 0) {
        return "a GET has no body";
    }
    return refuse_path(request->path);
}

static int compose_request(struct scoped_client *client, const struct scoped_request *request,
                           struct scoped_exchange *x, struct scoped_error *ret_error)
{
    const char *why = refuse_request(request);

    scoped_exchange_init(x, client);
    if (why != NULL) {
        return scoped_error_set(ret_error, STREAM_ERROR_ARGUMENT, "%s", why);
    }
    bool posts = strcmp(request->method, "POST") == 0 || strcmp(request->method, "PATCH") == 0;

    /* The path may hold the token of an invite, so it is not shown. */
    (void)snprintf(x->what, sizeof(x->what), "the request failed");
    memcpy(x->method, request->method, strlen(request->method) + 1);
    x->removes = strcmp(request->method, "DELETE") == 0;
    x->repeatable = !posts || request->repeatable != 0;
    buf_append(&x->path, slice_of(request->path + 1)); /* the app's URL ends with a slash */
    for (const char *const *at = request->query; at != NULL && *at != NULL; at += 2) {
        if (at[1] != NULL) {
            scoped_exchange_add_query(x, at[0], at[1]);
        }
    }
    buf_append(&x->body, (struct slice){request->body, request->body != NULL ? request->len : 0});
    return STREAM_OK;
}

/* ------------------------------------------------------------------------------------- blocking */

/* Sends what was composed, unless that failed, and frees it. */
static int run(struct scoped_exchange *x, int code, struct scoped_client *client,
               struct scoped_answer *ret_answer, struct scoped_error *ret_error)
{
    if (code == STREAM_OK) {
        code = scoped_exchange_run(x, client, ret_answer, ret_error);
    }
    scoped_exchange_finish(x);
    return code;
}

int scoped_client_post(struct scoped_client *client, const char *thread_id,
                       const struct scoped_post *post, struct scoped_answer *ret_answer,
                       struct scoped_error *ret_error)
{
    struct scoped_exchange x;
    int code = compose_post(client, thread_id, post, &x, ret_error);

    return run(&x, code, client, ret_answer, ret_error);
}

int scoped_client_delete(struct scoped_client *client, const char *thread_id, const char *entry_id,
                         struct scoped_answer *ret_answer, struct scoped_error *ret_error)
{
    struct scoped_exchange x;
    int code = compose_delete(client, thread_id, entry_id, &x, ret_error);

    return run(&x, code, client, ret_answer, ret_error);
}

int scoped_client_request(struct scoped_client *client, const struct scoped_request *request,
                          struct scoped_answer *ret_answer, struct scoped_error *ret_error)
{
    struct scoped_exchange x;
    int code = compose_request(client, request, &x, ret_error);

    return run(&x, code, client, ret_answer, ret_error);
}

/* -------------------------------------------------------------------------------------- started */

/* Starts what was composed, or frees it if that failed. */
static int start(struct scoped_exchange *x, int code, struct scoped_client *client,
                 scoped_done_fn done, void *context, struct scoped_error *ret_error)
{
    if (code != STREAM_OK) {
        scoped_exchange_finish(x);
        return code;
    }
    return scoped_exchange_start(x, client, done, context, ret_error);
}

int scoped_client_start_post(struct scoped_client *client, const char *thread_id,
                             const struct scoped_post *post, scoped_done_fn done, void *context,
                             struct scoped_error *ret_error)
{
    struct scoped_exchange x;
    int code = compose_post(client, thread_id, post, &x, ret_error);

    return start(&x, code, client, done, context, ret_error);
}

int scoped_client_start_delete(struct scoped_client *client, const char *thread_id,
                               const char *entry_id, scoped_done_fn done, void *context,
                               struct scoped_error *ret_error)
{
    struct scoped_exchange x;
    int code = compose_delete(client, thread_id, entry_id, &x, ret_error);

    return start(&x, code, client, done, context, ret_error);
}

int scoped_client_start_request(struct scoped_client *client, const struct scoped_request *request,
                                scoped_done_fn done, void *context, struct scoped_error *ret_error)
{
    struct scoped_exchange x;
    int code = compose_request(client, request, &x, ret_error);

    return start(&x, code, client, done, context, ret_error);
}
