/* The reader's side posts `start` and then only takes; the client's thread runs the call, appends
 * to `fill`, and at last sets `ended`. When `fill` is full the call pauses, and the next feed_take,
 * which empties it, posts `resume`.
 *
 * Pages come to an end by themselves, so whoever waits for one is woken when it is there or when it
 * is large; events wake at once. */
#include "client/feed.h"

#include "base/limits.h"

#include <assert.h>

/* Bytes that may wait; as many more are with the reader. A larger piece is taken if it is alone. */
#define FILL_BYTES_MAX ((size_t)256 * KIB)
#define WAKE_BYTES     ((size_t)64 * KIB) /* of a page */

/* Under the mutex. */
static void set_ready(struct feed *f, bool is_on)
{
    if (f->is_ready == is_on) {
        return;
    }
    f->is_ready = is_on;
    if (is_on) {
        client_ready_add(f->client);
    } else {
        client_ready_drop(f->client);
    }
}

/* Under the mutex: there is something to take. */
static void tell(struct feed *f)
{
    (void)pthread_cond_signal(&f->news);
    if (f->stepped) {
        set_ready(f, true);
    }
}

/* Under the mutex. */
static bool has_news(const struct feed *f)
{
    size_t enough = f->request.verb == CALL_SSE ? 1 : WAKE_BYTES;

    return f->ended || f->fill.len >= enough || f->paused;
}

/* ---------------------------------------------------------------------- on the client's thread */

static void end(struct feed *f, enum feed_end how)
{
    (void)pthread_mutex_lock(&f->mutex);
    if (!f->ended) {
        f->end = how;
        f->elapsed_ms = client_now_ms() - f->sent_ms;
        f->ended = true;
        tell(f);
    }
    (void)pthread_mutex_unlock(&f->mutex);
}

static enum call_flow on_data(struct call *call, struct slice bytes)
{
    struct feed *f = container_of(call, struct feed, call);
    enum call_flow flow = CALL_TAKEN;

    (void)pthread_mutex_lock(&f->mutex);
    f->heard = true;
    if (!f->has_head) {
        f->head = call->result;
        f->has_head = true;
    }
    if (f->fill.len > 0 && f->fill.len + bytes.len > FILL_BYTES_MAX) {
        f->paused = true;
        flow = CALL_PAUSE;
    } else {
        buf_append(&f->fill, bytes);
        if (f->fill.failed) {
            call_fail(call, STREAM_ERROR_MEMORY, "out of memory");
            flow = CALL_STOP;
        }
    }
    if (has_news(f)) {
        tell(f);
    }
    (void)pthread_mutex_unlock(&f->mutex);
    return flow;
}

static void on_done(struct call *call)
{
    struct feed *f = container_of(call, struct feed, call);

    f->under_way = false;
    client_timer_stop(&f->timer);
    f->result = call->result; /* nobody looks before `ended` */
    end(f, FEED_DONE);
}

static void send_call(struct feed *f)
{
    f->call = (struct call){
        .verb = f->request.verb,
        .name = f->call.name,
        .what = f->what,
        .refusal = &f->refusal,
        .offset = f->request.offset,
        .cursor = f->request.cursor[0] != '\0' ? f->request.cursor : NULL,
        .on_data = on_data,
        .on_done = on_done,
    };
    f->under_way = true;
    f->heard = false;
    f->sent_ms = client_now_ms();
    if (f->request.silence_ms > 0) {
        client_timer_start(f->client, &f->timer, f->request.silence_ms);
    }
    client_start(f->client, &f->call);
}

static void on_time(struct client_timer *timer)
{
    struct feed *f = container_of(timer, struct feed, timer);

    if (f->pausing) {
        f->pausing = false;
        send_call(f);
    } else if (f->under_way && !f->heard) {
        client_cancel(f->client, &f->call);
        f->under_way = false;
        end(f, FEED_SILENT);
    }
}

static void stop(struct feed *f)
{
    client_timer_stop(&f->timer);
    f->pausing = false;
    if (f->under_way) {
        client_cancel(f->client, &f->call);
        f->under_way = false;
    }
}

static void on_abort(struct client_party *party)
{
    struct feed *f = container_of(party, struct feed, party);

    atomic_store(&f->dead, true);
    stop(f);
    end(f, FEED_ABORTED);
    /* A reader that waits for nothing is to learn of it as well. */
    (void)pthread_mutex_lock(&f->mutex);
    tell(f);
    (void)pthread_mutex_unlock(&f->mutex);
}

static void run_start(struct task *task)
{
    struct feed *f = container_of(task, struct feed, start);
    uint64_t pause_ms = f->request.pause_ms;

    if (!f->joined) {
        f->joined = true;
        client_party_join(f->client, &f->party);
    }
    if (atomic_load(&f->dead)) {
        end(f, FEED_ABORTED);
        return;
    }
    if (f->request.fresh) {
        retry_reset(&f->retry, f->rules);
    }
    if (f->request.retries &&
        !retry_next(&f->retry, f->request.retry_after_ms, client_dice(f->client), &pause_ms)) {
        end(f, FEED_GAVE_UP);
        return;
    }
    if (pause_ms > 0) {
        f->pausing = true;
        client_timer_start(f->client, &f->timer, pause_ms);
    } else {
        send_call(f);
    }
}

static void run_resume(struct task *task)
{
    struct feed *f = container_of(task, struct feed, resume);

    if (f->under_way) {
        client_resume(f->client, &f->call);
    }
}

static void run_halt(struct task *task)
{
    stop(container_of(task, struct feed, halt));
}

static void run_leave(struct task *task)
{
    struct feed *f = container_of(task, struct feed, leave);

    stop(f);
    client_party_leave(&f->party);
}

/* ------------------------------------------------------------------------- on the reader's side */

int feed_init(struct feed *f, struct stream_client *client, const char *name)
{
    *f = (struct feed){
        .client = client,
        .call.name = slice_of(name),
        .start.run = run_start,
        .resume.run = run_resume,
        .halt.run = run_halt,
        .leave.run = run_leave,
        .ended = true, /* nothing is under way */
        .rules = &client_options(client)->retry,
    };
    buf_init(&f->work, SIZE_MAX / 2);
    buf_init(&f->fill, SIZE_MAX / 2);
    retry_reset(&f->retry, f->rules);
    client_timer_init(&f->timer, on_time);
    client_party_init(&f->party, on_abort);
    if (pthread_mutex_init(&f->mutex, NULL) != 0) {
        return STREAM_ERROR_MEMORY;
    }
    if (pthread_cond_init(&f->news, NULL) != 0) {
        (void)pthread_mutex_destroy(&f->mutex);
        return STREAM_ERROR_MEMORY;
    }
    return STREAM_OK;
}

void feed_finish(struct feed *f)
{
    if (f->used) {
        client_run(f->client, &f->leave);
    }
    feed_set_ready(f, false);
    (void)pthread_cond_destroy(&f->news);
    (void)pthread_mutex_destroy(&f->mutex);
    buf_finish(&f->work);
    buf_finish(&f->fill);
}

void feed_ask(struct feed *f, const struct feed_request *request)
{
    (void)pthread_mutex_lock(&f->mutex);
    assert(f->ended && f->fill.len == 0);
    f->ended = false;
    f->has_head = false;
    f->paused = false;
    f->used = true;
    f->request = *request;
    (void)pthread_mutex_unlock(&f->mutex);
    client_post(f->client, &f->start);
}

void feed_halt(struct feed *f)
{
    if (f->used && !f->halted) {
        f->halted = true;
        client_post(f->client, &f->halt);
    }
}

/* Under the mutex. What waits becomes what is worked on. */
static struct slice swap(struct feed *f)
{
    struct buf work = f->work;

    f->work = f->fill;
    f->fill = work;
    buf_clear(&f->fill);
    if (f->fill.cap > FILL_BYTES_MAX) {
        buf_finish(&f->fill);
    }
    return buf_slice(&f->work);
}

enum feed_state feed_take(struct feed *f, bool stepping, struct slice *ret_bytes)
{
    enum feed_state state = FEED_BUSY;
    bool resume = false;

    (void)pthread_mutex_lock(&f->mutex);
    f->stepped = stepping;
    if (f->fill.len > 0) {
        *ret_bytes = swap(f);
        resume = f->paused;
        f->paused = false;
        state = FEED_BYTES;
    } else if (f->ended) {
        state = FEED_END;
    }
    if (state == FEED_BUSY || !stepping) {
        set_ready(f, false);
    }
    (void)pthread_mutex_unlock(&f->mutex);
    if (resume) {
        client_post(f->client, &f->resume);
    }
    return state;
}

void feed_wait(struct feed *f)
{
    (void)pthread_mutex_lock(&f->mutex);
    while (!has_news(f) && !atomic_load(&f->dead)) {
        (void)pthread_cond_wait(&f->news, &f->mutex);
    }
    (void)pthread_mutex_unlock(&f->mutex);
}

void feed_set_ready(struct feed *f, bool is_on)
{
    (void)pthread_mutex_lock(&f->mutex);
    set_ready(f, is_on);
    (void)pthread_mutex_unlock(&f->mutex);
}

bool feed_aborted(const struct feed *f)
{
    return atomic_load(&f->dead) || atomic_load(&f->party.aborted) || client_aborted(f->client);
}

void feed_abort(struct feed *f)
{
    client_party_abort(f->client, &f->party);
}
