/* A transfer goes through: queued (start) -> with the engine or on the pool -> queued -> perhaps
 * asleep on its stream, and to the engine again -> queued -> its body is given out, perhaps paused
 * -> ended. What comes next for a queued transfer is in `next`; a turn of `wait` runs what is
 * queued, and nothing else calls the client.
 *
 * The engine knows no cancel: a transfer whose call is cancelled while an operation of it is under
 * way becomes an orphan, which owns all that the operation borrows and is freed at its end. The
 * worker detaches when there are no orphans and no wake-up is on its way.
 *
 * Tasks come from other threads, through a list under a lock and an event descriptor that `wait`
 * polls together with the client's own. */
#include "app/engine_transport.h"

#include "app/engine_answer.h"
#include "app/engine_request.h"
#include "base/pool.h"
#include "client/client.h"
#include "stream/refusal.h"

#include <assert.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define GIVEN_BYTES  (64u * KIB) /* most bytes of one piece of a body */
#define STEPS_A_TURN 256u        /* of queued transfers, before the client looks elsewhere */
#define WAIT_MS_MAX  3600000u    /* no turn is longer */
#define BODY_BYTES   (64ull * MIB)
#define LONG_POLL_MS 30000u
#define PAGE_BYTES   (256 * KIB) /* a reader that is not asked keeps a page from the disk */

/* A page of names, made on the pool. */
struct listing {
    struct buf entries; /* struct entry, name and type, one behind the other */
    struct engine_list_end end;
    int code;
};

struct entry {
    uint64_t next;
    struct stream_expiry expiry;
    bool closed;
    size_t name_len;
    size_t type_len;
};

struct transfer {
    struct list link;  /* on transfers, or on orphans */
    struct list ready; /* on the queue */
    struct engine_transport *transport;
    struct call *call; /* NULL: an orphan */
    struct engine_request request;
    void (*next)(struct transfer *t);
    bool busy;      /* an operation, or the pool, has it */
    bool waiting;   /* `waiter` is on its stream */
    bool timed_out; /* a long-poll that is not to sleep again */
    bool paused;    /* on_data said so */
    struct stream_waiter waiter;
    struct stream *stream; /* that a long-poll waits on; referenced */
    uint64_t at;           /* and where */
    struct engine_body body;
    uint64_t deadline_ms; /* of all, or of the sleep of a long-poll; 0: none */
    uint64_t left_ms;     /* while paused: what remained of that */
    struct listing *listing;
    struct task task; /* to the pool and back */
};

struct engine_transport {
    struct transport base;
    struct engine_client_config config;
    struct engine_worker *worker;
    int request_timeout_ms;
    struct list transfers;  /* with a call */
    struct list orphans;    /* without */
    struct list ready;      /* transfers that have something to do */
    struct list unprepared; /* calls for which there was no memory */
    int event;              /* there may be tasks */
    pthread_mutex_t mutex;  /* guards `tasks` */
    struct list tasks;
    char given[GIVEN_BYTES]; /* the piece at hand */
};

static struct engine_transport *of(struct transport *t)
{
    return container_of(t, struct engine_transport, base);
}

static bool is_live(const struct call *call)
{
    return call->verb == CALL_LONG_POLL;
}

static void free_listing(struct listing *listing)
{
    if (listing != NULL) {
        buf_finish(&listing->entries);
        free(listing);
    }
}

/* Nothing of it is under way. */
static void free_transfer(struct transfer *t)
{
    assert(!t->busy && !t->waiting);
    list_remove(&t->link);
    list_remove(&t->ready);
    if (t->request.op.verb == STREAM_READ) {
        stream_page_finish(&t->request.op.result.page);
    }
    engine_request_finish(&t->request);
    stream_unref(t->stream);
    free_listing(t->listing);
    free(t);
}

static void enqueue(struct transfer *t, void (*next)(struct transfer *t))
{
    t->next = next;
    list_remove(&t->ready);
    list_append(&t->transport->ready, &t->ready);
}

/* Parts a transfer from its call. What is under way goes on without it. */
static void part(struct transfer *t)
{
    t->call->transfer = NULL;
    t->call = NULL;
    if (t->waiting) {
        t->waiting = false;
        stream_unwait(&t->waiter);
    }
    if (!t->busy) {
        free_transfer(t);
        return;
    }
    list_remove(&t->link);
    list_append(&t->transport->orphans, &t->link);
}

static void end(struct transfer *t)
{
    struct call *call = t->call;

    part(t);
    call->on_done(call);
}

/* Something that was under way is there. */
static void arrived(struct transfer *t)
{
    t->busy = false;
    if (t->call == NULL) {
        free_transfer(t);
    } else {
        enqueue(t, t->next);
    }
}

/* ---------------------------------------------------------------------------------- operations */

static void op_done(struct stream_op *op)
{
    arrived(container_of(op, struct transfer, request.op));
}

static void run_op(struct transfer *t, void (*then)(struct transfer *t))
{
    t->next = then;
    t->busy = true;
    t->request.op.done = op_done;
    if (stream_start(t->transport->worker, &t->request.op) != STREAM_PENDING) {
        t->busy = false;
        enqueue(t, then);
    }
}

static void answer(struct transfer *t)
{
    engine_answer(t->call, &t->request.op);
    t->call->result.body_whole = true;
    end(t);
}

static void put_off(struct transfer *t)
{
    uint64_t now = client_now_ms();

    t->paused = true;
    t->left_ms = t->deadline_ms > now ? t->deadline_ms - now : 1;
}

static void give(struct transfer *t)
{
    struct engine_transport *transport = t->transport;

    for (;;) {
        struct engine_body before = t->body;
        size_t len = engine_body_next(&t->body, transport->given, GIVEN_BYTES);
        enum call_flow flow = CALL_STOP;

        t->call->result.body_whole = len == 0;
        if (len > 0) {
            flow = t->call->on_data(t->call, (struct slice){transport->given, len});
        }
        if (flow == CALL_PAUSE) {
            t->body = before;
            put_off(t);
            return;
        }
        if (flow == CALL_STOP) {
            end(t);
            return;
        }
    }
}

static void give_page(struct transfer *t)
{
    engine_answer(t->call, &t->request.op);
    if (t->request.op.result.code != 0) {
        t->call->result.body_whole = true;
        end(t);
        return;
    }
    engine_body_begin(&t->body, &t->request.op.result.page);
    give(t);
}

/* ---------------------------------------------------------------------------------- long-polls */

static void look(struct transfer *t);

static void wake(struct stream_waiter *waiter)
{
    struct transfer *t = container_of(waiter, struct transfer, waiter);

    t->waiting = false;
    enqueue(t, look);
}

static void sleep_or_look(struct transfer *t)
{
    struct errmsg msg = {{0}};

    t->waiter = (struct stream_waiter){.wake = wake, .from = t->at};
    int code = stream_wait(t->transport->worker, t->stream, &t->waiter);

    if (code == 0) {
        t->waiting = true;
    } else if (code == STREAM_PENDING) {
        enqueue(t, look);
    } else {
        int status = code == ERR_LIMIT ? refusal_of_reader(&msg, "a stream") : err_status(code);

        engine_answer_refusal(t->call, status, refusal_detail(code, &msg));
        end(t);
    }
}

/* The stream that was waited for is gone. Whether its path says 404 or 410 now, the path knows. */
static void answer_gone(struct transfer *t)
{
    int code = t->request.op.result.code == ERR_GONE ? ERR_GONE : ERR_NOTFOUND;

    engine_answer_refusal(t->call, err_status(code), slice_of(err_text(code)));
    t->call->result.body_whole = true;
    end(t);
}

static void looked(struct transfer *t)
{
    struct stream_op *op = &t->request.op;
    struct stream_page *page = &op->result.page;

    if (op->result.code != 0) {
        answer(t);
    } else if (page->gone) {
        stream_page_finish(page);
        *op = (struct stream_op){.verb = STREAM_HEAD, .name = op->name};
        run_op(t, answer_gone);
    } else if (page->bytes > 0) {
        t->deadline_ms = 0;
        give_page(t);
    } else if (page->closed || t->timed_out) {
        engine_answer_nothing(t->call, page);
        t->call->result.body_whole = true;
        end(t);
    } else {
        stream_page_finish(page);
        sleep_or_look(t);
    }
}

static void look(struct transfer *t)
{
    struct stream_op *op = &t->request.op;

    *op = (struct stream_op){
        .verb = STREAM_READ,
        .name = op->name,
        .read = {.from = {.kind = OFFSET_AT, .position = t->at},
                 .stream = t->stream,
                 .in_memory = true,
                 .bytes_max = t->transport->config.page_bytes},
    };
    run_op(t, looked);
}

/* The first read of a long-poll. */
static void begin_live(struct transfer *t)
{
    const struct stream_page *page = &t->request.op.result.page;

    if (t->request.op.result.code == 0 && page->bytes == 0 && !page->closed) {
        t->stream = stream_ref(page->stream);
        t->at = page->next;
        t->deadline_ms = client_now_ms() + t->transport->config.long_poll_timeout_ms;
    }
    looked(t);
}

static void time_out_live(struct transfer *t)
{
    t->deadline_ms = 0;
    t->timed_out = true;
    if (t->waiting) {
        t->waiting = false;
        stream_unwait(&t->waiter);
        enqueue(t, look);
    }
}

/* ------------------------------------------------------------------------------------ listings */

/* On the pool. */
static int keep_listed(void *context, const struct stream_listed *listed)
{
    struct listing *listing = context;
    struct entry entry = {
        .next = listed->next,
        .expiry = listed->expiry,
        .closed = listed->closed,
        .name_len = listed->name.len,
        .type_len = listed->content_type.len,
    };

    buf_append(&listing->entries, (struct slice){(const char *)&entry, sizeof(entry)});
    buf_append(&listing->entries, listed->name);
    buf_append(&listing->entries, listed->content_type);
    return listing->entries.failed ? ERR_NOMEM : 0;
}

static void back_from_pool(struct task *task)
{
    arrived(container_of(task, struct transfer, task));
}

static void post(void *context, struct task *task);

static void list_on_pool(struct task *task)
{
    struct transfer *t = container_of(task, struct transfer, task);
    struct listing *listing = t->listing;

    listing->code = engine_list(t->transport->config.engine, &t->request.list, keep_listed, listing,
                                &listing->end);
    t->task.run = back_from_pool;
    post(t->transport, &t->task);
}

static void show_listing(struct call *call, const struct listing *listing)
{
    const char *at = listing->entries.ptr;
    const char *behind = at + listing->entries.len;

    while (at < behind) {
        struct stream_info info = {0};
        struct entry entry;

        memcpy(&entry, at, sizeof(entry));
        at += sizeof(entry);
        engine_answer_listed(&info, entry.next, (struct slice){at + entry.name_len, entry.type_len},
                             entry.closed, &entry.expiry);
        call->on_listed(call, (struct slice){at, entry.name_len}, &info);
        at += entry.name_len + entry.type_len;
    }
}

static void answer_listing(struct transfer *t)
{
    const struct listing *listing = t->listing;
    struct call_result *r = &t->call->result;
    struct errmsg msg = {{0}};

    r->body_whole = true;
    if (listing->code != 0) {
        engine_answer_refusal(t->call, err_status(listing->code),
                              refusal_detail(listing->code, &msg));
    } else {
        r->info.status = 200;
        show_listing(t->call, listing);
        if (listing->end.more) {
            memcpy(r->after, listing->end.last.ptr, listing->end.last.len);
            r->after[listing->end.last.len] = '\0';
        }
    }
    end(t);
}

static void begin_listing(struct transfer *t)
{
    t->listing = calloc(1, sizeof(*t->listing));
    if (t->listing == NULL) {
        call_fail(t->call, STREAM_ERROR_MEMORY, "out of memory");
        end(t);
        return;
    }
    buf_init(&t->listing->entries, CLIENT_LISTING_BYTES_MAX);
    t->next = answer_listing;
    t->busy = true;
    list_init(&t->task.link);
    t->task.run = list_on_pool;
    pool_submit(t->transport->config.pool, &t->task);
}
/* ------------------------------------------------------------------------------- start and end */
/* -------------------------------------------------------------------------------- start and end */

static void begin(struct transfer *t)
{
    const struct engine_request_limits limits = {
        .body_bytes_max = t->transport->config.body_bytes_max,
        .page_bytes = t->transport->config.page_bytes,
    };

    if (!engine_request_fill(&t->request, t->call, &limits)) {
        end(t);
    } else if (t->call->verb == CALL_LIST) {
        begin_listing(t);
    } else if (t->call->verb == CALL_READ) {
        run_op(t, give_page);
    } else {
        run_op(t, is_live(t->call) ? begin_live : answer);
    }
}

static void start(struct transport *base, struct call *call)
{
    struct engine_transport *transport = of(base);
    struct transfer *t = calloc(1, sizeof(*t));
    uint64_t limit = (uint64_t)transport->request_timeout_ms;

    call->transfer = t;
    list_init(&call->link);
    if (t == NULL) {
        /* There is nothing to hang the end on but the call itself. */
        call_fail(call, STREAM_ERROR_MEMORY, "out of memory");
        list_append(&transport->unprepared, &call->link);
        return;
    }
    t->transport = transport;
    t->call = call;
    t->deadline_ms = limit > 0 && !is_live(call) ? client_now_ms() + limit : 0;
    list_init(&t->link);
    list_init(&t->ready);
    list_append(&transport->transfers, &t->link);
    enqueue(t, begin);
}

static void cancel(struct transport *base, struct call *call)
{
    (void)base;
    list_remove(&call->link);
    if (call->transfer != NULL) {
        part(call->transfer);
    }
}

static void resume(struct transport *base, struct call *call)
{
    struct transfer *t = call->transfer;

    (void)base;
    if (t->paused) {
        t->paused = false;
        t->deadline_ms = t->deadline_ms > 0 ? client_now_ms() + t->left_ms : 0;
        enqueue(t, give);
    }
}

/* ------------------------------------------------------------------------------------- the turn */

/* Any thread. */
static void post(void *context, struct task *task)
{
    struct engine_transport *transport = context;
    uint64_t one = 1;

    (void)pthread_mutex_lock(&transport->mutex);
    if (list_empty(&transport->tasks)) {
        (void)!write(transport->event, &one, sizeof(one)); /* it cannot be full */
    }
    list_init(&task->link);
    list_append(&transport->tasks, &task->link);
    (void)pthread_mutex_unlock(&transport->mutex);
}

static void run_tasks(struct engine_transport *transport)
{
    struct list tasks;
    uint64_t count;

    list_init(&tasks);
    (void)pthread_mutex_lock(&transport->mutex);
    if (!list_empty(&transport->tasks)) {
        (void)!read(transport->event, &count, sizeof(count)); /* to reset it */
        list_append_all(&tasks, &transport->tasks);
    }
    (void)pthread_mutex_unlock(&transport->mutex);
    for (struct list *node; (node = list_first(&tasks)) != NULL;) {
        struct task *task = container_of(node, struct task, link);

        list_remove(node);
        task->run(task);
    }
}

static void run_ready(struct engine_transport *transport)
{
    struct list *node;

    for (unsigned n = 0; n < STEPS_A_TURN && (node = list_first(&transport->ready)) != NULL; n++) {
        struct transfer *t = container_of(node, struct transfer, ready);

        list_remove(node);
        t->next(t);
    }
}

static void end_unprepared(struct engine_transport *transport)
{
    for (struct list *node; (node = list_first(&transport->unprepared)) != NULL;) {
        struct call *call = container_of(node, struct call, link);

        list_remove(node);
        call->on_done(call);
    }
}

static struct transfer *find_late(struct engine_transport *transport)
{
    uint64_t now = client_now_ms();

    LIST_FOR_EACH(node, &transport->transfers)
    {
        struct transfer *t = container_of(node, struct transfer, link);

        if (!t->paused && t->deadline_ms > 0 && now >= t->deadline_ms) {
            return t;
        }
    }
    return NULL;
}

static void fail_late(struct transfer *t)
{
    struct call_result *r = &t->call->result;
    enum call_verb verb = t->call->verb;

    call_fail(t->call, STREAM_ERROR_TIMEOUT, "the engine: there was no whole answer within %d ms",
              t->transport->request_timeout_ms);
    r->transient = verb == CALL_READ;
    r->error.outcome_unknown = verb == CALL_CREATE || verb == CALL_APPEND || verb == CALL_DELETE;
    end(t);
}

static void end_late(struct engine_transport *transport)
{
    for (struct transfer *t; (t = find_late(transport)) != NULL;) {
        if (is_live(t->call)) {
            time_out_live(t);
        } else {
            fail_late(t);
        }
    }
}

/* How long may be slept, not above `timeout_ms`. */
static int sleep_ms(struct engine_transport *transport, int timeout_ms)
{
    uint64_t now = client_now_ms();
    uint64_t sleep = timeout_ms >= 0 ? (uint64_t)timeout_ms : WAIT_MS_MAX;

    if (!list_empty(&transport->ready) || !list_empty(&transport->unprepared)) {
        return 0;
    }
    LIST_FOR_EACH(node, &transport->transfers)
    {
        const struct transfer *t = container_of(node, struct transfer, link);
        uint64_t left = t->deadline_ms > now ? t->deadline_ms - now : 0;

        sleep = !t->paused && t->deadline_ms > 0 && left < sleep ? left : sleep;
    }
    return (int)(sleep < WAIT_MS_MAX ? sleep : WAIT_MS_MAX);
}

static void wait_engine(struct transport *base, int wake_fd, int timeout_ms)
{
    struct engine_transport *transport = of(base);
    struct pollfd fds[] = {{.fd = wake_fd, .events = POLLIN},
                           {.fd = transport->event, .events = POLLIN}};
    int timeout = sleep_ms(transport, timeout_ms);

    if (timeout > 0) {
        (void)poll(fds, ARRAY_COUNT(fds), timeout); /* a signal is a reason to look, too */
    }
    end_unprepared(transport);
    run_tasks(transport);
    run_ready(transport);
    end_late(transport);
}

/* ------------------------------------------------------------------------------------ making it */

static void free_transport(struct engine_transport *transport)
{
    if (transport->event >= 0) {
        (void)close(transport->event); /* nothing can be lost */
    }
    (void)pthread_mutex_destroy(&transport->mutex);
    free(transport);
}

/* Its thread has ended, and this one goes on with what is under way. */
static void destroy(struct transport *base)
{
    struct engine_transport *transport = of(base);
    struct pollfd fd = {.fd = transport->event, .events = POLLIN};

    assert(list_empty(&transport->transfers) && list_empty(&transport->unprepared));
    run_tasks(transport);
    while (!list_empty(&transport->orphans) || !engine_worker_still(transport->worker)) {
        (void)poll(&fd, 1, -1); /* a signal is a reason to look, too */
        run_tasks(transport);
    }
    engine_detach(transport->worker);
    free_transport(transport);
}

static const struct transport_ops ops = {
    .start = start,
    .cancel = cancel,
    .resume = resume,
    .wait = wait_engine,
    .destroy = destroy,
};

int engine_transport_new(const struct engine_client_config *config,
                         const struct stream_client_options *options,
                         struct transport **ret_transport, struct stream_error *ret_error)
{
    struct engine_transport *transport = calloc(1, sizeof(*transport));
    struct engine_client_config *own;

    if (transport == NULL) {
        return call_error_set(ret_error, STREAM_ERROR_MEMORY, "out of memory");
    }
    transport->base = (struct transport){.ops = &ops, .has_sse = false};
    transport->config = *config;
    transport->request_timeout_ms = options->request_timeout_ms;
    own = &transport->config;
    own->body_bytes_max = own->body_bytes_max > 0 ? own->body_bytes_max : BODY_BYTES;
    own->long_poll_timeout_ms = own->long_poll_timeout_ms > 0 ? own->long_poll_timeout_ms
                                                              : LONG_POLL_MS;
    own->page_bytes = own->page_bytes > 0 ? own->page_bytes : PAGE_BYTES;
    list_init(&transport->transfers);
    list_init(&transport->orphans);
    list_init(&transport->ready);
    list_init(&transport->unprepared);
    list_init(&transport->tasks);
    (void)pthread_mutex_init(&transport->mutex, NULL); /* cannot fail on Linux */
    transport->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (transport->event < 0) {
        free_transport(transport);
        return call_error_set(ret_error, STREAM_ERROR_MEMORY, "no file descriptor is left");
    }
    if (engine_attach(config->engine, post, transport, &transport->worker) != 0) {
        free_transport(transport);
        return call_error_set(ret_error, STREAM_ERROR_MEMORY, "out of memory");
    }
    *ret_transport = &transport->base;
    return STREAM_OK;
}
