/* A scoped client in a program of its own, for the end-to-end tests: it uses what
 * arbe/scoped_client.h has and nothing else, and tells on stdout, a JSON object a line, what comes.
 * The token is in the environment, ARBE_TOKEN.
 *
 *   scoped APP_URL THREAD COMMAND [OPTION=VALUE ...]
 *
 * post: each line of stdin is a payload; {"status":201,"entry":{...}}  id=ID author=ID form=start
 * delete: entry=ID  page: after=A limit=N  request: method=M path=P; the body is stdin
 * tail: offset=O catch_up=1 poll=MS; {"entry":{...},"next":"O","up":1,"closed":0}
 * observe: offset=O trigger=ID at_rest=1 go_on=1; {"entry":{...}}, {"backfilled":true},
 * {"settled":"completed","by":"ID","reason":"..."}
 *
 * form=next|step (blocking, or with poll(2))  until=N: ends after so many entries
 * retries=N (-1: without end; of requests, and of tails if given) delay=MS max_delay=MS idle=MS
 * request=MS max_entry=BYTES
 *
 * The last line is {"end":"END"} or {"end":"FORBIDDEN","code":"auth.forbidden",...}. SIGUSR1 aborts
 * the tail or the observer, SIGUSR2 the client. */
#include "client/program.h"

#include <arbe/scoped_client.h>

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_BYTES ((size_t)1 << 20)

static struct scoped_client *client;
static struct scoped_tail *tail;
static struct scoped_observer *observer;

static void on_signal(int number)
{
    if (number == SIGUSR2) {
        scoped_client_abort(client);
    } else if (tail != NULL) {
        scoped_tail_abort(tail);
    } else {
        scoped_observer_stop(observer);
    }
}

/* ----------------------------------------------------------------------------------- telling */

static int end(int rc, const struct scoped_error *error)
{
    printf("{\"end\":\"%s\"", rc > 0 ? stream_error_name((enum stream_error_code)rc) : "END");
    if (rc > 0) {
        print_text("code", error->code);
        print_text("message", error->message);
        print_text("suggestion", error->suggestion);
        print_text("field", error->field);
        printf(",\"status\":%d,\"recoverable\":%d,\"outcome_unknown\":%d", error->status,
               error->recoverable, error->outcome_unknown);
    }
    if (tail != NULL || observer != NULL) {
        print_text("offset",
                   tail != NULL ? scoped_tail_offset(tail) : scoped_observer_offset(observer));
    }
    printf("}\n");
    (void)fflush(stdout);
    return rc > 0 ? 1 : 0;
}

/* On one line: the JSON may have a line end behind it. */
static void print_answer(const struct scoped_answer *answer)
{
    size_t len = answer->len;

    while (len > 0 && answer->body[len - 1] == '\n') {
        len--;
    }
    printf("{\"status\":%d,\"entry\":%.*s}\n", answer->status, len > 0 ? (int)len : 4,
           len > 0 ? answer->body : "null");
    (void)fflush(stdout);
}

/* ---------------------------------------------------------------------------------- requests */

/* What became of a call that was started. */
struct started {
    bool ended;
    int code;
    struct scoped_error error;
};

static void on_done(void *context, int code, struct scoped_answer *answer,
                    const struct scoped_error *error)
{
    struct started *started = context;

    started->ended = true;
    started->code = code;
    if (answer != NULL) {
        print_answer(answer);
    } else {
        started->error = *error;
    }
}

static int wait_for(struct started *started, struct scoped_error *error)
{
    while (!started->ended) {
        struct pollfd fd = {.fd = scoped_client_fd(client), .events = POLLIN};

        (void)poll(&fd, 1, -1);
        scoped_client_step(client);
    }
    *error = started->error;
    return started->code;
}

static int post_one(const char *thread, const char *payload, size_t len, struct scoped_error *error)
{
    const struct scoped_post post = {.payload = payload,
                                     .payload_len = len,
                                     .id = option("id", NULL),
                                     .author_id = option("author", NULL)};
    struct scoped_answer answer = {0};
    struct started started = {.ended = false};
    int rc;

    if (strcmp(option("form", "next"), "start") == 0) {
        rc = scoped_client_start_post(client, thread, &post, on_done, &started, error);
        return rc != STREAM_OK ? rc : wait_for(&started, error);
    }
    rc = scoped_client_post(client, thread, &post, &answer, error);
    if (rc == STREAM_OK) {
        print_answer(&answer);
    }
    scoped_answer_finish(&answer);
    return rc;
}

static int run_post(const char *thread)
{
    static char line[LINE_BYTES];
    struct scoped_error error;

    while (fgets(line, sizeof(line), stdin) != NULL) {
        int rc = post_one(thread, line, strcspn(line, "\n"), &error);

        if (rc != STREAM_OK) {
            return end(rc, &error);
        }
    }
    return end(STREAM_END, NULL);
}

static int run_delete(const char *thread)
{
    struct scoped_answer answer = {0};
    struct scoped_error error;
    int rc = scoped_client_delete(client, thread, option("entry", ""), &answer, &error);

    if (rc == STREAM_OK) {
        print_answer(&answer);
    }
    scoped_answer_finish(&answer);
    return end(rc, &error);
}

static int run_request(void)
{
    static char body[LINE_BYTES];
    struct scoped_request request = {.method = option("method", "GET"),
                                     .path = option("path", "/api/me"),
                                     .body = body,
                                     .len = fread(body, 1, sizeof(body), stdin)};
    struct scoped_answer answer = {0};
    struct scoped_error error;
    int rc = scoped_client_request(client, &request, &answer, &error);

    if (rc == STREAM_OK) {
        print_answer(&answer);
    }
    scoped_answer_finish(&answer);
    return end(rc, &error);
}

static int run_page(const char *thread)
{
    struct scoped_page page = {0};
    struct scoped_error error;
    int rc = scoped_client_page(client, thread, option("after", NULL), number("limit", 0), &page,
                                &error);

    for (size_t i = 0; i < page.count; i++) {
        printf("{\"entry\":%.*s}\n", (int)page.entries[i].json_len, page.entries[i].json);
    }
    if (rc == STREAM_OK) {
        printf("{\"up\":%d", page.up_to_date);
        print_text("next", page.next_after);
        printf("}\n");
    }
    scoped_page_finish(&page);
    return end(rc, &error);
}

/* --------------------------------------------------------------------------------- following */

static bool steps(void)
{
    return strcmp(option("form", "next"), "step") == 0;
}

static void wait_for_news(void)
{
    struct pollfd fd = {.fd = scoped_client_fd(client), .events = POLLIN};

    (void)poll(&fd, 1, -1);
    scoped_client_step(client);
}

static int next_view(struct scoped_tail_view *view, struct scoped_error *error)
{
    int rc;

    if (!steps()) {
        return scoped_tail_next(tail, view, error);
    }
    while ((rc = scoped_tail_step(tail, view, error)) == STREAM_WAIT) {
        wait_for_news();
    }
    return rc;
}

static void print_view(const struct scoped_tail_view *view)
{
    printf("{\"up\":%d,\"closed\":%d", view->up_to_date, view->closed);
    if (view->has_entry) {
        printf(",\"entry\":%.*s", (int)view->entry.json_len, view->entry.json);
    }
    if (view->next_offset != NULL) {
        print_text("next", view->next_offset);
    }
    printf("}\n");
    (void)fflush(stdout);
}

static int run_tail(const char *thread)
{
    const struct scoped_tail_options how = {.from_offset = option("offset", NULL),
                                            .catch_up = number("catch_up", 0),
                                            .poll_timeout_ms = number("poll", 0)};
    struct scoped_tail_view view;
    struct scoped_error error;
    int left = number("until", 0);
    int rc = scoped_client_tail(client, thread, &how, &tail, &error);

    (void)signal(SIGUSR1, rc == STREAM_OK ? on_signal : SIG_DFL);
    while (rc == STREAM_OK) {
        rc = next_view(&view, &error);
        if (rc == STREAM_OK) {
            print_view(&view);
            rc = view.has_entry && left > 0 && --left == 0 ? STREAM_END : rc;
        }
    }
    return end(rc, &error);
}

static int next_event(struct scoped_event *event, struct scoped_error *error)
{
    int rc;

    if (!steps()) {
        return scoped_observer_next(observer, event, error);
    }
    while ((rc = scoped_observer_step(observer, event, error)) == STREAM_WAIT) {
        wait_for_news();
    }
    return rc;
}

static void print_event(const struct scoped_event *event)
{
    switch (event->kind) {
    case SCOPED_ENTRY:
        printf("{\"entry\":%.*s}\n", (int)event->entry.json_len, event->entry.json);
        break;
    case SCOPED_BACKFILLED:
        printf("{\"backfilled\":true}\n");
        break;
    case SCOPED_SETTLED:
        printf("{\"settled\":\"%s\"", scoped_outcome_name(event->outcome));
        print_text("by", event->entry_id);
        print_text("reason", event->reason);
        printf("}\n");
        break;
    }
    (void)fflush(stdout);
}

static int run_observe(const char *thread)
{
    const struct scoped_observe_options how = {.from_offset = option("offset", NULL),
                                               .trigger = option("trigger", NULL),
                                               .settle_at_rest = number("at_rest", 0),
                                               .go_on = number("go_on", 0),
                                               .poll_timeout_ms = number("poll", 0)};
    struct scoped_event event;
    struct scoped_error error;
    int rc = scoped_client_observe(client, thread, &how, &observer, &error);

    (void)signal(SIGUSR1, rc == STREAM_OK ? on_signal : SIG_DFL);
    while (rc == STREAM_OK) {
        rc = next_event(&event, &error);
        if (rc == STREAM_OK) {
            print_event(&event);
        }
    }
    return end(rc, &error);
}

/* -------------------------------------------------------------------------------------- main */

static int open_client(const char *url, struct scoped_error *error)
{
    struct scoped_client_options o;

    scoped_client_options_init(&o);
    o.bearer = getenv("ARBE_TOKEN");
    o.retry.max_retries = number("retries", o.retry.max_retries);
    o.tail_retry.max_retries = number("retries", o.tail_retry.max_retries);
    if (o.retry.max_retries < 0) {
        o.retry.max_retries = STREAM_RETRY_FOREVER;
        o.tail_retry.max_retries = STREAM_RETRY_FOREVER;
    }
    o.retry.initial_delay_ms = o.tail_retry.initial_delay_ms = number("delay", 20);
    o.retry.max_delay_ms = o.tail_retry.max_delay_ms = number("max_delay", 200);
    o.idle_timeout_ms = number("idle", o.idle_timeout_ms);
    o.request_timeout_ms = number("request", o.request_timeout_ms);
    o.max_entry_bytes = (size_t)number("max_entry", 64 << 20);
    return scoped_client_new(url, &o, &client, error);
}

int main(int argc, char **argv)
{
    struct scoped_error error;
    int rc = 2;

    if (argc < 4) {
        return 2;
    }
    option_words = argv + 4;
    option_count = argc - 4;
    if (open_client(argv[1], &error) != STREAM_OK) {
        (void)end((int)error.kind, &error);
        return 2;
    }
    (void)signal(SIGUSR2, on_signal);
    if (strcmp(argv[3], "post") == 0) {
        rc = run_post(argv[2]);
    } else if (strcmp(argv[3], "delete") == 0) {
        rc = run_delete(argv[2]);
    } else if (strcmp(argv[3], "request") == 0) {
        rc = run_request();
    } else if (strcmp(argv[3], "page") == 0) {
        rc = run_page(argv[2]);
    } else if (strcmp(argv[3], "tail") == 0) {
        rc = run_tail(argv[2]);
    } else if (strcmp(argv[3], "observe") == 0) {
        rc = run_observe(argv[2]);
    }
    scoped_tail_free(tail);
    scoped_observer_free(observer);
    scoped_client_free(client);
    return rc;
}
