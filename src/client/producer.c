/* The public producer: the pipeline (pipeline.h) under a lock, the caller's threads on one side of
 * it, the client's thread on the other.
 *
 * A caller's thread adds messages and waits; when the pipeline has something new to say it posts
 * `pump` to the client's thread, which sends what may be sent and sets the timer for what may be
 * sent later. Answers come in on_answer, which pumps again. All that waits, waits for `changed`.
 *
 * Failing for good, the client's thread cancels what is in flight, drops what is queued and tells
 * the owner, in fall, which is the only place that does. */
#include "arbe/producer.h"

#include "base/json_value.h"
#include "base/limits.h"
#include "base/media_type.h"
#include "client/client.h"
#include "client/operation.h"
#include "client/pipeline.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* One batch in flight. */
struct slot {
    struct call call;
    struct stream_producer *producer;
    struct batch *batch; /* NULL: free */
};

struct stream_producer {
    struct stream_client *client;
    char *name; /* of the stream; owned, as the id and the slots */
    char *id;
    struct slot *slots; /* as many as may be in flight */
    int slot_count;
    void (*failed)(void *context, uint64_t first_lost, const struct stream_error *error);
    void *context;
    char what[STREAM_ERROR_MESSAGE_BYTES / 2]; /* words for errors */

    /* Of the client's thread. */
    struct client_party party;
    struct client_timer timer;
    struct call head;        /* asks for the content type */
    struct retry head_retry; /* its failures */
    bool head_under_way;
    bool fallen; /* cancelled and dropped */

    pthread_mutex_t lock;   /* guards what follows */
    pthread_cond_t changed; /* all that a caller may wait for */
    struct pipeline pipeline;
    bool told; /* the owner was, of the failure */
    struct task pump;
    bool pump_posted;
    struct task ask;
    bool asking; /* for the content type; then: */
    bool typed;  /* it is known */
    char type[OPERATION_TYPE_BYTES];
    struct stream_error type_error; /* else why not */
};

/* ---------------------------------------------------------------------- on the client's thread */

static void cancel_all(struct stream_producer *p)
{
    client_timer_stop(&p->timer);
    if (p->head_under_way) {
        client_cancel(p->client, &p->head);
        p->head_under_way = false;
    }
    for (int i = 0; i < p->slot_count; i++) {
        if (p->slots[i].batch) {
            client_cancel(p->client, &p->slots[i].call);
            p->slots[i].batch = NULL;
        }
    }
}

/* Once the pipeline has failed. Called without the lock, since `failed` may ask for counts. */
static void fall(struct stream_producer *p)
{
    if (p->fallen) {
        return;
    }
    p->fallen = true;
    cancel_all(p);
    (void)pthread_mutex_lock(&p->lock);
    struct stream_error error = p->pipeline.error;
    uint64_t stored = p->pipeline.stored;
    pipeline_finish(&p->pipeline);
    (void)pthread_mutex_unlock(&p->lock);
    if (p->failed) {
        p->failed(p->context, stored, &error);
    }
    (void)pthread_mutex_lock(&p->lock);
    p->told = true;
    (void)pthread_cond_broadcast(&p->changed);
    (void)pthread_mutex_unlock(&p->lock);
}

static void on_answer(struct call *call);

static struct slot *free_slot(struct stream_producer *p)
{
    for (int i = 0; i < p->slot_count; i++) {
        if (!p->slots[i].batch) {
            return &p->slots[i];
        }
    }
    assert(false); /* there are as many slots as batches in flight */
    return NULL;
}

static struct slot *fill_slot(struct stream_producer *p, struct batch *batch)
{
    struct slot *slot = free_slot(p);

    slot->batch = batch;
    slot->call = (struct call){
        .verb = CALL_APPEND,
        .name = slice_of(p->name),
        .body = batch_body(&p->pipeline, batch),
        .content_type = batch->count > 0 ? p->type : NULL,
        .close = batch->close,
        .producer_id = p->id,
        .producer_epoch = p->pipeline.epoch,
        .producer_seq = batch->seq,
        .on_done = on_answer,
    };
    return slot;
}

/* Starts the next batch; false when none may be sent now. The call is started without the lock, for
 * it runs the program's add_headers. */
static bool send_one(struct stream_producer *p, int64_t *ret_wait_ms)
{
    struct slot *slot = NULL;

    (void)pthread_mutex_lock(&p->lock);
    struct batch *batch = pipeline_next(&p->pipeline, client_now_ms(), ret_wait_ms);
    if (batch) {
        slot = fill_slot(p, batch);
    }
    (void)pthread_mutex_unlock(&p->lock);
    if (slot) {
        client_start(p->client, &slot->call);
    }
    return slot;
}

/* Sends all that may be sent now. */
static void pump(struct stream_producer *p)
{
    int64_t wait_ms;

    (void)pthread_mutex_lock(&p->lock);
    bool failed = p->pipeline.state == PIPELINE_FAILED;
    (void)pthread_mutex_unlock(&p->lock);
    if (failed) {
        fall(p);
        return;
    }
    while (send_one(p, &wait_ms)) {
    }
    if (wait_ms >= 0) {
        client_timer_start(p->client, &p->timer, (uint64_t)wait_ms);
    }
}

static void run_pump(struct task *task)
{
    struct stream_producer *p = container_of(task, struct stream_producer, pump);

    /* Here and nowhere else: a task that is on its way must not be posted again. */
    (void)pthread_mutex_lock(&p->lock);
    p->pump_posted = false; /* what is added from here on posts it again */
    (void)pthread_mutex_unlock(&p->lock);
    pump(p);
}

static void on_answer(struct call *call)
{
    struct slot *slot = container_of(call, struct slot, call);
    struct stream_producer *p = slot->producer;
    struct batch *batch = slot->batch;

    slot->batch = NULL;
    (void)pthread_mutex_lock(&p->lock);
    pipeline_answer(&p->pipeline, batch, &call->result, client_now_ms(), client_dice(p->client));
    (void)pthread_cond_broadcast(&p->changed);
    (void)pthread_mutex_unlock(&p->lock);
    pump(p);
}

static void start_head(struct stream_producer *p)
{
    p->head_under_way = true;
    client_start(p->client, &p->head);
}

/* The HEAD's answer. Without a type there is none: a guess would decide on the form of all that
 * follows. Called with the lock held. */
static void take_type(struct stream_producer *p, const struct call *head)
{
    const struct call_result *r = &head->result;

    p->type_error = r->error;
    if (r->error.code == STREAM_OK && r->info.content_type[0] == '\0') {
        (void)call_error_set(&p->type_error, STREAM_ERROR_FORMAT,
                             "%s: the server does not tell the content type", p->what);
        p->type_error.status = r->info.status;
    }
    p->typed = p->type_error.code == STREAM_OK;
    if (p->typed) {
        memcpy(p->type, r->info.content_type, sizeof(p->type));
        p->pipeline.options.json = media_type_is_json(slice_of(p->type));
        client_type_note(p->client, head->name, p->type);
    }
}

static void on_head(struct call *call)
{
    struct stream_producer *p = container_of(call, struct stream_producer, head);
    const struct call_result *r = &call->result;
    uint64_t pause_ms;

    p->head_under_way = false;
    if (r->transient &&
        retry_next(&p->head_retry, r->error.retry_after_ms, client_dice(p->client), &pause_ms)) {
        client_timer_start(p->client, &p->timer, pause_ms);
        return;
    }
    (void)pthread_mutex_lock(&p->lock);
    p->asking = false;
    take_type(p, call);
    (void)pthread_cond_broadcast(&p->changed);
    (void)pthread_mutex_unlock(&p->lock);
}

static void run_ask(struct task *task)
{
    struct stream_producer *p = container_of(task, struct stream_producer, ask);

    if (p->fallen) {
        return;
    }
    p->head = (struct call){.verb = CALL_HEAD, .name = slice_of(p->name), .on_done = on_head};
    retry_reset(&p->head_retry, &client_options(p->client)->retry);
    start_head(p);
}

/* Before the type is known nothing is queued, so that one timer serves both. */
static void on_timer(struct client_timer *timer)
{
    struct stream_producer *p = container_of(timer, struct stream_producer, timer);

    (void)pthread_mutex_lock(&p->lock);
    bool asking = p->asking;
    (void)pthread_mutex_unlock(&p->lock);
    if (asking && !p->head_under_way) {
        start_head(p);
    }
    pump(p);
}

static void fail_and_fall(struct stream_producer *p, const char *sentence)
{
    (void)pthread_mutex_lock(&p->lock);
    pipeline_fail(&p->pipeline, STREAM_ERROR_ABORTED, sentence);
    bool failed = p->pipeline.state == PIPELINE_FAILED;
    (void)pthread_mutex_unlock(&p->lock);
    if (failed) {
        fall(p);
    }
}

static void on_abort(struct client_party *party)
{
    fail_and_fall(container_of(party, struct stream_producer, party), "aborted");
}

/* The first and the last thing that the client's thread does with a producer. */
struct visit {
    struct task task;
    struct stream_producer *producer;
    const struct pipeline_options *options;
};

static void attach(struct task *task)
{
    struct visit *visit = container_of(task, struct visit, task);
    struct stream_producer *p = visit->producer;

    pipeline_init(&p->pipeline, visit->options, client_dice(p->client));
    client_party_join(p->client, &p->party);
}

static void detach(struct task *task)
{
    struct stream_producer *p = container_of(task, struct visit, task)->producer;

    client_party_leave(&p->party);
    (void)pthread_mutex_lock(&p->lock);
    bool all_stored = p->pipeline.appended == p->pipeline.stored && !p->pipeline.closing;
    (void)pthread_mutex_unlock(&p->lock);
    if (!all_stored) {
        fail_and_fall(p, "the producer was freed before all of its messages were stored");
    }
    cancel_all(p);
}

/* ---------------------------------------------------------------------- on the caller's thread */

void stream_producer_options_init(struct stream_producer_options *options)
{
    *options = (struct stream_producer_options){
        .max_batch_bytes = 1 * MIB,
        .max_batch_messages = 1000,
        .linger_ms = 5,
        .max_in_flight = 5,
        .max_queued_bytes = 64 * MIB,
    };
}

static int check_id(const char *id, struct stream_error *ret_error)
{
    size_t len = strlen(id);
    bool good = len > 0 && len <= PRODUCER_ID_BYTES_MAX && id[0] != ' ' && id[len - 1] != ' ';

    for (size_t i = 0; i < len; i++) {
        good = good && (unsigned char)id[i] >= 0x20 && id[i] != 0x7f;
    }
    return good ? STREAM_OK
                : call_error_set(ret_error, STREAM_ERROR_ARGUMENT,
                                 "producer_id must have 1 to %u bytes, no control characters, and "
                                 "no spaces at its ends",
                                 PRODUCER_ID_BYTES_MAX);
}

static int check_options(const struct stream_producer_options *o, struct stream_error *ret_error)
{
    const struct {
        const char *name;
        int64_t value;
        int64_t least;
        int64_t most;
    } limits[] = {
        {"epoch", o->epoch, 0, PRODUCER_EPOCH_MAX},
        {"max_batch_bytes", o->max_batch_bytes > 0, 1, 1},
        {"max_batch_messages", o->max_batch_messages, 1, INT32_MAX},
        {"linger_ms", o->linger_ms, 0, INT32_MAX},
        {"max_in_flight", o->max_in_flight, 1, PRODUCER_IN_FLIGHT_MAX},
        {"max_queued_bytes", o->max_queued_bytes > 0, 1, 1},
    };

    for (size_t i = 0; i < ARRAY_COUNT(limits); i++) {
        if (limits[i].value < limits[i].least) {
            return call_error_set(ret_error, STREAM_ERROR_ARGUMENT,
                                  "%s is %" PRId64 "; it must be %" PRId64 " or more",
                                  limits[i].name, limits[i].value, limits[i].least);
        }
        if (limits[i].value > limits[i].most) {
            return call_error_set(ret_error, STREAM_ERROR_ARGUMENT,
                                  "%s is %" PRId64 "; it must be %" PRId64 " or less",
                                  limits[i].name, limits[i].value, limits[i].most);
        }
    }
    if (o->content_type && !media_type_valid(slice_of(o->content_type))) {
        return call_error_set(ret_error, STREAM_ERROR_ARGUMENT,
                              "content_type is malformed: type/subtype is expected");
    }
    if (o->content_type && strlen(o->content_type) >= OPERATION_TYPE_BYTES) {
        return call_error_set(ret_error, STREAM_ERROR_ARGUMENT,
                              "content_type has %zu bytes; it must have %u or less",
                              strlen(o->content_type), OPERATION_TYPE_BYTES - 1);
    }
    return STREAM_OK;
}

/* What errors are about. */
static struct call append_to(const char *name)
{
    return (struct call){.verb = CALL_APPEND, .name = slice_of(name), .body = SLICE("-")};
}

static int check_all(const struct stream_client *client, const char *name, const char *id,
                     const struct stream_producer_options *options, struct stream_error *ret_error)
{
    const struct call call = append_to(name);
    const char *why = call_name_refusal(slice_of(name));

    if (why) {
        return call_error_set(ret_error, STREAM_ERROR_ARGUMENT, "the name of the stream: %s", why);
    }
    int code = check_id(id, ret_error);
    if (code == STREAM_OK) {
        code = check_options(options, ret_error);
    }
    return code == STREAM_OK ? operation_check_client(client, &call, ret_error) : code;
}

static void destroy(struct stream_producer *p)
{
    pipeline_finish(&p->pipeline);
    (void)pthread_cond_destroy(&p->changed);
    (void)pthread_mutex_destroy(&p->lock);
    free(p->slots);
    free(p->id);
    free(p->name);
    free(p);
}

static struct pipeline_options options_of(const struct stream_producer *p,
                                          const struct stream_producer_options *o)
{
    return (struct pipeline_options){
        .json = o->content_type && media_type_is_json(slice_of(o->content_type)),
        .auto_claim = o->auto_claim != 0,
        .replay = o->replay != 0,
        .epoch = o->epoch,
        .batch_bytes_max = o->max_batch_bytes,
        .batch_count_max = (size_t)o->max_batch_messages,
        .linger_ms = (uint64_t)o->linger_ms,
        .in_flight_max = o->max_in_flight,
        .queued_bytes_max = o->max_queued_bytes,
        .retry = &client_options(p->client)->retry,
        .what = p->what,
    };
}

/* NULL when memory is out. */
static struct stream_producer *create(struct stream_client *client, const char *name,
                                      const char *id, const struct stream_producer_options *o)
{
    struct stream_producer *p = calloc(1, sizeof(*p));

    if (!p) {
        return NULL;
    }
    (void)pthread_mutex_init(&p->lock, NULL); /* neither can fail on Linux */
    (void)pthread_cond_init(&p->changed, NULL);
    p->client = client;
    p->name = strdup(name);
    p->id = strdup(id);
    p->slot_count = o->max_in_flight;
    p->slots = calloc((size_t)o->max_in_flight, sizeof(p->slots[0]));
    p->failed = o->failed;
    p->context = o->context;
    list_init(&p->pipeline.queue);
    if (!p->name || !p->id || !p->slots) {
        destroy(p);
        return NULL;
    }
    for (int i = 0; i < p->slot_count; i++) {
        p->slots[i].producer = p;
    }
    if (o->content_type) {
        (void)snprintf(p->type, sizeof(p->type), "%s", o->content_type);
        p->typed = true;
    }
    const struct call call = append_to(p->name);
    call_what(&call, p->what, sizeof(p->what));
    p->pump.run = run_pump;
    p->ask.run = run_ask;
    client_party_init(&p->party, on_abort);
    client_timer_init(&p->timer, on_timer);
    return p;
}

int stream_producer_new(struct stream_client *client, const char *name, const char *producer_id,
                        const struct stream_producer_options *options,
                        struct stream_producer **ret_producer, struct stream_error *ret_error)
{
    struct stream_producer_options defaults;

    stream_producer_options_init(&defaults);
    options = options ? options : &defaults;
    int code = check_all(client, name, producer_id, options, ret_error);
    if (code != STREAM_OK) {
        return code;
    }
    struct stream_producer *p = create(client, name, producer_id, options);
    if (!p) {
        return call_error_set(ret_error, STREAM_ERROR_MEMORY, "out of memory");
    }
    const struct pipeline_options line = options_of(p, options);
    struct visit visit = {.task = {.run = attach}, .producer = p, .options = &line};
    client_run(client, &visit.task);
    *ret_producer = p;
    return STREAM_OK;
}

/* The functions from here on are called with the lock held, unless they say otherwise. */

static void post_pump(struct stream_producer *p)
{
    if (!p->pump_posted) {
        p->pump_posted = true;
        client_post(p->client, &p->pump);
    }
}

static int give_error(const struct stream_error *error, struct stream_error *ret_error)
{
    if (ret_error) {
        *ret_error = *error;
    }
    return (int)error->code;
}

/* The failure for good. The owner hears of it by `failed` first. */
static int check_failed(struct stream_producer *p, struct stream_error *ret_error)
{
    if (p->pipeline.state != PIPELINE_FAILED) {
        return STREAM_OK;
    }
    while (!p->told) {
        (void)pthread_cond_wait(&p->changed, &p->lock);
    }
    return give_error(&p->pipeline.error, ret_error);
}

/* A stall ends here. */
static int begin(struct stream_producer *p, struct stream_error *ret_error)
{
    int code = check_failed(p, ret_error);

    if (p->pipeline.state == PIPELINE_STALLED) {
        pipeline_rouse(&p->pipeline);
        post_pump(p);
    }
    return code;
}

/* While it waits, the pipeline may come to fail or to stall. */
static int wait_changed(struct stream_producer *p, struct stream_error *ret_error)
{
    (void)pthread_cond_wait(&p->changed, &p->lock);
    if (p->pipeline.state == PIPELINE_STALLED) {
        return give_error(&p->pipeline.error, ret_error);
    }
    return check_failed(p, ret_error);
}

static int find_type(struct stream_producer *p, struct stream_error *ret_error)
{
    int code = STREAM_OK;

    if (p->typed) {
        return STREAM_OK;
    }
    p->asking = true;
    client_post(p->client, &p->ask);
    while (code == STREAM_OK && p->asking) {
        code = wait_changed(p, ret_error);
    }
    if (code == STREAM_OK && !p->typed) {
        return give_error(&p->type_error, ret_error);
    }
    return code;
}

static int check_message(const struct stream_producer *p, struct slice message,
                         struct stream_error *ret_error)
{
    struct slice value;
    struct errmsg why = {0};

    if (message.len == 0) {
        return call_error_set(ret_error, STREAM_ERROR_ARGUMENT, "%s: there is nothing to append",
                              p->what);
    }
    if (!p->pipeline.options.json) {
        return STREAM_OK;
    }
    return json_text_read(message, &value, &why) == 0
               ? STREAM_OK
               : call_error_set(ret_error, STREAM_ERROR_ARGUMENT,
                                "%s: a message must be one JSON value: %s", p->what, why.text);
}

/* Waits until the message may be queued. */
static int admit(struct stream_producer *p, struct slice message, struct stream_error *ret_error)
{
    int code = begin(p, ret_error);

    if (code == STREAM_OK && p->pipeline.closing) {
        return call_error_set(ret_error, STREAM_ERROR_CLOSED, "%s: the producer was closed",
                              p->what);
    }
    if (code == STREAM_OK) {
        code = find_type(p, ret_error);
    }
    if (code == STREAM_OK) {
        code = check_message(p, message, ret_error);
    }
    while (code == STREAM_OK && !pipeline_has_room(&p->pipeline, message.len)) {
        code = wait_changed(p, ret_error);
    }
    return code;
}

static int wait_stored(struct stream_producer *p, struct stream_info *ret_info,
                       struct stream_error *ret_error)
{
    const struct pipeline *line = &p->pipeline;
    uint64_t target = line->appended;
    int code = STREAM_OK;

    post_pump(p);
    while (code == STREAM_OK &&
           (line->stored < target || (line->closing && line->state != PIPELINE_CLOSED))) {
        code = wait_changed(p, ret_error);
    }
    if (code == STREAM_OK && ret_info) {
        *ret_info = line->info;
    }
    return code;
}

int stream_producer_append(struct stream_producer *p, const void *data, size_t len,
                           struct stream_error *ret_error)
{
    struct slice message = {data, len};
    bool poke = false;

    (void)pthread_mutex_lock(&p->lock);
    int code = admit(p, message, ret_error);
    if (code == STREAM_OK && pipeline_append(&p->pipeline, message, client_now_ms(), &poke) < 0) {
        code = call_error_set(ret_error, STREAM_ERROR_MEMORY, "%s: out of memory", p->what);
    }
    if (poke) {
        post_pump(p);
    }
    (void)pthread_mutex_unlock(&p->lock);
    return code;
}

int stream_producer_flush(struct stream_producer *p, struct stream_info *ret_info,
                          struct stream_error *ret_error)
{
    (void)pthread_mutex_lock(&p->lock);
    int code = begin(p, ret_error);
    if (code == STREAM_OK) {
        pipeline_flush(&p->pipeline);
        code = wait_stored(p, ret_info, ret_error);
    }
    (void)pthread_mutex_unlock(&p->lock);
    return code;
}

/* Queues what closes, once. */
static int begin_close(struct stream_producer *p, struct slice message,
                       struct stream_error *ret_error)
{
    int code = begin(p, ret_error);

    if (code == STREAM_OK && !p->pipeline.closing) {
        if (message.len > 0) {
            code = admit(p, message, ret_error);
        }
        if (code == STREAM_OK && pipeline_close(&p->pipeline, message) < 0) {
            code = call_error_set(ret_error, STREAM_ERROR_MEMORY, "%s: out of memory", p->what);
        }
    }
    return code;
}

int stream_producer_close(struct stream_producer *p, const void *data, size_t len,
                          struct stream_info *ret_info, struct stream_error *ret_error)
{
    struct slice message = {data, len};

    (void)pthread_mutex_lock(&p->lock);
    int code = begin_close(p, message, ret_error);
    if (code == STREAM_OK) {
        code = wait_stored(p, ret_info, ret_error);
    }
    (void)pthread_mutex_unlock(&p->lock);
    return code;
}

/* ------------------------------------------------------------------------- without the lock */

void stream_producer_counts(struct stream_producer *p, uint64_t *ret_appended, uint64_t *ret_stored,
                            int64_t *ret_epoch)
{
    (void)pthread_mutex_lock(&p->lock);
    if (ret_appended) {
        *ret_appended = p->pipeline.appended;
    }
    if (ret_stored) {
        *ret_stored = p->pipeline.stored;
    }
    if (ret_epoch) {
        *ret_epoch = p->pipeline.epoch;
    }
    (void)pthread_mutex_unlock(&p->lock);
}

void stream_producer_abort(struct stream_producer *p)
{
    client_party_abort(p->client, &p->party);
}

void stream_producer_free(struct stream_producer *p)
{
    if (!p) {
        return;
    }
    struct visit visit = {.task = {.run = detach}, .producer = p};
    client_run(p->client, &visit.task); /* a pump that was posted runs before it */
    destroy(p);
}
