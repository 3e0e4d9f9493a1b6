/* Creating streams and forks. */
#include "unit/stream/fake_store.h"

#include "stream/create.c"

#include "unit/stream/rig.h"

#define TEXT "text/plain"
#define JSON "application/json"

static struct rig rig;

static int open_rig(void **state)
{
    (void)state;
    rig_open(&rig);
    return 0;
}

static int close_rig(void **state)
{
    (void)state;
    rig_close(&rig);
    return 0;
}

static struct stream_op request(const char *name)
{
    struct stream_op op = {.verb = STREAM_CREATE, .name = slice_of(name)};
    return op;
}

/* A new stream has the type, the body and the closure that were asked for. */
static void test_create(void **state)
{
    (void)state;
    struct stream_op op = request("s");
    op.create.content_type = SLICE("Text/Plain; charset=utf-8");
    op.create.body = SLICE("hello");
    op.create.closed = true;
    assert_int_equal(rig_op(&rig, &op), 0);
    assert_true(op.result.created);
    assert_true(op.result.closed);
    assert_int_equal(op.result.next, 5);
    assert_true(slice_equal(op.result.content_type, SLICE("Text/Plain; charset=utf-8")));
    rig_expect(&rig, "s", "hello");
}

/* The same configuration again is no creation; another one is refused and says what differs. */
static void test_idempotent(void **state)
{
    (void)state;
    struct stream_op op = request("s");
    op.create.content_type = SLICE(TEXT);
    op.create.expiry = (struct stream_expiry){.has_ttl = true, .ttl_seconds = 60};
    assert_int_equal(rig_op(&rig, &op), 0);
    assert_int_equal(rig_op(&rig, &op), 0);
    assert_false(op.result.created);
    op.create.content_type = SLICE("TEXT/plain;x=y");
    assert_int_equal(rig_op(&rig, &op), 0);
    op.create.expiry.ttl_seconds = 61;
    assert_int_equal(rig_op(&rig, &op), ERR_EXISTS);
    assert_non_null(strstr(op.result.msg.text, "Stream-TTL"));
    op.create.expiry.has_ttl = false;
    assert_int_equal(rig_op(&rig, &op), ERR_EXISTS);
    op.create.expiry = (struct stream_expiry){.has_ttl = true, .ttl_seconds = 60};
    op.create.content_type = SLICE(JSON);
    assert_int_equal(rig_op(&rig, &op), ERR_EXISTS);
    op.create.content_type = SLICE(TEXT);
    op.create.closed = true;
    assert_int_equal(rig_op(&rig, &op), ERR_EXISTS);
}

/* Malformed types, both kinds of expiry, a TTL that is too long, fork fields without a source:
 * 400. */
static void test_malformed(void **state)
{
    (void)state;
    struct stream_op ops[] = {request("a"), request("b"), request("c"),
                              request("d"), request("e"), request("f")};
    ops[0].create.content_type = SLICE("garbage");
    ops[1].create.expiry = (struct stream_expiry){.has_ttl = true, .has_expires_at = true};
    ops[2].create.expiry = (struct stream_expiry){.has_ttl = true, .ttl_seconds = UINT64_MAX};
    ops[3].create.has_fork_offset = true;
    ops[4].create.has_sub_offset = true;
    ops[5].create.forked_from = SLICE("a");
    ops[5].create.has_sub_offset = true;
    ops[5].create.sub_offset = 1;
    for (size_t i = 0; i < ARRAY_COUNT(ops); i++) {
        assert_int_equal(rig_op(&rig, &ops[i]), ERR_INVALID);
        assert_true(strlen(ops[i].result.msg.text) > 0);
    }
    assert_int_equal(rig.engine->table.count, 0);
}

/* In JSON mode `[]` and nothing are the same empty stream; what is not JSON is refused. */
static void test_json_body(void **state)
{
    (void)state;
    assert_int_equal(rig_put(&rig, "a", JSON, "[]"), 0);
    assert_int_equal(rig_put(&rig, "b", JSON, ""), 0);
    assert_int_equal(rig_put(&rig, "c", JSON, "[1, 2]"), 0);
    assert_int_equal(rig_put(&rig, "d", JSON, "[1"), ERR_INVALID);
    rig_expect(&rig, "a", "");
    rig_expect(&rig, "c", "1,2,");
    assert_int_equal(rig_head(&rig, "d"), ERR_NOTFOUND);
}

/* A refused creation leaves nothing behind: no stream, no name, no count at the source. */
static void test_refused(void **state)
{
    (void)state;
    assert_int_equal(rig_put(&rig, "source", TEXT, "abc"), 0);
    fake.refuse = ERR_NOSPC;
    assert_int_equal(rig_put(&rig, "s", TEXT, "x"), ERR_NOSPC);
    assert_int_equal(rig_fork(&rig, "f", "source"), ERR_NOSPC);
    fake.refuse = 0;
    assert_int_equal(rig_head(&rig, "s"), ERR_NOTFOUND);
    assert_int_equal(rig_head(&rig, "f"), ERR_NOTFOUND);
    assert_int_equal(rig.engine->table.count, 1);
    assert_int_equal(rig_delete(&rig, "source"), 0);
    assert_int_equal(rig_head(&rig, "source"), ERR_NOTFOUND);
    assert_int_equal(rig_put(&rig, "s", TEXT, ""), 0);
}

/* A name has one creator at a time: the second finds what the first made. */
static void test_two_creators(void **state)
{
    (void)state;
    bool done[3] = {false, false, false};
    struct stream_op ops[] = {request("s"), request("s"), request("s")};
    ops[2].verb = STREAM_HEAD;
    for (int i = 0; i < 3; i++) {
        ops[i].done = rig_done;
        ops[i].context = &done[i];
        if (i < 2) {
            ops[i].create.content_type = SLICE(TEXT);
        }
        assert_int_equal(stream_start(rig.worker, &ops[i]), STREAM_PENDING);
    }
    rig_run(&rig);
    assert_false(done[0]);
    assert_false(done[1]);
    rig_commit(&rig);
    assert_true(done[0] && done[1] && done[2]);
    assert_true(ops[0].result.created);
    assert_int_equal(ops[1].result.code, 0);
    assert_false(ops[1].result.created);
    assert_int_equal(ops[2].result.code, 0);
}

/* The next creator takes over when the first is refused. */
static void test_creator_fails(void **state)
{
    (void)state;
    bool done[2] = {false, false};
    struct stream_op ops[] = {request("s"), request("s")};
    fake.refuse = ERR_NOSPC;
    fake.refuse_once = true;
    for (int i = 0; i < 2; i++) {
        ops[i].create.content_type = SLICE(TEXT);
        ops[i].done = rig_done;
        ops[i].context = &done[i];
        assert_int_equal(stream_start(rig.worker, &ops[i]), STREAM_PENDING);
    }
    rig_run(&rig);
    rig_commit(&rig);
    assert_true(done[0] && done[1]);
    assert_int_equal(ops[0].result.code, ERR_NOSPC);
    assert_int_equal(ops[1].result.code, 0);
    assert_true(ops[1].result.created);
}

/* A name that was deleted is free at once, for a stream with a new id and nothing of the old. */
static void test_recreate(void **state)
{
    (void)state;
    struct stream_op op = {0};
    assert_int_equal(rig_put(&rig, "s", TEXT, "old"), 0);
    assert_int_equal(rig_page(&rig, &op, "s", 0, false), 0);
    uint64_t old_id = op.result.page.stream_id;
    stream_page_finish(&op.result.page);
    assert_int_equal(rig_delete(&rig, "s"), 0);
    assert_int_equal(rig_put(&rig, "s", JSON, ""), 0);
    assert_int_equal(rig_page(&rig, &op, "s", 0, false), 0);
    assert_int_not_equal(op.result.page.stream_id, old_id);
    assert_int_equal(op.result.page.bytes, 0);
    stream_page_finish(&op.result.page);
}

/* A fork has the source's bytes up to its offset, its type, and then its own. */
static void test_fork(void **state)
{
    (void)state;
    assert_int_equal(rig_put(&rig, "s", TEXT, "abc"), 0);
    assert_int_equal(rig_post_body(&rig, "s", TEXT, "def"), 0);
    assert_int_equal(rig_fork_at(&rig, "f", "s", 3, 0), 0);
    assert_int_equal(rig_fork(&rig, "g", "s"), 0);
    assert_int_equal(rig_post_body(&rig, "f", TEXT, "XYZ"), 0);
    assert_int_equal(rig_post_body(&rig, "s", TEXT, "ghi"), 0);
    rig_expect(&rig, "f", "abcXYZ");
    rig_expect(&rig, "g", "abcdef");
    assert_int_equal(rig_fork(&rig, "h", "f"), 0);
    rig_expect(&rig, "h", "abcXYZ");
}

/* A fork is open though its source is closed, and knows nothing of its writers. */
static void test_fork_fresh(void **state)
{
    (void)state;
    assert_int_equal(rig_put(&rig, "s", TEXT, ""), 0);
    struct stream_op op = {.verb = STREAM_APPEND, .name = SLICE("s")};
    op.append.content_type = SLICE(TEXT);
    op.append.body = SLICE("x");
    op.append.producer = (struct record_producer){SLICE("p"), 3, 0};
    op.append.has_seq = true;
    op.append.seq = SLICE("z");
    op.append.close = true;
    assert_int_equal(rig_op(&rig, &op), 0);
    assert_int_equal(rig_fork(&rig, "f", "s"), 0);
    op.name = SLICE("f");
    op.append.producer.epoch = 0;
    op.append.seq = SLICE("a");
    assert_int_equal(rig_op(&rig, &op), 0);
    assert_false(op.result.duplicate);
}

/* The errors of PROTOCOL.md 4.2, and none of them counts at the source. */
static void test_fork_errors(void **state)
{
    (void)state;
    struct stream_op op = request("f");
    assert_int_equal(rig_put(&rig, "s", TEXT, "abc"), 0);
    assert_int_equal(rig_fork(&rig, "f", "none"), ERR_NOTFOUND);
    assert_int_equal(rig_fork_at(&rig, "f", "s", 4, 0), ERR_INVALID);
    assert_int_equal(rig_fork_at(&rig, "f", "s", OFFSET_BEYOND, 0), ERR_INVALID);
    op.create.forked_from = SLICE("s");
    op.create.content_type = SLICE(JSON);
    assert_int_equal(rig_op(&rig, &op), ERR_CONFLICT);
    assert_int_equal(rig_put(&rig, "t", TEXT, ""), 0);
    assert_int_equal(rig_fork(&rig, "t", "s"), ERR_EXISTS);
    assert_int_equal(rig_delete(&rig, "s"), 0);
    assert_int_equal(rig_head(&rig, "s"), ERR_NOTFOUND);
    assert_int_equal(rig_put(&rig, "s", TEXT, ""), 0);
}

/* A fork made again as it was is there; with another source or offset it is refused. */
static void test_fork_idempotent(void **state)
{
    (void)state;
    assert_int_equal(rig_put(&rig, "s", TEXT, "abcdef"), 0);
    assert_int_equal(rig_put(&rig, "t", TEXT, "abcdef"), 0);
    assert_int_equal(rig_fork_at(&rig, "f", "s", 0, 3), 0);
    assert_int_equal(rig_fork_at(&rig, "f", "s", 0, 3), 0);
    assert_int_equal(rig_fork_at(&rig, "f", "s", 0, 2), ERR_EXISTS);
    assert_int_equal(rig_fork_at(&rig, "f", "s", 6, 0), ERR_EXISTS);
    assert_int_equal(rig_fork_at(&rig, "f", "t", 0, 3), ERR_EXISTS);
    assert_int_equal(rig_put(&rig, "f", TEXT, ""), ERR_EXISTS);
    assert_int_equal(rig_fork(&rig, "g", "s"), 0);
    assert_int_equal(rig_post_body(&rig, "s", TEXT, "more"), 0);
    assert_int_equal(rig_fork(&rig, "g", "s"), 0);
    assert_int_equal(rig_fork_at(&rig, "g", "s", 6, 0), 0);
    assert_int_equal(rig_delete(&rig, "s"), 0);
    assert_int_equal(rig_fork(&rig, "g", "s"), 0);
}

/* A sub-offset counts bytes, not past the append that follows the anchor. */
static void test_sub_offset_bytes(void **state)
{
    (void)state;
    assert_int_equal(rig_put(&rig, "s", TEXT, "abcdef"), 0);
    assert_int_equal(rig_post_body(&rig, "s", TEXT, "ghi"), 0);
    assert_int_equal(rig_fork_at(&rig, "f", "s", 0, 3), 0);
    rig_expect(&rig, "f", "abc");
    assert_int_equal(rig_fork_at(&rig, "g", "s", 6, 3), 0);
    rig_expect(&rig, "g", "abcdefghi");
    assert_int_equal(rig_fork_at(&rig, "h", "s", 0, 7), ERR_INVALID);
    assert_int_equal(rig_fork_at(&rig, "h", "s", 9, 1), ERR_INVALID);
    assert_int_equal(rig_fork_at(&rig, "h", "f", 0, 3), 0);
    assert_int_equal(rig_fork_at(&rig, "i", "f", 0, 4), ERR_INVALID);
    rig_expect(&rig, "h", "abc");
}

/* In JSON mode it counts messages, and the anchor lies between messages. */
static void test_sub_offset_json(void **state)
{
    (void)state;
    assert_int_equal(rig_put(&rig, "s", JSON, "[1,22,333]"), 0);
    assert_int_equal(rig_post_body(&rig, "s", JSON, "[4,5]"), 0);
    assert_int_equal(rig_fork_at(&rig, "f", "s", 0, 2), 0);
    rig_expect(&rig, "f", "1,22,");
    assert_int_equal(rig_fork_at(&rig, "g", "s", 2, 2), 0);
    rig_expect(&rig, "g", "1,22,333,");
    assert_int_equal(rig_fork_at(&rig, "h", "s", 0, 4), ERR_INVALID);
    assert_int_equal(rig_fork_at(&rig, "h", "s", 3, 0), ERR_INVALID);
    assert_int_equal(rig_fork_at(&rig, "h", "s", 9, 2), 0);
    rig_expect(&rig, "h", "1,22,333,4,5,");
    assert_int_equal(rig_post_body(&rig, "f", JSON, "[6,7]"), 0);
    assert_int_equal(rig_fork_at(&rig, "i", "f", 0, 3), ERR_INVALID);
    assert_int_equal(rig_fork_at(&rig, "i", "f", 2, 1), 0);
}

/* Expiry of a fork follows the table of PROTOCOL.md 4.2. */
static void test_fork_expiry(void **state)
{
    (void)state;
    struct stream_op op = request("s");
    op.create.expiry = (struct stream_expiry){.has_ttl = true, .ttl_seconds = 60};
    assert_int_equal(rig_op(&rig, &op), 0);
    assert_int_equal(rig_fork(&rig, "inherits", "s"), 0);
    assert_int_equal(rig_fork(&rig, "inherits", "s"), 0);
    struct stream_op head = {.verb = STREAM_HEAD, .name = SLICE("inherits")};
    assert_int_equal(rig_op(&rig, &head), 0);
    assert_true(head.result.expiry.has_ttl);
    assert_int_equal(head.result.expiry.ttl_seconds, 60);
    op = request("own");
    op.create.forked_from = SLICE("s");
    op.create.expiry = (struct stream_expiry){.has_expires_at = true,
                                              .expires_at_ms = rig_now_ms + 5000};
    assert_int_equal(rig_op(&rig, &op), 0);
    head.name = SLICE("own");
    assert_int_equal(rig_op(&rig, &head), 0);
    assert_false(head.result.expiry.has_ttl);
    assert_int_equal(head.result.expiry.expires_at_ms, rig_now_ms + 5000);
}

/* A chain of forks has an end. */
static void test_fork_depth(void **state)
{
    (void)state;
    char from[16] = "s0";
    char name[16];
    assert_int_equal(rig_put(&rig, from, TEXT, "x"), 0);
    for (unsigned i = 1; i <= FORK_DEPTH_MAX + 1; i++) {
        (void)snprintf(name, sizeof(name), "s%u", i);
        assert_int_equal(rig_fork(&rig, name, from), i <= FORK_DEPTH_MAX ? 0 : ERR_INVALID);
        memcpy(from, name, sizeof(from));
    }
    rig_expect(&rig, "s64", "x");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_rig, close_rig)
    const struct CMUnitTest tests[] = {
        TEST(test_create),           TEST(test_idempotent),      TEST(test_malformed),
        TEST(test_json_body),        TEST(test_refused),         TEST(test_two_creators),
        TEST(test_creator_fails),    TEST(test_recreate),        TEST(test_fork),
        TEST(test_fork_fresh),       TEST(test_fork_errors),     TEST(test_fork_idempotent),
        TEST(test_sub_offset_bytes), TEST(test_sub_offset_json), TEST(test_fork_expiry),
        TEST(test_fork_depth),
    };
    return UNIT_RUN(tests);
}
