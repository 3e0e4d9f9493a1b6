/* Bodies of the subscription API: what is read, in which normal form, and that every odd shape is
 * refused with a sentence. */
#include "stream/subscription_request.c"

#include "unit/base/unit.h"

static struct arena arena;
static struct errmsg msg;

static int open_arena(void **state)
{
    (void)state;
    arena_init(&arena, SUBSCRIPTION_ARENA_BYTES_MAX);
    return 0;
}

static int close_arena(void **state)
{
    (void)state;
    arena_finish(&arena);
    return 0;
}

static void assert_slice(struct slice got, const char *want)
{
    if (!slice_equal(got, slice_of(want))) {
        fail_msg("%.*s is not %s", (int)got.len, got.ptr, want);
    }
}

static int put(const char *body, struct subscription_spec *spec)
{
    msg.text[0] = '\0';
    return subscription_request_put(slice_of(body), &arena, spec, &msg);
}

static struct subscription_spec good_put(const char *body)
{
    struct subscription_spec spec = {.stream_count = 99};
    if (put(body, &spec) != 0) {
        fail_msg("%s: %s", body, msg.text);
    }
    return spec;
}

#define HOOK "\"type\":\"webhook\",\"webhook\":{\"url\":\"https://x/y\"}"
#define PULL "\"type\":\"pull-wake\",\"wake_stream\":\"wake/pool\""

/* All fields of a webhook subscription. */
static void test_webhook(void **state)
{
    (void)state;
    struct subscription_spec spec = good_put(
        "{\"type\":\"webhook\",\"pattern\":\"/events/*/\",\"streams\":[\"b\",\"/a/\",\"b\"],"
        "\"webhook\":{\"url\":\"https://x/\\u0079\",\"other\":1},\"lease_ttl_ms\":1000,"
        "\"description\":\"caf\\u00e9\",\"unknown\":[{}]}");
    assert_int_equal(spec.def.type, SUBSCRIPTION_WEBHOOK);
    assert_slice(spec.def.pattern, "events/*");
    assert_slice(spec.def.target, "https://x/y");
    assert_int_equal(spec.def.lease_ttl_ms, 1000);
    assert_true(spec.def.has_description);
    assert_slice(spec.def.description, "caf\xc3\xa9");
    assert_int_equal(spec.stream_count, 2);
    assert_slice(spec.streams[0], "a");
    assert_slice(spec.streams[1], "b");
}

/* The least of a pull-wake subscription; null is as good as nothing. */
static void test_pull_wake(void **state)
{
    (void)state;
    struct subscription_spec spec = good_put(
        "{\"type\":\"pull-wake\",\"streams\":[\"a%2fb\",\"caf%C3%A9\"],\"pattern\":null,"
        "\"wake_stream\":\"/wake/pool\",\"webhook\":null,\"description\":null,"
        "\"lease_ttl_ms\":null}");
    assert_int_equal(spec.def.type, SUBSCRIPTION_PULL_WAKE);
    assert_slice(spec.def.pattern, "");
    assert_slice(spec.def.target, "wake/pool");
    assert_int_equal(spec.def.lease_ttl_ms, SUBSCRIPTION_LEASE_MS_DEFAULT);
    assert_false(spec.def.has_description);
    assert_slice(spec.streams[0], "a%2Fb");
    assert_slice(spec.streams[1], "caf\xc3\xa9");
}

/* What a webhook needs does not matter to a pull-wake subscription, and the other way round. */
static void test_other_kind(void **state)
{
    (void)state;
    struct subscription_spec a = good_put("{" HOOK ",\"pattern\":\"a\",\"wake_stream\":7}");
    struct subscription_spec b = good_put("{" HOOK ",\"pattern\":\"a\"}");
    assert_memory_equal(a.def.hash, b.def.hash, SUBSCRIPTION_HASH_BYTES);
    good_put("{" PULL ",\"pattern\":\"a\",\"webhook\":7}");
}

static void assert_same(const char *a, const char *b, bool same)
{
    struct subscription_spec x = good_put(a);
    struct subscription_spec y = good_put(b);
    if ((memcmp(x.def.hash, y.def.hash, SUBSCRIPTION_HASH_BYTES) == 0) != same) {
        fail_msg("%s and %s should%s be the same", a, b, same ? "" : " not");
    }
}

/* The hash is of the normal form: order, spelling and defaults do not matter, every value does. */
static void test_hash(void **state)
{
    (void)state;
    assert_same("{" HOOK ",\"pattern\":\"a/*\",\"streams\":[\"x\",\"y\"]}",
                "{\"streams\":[\"y\",\"/x\",\"y/\"],\"lease_ttl_ms\":3e4,\"pattern\":\"/a/*\"," HOOK
                "}",
                true);
    assert_same("{" PULL ",\"streams\":[\"a b\"]}", "{" PULL ",\"streams\":[\"a%20b\"]}", true);
    assert_same("{" PULL ",\"pattern\":\"a\"}", "{" PULL ",\"streams\":[\"a\"]}", false);
    assert_same("{" PULL ",\"pattern\":\"*\"}", "{" PULL ",\"pattern\":\"%2A\"}", false);
    assert_same("{" PULL ",\"pattern\":\"a\"}", "{" PULL ",\"pattern\":\"a\",\"description\":\"\"}",
                false);
    assert_same("{" PULL ",\"pattern\":\"a\"}",
                "{" PULL ",\"pattern\":\"a\",\"lease_ttl_ms\":29999}", false);
    assert_same("{" PULL ",\"streams\":[\"ab\",\"c\"]}", "{" PULL ",\"streams\":[\"a\",\"bc\"]}",
                false);
    assert_same("{" PULL ",\"pattern\":\"a\"}", "{" HOOK ",\"pattern\":\"a\"}", false);
    assert_same("{" HOOK ",\"pattern\":\"a\"}",
                "{\"type\":\"webhook\",\"webhook\":{\"url\":\"https://x/z\"},\"pattern\":\"a\"}",
                false);
}

static const char *const bad_puts[] = {
    "null",
    "[]",
    "7",
    "\"x\"",
    "{",
    "{}x",
    " ",
    "",
    "{}",
    "{\"type\":null," PULL "}",
    "{\"type\":7,\"pattern\":\"a\"}",
    "{\"type\":\"Webhook\",\"pattern\":\"a\"}",
    "{\"type\":\"webhook\",\"type\":\"webhook\",\"webhook\":{\"url\":\"u\"},\"pattern\":\"a\"}",
    "{" HOOK "}",
    "{" HOOK ",\"pattern\":\"\"}",
    "{" HOOK ",\"pattern\":\"\",\"streams\":[]}",
    "{" HOOK ",\"pattern\":\"/\"}",
    "{" HOOK ",\"pattern\":7}",
    "{" HOOK ",\"pattern\":[\"a\"]}",
    "{" HOOK ",\"pattern\":\"a/../b\"}",
    "{" HOOK ",\"pattern\":\"__ds/**\"}",
    "{" HOOK ",\"pattern\":\"\\ud800\"}",
    "{" HOOK ",\"pattern\":\"a\",\"streams\":{}}",
    "{" HOOK ",\"pattern\":\"a\",\"streams\":\"a\"}",
    "{" HOOK ",\"pattern\":\"a\",\"streams\":[null]}",
    "{" HOOK ",\"streams\":[\"a\",7]}",
    "{" HOOK ",\"streams\":[\"\"]}",
    "{" HOOK ",\"streams\":[\"//\"]}",
    "{" HOOK ",\"streams\":[\"__ds/x\"]}",
    "{" HOOK ",\"streams\":[\"%\"]}",
    "{" HOOK ",\"streams\":[\"a\\u0000\"]}",
    "{" HOOK ",\"pattern\":\"a\",\"lease_ttl_ms\":999}",
    "{" HOOK ",\"pattern\":\"a\",\"lease_ttl_ms\":600001}",
    "{" HOOK ",\"pattern\":\"a\",\"lease_ttl_ms\":1000.5}",
    "{" HOOK ",\"pattern\":\"a\",\"lease_ttl_ms\":-1000}",
    "{" HOOK ",\"pattern\":\"a\",\"lease_ttl_ms\":\"1000\"}",
    "{" HOOK ",\"pattern\":\"a\",\"description\":7}",
    "{" HOOK ",\"pattern\":\"a\",\"description\":\"x\",\"descriptio\\u006e\":\"x\"}",
    "{\"type\":\"webhook\",\"pattern\":\"a\"}",
    "{\"type\":\"webhook\",\"pattern\":\"a\",\"webhook\":\"https://x\"}",
    "{\"type\":\"webhook\",\"pattern\":\"a\",\"webhook\":{}}",
    "{\"type\":\"webhook\",\"pattern\":\"a\",\"webhook\":{\"url\":\"\"}}",
    "{\"type\":\"webhook\",\"pattern\":\"a\",\"webhook\":{\"url\":7}}",
    "{\"type\":\"webhook\",\"pattern\":\"a\",\"webhook\":{\"url\":\"a\",\"url\":\"b\"}}",
    "{\"type\":\"pull-wake\",\"pattern\":\"a\"}",
    "{\"type\":\"pull-wake\",\"pattern\":\"a\",\"wake_stream\":\"\"}",
    "{\"type\":\"pull-wake\",\"pattern\":\"a\",\"wake_stream\":7}",
    "{\"type\":\"pull-wake\",\"pattern\":\"a\",\"wake_stream\":\"__ds\"}",
    "{" PULL ",\"streams\":[\"a\",\"/wake/pool\"]}",
};

/* Everything odd is 400 with a sentence, and leaves the result alone. */
static void test_bad_puts(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(bad_puts); i++) {
        struct subscription_spec spec = {.stream_count = 99};
        if (put(bad_puts[i], &spec) != ERR_INVALID || msg.text[0] == '\0') {
            fail_msg("taken: %s (%s)", bad_puts[i], msg.text);
        }
        assert_int_equal(spec.stream_count, 99);
    }
}

/* The sentences say what was wrong and what would be accepted. */
static void test_sentences(void **state)
{
    static const struct {
        const char *body;
        const char *sentence;
    } cases[] = {
        {"null", "the body must be a JSON object, not null"},
        {"{]", "the body: not valid JSON at byte 1: expected a member name in double quotes"},
        {"{\"type\":7}", "type must be a string, not a number"},
        {"{}", "type must be \"webhook\" or \"pull-wake\""},
        {"{" PULL "}", "pattern and streams are missing: give at least one of them"},
        {"{" PULL ",\"streams\":[7]}", "a member of streams must be a string, not a number"},
        {"{" PULL ",\"streams\":[\"a/./b\"]}",
         "a member of streams: a stream name may not have the segments \".\" and \"..\""},
        {"{" PULL ",\"pattern\":\"%\"}",
         "pattern: a '%' in a stream name must be followed by two hex digits"},
        {"{\"type\":\"webhook\",\"pattern\":\"a\",\"webhook\":{\"url\":7}}",
         "webhook: url must be a string, not a number"},
        {"{" PULL ",\"pattern\":\"a\",\"lease_ttl_ms\":0}",
         "lease_ttl_ms must be a whole number from 1000 to 600000"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct subscription_spec spec;
        assert_int_equal(put(cases[i].body, &spec), ERR_INVALID);
        assert_string_equal(msg.text, cases[i].sentence);
    }
}

/* A body of `prefix`, `count` times `fill`, and `suffix`. */
static struct slice long_body(struct buf *b, const char *prefix, char fill, size_t count,
                              const char *suffix)
{
    buf_init(b, 4 * MIB);
    buf_append(b, slice_of(prefix));
    for (size_t i = 0; i < count; i++) {
        buf_append_char(b, fill);
    }
    buf_append(b, slice_of(suffix));
    assert_false(b->failed);
    return buf_slice(b);
}

/* Each cap lets its number through and refuses one more. */
static void test_caps(void **state)
{
    static const struct {
        const char *prefix;
        size_t count;
        const char *suffix;
    } cases[] = {
        {"{" PULL ",\"pattern\":\"a\",\"description\":\"", SUBSCRIPTION_DESCRIPTION_BYTES_MAX,
         "\"}"},
        {"{\"type\":\"webhook\",\"pattern\":\"a\",\"webhook\":{\"url\":\"",
         SUBSCRIPTION_URL_BYTES_MAX, "\"}}"},
        {"{" PULL ",\"streams\":[\"", STREAM_NAME_BYTES_MAX, "\"]}"},
        {"{" PULL ",\"pattern\":\"", STREAM_NAME_BYTES_MAX, "\"}"},
    };
    struct subscription_spec spec;
    struct buf body;
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        for (unsigned more = 0; more < 2; more++) {
            struct slice text = long_body(&body, cases[i].prefix, 'a', cases[i].count + more,
                                          cases[i].suffix);
            assert_int_equal(subscription_request_put(text, &arena, &spec, &msg),
                             more ? ERR_INVALID : 0);
            buf_finish(&body);
        }
    }
    struct slice text = long_body(&body, "{" PULL ",\"pattern\":\"a\"", ' ',
                                  SUBSCRIPTION_BODY_BYTES_MAX, "}");
    assert_int_equal(subscription_request_put(text, &arena, &spec, &msg), ERR_TOOBIG);
    text.len = 0;
    assert_int_equal(subscription_request_put(text, &arena, &spec, &msg), ERR_INVALID);
    buf_finish(&body);
    text = long_body(&body, "{" PULL ",\"pattern\":", '[', JSON_DEPTH_MAX + 1, "}");
    assert_int_equal(subscription_request_put(text, &arena, &spec, &msg), ERR_INVALID);
    buf_finish(&body);
}

/* As many streams as the body can name: above the cap only when they are different ones. */
static void test_many_streams(void **state)
{
    const struct slice *streams;
    size_t count = 0;
    struct buf body;
    (void)state;
    for (unsigned more = 0; more < 2; more++) {
        buf_init(&body, SUBSCRIPTION_BODY_BYTES_MAX);
        buf_append(&body, SLICE("{\"streams\":["));
        for (unsigned i = 0; i < SUBSCRIPTION_LINKS_MAX + more; i++) {
            static const char digits[] = "abcdefghijklmnopqrstuvwxyz";
            buf_append_format(&body, "%s\"%c%c%c\"", i > 0 ? "," : "", digits[i % 26],
                              digits[i / 26 % 26], digits[i / 676]);
        }
        buf_append(&body, SLICE("]}"));
        assert_false(body.failed);
        assert_int_equal(
            subscription_request_streams(buf_slice(&body), &arena, &streams, &count, &msg),
            more ? ERR_INVALID : 0);
        buf_finish(&body);
    }
    assert_int_equal(count, SUBSCRIPTION_LINKS_MAX);
    buf_init(&body, SUBSCRIPTION_BODY_BYTES_MAX);
    buf_append(&body, SLICE("{\"streams\":[\"a\""));
    while (body.len < SUBSCRIPTION_BODY_BYTES_MAX - 6) {
        buf_append(&body, SLICE(",\"a\""));
    }
    buf_append(&body, SLICE("]}"));
    arena_finish(&arena);
    assert_int_equal(subscription_request_streams(buf_slice(&body), &arena, &streams, &count, &msg),
                     0);
    assert_int_equal(count, 1);
    buf_finish(&body);
}

/* POST .../streams. */
static void test_streams(void **state)
{
    static const char *const bad[] = {"",
                                      "{}",
                                      "null",
                                      "[\"a\"]",
                                      "{\"streams\":null}",
                                      "{\"streams\":\"a\"}",
                                      "{\"streams\":[\"\"]}",
                                      "{\"streams\":[[]]}",
                                      "{\"streams\":[],\"streams\":[]}"};
    const struct slice *streams;
    size_t count = 99;
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        assert_int_equal(
            subscription_request_streams(slice_of(bad[i]), &arena, &streams, &count, &msg),
            ERR_INVALID);
    }
    assert_int_equal(count, 99);
    assert_int_equal(
        subscription_request_streams(SLICE("{\"streams\":[]}"), &arena, &streams, &count, &msg), 0);
    assert_int_equal(count, 0);
    assert_int_equal(subscription_request_streams(SLICE("{\"streams\":[\"b\",\"a/\"]}"), &arena,
                                                  &streams, &count, &msg),
                     0);
    assert_int_equal(count, 2);
    assert_slice(streams[0], "a");
}

/* claim. */
static void test_claim(void **state)
{
    static const char *const bad[] = {
        "", "{}", "null", "{\"worker\":\"\"}", "{\"worker\":7}", "{\"worker\":null}"};
    struct slice worker;
    struct buf body;
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        assert_int_equal(subscription_request_claim(slice_of(bad[i]), &arena, &worker, &msg),
                         ERR_INVALID);
    }
    assert_int_equal(
        subscription_request_claim(SLICE("{\"worker\":\"w-1\"}"), &arena, &worker, &msg), 0);
    assert_slice(worker, "w-1");
    for (unsigned more = 0; more < 2; more++) {
        struct slice text = long_body(&body, "{\"worker\":\"", 'w',
                                      SUBSCRIPTION_WORKER_BYTES_MAX + more, "\"}");
        assert_int_equal(subscription_request_claim(text, &arena, &worker, &msg),
                         more ? ERR_INVALID : 0);
        buf_finish(&body);
    }
}

#define WAKE     "\"wake_id\":\"w_1\",\"generation\":7"
#define OFFSET_5 "0000000000000000_0000000000000005"

/* callback, ack, release. */
static void test_report(void **state)
{
    struct subscription_report report;
    (void)state;
    assert_int_equal(subscription_request_report(SLICE("{" WAKE "}"), &arena, &report, &msg), 0);
    assert_slice(report.wake_id, "w_1");
    assert_int_equal(report.generation, 7);
    assert_int_equal(report.ack_count, 0);
    assert_false(report.done);
    assert_int_equal(
        subscription_request_report(
            SLICE("{" WAKE ",\"done\":true,\"acks\":[{\"stream\":\"/b\",\"offset\":\"" OFFSET_5
                  "\"},{\"path\":\"a%20b\",\"stream\":null,\"offset\":\"-1\"},{\"stream\":\"b\","
                  "\"offset\":\"0000000000000001_0000000000000005\"}]}"),
            &arena, &report, &msg),
        0);
    assert_true(report.done);
    assert_int_equal(report.ack_count, 3);
    assert_slice(report.acks[0].path, "b");
    assert_int_equal(report.acks[0].position, 5);
    assert_false(report.acks[0].start);
    assert_slice(report.acks[1].path, "a b");
    assert_true(report.acks[1].start);
    assert_true(report.acks[2].position == OFFSET_BEYOND);
    assert_int_equal(subscription_request_report(SLICE("{" WAKE ",\"done\":false,\"acks\":null}"),
                                                 &arena, &report, &msg),
                     0);
    assert_false(report.done);
}

static const char *const bad_reports[] = {
    "",
    "{}",
    "null",
    "[]",
    "{\"wake_id\":\"w\"}",
    "{\"wake_id\":7,\"generation\":7}",
    "{\"wake_id\":\"\",\"generation\":7}",
    "{\"generation\":7}",
    "{\"wake_id\":\"w\",\"generation\":\"7\"}",
    "{\"wake_id\":\"w\",\"generation\":null}",
    "{\"wake_id\":\"w\",\"generation\":7.5}",
    "{\"wake_id\":\"w\",\"generation\":-7}",
    "{\"wake_id\":\"w\",\"generation\":9007199254740992}",
    "{" WAKE ",\"done\":1}",
    "{" WAKE ",\"done\":\"true\"}",
    "{" WAKE ",\"acks\":{}}",
    "{" WAKE ",\"acks\":\"x\"}",
    "{" WAKE ",\"acks\":[null]}",
    "{" WAKE ",\"acks\":[7]}",
    "{" WAKE ",\"acks\":[[]]}",
    "{" WAKE ",\"acks\":[{}]}",
    "{" WAKE ",\"acks\":[{\"stream\":\"a\"}]}",
    "{" WAKE ",\"acks\":[{\"offset\":\"" OFFSET_5 "\"}]}",
    "{" WAKE ",\"acks\":[{\"stream\":7,\"offset\":\"" OFFSET_5 "\"}]}",
    "{" WAKE ",\"acks\":[{\"stream\":\"\",\"offset\":\"" OFFSET_5 "\"}]}",
    "{" WAKE ",\"acks\":[{\"stream\":\"a\",\"offset\":5}]}",
    "{" WAKE ",\"acks\":[{\"stream\":\"a\",\"offset\":\"\"}]}",
    "{" WAKE ",\"acks\":[{\"stream\":\"a\",\"offset\":\"now\"}]}",
    "{" WAKE ",\"acks\":[{\"stream\":\"a\",\"offset\":\"5\"}]}",
    "{" WAKE ",\"acks\":[{\"stream\":\"a\",\"stream\":\"a\",\"offset\":\"" OFFSET_5 "\"}]}",
    "{" WAKE ",\"generation\":7}",
};

/* Trap 5 of other servers: no shape of a body is more than a bad request. */
static void test_bad_reports(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(bad_reports); i++) {
        struct subscription_report report = {.generation = 99};
        msg.text[0] = '\0';
        int code = subscription_request_report(slice_of(bad_reports[i]), &arena, &report, &msg);
        if (code != ERR_INVALID || msg.text[0] == '\0') {
            fail_msg("taken: %s (%s)", bad_reports[i], msg.text);
        }
        assert_int_equal(report.generation, 99);
    }
}

/* What a webhook answers is done only when it plainly says so. */
static void test_reply(void **state)
{
    static const char *const no[] = {"",
                                     "{}",
                                     "null",
                                     "true",
                                     "[true]",
                                     "{\"done\":1}",
                                     "{\"done\":false}",
                                     "{\"done\":\"true\"}",
                                     "{\"done\":true",
                                     "{\"done\":true,\"done\":true}",
                                     "<html>",
                                     "\xff"};
    (void)state;
    assert_true(subscription_reply_done(SLICE("{\"done\":true}")));
    assert_true(subscription_reply_done(SLICE(" {\"x\":[],\"done\" : true}\n")));
    for (size_t i = 0; i < ARRAY_COUNT(no); i++) {
        assert_false(subscription_reply_done(slice_of(no[i])));
    }
}

static void assert_url_path(const char *escaped, const char *want)
{
    char out[STREAM_NAME_BYTES_MAX];
    size_t len = 0;
    int code = subscription_url_path_parse(slice_of(escaped), out, &len, &msg);
    assert_int_equal(code, want ? 0 : ERR_INVALID);
    if (want) {
        assert_slice((struct slice){out, len}, want);
    }
}

/* In a URL a path may have real slashes or escaped ones; what a name keeps escaped is escaped
 * twice. */
static void test_url_path(void **state)
{
    char path[2 * URL_PATH_BYTES_MAX];
    (void)state;
    assert_url_path("manual/b", "manual/b");
    assert_url_path("manual%2Fb", "manual/b");
    assert_url_path("%2Fmanual%2fb/", "manual/b");
    assert_url_path("a%252Fb", "a%2Fb");
    assert_url_path("a%20b", "a b");
    assert_url_path("a%2520b", "a b");
    assert_url_path("", NULL);
    assert_url_path("%2F", NULL);
    assert_url_path("%", NULL);
    assert_url_path("a%2", NULL);
    assert_url_path("%25", NULL);
    assert_url_path("a%00", NULL);
    memset(path, 'a', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    assert_url_path(path, NULL);
}

/* An arena that is exhausted at any point is an error of its own. */
static void test_no_memory(void **state)
{
    static const char body[] = "{" HOOK ",\"pattern\":\"a\",\"streams\":[\"a\",\"b\"],"
                               "\"description\":\"d\"}";
    int code = ERR_NOMEM;
    (void)state;
    for (size_t max = 0; code != 0; max += 16) {
        struct arena small;
        struct subscription_spec spec;
        arena_init(&small, max);
        code = subscription_request_put(slice_of(body), &small, &spec, &msg);
        assert_true(code == 0 || code == ERR_NOMEM);
        arena_finish(&small);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, open_arena, close_arena)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(webhook),   TEST(pull_wake),   TEST(other_kind),   TEST(hash),     TEST(bad_puts),
        TEST(sentences), TEST(caps),        TEST(many_streams), TEST(streams),  TEST(claim),
        TEST(report),    TEST(bad_reports), TEST(reply),        TEST(url_path), TEST(no_memory),
    };
    return UNIT_RUN(tests);
}
