/* Reading: pages, offsets, boundaries, snapshots; over the real store, so that bytes get cold. */
#include "stream/read.c"

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

/* Everything goes to packs, and nothing of it stays in memory. */
static void make_cold(void)
{
    struct store *store = rig.engine->store;
    rig.engine->config.cache_bytes_max = 0;
    assert_int_equal(store->ops->checkpoint(store), 0);
    struct engine_stats stats;
    engine_get_stats(rig.engine, &stats);
    assert_int_equal(stats.hot_bytes, 0);
    assert_int_equal(stats.cache_bytes, 0);
}

static struct stream_op read_at(const char *name, struct offset from, uint32_t bytes_max)
{
    struct stream_op op = {.verb = STREAM_READ, .name = slice_of(name)};
    op.read.from = from;
    op.read.bytes_max = bytes_max;
    return op;
}

static void expect_page(struct stream_op *op, const char *bytes, uint64_t next, bool up_to_date)
{
    struct stream_page *page = &op->result.page;
    struct buf got;
    buf_init(&got, MIB);
    rig_collect(page, &got);
    assert_int_equal(got.len, strlen(bytes));
    if (got.len > 0) {
        assert_memory_equal(got.ptr, bytes, got.len);
    }
    assert_int_equal(page->next, next);
    assert_int_equal(page->up_to_date, up_to_date);
    buf_finish(&got);
    stream_page_finish(page);
}

/* From the start, from now, from a position and from the tail. */
static void test_offsets(void **state)
{
    (void)state;
    assert_int_equal(rig_put(&rig, "s", TEXT, "abcdef"), 0);
    struct stream_op op = read_at("s", (struct offset){OFFSET_START, 0}, 0);
    assert_int_equal(rig_op(&rig, &op), 0);
    expect_page(&op, "abcdef", 6, true);
    op = read_at("s", (struct offset){OFFSET_NOW, 0}, 0);
    assert_int_equal(rig_op(&rig, &op), 0);
    expect_page(&op, "", 6, true);
    op = read_at("s", (struct offset){OFFSET_AT, 4}, 0);
    assert_int_equal(rig_op(&rig, &op), 0);
    expect_page(&op, "ef", 6, true);
    op = read_at("s", (struct offset){OFFSET_AT, 6}, 0);
    assert_int_equal(rig_op(&rig, &op), 0);
    expect_page(&op, "", 6, true);
}

/* Beyond the tail a page is empty, with the tail as next, and a waiter waits where it asked. */
static void test_beyond(void **state)
{
    (void)state;
    static const uint64_t positions[] = {7, STREAM_OFFSET_MAX, OFFSET_BEYOND};
    assert_int_equal(rig_put(&rig, "s", TEXT, "abcdef"), 0);
    for (size_t i = 0; i < ARRAY_COUNT(positions); i++) {
        struct stream_op op = read_at("s", (struct offset){OFFSET_AT, positions[i]}, 0);
        assert_int_equal(rig_op(&rig, &op), 0);
        assert_true(op.result.page.wait_from == positions[i]);
        expect_page(&op, "", 6, true);
    }
}

/* A page is as long as asked, to the byte, hot and cold, as file and as memory. */
static void test_page_bytes(void **state)
{
    (void)state;
    assert_int_equal(rig_put(&rig, "s", TEXT, "abc"), 0);
    assert_int_equal(rig_post_body(&rig, "s", TEXT, "defgh"), 0);
    for (int n = 0; n < 3; n++) {
        struct stream_op op = read_at("s", (struct offset){OFFSET_AT, 1}, 4);
        op.read.in_memory = n == 2;
        assert_int_equal(rig_op(&rig, &op), 0);
        assert_true(n != 1 || op.result.page.pieces[0].pack);
        assert_true(n != 2 || op.result.page.pieces[0].block);
        assert_true(stream_piece_resident(&op.result.page.pieces[0], 0, 1));
        expect_page(&op, "bcde", 5, false);
        make_cold();
    }
}

/* Closure is told at the end only. */
static void test_closed(void **state)
{
    (void)state;
    struct stream_op op = {0};
    op.create.closed = true;
    assert_int_equal(rig_create(&rig, &op, "s", TEXT, "abcdef"), 0);
    op = read_at("s", (struct offset){OFFSET_START, 0}, 5);
    assert_int_equal(rig_op(&rig, &op), 0);
    assert_false(op.result.page.closed);
    expect_page(&op, "abcde", 5, false);
    op = read_at("s", (struct offset){OFFSET_AT, 5}, 5);
    assert_int_equal(rig_op(&rig, &op), 0);
    assert_true(op.result.page.closed);
    expect_page(&op, "f", 6, true);
}

/* A JSON page ends between messages; a message longer than the page comes whole. */
static void test_json_cut(void **state)
{
    (void)state;
    assert_int_equal(rig_put(&rig, "j", JSON, "[1,22,333333333,4]"), 0);
    for (int n = 0; n < 2; n++) {
        struct stream_op op = read_at("j", (struct offset){OFFSET_START, 0}, 6);
        assert_int_equal(rig_op(&rig, &op), 0);
        assert_true(op.result.page.json);
        expect_page(&op, "1,22,", 5, false);
        op = read_at("j", (struct offset){OFFSET_AT, 5}, 6);
        assert_int_equal(rig_op(&rig, &op), 0);
        expect_page(&op, "333333333,", 15, false);
        op = read_at("j", (struct offset){OFFSET_AT, 15}, 6);
        assert_int_equal(rig_op(&rig, &op), 0);
        expect_page(&op, "4,", 17, true);
        make_cold();
    }
}

/* An offset inside a JSON message is refused, hot and cold; in other streams any byte will do. */
static void test_json_inside(void **state)
{
    (void)state;
    assert_int_equal(rig_put(&rig, "j", JSON, "[1,22,333]"), 0);
    for (int n = 0; n < 2; n++) {
        for (uint64_t at = 0; at <= 9; at++) {
            struct stream_op op = read_at("j", (struct offset){OFFSET_AT, at}, 0);
            bool boundary = at == 0 || at == 2 || at == 5 || at == 9;
            assert_int_equal(rig_op(&rig, &op), boundary ? 0 : ERR_INVALID);
            stream_page_finish(&op.result.page);
        }
        make_cold();
    }
}

/* One page reaches from a source's packs over its fork's packs to hot bytes, capped over all of
 * it. */
static void test_stitch(void **state)
{
    (void)state;
    assert_int_equal(rig_put(&rig, "a", TEXT, "aaaa"), 0);
    make_cold();
    assert_int_equal(rig_fork_at(&rig, "b", "a", 3, 0), 0);
    assert_int_equal(rig_post_body(&rig, "b", TEXT, "bbbb"), 0);
    make_cold();
    assert_int_equal(rig_fork_at(&rig, "c", "b", 5, 0), 0);
    assert_int_equal(rig_post_body(&rig, "c", TEXT, "cccc"), 0);
    struct stream_op op = read_at("c", (struct offset){OFFSET_AT, 1}, 6);
    assert_int_equal(rig_op(&rig, &op), 0);
    assert_int_equal(op.result.page.piece_count, 3);
    expect_page(&op, "aabbcc", 7, false);
    rig_expect(&rig, "c", "aaabbcccc");
    assert_int_equal(rig_delete(&rig, "a"), 0);
    assert_int_equal(rig_delete(&rig, "b"), 0);
    rig_reopen(&rig, true);
    rig_expect(&rig, "c", "aaabbcccc");
}

/* A JSON chain is cut between messages too. */
static void test_stitch_json(void **state)
{
    (void)state;
    assert_int_equal(rig_put(&rig, "a", JSON, "[1,22,333]"), 0);
    make_cold();
    assert_int_equal(rig_fork_at(&rig, "b", "a", 0, 2), 0);
    assert_int_equal(rig_post_body(&rig, "b", JSON, "[4444,5]"), 0);
    rig.engine->config.read_page_bytes = 7;
    rig_expect(&rig, "b", "1,22,4444,5,");
    make_cold();
    rig_expect(&rig, "b", "1,22,4444,5,");
}

/* One message longer than an extent is one extent, and comes back whole. */
static void test_large_message(void **state)
{
    (void)state;
    size_t len = EXTENT_BYTES_MAX + 4096;
    char *body = malloc(len + 1);
    memset(body, 'x', len);
    body[0] = body[len - 1] = '"';
    body[len] = '\0';
    assert_int_equal(rig_put(&rig, "j", JSON, "[1]"), 0);
    assert_int_equal(rig_post_body(&rig, "j", JSON, body), 0);
    assert_int_equal(rig_post_body(&rig, "j", JSON, "2"), 0);
    make_cold();
    char *got = rig_read(&rig, "j", 0);
    assert_int_equal(strlen(got), len + 5);
    assert_memory_equal(got + 2, body, len);
    assert_string_equal(got + 2 + len, ",2,");
    free(got);
    free(body);
}

/* A large append of many messages becomes several extents, each of whole messages. */
static void test_many_extents(void **state)
{
    (void)state;
    size_t count = 3 * EXTENT_BYTES_MAX / 1000;
    char *body = malloc(count * 1000 + 2);
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        body[at++] = i == 0 ? '[' : ',';
        body[at++] = '"';
        memset(body + at, 'a' + (int)(i % 26), 996);
        at += 996;
        body[at++] = '"';
    }
    body[at++] = ']';
    body[at] = '\0';
    assert_int_equal(rig_put(&rig, "j", JSON, body), 0);
    make_cold();
    struct stream *s = table_name(rig.engine, SLICE("j"));
    assert_in_range(s->extent_count, 3, 4);
    for (size_t i = 0; i < s->extent_count; i++) {
        assert_int_equal(s->extents[i].start % 999, 0);
    }
    stream_unref(s);
    char *got = rig_read(&rig, "j", 0);
    assert_int_equal(strlen(got), count * 999);
    free(got);
    free(body);
}

/* A page of a stream of `type` with 40 appends of 8 KiB, all in packs and in memory. */
static struct stream_op read_cached(const char *type, uint64_t from, uint32_t bytes_max,
                                    bool in_memory)
{
    char body[8 * KIB + 1];
    memset(body, 'x', 8 * KIB);
    body[0] = body[8 * KIB - 1] = '"';
    body[8 * KIB] = '\0';
    assert_int_equal(rig_put(&rig, "a", type, ""), 0);
    for (int i = 0; i < 40; i++) {
        assert_int_equal(rig_post_body(&rig, "a", type, body), 0);
    }
    assert_int_equal(rig.engine->store->ops->checkpoint(rig.engine->store), 0);
    struct engine_stats stats;
    engine_get_stats(rig.engine, &stats);
    assert_true(stats.cache_bytes > 0);
    struct stream_op op = read_at("a", (struct offset){OFFSET_AT, from}, bytes_max);
    op.read.in_memory = in_memory;
    assert_int_equal(rig_op(&rig, &op), 0);
    return op;
}

/* What the page holds is what follows of the stream's bytes, which repeat each `each` bytes. */
static void expect_repeated(struct stream_op *op, size_t each, char separator)
{
    struct stream_page *page = &op->result.page;
    struct buf got;
    buf_init(&got, MIB);
    rig_collect(page, &got);
    assert_int_equal(got.len, page->bytes);
    assert_int_equal(page->next, page->start + page->bytes);
    for (size_t i = 0; i < got.len; i++) {
        size_t at = (page->start + i) % each;
        char wanted = at == 8 * KIB ? separator : at == 0 || at == 8 * KIB - 1 ? '"' : 'x';
        assert_int_equal(got.ptr[i], wanted);
    }
    buf_finish(&got);
}

/* Many bytes that are in a pack are sent from there, although they are in memory too. */
static void test_large_from_pack(void **state)
{
    (void)state;
    struct stream_op op = read_cached(TEXT, 100, 200 * KIB, false);
    assert_int_equal(op.result.page.piece_count, 1);
    assert_non_null(op.result.page.pieces[0].pack);
    assert_int_equal(op.result.page.bytes, 200 * KIB);
    expect_repeated(&op, 8 * KIB, 0);
    stream_page_finish(&op.result.page);
}

/* Few bytes, and those that are asked for in memory, come from memory. */
static void test_small_from_memory(void **state)
{
    (void)state;
    struct stream_op op = read_cached(TEXT, 100, 200 * KIB, true);
    for (size_t i = 0; i < op.result.page.piece_count; i++) {
        assert_non_null(op.result.page.pieces[i].block);
    }
    expect_repeated(&op, 8 * KIB, 0);
    stream_page_finish(&op.result.page);
    op = read_at("a", (struct offset){OFFSET_AT, 100}, 60 * KIB);
    assert_int_equal(rig_op(&rig, &op), 0);
    assert_non_null(op.result.page.pieces[0].block);
    expect_repeated(&op, 8 * KIB, 0);
    stream_page_finish(&op.result.page);
}

/* A JSON page is cut between messages, without reading marks from the pack: its start is proved
 * and its end is found in memory, what lies between comes from the pack. */
static void test_large_json_from_pack(void **state)
{
    (void)state;
    struct stream_op op = read_cached(JSON, 8 * KIB + 1, 200 * KIB, false);
    size_t packed = 0;
    for (size_t i = 0; i < op.result.page.piece_count; i++) {
        packed += op.result.page.pieces[i].pack ? op.result.page.pieces[i].len : 0;
    }
    assert_true(packed > 100 * KIB);
    assert_int_equal(op.result.page.bytes, 24 * (8 * KIB + 1));
    expect_repeated(&op, 8 * KIB + 1, ',');
    stream_page_finish(&op.result.page);
    op = read_at("a", (struct offset){OFFSET_AT, 8 * KIB}, 200 * KIB);
    assert_int_equal(rig_op(&rig, &op), ERR_INVALID);
}

/* A pack that is shorter than the catalog says is an error, never a short page. */
static void test_truncated(void **state)
{
    (void)state;
    assert_int_equal(rig_put(&rig, "s", TEXT, "abcdef"), 0);
    make_cold();
    struct stream_op op = read_at("s", (struct offset){OFFSET_START, 0}, 0);
    assert_int_equal(rig_op(&rig, &op), 0);
    assert_int_equal(
        ftruncate(op.result.page.pieces[0].pack->fd, (off_t)op.result.page.pieces[0].at + 3), 0);
    stream_page_finish(&op.result.page);
    op.read.in_memory = true;
    assert_int_equal(rig_op(&rig, &op), ERR_CORRUPT);
    assert_null(op.result.page.stream);
}

/* A missing stream is 404 in every mode. */
static void test_missing(void **state)
{
    (void)state;
    struct stream_op op = read_at("s", (struct offset){OFFSET_NOW, 0}, 0);
    assert_int_equal(rig_op(&rig, &op), ERR_NOTFOUND);
    char name[STREAM_NAME_BYTES_MAX + 2];
    memset(name, 'n', sizeof(name));
    name[sizeof(name) - 1] = '\0';
    op = read_at(name, (struct offset){OFFSET_NOW, 0}, 0);
    assert_int_equal(rig_op(&rig, &op), ERR_NOTFOUND);
}

/* As if the pack had gone without word of where its bytes moved. */
static void lose_pack(const char *name)
{
    struct stream *s = table_name(rig.engine, slice_of(name));
    assert_true(s->extent_count > 0);
    s->extents[0].pack += 1000;
    stream_unref(s);
}

/* Where the bytes lie is asked of the catalog again when their pack is not there: for a page, for
 * the boundary it begins at, for one that goes through a fork, and to find a fork's offset. */
static void test_lost_pack(void **state)
{
    (void)state;
    assert_int_equal(rig_put(&rig, "j", JSON, "[1,22,333]"), 0);
    assert_int_equal(rig_fork(&rig, "fork", "j"), 0);
    make_cold();
    lose_pack("j");
    rig_expect(&rig, "j", "1,22,333,");
    lose_pack("j");
    char *got = rig_read(&rig, "j", 5);
    assert_string_equal(got, "333,");
    free(got);
    lose_pack("j");
    rig_expect(&rig, "fork", "1,22,333,");
    lose_pack("j");
    assert_int_equal(rig_fork_at(&rig, "other", "j", 2, 1), 0);
    rig_expect(&rig, "other", "1,22,");
}

/* A body of `count` small messages. */
static char *many_messages(size_t count)
{
    char *body = malloc(2 * count + 2);
    assert_non_null(body);
    for (size_t i = 0; i < count; i++) {
        body[2 * i] = i == 0 ? '[' : ',';
        body[2 * i + 1] = (char)('0' + i % 10);
    }
    memcpy(body + 2 * count, "]", 2);
    return body;
}

static void expect_short_runs(const char *name)
{
    struct stream *s = table_name(rig.engine, slice_of(name));
    for (uint32_t i = 0; i < s->tail.count; i++) {
        assert_in_range(s->tail.chunks[s->tail.first + i].marks_len, 1, RUN_MARKS_BYTES_MAX);
    }
    for (size_t i = 0; i < s->extent_count; i++) {
        assert_in_range(s->extents[i].marks_len, 1, RUN_MARKS_BYTES_MAX);
    }
    assert_true(s->tail.count + s->extent_count > 3);
    stream_unref(s);
}

static void expect_many(const char *name, const char *body, size_t count)
{
    char *got = rig_read(&rig, name, 0);
    assert_non_null(got);
    assert_int_equal(strlen(got), 2 * count);
    assert_memory_equal(got, body + 1, 2 * count - 1);
    assert_int_equal(got[2 * count - 1], ',');
    free(got);
    struct stream_op op;
    assert_int_equal(rig_page(&rig, &op, name, count + 1 - count % 2, false), ERR_INVALID);
    stream_page_finish(&op.result.page);
    expect_short_runs(name);
}

/* However many messages one body has, no page has to walk more than one short run of marks: in
 * memory, in packs, after a restart, in what a creation brought and in what an append did. */
static void test_many_messages(void **state)
{
    (void)state;
    const size_t count = 3 * RUN_MARKS_BYTES_MAX + 5;
    char *body = many_messages(count);
    assert_int_equal(rig_put(&rig, "created", JSON, body), 0);
    assert_int_equal(rig_put(&rig, "appended", JSON, ""), 0);
    assert_int_equal(rig_post_body(&rig, "appended", JSON, body), 0);
    for (int n = 0; n < 3; n++) {
        expect_many("created", body, count);
        expect_many("appended", body, count);
        if (n == 0) {
            rig_reopen(&rig, false);
        } else {
            make_cold();
        }
    }
    assert_int_equal(rig_fork_at(&rig, "fork", "created", 2 * count - 4, 1), 0);
    struct stream *fork = table_name(rig.engine, SLICE("fork"));
    assert_int_equal(stream_own_start(fork), 2 * count - 2);
    stream_unref(fork);
    free(body);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_rig, close_rig)
    const struct CMUnitTest tests[] = {
        TEST(test_offsets),
        TEST(test_beyond),
        TEST(test_page_bytes),
        TEST(test_closed),
        TEST(test_json_cut),
        TEST(test_json_inside),
        TEST(test_stitch),
        TEST(test_stitch_json),
        TEST(test_large_message),
        TEST(test_many_extents),
        TEST(test_large_from_pack),
        TEST(test_small_from_memory),
        TEST(test_large_json_from_pack),
        TEST(test_truncated),
        TEST(test_missing),
        cmocka_unit_test_setup_teardown(test_many_messages, open_rig, close_rig),
        cmocka_unit_test_setup_teardown(test_lost_pack, open_rig, close_rig),
    };
    return UNIT_RUN(tests);
}
