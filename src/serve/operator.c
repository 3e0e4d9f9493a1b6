/* What an operator and the programs around a server ask it: is it well, and how much does it do. */
#include "serve/handlers.h"

#include "base/json.h"
#include "serve/auth.h"
#include "serve/control.h"
#include "serve/metrics.h"
#include "serve/problem.h"

#define HEALTH_BYTES_MAX  1024
#define METRICS_BYTES_MAX (256 * KIB) /* a tenth of it is usual, and the labels are bounded */

/* Whether the request only looks; if not, it is answered. */
static bool only_looks(struct exchange *x)
{
    if (x->method == HTTP_GET || x->method == HTTP_HEAD) {
        return true;
    }
    x->allow = SLICE("GET, HEAD, OPTIONS");
    problem_answer(x, 405, SLICE("this path knows GET, HEAD and OPTIONS"));
    return false;
}

/* The word for what is the matter with the server, the gravest first, and its sentence. */
static const char *status_of(struct exchange *x, const struct store_health *health,
                             const char **ret_detail)
{
    const struct mount *mount = x->worker->server->config->mount;
    const char *ails = NULL;

    *ret_detail = health->text;
    if (health->log_error != 0) {
        return "log_failed";
    }
    if (x->worker->draining) {
        *ret_detail = err_text(ERR_STOPPING);
        return "draining";
    }
    if (mount != NULL && mount->ails != NULL) {
        ails = mount->ails(mount->context, ret_detail);
    }
    if (ails != NULL) {
        return ails;
    }
    if (health->checkpoint_error != 0) {
        return "checkpoint_failed";
    }
    *ret_detail = "";
    return "ready";
}

/* Ready is a server that takes writes and can go on taking them. */
void health_answer(struct exchange *x)
{
    struct store_health health;
    const char *detail = NULL;
    char memory[HEALTH_BYTES_MAX];
    struct buf document;

    if (!only_looks(x)) {
        return;
    }
    engine_get_health(x->worker->server->engine, &health);
    const char *status = status_of(x, &health, &detail);

    buf_init_fixed(&document, memory, sizeof(memory));
    buf_append_format(&document, "{\"status\":\"%s\"", status);
    if (detail[0] != '\0') {
        buf_append(&document, SLICE(",\"detail\":"));
        json_append_string(&document, slice_of(detail));
    }
    buf_append(&document, SLICE("}\n"));
    control_answer(x, detail[0] == '\0' ? 200 : 503, SLICE("application/json"), REPLY_NO_STORE,
                   buf_slice(&document));
}

/* The numbers of the moment. The workers go on counting meanwhile. */
static void gather(const struct server *server, struct metrics *m)
{
    *m = (struct metrics){
        .connections = atomic_load(&server->connections),
        .connections_max = server_tunables(server)->connection_count_max,
        .waiters_max = server_tunables(server)->limits.waiters_max,
        .body_bytes = atomic_load(&server->body_bytes),
        .body_bytes_max = server->body_bytes_total_max,
        .started_ms = server->started_ms,
    };
    for (unsigned i = 0; i < server->config->worker_count; i++) {
        tally_add(&m->tally, &server->workers[i].tally);
    }
    engine_get_stats(server->engine, &m->engine);
    engine_get_health(server->engine, &m->health);
    subscriptions_get_stats(server->subscriptions, &m->subscriptions);
    webhook_get_stats(server->webhook, &m->webhooks);
    process_read(&m->process);
}

void metrics_answer(struct exchange *x)
{
    const struct server *server = x->worker->server;
    const struct mount *mount = server->config->mount;
    struct metrics m;
    struct buf document;

    if (!auth_is_good(exchange_request(x), server_tunables(server)->secret)) {
        problem_answer(x, 401, SLICE("this server wants Authorization: Bearer and its secret"));
        return;
    }
    if (!only_looks(x)) {
        return;
    }
    gather(server, &m);
    buf_init(&document, METRICS_BYTES_MAX);
    metrics_format(&document, &m);
    if (mount != NULL && mount->expose != NULL) {
        mount->expose(mount->context, &(struct exposition){.out = &document});
    }
    if (document.failed) {
        problem_answer(x, 503, slice_of(err_text(ERR_NOMEM)));
    } else {
        control_answer(x, 200, SLICE(EXPOSITION_TYPE), REPLY_NO_STORE, buf_slice(&document));
    }
    buf_finish(&document);
}
