/* Life of a worker: init on the main thread, run on its own, drain by a task, end when the last
 * session is freed and the last window is read. */
#include "serve/worker.h"

#include "base/dice.h"
#include "serve/session.h"
#include "serve/work.h"

#include <stdlib.h>
#include <sys/random.h>

#define OUT_BYTES_MAX   (64 * KIB)
#define FRAME_BYTES_MAX (1024 * MIB) /* a JSON message may be as long as a body */

static void on_accept(void *context, int fd)
{
    struct worker *w = context;

    session_accept(w, fd);
}

static void drain_now(struct task *task)
{
    struct worker *w = container_of(task, struct worker, drain_task);

    w->draining = true;
    listener_accept_waiting(w->listener);
    listener_destroy(w->listener);
    w->listener = NULL;
    LIST_FOR_EACH(node, &w->sessions)
    {
        session_drain(container_of(node, struct session, link));
    }
    worker_check_end(w);
}

static void hurry_now(struct task *task)
{
    struct worker *w = container_of(task, struct worker, hurry_task);

    LIST_FOR_EACH(node, &w->sessions)
    {
        session_hurry(container_of(node, struct session, link));
    }
}

static void abort_now(struct task *task)
{
    struct worker *w = container_of(task, struct worker, abort_task);

    LIST_FOR_EACH(node, &w->sessions)
    {
        session_drop(container_of(node, struct session, link));
    }
}

static int listen_on(struct worker *w, const struct worker *first, struct errmsg *msg)
{
    if (first == NULL) {
        return listener_create(w->loop, w->server->config->listen, on_accept, w, &w->listener, msg);
    }
    int code = listener_create_shared(w->loop, first->listener, on_accept, w, &w->listener);

    return code == 0 ? 0 : err_set(msg, code, "cannot share the socket: %s", err_text(code));
}

int worker_init(struct worker *w, struct server *server, const struct worker *first,
                struct errmsg *msg)
{
    *w = (struct worker){.server = server, .date_second = -1};
    list_init(&w->sessions);
    buf_init(&w->out, OUT_BYTES_MAX);
    buf_init(&w->frame, FRAME_BYTES_MAX);
    w->drain_task.run = drain_now;
    w->hurry_task.run = hurry_now;
    w->abort_task.run = abort_now;
    if (getrandom(&w->random, sizeof(w->random), 0) != sizeof(w->random)) {
        w->random = (uint64_t)(uintptr_t)w; /* jitter needs no better */
    }
    int code = loop_create(&w->loop);

    if (code != 0) {
        return err_set(msg, code, "cannot make an event loop: %s", err_text(code));
    }
    code = listen_on(w, first, msg);
    if (code != 0) {
        return code;
    }
    code = engine_attach(server->engine, loop_post, w->loop, &w->engine);
    return code == 0 ? 0 : err_set(msg, code, "cannot start a worker: %s", err_text(code));
}

void worker_detach(struct worker *w)
{
    listener_destroy(w->listener);
    w->listener = NULL;
    engine_detach(w->engine);
    w->engine = NULL;
}

void worker_finish(struct worker *w)
{
    loop_destroy(w->loop);
    buf_finish(&w->out);
    buf_finish(&w->frame);
    work_free_spare(w);
    *w = (struct worker){.server = NULL};
}

void *worker_run(void *worker)
{
    struct worker *w = worker;

    loop_run(w->loop);
    return NULL;
}

void worker_drain(struct worker *w)
{
    loop_post(w->loop, &w->drain_task);
}

void worker_hurry(struct worker *w)
{
    loop_post(w->loop, &w->hurry_task);
}

void worker_abort(struct worker *w)
{
    loop_post(w->loop, &w->abort_task);
}

void worker_check_end(struct worker *w)
{
    if (w->draining && w->session_count == 0 && w->warming == 0) {
        loop_stop(w->loop);
    }
}

const char *worker_date(struct worker *w)
{
    int64_t now_ms = loop_wall_ms(w->loop);

    if (now_ms / 1000 != w->date_second) {
        w->date_second = now_ms / 1000;
        date_format_http(w->date, now_ms);
    }
    return w->date;
}

uint64_t worker_random(struct worker *w)
{
    return dice_roll(&w->random);
}
