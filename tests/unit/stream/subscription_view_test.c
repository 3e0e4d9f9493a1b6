/* The exact texts that the subscription API answers and sends. */
#include "stream/subscription_view.c"

#include <stdlib.h>

#include "base/json_value.h"

#include "unit/base/unit.h"

#define BASE "http://127.0.0.1:4437/v1/stream/__ds"

static struct subscription sub;
static struct buf out;

static int open_view(void **state)
{
    (void)state;
    sub = (struct subscription){
        .id = SLICE("sub/1"),
        .created_ms = INT64_C(1778284800000),
        .def = {.type = SUBSCRIPTION_WEBHOOK,
                .pattern = SLICE("events/*"),
                .target = SLICE("https://worker.example/hooks"),
                .lease_ttl_ms = 30000,
                .has_description = true,
                .description = SLICE("event \"processor\"")},
        .state = {.generation = 7, .wake_id = "w_0123456789abcdef01234567"},
    };
    list_init(&sub.links);
    buf_init(&out, 1 << 20);
    return 0;
}

static int close_view(void **state)
{
    (void)state;
    struct list *first;
    while ((first = list_first(&sub.links)) != NULL) {
        list_remove(first);
        free(container_of(first, struct subscription_link, link));
    }
    buf_finish(&out);
    return 0;
}

static struct subscription_link *add_link(const char *path, bool is_explicit, uint64_t acked,
                                          uint64_t tail)
{
    struct subscription_link *l = calloc(1, sizeof(*l) + strlen(path));
    assert_non_null(l);
    l->is_explicit = is_explicit;
    l->acked = acked;
    l->tail = tail;
    l->path_len = (uint16_t)strlen(path);
    memcpy(l->path, path, strlen(path));
    list_append(&sub.links, &l->link);
    return l;
}

/* What was written is the text, and JSON. */
static void expect(const char *text)
{
    struct slice value;
    assert_false(out.failed);
    if (!slice_equal(buf_slice(&out), slice_of(text))) {
        fail_msg("%.*s\nis not\n%s", (int)out.len, out.ptr, text);
    }
    assert_int_equal(json_text_read(buf_slice(&out), &value, NULL), 0);
    buf_clear(&out);
}

#define AT_0  "\"0000000000000000_0000000000000000\""
#define AT_42 "\"0000000000000000_0000000000000042\""
#define AT_84 "\"0000000000000000_0000000000000084\""

/* GET of a webhook subscription: all links that are not dropped, in order. */
static void test_webhook_subscription(void **state)
{
    (void)state;
    add_link("events/abc", false, 42, 84);
    add_link("gone", true, 42, 84)->dropped = true;
    add_link("events/\xc3\xa9", true, SUBSCRIPTION_START, 84);
    subscription_view_append(&out, &sub, SLICE(BASE), SLICE("ds_abc123"));
    expect("{\"id\":\"sub/1\",\"subscription_id\":\"sub/1\",\"type\":\"webhook\","
           "\"pattern\":\"events/*\",\"streams\":["
           "{\"path\":\"events/abc\",\"link_type\":\"glob\",\"acked_offset\":" AT_42 "},"
           "{\"path\":\"events/\xc3\xa9\",\"link_type\":\"explicit\",\"acked_offset\":\"-1\"}],"
           "\"webhook\":{\"url\":\"https://worker.example/hooks\",\"signing\":{\"alg\":\"ed25519\","
           "\"kid\":\"ds_abc123\",\"jwks_url\":\"" BASE "/jwks.json\"}},\"lease_ttl_ms\":30000,"
           "\"created_at\":\"2026-05-09T00:00:00.000Z\",\"status\":\"active\","
           "\"description\":\"event \\\"processor\\\"\"}");
}

/* GET of a pull-wake subscription: what it has not is left out. */
static void test_pull_wake_subscription(void **state)
{
    (void)state;
    sub.def.type = SUBSCRIPTION_PULL_WAKE;
    sub.def.target = SLICE("wake/pool");
    sub.def.pattern = SLICE("");
    sub.def.has_description = false;
    sub.state.failed = true;
    subscription_view_append(&out, &sub, SLICE(BASE), SLICE(""));
    expect("{\"id\":\"sub/1\",\"subscription_id\":\"sub/1\",\"type\":\"pull-wake\",\"streams\":[],"
           "\"wake_stream\":\"wake/pool\",\"lease_ttl_ms\":30000,"
           "\"created_at\":\"2026-05-09T00:00:00.000Z\",\"status\":\"failed\"}");
}

/* The webhook tells of all links where they end and whether they are behind. */
static void test_webhook(void **state)
{
    (void)state;
    struct subscription_state wake = sub.state;
    wake.generation = 8;
    add_link("a", false, 42, 84);
    add_link("b", true, 84, 84);
    add_link("c", true, SUBSCRIPTION_START, 0);
    subscription_view_webhook(&out, &sub, &wake, SLICE(BASE), SLICE("eyJ.x"));
    expect("{\"subscription_id\":\"sub/1\",\"wake_id\":\"w_0123456789abcdef01234567\","
           "\"generation\":8,\"streams\":["
           "{\"path\":\"a\",\"link_type\":\"glob\","
           "\"acked_offset\":" AT_42 ",\"tail_offset\":" AT_84 ",\"has_pending\":true},"
           "{\"path\":\"b\",\"link_type\":\"explicit\","
           "\"acked_offset\":" AT_84 ",\"tail_offset\":" AT_84 ",\"has_pending\":false},"
           "{\"path\":\"c\",\"link_type\":\"explicit\","
           "\"acked_offset\":\"-1\",\"tail_offset\":" AT_0 ",\"has_pending\":false}],"
           "\"callback_url\":\"" BASE "/subscriptions/sub%2F1/callback\","
           "\"callback_token\":\"eyJ.x\"}");
}

/* A claim is answered with the same links. */
static void test_claim(void **state)
{
    (void)state;
    add_link("a", false, 0, 84);
    subscription_view_claim(&out, &sub, &sub.state, SLICE("eyJ.x"));
    expect("{\"wake_id\":\"w_0123456789abcdef01234567\",\"generation\":7,\"token\":\"eyJ.x\","
           "\"streams\":[{\"path\":\"a\",\"link_type\":\"glob\","
           "\"acked_offset\":" AT_0 ",\"tail_offset\":" AT_84 ",\"has_pending\":true}],"
           "\"lease_ttl_ms\":30000}");
}

/* The event of a wake stream, and the answers to acks, with exactly these members. */
static void test_small(void **state)
{
    (void)state;
    subscription_view_event(&out, SLICE("sub-1"), SLICE("events/abc"), 7, INT64_C(1778324210000));
    expect("{\"type\":\"wake\",\"subscription_id\":\"sub-1\",\"stream\":\"events/abc\","
           "\"generation\":7,\"ts\":1778324210000}");
    subscription_view_ok(&out, false);
    expect("{\"ok\":true,\"next_wake\":false}");
    subscription_view_ok(&out, true);
    expect("{\"ok\":true,\"next_wake\":true}");
}

/* Errors have a code and a sentence, and each its status. */
static void test_errors(void **state)
{
    (void)state;
    assert_int_equal(
        subscription_view_error(&out, SUBSCRIPTION_ERROR_FENCED, SLICE("too \"late\"")), 409);
    expect("{\"error\":{\"code\":\"FENCED\",\"message\":\"too \\\"late\\\"\"}}");
    assert_int_equal(subscription_view_error(&out, SUBSCRIPTION_ERROR_TOKEN_EXPIRED, SLICE("x")),
                     401);
    expect("{\"error\":{\"code\":\"TOKEN_EXPIRED\",\"message\":\"x\"}}");
    assert_int_equal(subscription_view_claimed(&out, SLICE("worker-2"), 7), 409);
    expect("{\"error\":{\"code\":\"ALREADY_CLAIMED\",\"message\":\"another worker holds the lease: "
           "try again when it has ended\",\"current_holder\":\"worker-2\",\"generation\":7}}");
}

/* Every byte that could end a URL's segment, or a string, is escaped. */
static void test_odd_id(void **state)
{
    (void)state;
    sub.id = SLICE("a \"%/?#\xc3\xa9");
    subscription_view_webhook(&out, &sub, &sub.state, SLICE("http://h/\"x"), SLICE("t"));
    expect("{\"subscription_id\":\"a \\\"%/?#\xc3\xa9\",\"wake_id\":\"w_0123456789abcdef01234567\","
           "\"generation\":7,\"streams\":[],\"callback_url\":\"http://h/\\\"x/subscriptions/"
           "a%20%22%25%2F%3F%23%C3%A9/callback\",\"callback_token\":\"t\"}");
}

/* A buffer that is too small is failed, wherever it ends. */
static void test_full(void **state)
{
    (void)state;
    add_link("a", false, 0, 84);
    subscription_view_webhook(&out, &sub, &sub.state, SLICE(BASE), SLICE("t"));
    for (size_t size = 1; size <= out.len; size++) {
        char memory[1024];
        struct buf small;
        assert_true(size < sizeof(memory));
        buf_init_fixed(&small, memory, size);
        subscription_view_webhook(&small, &sub, &sub.state, SLICE(BASE), SLICE("t"));
        assert_true(small.failed);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, open_view, close_view)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(webhook_subscription),
        TEST(pull_wake_subscription),
        TEST(webhook),
        TEST(claim),
        TEST(small),
        TEST(errors),
        TEST(odd_id),
        TEST(full),
    };
    return UNIT_RUN(tests);
}
