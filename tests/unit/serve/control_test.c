/* Who is let in where. What lies around the router is stood in for here. */
#include <stdbool.h>
#include <stdlib.h>

static bool no_memory;

static void *calloc_or_not(size_t count, size_t size)
{
    return no_memory ? NULL : calloc(count, size);
}

#define calloc calloc_or_not
#include "serve/control.c"
#undef calloc

#include "unit/base/unit.h"

/* What the router did, and what it is to meet. */
static struct {
    int status;        /* answered; 0: none */
    struct slice said; /* with that; to be looked at where it is static */
    const char *went;  /* the handler that was chosen */
    bool dropped;      /* the session was */
    bool over_rate;    /* the rate is used up */
    bool rate_asked;   /* it was looked at */
    bool unrated;      /* the body will not be counted */
} seen;

void problem_answer(struct exchange *x, int status, struct slice detail)
{
    (void)x;
    assert_true(detail.len > 0);
    seen.said = detail;
    seen.status = status;
}

void problem_answer_code(struct exchange *x, int code, const struct errmsg *msg)
{
    assert_true(msg->text[0] != '\0');
    problem_answer(x, err_status(code), slice_of(msg->text));
}

void session_drop(struct session *s)
{
    (void)s;
    seen.dropped = true;
}

bool exchange_over_rate(struct exchange *x)
{
    (void)x;
    seen.rate_asked = true;
    return seen.over_rate;
}

void control_jwks_answer(struct exchange *x)
{
    (void)x;
    seen.went = "jwks";
}

void control_list_begin(struct exchange *x, struct slice query)
{
    (void)x;
    assert_true(slice_equal(query, SLICE("limit=1")));
    seen.went = "listing";
}

void control_subscription_begin(struct exchange *x)
{
    assert_true(slice_equal(x->about->route.id, SLICE("a")));
    seen.unrated = x->unrated;
    seen.went = "subscription";
}

void control_listing_destroy(struct control_listing *l)
{
    assert_null(l);
}

void reply_begin(struct exchange *x, int status, struct slice cache_control)
{
    (void)x;
    assert_true(cache_control.len > 0);
    seen.status = status;
}

void reply_literal(struct exchange *x, struct slice name, struct slice literal)
{
    (void)x;
    assert_true(slice_equal(name, SLICE("Content-Type")) && literal.len > 0);
}

void reply_send(struct exchange *x, struct slice body)
{
    (void)x;
    (void)body;
}

static struct server server;
static struct worker worker = {.server = &server};
static struct session session;

/* Asks with `authorization`, or without one, of a server with or without the secret "s". */
static struct slice ask(const char *method, const char *path, bool secret,
                        const char *authorization)
{
    struct serve_tunables tunables = {.secret = secret ? SLICE("s") : (struct slice){NULL, 0}};
    struct request_head *head = calloc(1, sizeof(*head));
    struct exchange x = {.worker = &worker, .session = &session, .head = head, .control = true};
    bool over_rate = seen.over_rate;

    assert_non_null(head);
    assert_int_equal(tunables_set(&server.tunables, &tunables), 0);
    x.method = http_method_of(slice_of(method));
    if (authorization != NULL) {
        head->request.header_count = 1;
        head->request.headers[0] = (struct http_header){SLICE("authorization"),
                                                        slice_of(authorization)};
    }
    memset(&seen, 0, sizeof(seen));
    seen.over_rate = over_rate;
    control_begin(&x, slice_of(path), SLICE("limit=1"));
    control_destroy(x.about);
    free(head);
    tunables_finish(&server.tunables);
    server.tunables = (struct tunables){.newest = NULL};
    return x.allow;
}

#define BELOW(path) "/v1/stream/__ds" path

static void assert_status(const char *method, const char *path, bool secret,
                          const char *authorization, int status)
{
    (void)ask(method, path, secret, authorization);
    assert_int_equal(seen.status, status);
    assert_null(seen.went);
}

static void assert_went(const char *method, const char *path, bool secret,
                        const char *authorization, const char *where)
{
    (void)ask(method, path, secret, authorization);
    assert_int_equal(seen.status, 0);
    assert_non_null(seen.went);
    assert_string_equal(seen.went, where);
}

/* Each resource has its handler, each other method its refusal. */
static void chooses(void **state)
{
    (void)state;
    assert_went("GET", BELOW("/jwks.json"), false, NULL, "jwks");
    assert_went("HEAD", BELOW("/streams"), false, NULL, "listing");
    assert_went("PUT", BELOW("/subscriptions/a"), false, NULL, "subscription");
    assert_went("POST", BELOW("/subscriptions/a/claim"), false, NULL, "subscription");
    assert_went("DELETE", BELOW("/subscriptions/a/streams/b"), false, NULL, "subscription");
    assert_status("GET", BELOW("/nothing"), false, NULL, 404);
    assert_true(slice_starts_with(seen.said, SLICE("there is nothing here; below __ds are ")));
    assert_status("GET", BELOW("/subscriptions"), false, NULL, 404);
    assert_true(slice_starts_with(seen.said, SLICE("subscriptions are not listed; one is at ")));
    assert_status("PUT", BELOW("/subscriptions/"), false, NULL, 404);
    assert_status("POST", BELOW("/subscriptions//claim"), false, NULL, 404);
    assert_status("GET", BELOW("/%zz"), false, NULL, 400);
    assert_status("POST", BELOW("/jwks.json"), false, NULL, 405);
    assert_status("PATCH", BELOW("/subscriptions/a"), false, NULL, 405);
    assert_true(slice_equal(ask("GET", BELOW("/subscriptions/a/ack"), false, NULL),
                            SLICE("POST, OPTIONS")));
}

/* With a secret nothing is told before it is shown, but for the keys and what has a token. */
static void asks_for_the_secret(void **state)
{
    const char *closed[][2] = {{"GET", BELOW("/streams")},
                               {"GET", BELOW("/subscriptions/a")},
                               {"PUT", BELOW("/subscriptions/a")},
                               {"DELETE", BELOW("/subscriptions/a")},
                               {"POST", BELOW("/subscriptions/a/streams")},
                               {"DELETE", BELOW("/subscriptions/a/streams/b")},
                               {"POST", BELOW("/subscriptions/a/claim")},
                               {"GET", BELOW("/subscriptions")},
                               {"GET", BELOW("/nothing")},
                               {"GET", BELOW("/%zz")},
                               {"PATCH", BELOW("/streams")}};
    const char *tokens[] = {BELOW("/subscriptions/a/callback"), BELOW("/subscriptions/a/ack"),
                            BELOW("/subscriptions/a/release")};

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(closed); i++) {
        assert_status(closed[i][0], closed[i][1], true, NULL, 401);
        assert_status(closed[i][0], closed[i][1], true, "Bearer x", 401);
        (void)ask(closed[i][0], closed[i][1], true, "Bearer s");
        assert_int_not_equal(seen.status, 401);
    }
    for (size_t i = 0; i < ARRAY_COUNT(tokens); i++) {
        assert_went("POST", tokens[i], true, NULL, "subscription");
        assert_went("POST", tokens[i], true, "Bearer x.y", "subscription");
    }
    assert_went("GET", BELOW("/jwks.json"), true, NULL, "jwks");
}

/* Strangers use up nothing of the rate, and are told nothing when it is used up. */
static void counts_those_who_may(void **state)
{
    (void)state;
    seen.over_rate = true;
    assert_status("GET", BELOW("/streams"), true, NULL, 401);
    assert_false(seen.rate_asked);
    (void)ask("GET", BELOW("/streams"), true, "Bearer s");
    assert_true(seen.rate_asked);
    assert_null(seen.went);
    assert_went("GET", BELOW("/jwks.json"), true, NULL, "jwks");
    (void)ask("GET", BELOW("/jwks.json"), false, NULL);
    assert_null(seen.went);
    seen.over_rate = false;
}

/* Nor do their bodies; without a secret everybody is counted. */
static void counts_bodies_of_those_who_may(void **state)
{
    const char *tokens[] = {BELOW("/subscriptions/a/callback"), BELOW("/subscriptions/a/ack"),
                            BELOW("/subscriptions/a/release")};

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(tokens); i++) {
        assert_went("POST", tokens[i], true, "Bearer x.y", "subscription");
        assert_true(seen.unrated && !seen.rate_asked);
        assert_went("POST", tokens[i], false, "Bearer x.y", "subscription");
        assert_true(!seen.unrated && seen.rate_asked);
    }
    assert_went("POST", BELOW("/subscriptions/a/claim"), true, "Bearer s", "subscription");
    assert_true(!seen.unrated && seen.rate_asked);
}

/* Without memory for a request the connection ends. */
static void bears_no_memory(void **state)
{
    (void)state;
    no_memory = true;
    (void)ask("GET", BELOW("/jwks.json"), false, NULL);
    no_memory = false;
    assert_true(seen.dropped);
    assert_null(seen.went);
    assert_int_equal(seen.status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chooses),
        cmocka_unit_test(asks_for_the_secret),
        cmocka_unit_test(counts_those_who_may),
        cmocka_unit_test(counts_bodies_of_those_who_may),
        cmocka_unit_test(bears_no_memory),
    };

    return UNIT_RUN(tests);
}
