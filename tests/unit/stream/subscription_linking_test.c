/* Linking by a request, its caps, and that nothing is left of one that fails. */
#include "stream/subscription_linking.c"

#include "unit/stream/subscription_rig.h"

static void check_prefix(const char *pattern, const char *prefix)
{
    struct subscription sub = {.def = {.pattern = slice_of(pattern)}};
    struct linking k = {.sub = &sub};
    set_prefix(&k);
    struct slice got = {k.prefix, k.prefix_len};
    assert_true(slice_equal(got, slice_of(prefix)));
}

/* What is listed for a pattern begins with its literal segments. */
static void test_prefix(void **state)
{
    (void)state;
    check_prefix("a/b/c", "a/b/c");
    check_prefix("a/b/*", "a/b");
    check_prefix("a/**", "a");
    check_prefix("a/**/b", "a");
    check_prefix("**", "");
    check_prefix("*/a", "");
    check_prefix("a/%2A/b/*", "a/*/b");
}

/* What exists when a subscription is made is linked at its tail, by the pattern and by name; what
 * is both is explicit. */
static void test_tails(void **state)
{
    (void)state;
    make("a", "[1]");
    make("a/x", "[1,2]");
    make("a/y/z", "[]");
    make("b", "[1]");
    make("ab", "[1]");
    assert_int_equal(rig_fork(&rig, "a/fork", "b"), 0);
    assert_int_equal(sub_put("s", "{\"type\":\"webhook\",\"pattern\":\"a/**\",\"streams\":["
                                  "\"a/x\",\"b\",\"none\"],"
                                  "\"webhook\":{\"url\":\"http://127.0.0.1:1/\"}}"),
                     201);
    assert_int_equal(find("s")->link_count, 6);
    assert_int_equal(find_link("s", "a")->acked, 2);
    assert_int_equal(find_link("s", "a/x")->acked, 4);
    assert_true(find_link("s", "a/x")->is_explicit);
    assert_int_equal(find_link("s", "a/y/z")->acked, 0);
    assert_int_equal(find_link("s", "a/fork")->acked, 2);
    assert_int_equal(find_link("s", "none")->acked, 0);
    assert_null(find_link("s", "ab"));
    sub_crash(true);
    assert_int_equal(find("s")->link_count, 6);
    assert_int_equal(call_count, 0);
    assert_int_equal(find_link("s", "a/fork")->tail, 2);
}

/* Patterns match nothing that is reserved: not what there is, nor what is made or grows later. */
static void test_reserved(void **state)
{
    (void)state;
    make("a", "[1]");
    make("kept-a", "[1]");
    make("kept-b/c", "[1]");
    subs->config.reserved = SLICE("kept-");
    assert_int_equal(sub_put("all", HOOK("**", "")), 201);
    assert_int_equal(sub_put("one", HOOK("*", "")), 201);
    assert_int_equal(sub_put("same", HOOK("kept-a", "")), 201);
    say("kept-a", "[2]");
    make("kept-new", "[3]");
    make("kept-b/d", "[]");
    walk_begin(subs); /* nor does a listing find any */
    sub_run();
    assert_int_equal(call_count, 0);
    assert_int_equal(find("all")->link_count, 1);
    assert_int_equal(find("one")->link_count, 1);
    assert_int_equal(find("same")->link_count, 0);
    say("a", "[4]");
    assert_int_equal(call_count, 2);
    assert_null(strstr(call_body(0), "kept-"));
}

/* A pattern that matches more than one subscription may follow is refused, and as many are fine. */
static void test_too_many(void **state)
{
    (void)state;
    char name[32];
    for (unsigned i = 0; i < SUBSCRIPTION_LINKS_MAX + 1; i++) {
        (void)snprintf(name, sizeof(name), i == 0 ? "x" : "a/%u", i);
        struct stream_op *op = calloc(1, sizeof(*op));
        op->verb = STREAM_CREATE;
        op->name = slice_of(name);
        bool done = false;
        op->done = rig_done;
        op->context = &done;
        op->create.content_type = SLICE(JSON);
        if (stream_start(rig.worker, op) == STREAM_PENDING) {
            rig_run(&rig);
            while (!done) {
                rig_commit(&rig);
            }
        }
        free(op);
    }
    assert_int_equal(sub_put("s", HOOK("a/*", "")), 201);
    assert_int_equal(find("s")->link_count, SUBSCRIPTION_LINKS_MAX);
    assert_int_equal(sub_put("t", HOOK("**", "")), 429);
    assert_true(said("LIMIT_REACHED"));
    assert_int_equal(sub_do(SUBSCRIPTION_GET, "t", ""), 404);
    assert_int_equal(sub_do(SUBSCRIPTION_LINK, "s", "{\"streams\":[\"x\"]}"), 429);
    assert_null(find_link("s", "x"));
    assert_int_equal(sub_do(SUBSCRIPTION_LINK, "s", "{\"streams\":[\"a/1\"]}"), 204);
    assert_int_equal(subs->counts.links, SUBSCRIPTION_LINKS_MAX);
    assert_int_equal(sub_do(SUBSCRIPTION_DELETE, "s", ""), 204);
    for (int i = 0; i < 100 && !list_empty(&subs->garbage); i++) {
        sub_run();
    }
    assert_int_equal(subs->counts.links, 0);
    sub_crash(true);
    assert_int_equal(sub_put("s", HOOK("none/*", "")), 201);
}

/* The links that linkings under way will make count, too: of two at once that fit one by one, one
 * is refused. What is named and matched is one link. */
static void test_at_once(void **state)
{
    (void)state;
    struct subscription_op ops[2];
    make("a/x", "[1]");
    make("b/x", "[1]");
    subs->counts.links += SUBSCRIPTION_LINKS_ALL_MAX - 1;
    op_init(&ops[0], SUBSCRIPTION_PUT, "s", HOOK("a/*", ",\"streams\":[\"a/x\"]"));
    op_init(&ops[1], SUBSCRIPTION_PUT, "t", HOOK("b/*", ",\"streams\":[\"b/x\"]"));
    subscription_start(subs, &ops[0]);
    subscription_start(subs, &ops[1]);
    sub_run();
    assert_int_equal(ops[0].status + ops[1].status, 201 + 429);
    buf_finish(&ops[0].answer);
    buf_finish(&ops[1].answer);
    assert_int_equal(subs->counts.links, SUBSCRIPTION_LINKS_ALL_MAX);
    assert_int_equal(subs->linking_links, 0);
    subs->counts.links -= SUBSCRIPTION_LINKS_ALL_MAX - 1;
}

/* A listing of all streams that begins after a tail was read is not known to have found it. */
static void test_listed_later(void **state)
{
    (void)state;
    make("a", "[1]");
    assert_int_equal(sub_put("s", HOOK("x/*", "")), 201);
    struct subscription *sub = core_find(subs, SLICE("s"));
    uint32_t number = subs->walk.number;
    struct linking *k = begin(subs, sub, NULL);
    assert_int_equal(prepare_name(k, SLICE("a")), 0);
    k->head = (struct stream_op){.verb = STREAM_HEAD, .name = SLICE("a")};
    assert_int_equal(rig_op(&rig, &k->head), 0);
    subs->walk.number++;
    assert_true(take_tail(k));
    conclude(k);
    sub_run();
    assert_int_equal(find_link("s", "a")->walk, number);
}

/* Nothing is left of what failed: not in the index, and not of the tombstone's values. */
static void test_undone(void **state)
{
    (void)state;
    make("a/x", "[1]");
    assert_int_equal(sub_put("s", HOOK("a/*", "")), 201);
    say("a/x", "[2]");
    assert_int_equal(sub_do(SUBSCRIPTION_DELETE, "s", ""), 204);
    uint64_t number = find("s")->number;
    int64_t deleted_ms = find("s")->created_ms;
    rig_sleep(1000);
    subs->counts.links += SUBSCRIPTION_LINKS_ALL_MAX;
    assert_int_equal(sub_put("s", HOOK("a/*", "")), 429);
    subs->counts.links -= SUBSCRIPTION_LINKS_ALL_MAX;
    assert_int_equal(find("s")->number, number);
    assert_int_equal(find("s")->created_ms, deleted_ms);
    assert_int_equal(find("s")->state.generation, 1);
    assert_true(core_look_up(subs, SLICE("a/x")));
    assert_int_equal(subs->hit_count, 0);
    assert_int_equal(find("s")->link_count, 0);
    assert_int_equal(sub_put("s", HOOK("a/*", "")), 201);
    assert_int_equal(find("s")->link_count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prefix),
        TEST(test_tails),
        TEST(test_reserved),
        TEST(test_too_many),
        TEST(test_at_once),
        TEST(test_listed_later),
        TEST(test_undone),
    };
    return UNIT_RUN(tests);
}
