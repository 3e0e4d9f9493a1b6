/* From a request to an operation of the service and back. What lies around is stood in for here. */
#include "serve/control_subscription.c"

#include "unit/base/unit.h"

static struct {
    struct subscription_op *started; /* by the service */
    bool parked;
    bool resumed;
    bool awaits;       /* the body */
    int refused;       /* the body, with this code */
    int status;        /* answered */
    bool bare;         /* without a document */
    int noted;         /* the error, counted */
    struct slice text; /* the document */
} seen;

void subscription_start(struct subscriptions *s, struct subscription_op *op)
{
    (void)s;
    assert_true(seen.parked); /* the answer may come at any moment from here on */
    seen.started = op;
}

void exchange_park(struct exchange *x)
{
    (void)x;
    seen.parked = true;
}

void exchange_resume(struct exchange *x)
{
    seen.resumed = true;
    x->finish(x);
}

void exchange_await_body(struct exchange *x)
{
    (void)x;
    seen.awaits = true;
}

void exchange_refuse_body(struct exchange *x, int code)
{
    (void)x;
    seen.refused = code;
}

void problem_answer_code(struct exchange *x, int code, const struct errmsg *msg)
{
    (void)x;
    (void)msg;
    seen.status = err_status(code);
}

void problem_note(struct exchange *x, int code)
{
    assert_int_equal(seen.status, 0); /* the headers depend on it */
    x->outcome_unknown = code == ERR_UNKNOWN;
    seen.noted = code;
}

void reply_begin(struct exchange *x, int status, struct slice cache_control)
{
    (void)x;
    assert_true(slice_equal(cache_control, REPLY_NO_STORE));
    seen.status = status;
}

void reply_send_bare(struct exchange *x)
{
    (void)x;
    seen.bare = true;
}

void control_answer(struct exchange *x, int status, struct slice type, struct slice cache_control,
                    struct slice document)
{
    (void)type;
    reply_begin(x, status, cache_control);
    seen.text = document;
}

int body_limit(struct body *b, uint64_t bytes_max)
{
    assert_int_equal(bytes_max, SUBSCRIPTION_BODY_BYTES_MAX);
    return b->declared > bytes_max ? ERR_TOOBIG : 0;
}

void loop_post(void *loop, struct task *task)
{
    (void)loop;
    (void)task;
}

static struct server server;
static struct worker worker = {.server = &server};
static struct request_head head;
static struct control control;
static struct exchange x;

static void begin(enum http_method method, enum control_resource resource)
{
    memset(&seen, 0, sizeof(seen));
    memset(&head, 0, sizeof(head));
    control = (struct control){.route = {.resource = resource, .id = SLICE("a")}};
    x = (struct exchange){.worker = &worker, .head = &head, .about = &control, .method = method};
}

/* Every method of every resource has its verb; only PUT and POST wait for a body. */
static void has_verbs(void **state)
{
    const struct {
        enum http_method method;
        enum control_resource resource;
        enum subscription_verb verb;
    } cases[] = {
        {HTTP_PUT, CONTROL_SUBSCRIPTION, SUBSCRIPTION_PUT},
        {HTTP_GET, CONTROL_SUBSCRIPTION, SUBSCRIPTION_GET},
        {HTTP_HEAD, CONTROL_SUBSCRIPTION, SUBSCRIPTION_GET},
        {HTTP_DELETE, CONTROL_SUBSCRIPTION, SUBSCRIPTION_DELETE},
        {HTTP_POST, CONTROL_MEMBERS, SUBSCRIPTION_LINK},
        {HTTP_DELETE, CONTROL_MEMBER, SUBSCRIPTION_UNLINK},
        {HTTP_POST, CONTROL_CALLBACK, SUBSCRIPTION_CALLBACK},
        {HTTP_POST, CONTROL_CLAIM, SUBSCRIPTION_CLAIM},
        {HTTP_POST, CONTROL_ACK, SUBSCRIPTION_ACK},
        {HTTP_POST, CONTROL_RELEASE, SUBSCRIPTION_RELEASE},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        bool body = cases[i].method == HTTP_PUT || cases[i].method == HTTP_POST;

        begin(cases[i].method, cases[i].resource);
        control_subscription_begin(&x);
        assert_int_equal(control.op.verb, cases[i].verb);
        assert_true(slice_equal(control.op.id, SLICE("a")));
        assert_int_equal(seen.awaits, body);
        assert_ptr_equal(seen.started, body ? NULL : &control.op);
        if (body) {
            x.ready(&x);
        }
        assert_ptr_equal(seen.started, &control.op);
        assert_int_equal(control.op.body.len, 0);
    }
}

static struct slice token_for(const char *const values[], size_t count)
{
    begin(HTTP_POST, CONTROL_ACK);
    for (size_t i = 0; i < count; i++) {
        head.request.headers[i] = (struct http_header){SLICE("Authorization"), slice_of(values[i])};
    }
    head.request.header_count = count;
    control_subscription_begin(&x);
    return control.op.token;
}

/* A token is what follows "Bearer " in the one Authorization; everything else is none. */
static void takes_tokens(void **state)
{
    const char *odd[] = {"", "Bearer", "bearer x", "BEARER x", "Basic x", "x", "Bearerx"};
    const char *good[] = {"Bearer a.b"};
    const char *two[] = {"Bearer a.b", "Bearer c.d"};

    (void)state;
    assert_true(slice_equal(token_for(good, 1), SLICE("a.b")));
    assert_null(token_for(two, 2).ptr);
    assert_null(token_for(NULL, 0).ptr);
    for (size_t i = 0; i < ARRAY_COUNT(odd); i++) {
        assert_null(token_for(&odd[i], 1).ptr);
    }
}

/* A body over the cap is refused before it is read. */
static void bounds_bodies(void **state)
{
    (void)state;
    begin(HTTP_PUT, CONTROL_SUBSCRIPTION);
    x.body.declared = SUBSCRIPTION_BODY_BYTES_MAX + 1;
    control_subscription_begin(&x);
    assert_int_equal(seen.refused, ERR_TOOBIG);
    assert_false(seen.awaits);
}

static void finish_with(int status, int code, const char *text, bool failed)
{
    begin(HTTP_GET, CONTROL_SUBSCRIPTION);
    control_subscription_begin(&x);
    control.op.status = status;
    control.op.code = code;
    buf_init(&control.op.answer, 100);
    buf_append(&control.op.answer, slice_of(text));
    control.op.answer.failed = failed;
    seen.started->done(seen.started);
    assert_true(seen.resumed);
}

/* Status and document go out as they came; without memory for one, that is what is told. */
static void answers(void **state)
{
    (void)state;
    finish_with(201, 0, "{}", false);
    assert_int_equal(seen.status, 201);
    assert_int_equal(seen.noted, 0);
    assert_true(slice_equal(seen.text, SLICE("{}")));
    buf_finish(&control.op.answer);
    finish_with(204, 0, "", false);
    assert_true(seen.status == 204 && seen.bare);
    buf_finish(&control.op.answer);
    finish_with(200, 0, "{", true);
    assert_int_equal(seen.status, 503);
    assert_null(seen.text.ptr);
    buf_finish(&control.op.answer);
}

/* An error of the engine is counted, and its answer has the headers that belong to it. */
static void notes_errors(void **state)
{
    (void)state;
    finish_with(503, ERR_UNKNOWN, "{}", false);
    assert_int_equal(seen.status, 503);
    assert_int_equal(seen.noted, ERR_UNKNOWN);
    assert_true(x.outcome_unknown);
    buf_finish(&control.op.answer);
    finish_with(507, ERR_NOSPC, "{}", false);
    assert_int_equal(seen.noted, ERR_NOSPC);
    assert_false(x.outcome_unknown);
    buf_finish(&control.op.answer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_verbs),     cmocka_unit_test(takes_tokens),
        cmocka_unit_test(bounds_bodies), cmocka_unit_test(answers),
        cmocka_unit_test(notes_errors),
    };

    return UNIT_RUN(tests);
}
