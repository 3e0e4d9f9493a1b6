/* Operations: a call with its retries, and whoever waits for it.
 *
 * An operation begins on the thread of the caller, which checks and copies; it then lives on the
 * client's thread: ask for the content type if an append does not know it (HEAD), start a try, on a
 * failure that passes pause and start another. It ends there, in finish, and is handed back: to the
 * caller that waits (blocking), or to stream_client_step (started).
 *
 * A delete that is tried again and finds nothing has succeeded: the try before it did it. */
#include "client/operation.h"

#include "base/limits.h"
#include "client/client.h"
#include "client/retry.h"

#include <stdlib.h>

struct operation {
    struct stream_client *client;
    struct call call;
    struct client_party party;
    struct client_timer timer;
    struct task task; /* its start on the client's thread, then its end in stream_client_step */
    struct retry retry;
    bool under_way; /* the call is */
    bool unknown;   /* an earlier try may have taken effect */

    struct stream_create_options create; /* the caller's, what it points to too */
    char type[OPERATION_TYPE_BYTES];     /* of an append that was not told it */
    bool find_type;                      /* such an append: ask first, unless it is remembered */
    bool type_remembered;                /* it comes from memory, and may be wrong by now */
    bool asking;                         /* the call is the HEAD that asks */
    struct call wanted;                  /* meanwhile: the append */

    /* Whoever waits. */
    pthread_mutex_t mutex; /* guards `ended` of a blocking one */
    pthread_cond_t end;
    bool ended;
    stream_done_fn done; /* NULL: a blocking one */
    bool inside;         /* `done` is called on the client's thread */
    void *context;
    char *name; /* copied; owned by started ones */
};

/* ---------------------------------------------------------------------- on the client's thread */

static void tell_done(struct task *task);

/* The last touch of an operation here: whoever waits may free it at once. */
static void hand_back(struct operation *op)
{
    if (op->inside) {
        tell_done(&op->task);
        return;
    }
    if (op->done != NULL) {
        client_finish(op->client, &op->task);
        return;
    }
    (void)pthread_mutex_lock(&op->mutex);
    op->ended = true;
    (void)pthread_cond_signal(&op->end);
    (void)pthread_mutex_unlock(&op->mutex);
}

static void finish(struct operation *op)
{
    client_timer_stop(&op->timer);
    client_party_leave(&op->party);
    hand_back(op);
}

static void begin_try(struct operation *op)
{
    op->under_way = true;
    client_start(op->client, &op->call);
}

/* Puts the append aside and asks for the stream's type. */
static void ask_type(struct operation *op)
{
    op->wanted = op->call;
    op->asking = true;
    op->call = (struct call){
        .verb = CALL_HEAD, .name = op->wanted.name, .on_done = op->wanted.on_done};
    begin_try(op);
}

/* The append itself, with the type in op->type. */
static void append_with_type(struct operation *op)
{
    op->call.content_type = op->type;
    begin_try(op);
}

static void begin(struct operation *op)
{
    if (!op->find_type) {
        begin_try(op);
        return;
    }
    op->type_remembered = client_type_find(op->client, op->call.name, op->type);
    if (op->type_remembered) {
        append_with_type(op);
    } else {
        ask_type(op);
    }
}

/* The append failed since its HEAD did: the words become those of the append. */
static void fail_asking(struct operation *op)
{
    char what[STREAM_ERROR_MESSAGE_BYTES];
    struct call_result result = op->call.result;

    call_what(&op->call, what, sizeof(what));
    op->call = op->wanted;
    op->asking = false;
    op->call.result = result;
    call_fail(&op->call, result.error.code, "%s", result.error.message + strlen(what) + 2);
    op->call.result.error.outcome_unknown = op->unknown;
}

/* The HEAD went well. */
static void type_is_known(struct operation *op)
{
    const char *type = op->call.result.info.content_type;

    if (type[0] == '\0') {
        call_fail(&op->call, STREAM_ERROR_FORMAT, "the server does not tell the content type");
        fail_asking(op);
        finish(op);
        return;
    }
    memcpy(op->type, type, strlen(type) + 1);
    client_type_note(op->client, op->call.name, type);
    op->call = op->wanted;
    op->asking = false;
    retry_reset(&op->retry, &client_options(op->client)->retry);
    append_with_type(op);
}

static bool try_again(struct operation *op)
{
    const struct call_result *r = &op->call.result;
    bool safe = call_repeatable(&op->call) || client_options(op->client)->at_least_once != 0;
    uint64_t pause;

    op->unknown = op->unknown || r->error.outcome_unknown;
    if (!r->transient || !safe ||
        !retry_next(&op->retry, r->error.retry_after_ms, client_dice(op->client), &pause)) {
        return false;
    }
    client_timer_start(op->client, &op->timer, pause);
    return true;
}

/* Corrects what a failed try says by what is known of those before it. */
static void settle(struct operation *op)
{
    struct call_result *r = &op->call.result;
    enum stream_error_code code = r->error.code;

    op->unknown = op->unknown || (r->resent && call_writes(&op->call));
    if ((op->call.verb == CALL_DELETE || op->call.removes) && op->unknown &&
        (code == STREAM_ERROR_NOT_FOUND || code == STREAM_ERROR_GONE)) {
        r->error.code = STREAM_OK;
        r->info.status = 204; /* what the try before it was answered */
        return;
    }
    r->error.outcome_unknown = r->error.outcome_unknown || op->unknown;
}

static void note_type(struct operation *op)
{
    const struct call *call = &op->call;

    if (call->verb == CALL_CREATE || call->verb == CALL_HEAD) {
        client_type_note(op->client, call->name, call->result.info.content_type);
    } else if (call->verb == CALL_DELETE) {
        client_type_note(op->client, call->name, "");
    }
}

static void on_done(struct call *call)
{
    struct operation *op = container_of(call, struct operation, call);
    enum stream_error_code code = call->result.error.code;

    op->under_way = false;
    if (op->asking && code == STREAM_OK) {
        type_is_known(op);
        return;
    }
    if (code == STREAM_OK) {
        note_type(op);
    } else if (code == STREAM_ERROR_EXISTS && op->type_remembered && !op->asking) {
        /* Somebody made the stream anew, with another type: nothing was appended. */
        op->type_remembered = false;
        client_type_note(op->client, call->name, "");
        ask_type(op);
        return;
    } else if (try_again(op)) {
        return;
    } else if (op->asking) {
        fail_asking(op);
    } else {
        settle(op);
    }
    finish(op);
}

static void on_timer(struct client_timer *timer)
{
    begin_try(container_of(timer, struct operation, timer));
}

static void on_abort(struct client_party *party)
{
    struct operation *op = container_of(party, struct operation, party);
    struct call *call = &op->call;
    bool may_act = op->under_way && call_writes(call); /* the HEAD that asks does nothing */

    if (op->under_way) {
        client_cancel(op->client, call);
        op->under_way = false;
    }
    if (op->asking) {
        op->call = op->wanted;
    }
    call_begin(call);
    call_fail(call, STREAM_ERROR_ABORTED, "aborted");
    call->result.error.outcome_unknown = op->unknown || may_act;
    finish(op);
}

static void run_operation(struct task *task)
{
    struct operation *op = container_of(task, struct operation, task);

    if (client_aborted(op->client)) {
        call_begin(&op->call);
        call_fail(&op->call, STREAM_ERROR_ABORTED, "aborted");
        hand_back(op);
        return;
    }
    client_party_join(op->client, &op->party);
    begin(op);
}

/* ---------------------------------------------------------------------- on the caller's thread */

static void init_operation(struct operation *op, struct stream_client *client,
                           const struct call *call)
{
    *op = (struct operation){.client = client, .call = *call, .task = {.run = run_operation}};
    op->call.on_done = on_done;
    client_party_init(&op->party, on_abort);
    client_timer_init(&op->timer, on_timer);
    retry_reset(&op->retry, &client_options(client)->retry);
    if (call->create != NULL) {
        op->create = *call->create;
        op->call.create = &op->create;
    }
    op->find_type = call->verb == CALL_APPEND && call->body.len > 0 && call->content_type == NULL;
}

static void run_and_wait(struct operation *op)
{
    (void)pthread_mutex_init(&op->mutex, NULL); /* neither can fail on Linux */
    (void)pthread_cond_init(&op->end, NULL);
    client_post(op->client, &op->task);
    (void)pthread_mutex_lock(&op->mutex);
    while (!op->ended) {
        (void)pthread_cond_wait(&op->end, &op->mutex);
    }
    (void)pthread_mutex_unlock(&op->mutex);
    (void)pthread_cond_destroy(&op->end);
    (void)pthread_mutex_destroy(&op->mutex);
}

int operation_check_client(const struct stream_client *client, const struct call *call,
                           struct stream_error *ret_error)
{
    char what[STREAM_ERROR_MESSAGE_BYTES];

    if (!client_ending(client)) {
        return STREAM_OK;
    }
    call_what(call, what, sizeof(what));
    return call_error_set(ret_error, STREAM_ERROR_ABORTED, "%s: the client is being freed", what);
}

int operation_block(struct stream_client *client, const struct call *call,
                    struct stream_info *ret_info, char *ret_after, struct stream_error *ret_error)
{
    struct operation op;
    int code = operation_check_client(client, call, ret_error);

    if (code != STREAM_OK) {
        return code;
    }
    init_operation(&op, client, call);
    run_and_wait(&op);
    const struct call_result *r = &op.call.result;

    if (r->error.code == STREAM_OK) {
        if (ret_info != NULL) {
            *ret_info = r->info;
        }
        if (ret_after != NULL) {
            memcpy(ret_after, r->after, CALL_AFTER_BYTES);
        }
    } else if (ret_error != NULL) {
        *ret_error = r->error;
    }
    return (int)r->error.code;
}

/* The end of a started operation, in stream_client_step or inside. */
static void tell_done(struct task *task)
{
    struct operation *op = container_of(task, struct operation, task);
    const struct call_result *r = &op->call.result;
    bool good = r->error.code == STREAM_OK;

    client_started_drop(op->client);
    op->done(op->context, (int)r->error.code, good ? &r->info : NULL, good ? NULL : &r->error);
    free(op->name);
    free(op);
}

static void run_started(struct task *task)
{
    task->run = tell_done;
    run_operation(task);
}

static int start(struct stream_client *client, const struct call *call, bool inside,
                 stream_done_fn done, void *context, struct stream_error *ret_error)
{
    int code = operation_check_client(client, call, ret_error);

    if (code != STREAM_OK) {
        return code;
    }
    struct operation *op = malloc(sizeof(*op));
    char *name = malloc(call->name.len + 1);

    if (op == NULL || name == NULL) {
        free(op);
        free(name);
        return call_error_set(ret_error, STREAM_ERROR_MEMORY, "out of memory");
    }
    if (!client_started_add(client)) {
        free(op);
        free(name);
        return call_error_set(ret_error, STREAM_ERROR_BUSY,
                              "%u calls are under way; stream_client_step ends them",
                              CLIENT_STARTED_MAX);
    }
    memcpy(name, call->name.ptr, call->name.len);
    init_operation(op, client, call);
    op->name = name;
    op->call.name.ptr = name;
    op->done = done;
    op->inside = inside;
    op->context = context;
    op->task.run = run_started;
    client_post(client, &op->task);
    return STREAM_OK;
}

int operation_start(struct stream_client *client, const struct call *call, stream_done_fn done,
                    void *context, struct stream_error *ret_error)
{
    return start(client, call, false, done, context, ret_error);
}

int operation_start_inside(struct stream_client *client, const struct call *call,
                           stream_done_fn done, void *context, struct stream_error *ret_error)
{
    return start(client, call, true, done, context, ret_error);
}

int operation_refuse(const struct call *call, const char *why, struct stream_error *ret_error)
{
    char what[STREAM_ERROR_MESSAGE_BYTES];

    call_what(call, what, sizeof(what));
    return call_error_set(ret_error, STREAM_ERROR_ARGUMENT, "%s: %s", what, why);
}
