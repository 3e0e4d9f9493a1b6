/* Appending and closing over a store that the test holds in its hands. */
#include "unit/stream/fake_store.h"

#include "stream/append.c"

#include "unit/stream/rig.h"

#define TEXT "text/plain"

static struct rig rig;

static int open_rig(void **state)
{
    (void)state;
    rig_open(&rig);
    assert_int_equal(rig_put(&rig, "s", TEXT, "one"), 0);
    return 0;
}

static int close_rig(void **state)
{
    (void)state;
    rig_close(&rig);
    return 0;
}

static struct stream_op request(const char *body)
{
    struct stream_op op = {.verb = STREAM_APPEND, .name = SLICE("s")};
    op.append.body = slice_of(body);
    op.append.content_type = SLICE(TEXT);
    return op;
}

static struct stream_op claim(const char *body, uint64_t epoch, uint64_t seq)
{
    struct stream_op op = request(body);
    op.append.producer = (struct record_producer){SLICE("p"), epoch, seq};
    return op;
}

/* An append is answered with the new tail, and the bytes are there. */
static void test_append(void **state)
{
    (void)state;
    struct stream_op op = request(" two");
    assert_int_equal(rig_op(&rig, &op), 0);
    assert_true(op.result.has_next);
    assert_int_equal(op.result.next, 7);
    assert_false(op.result.closed);
    struct stream_op head = {.verb = STREAM_HEAD, .name = SLICE("s")};
    assert_int_equal(rig_op(&rig, &head), 0);
    assert_true(op.result.id > 0);
    assert_int_equal(op.result.id, head.result.id);
    rig_expect(&rig, "s", "one two");
}

/* Before its record is durable an append is neither answered nor seen. */
static void test_parked(void **state)
{
    (void)state;
    bool done = false;
    struct stream_op op = request(" two");
    op.done = rig_done;
    op.context = &done;
    assert_int_equal(stream_start(rig.worker, &op), STREAM_PENDING);
    rig_run(&rig);
    assert_false(done);
    assert_int_equal(engine_worker_pending(rig.worker), 1);
    rig_expect(&rig, "s", "one");
    rig_commit(&rig);
    assert_true(done);
    assert_int_equal(engine_worker_pending(rig.worker), 0);
    rig_expect(&rig, "s", "one two");
}

/* When the log fails first, the outcome is unknown, later writes are refused, reads go on. */
static void test_log_failure(void **state)
{
    (void)state;
    bool done = false;
    struct stream_op op = request(" two");
    op.done = rig_done;
    op.context = &done;
    assert_int_equal(stream_start(rig.worker, &op), STREAM_PENDING);
    fake_break();
    rig_run(&rig);
    assert_true(done);
    assert_int_equal(op.result.code, ERR_UNKNOWN);
    assert_int_equal(rig_post_body(&rig, "s", TEXT, "x"), ERR_FAILED);
    assert_int_equal(rig_delete(&rig, "s"), ERR_FAILED);
    assert_int_equal(rig_put(&rig, "t", TEXT, ""), ERR_FAILED);
    assert_true(engine_failed(rig.engine));
    rig_expect(&rig, "s", "one");
}

/* A record that is refused leaves no trace, whatever the request would have changed. */
static void test_refused(void **state)
{
    (void)state;
    static const int codes[] = {ERR_NOSPC, ERR_BUSY, ERR_FAILED};
    struct engine_stats before;
    engine_get_stats(rig.engine, &before);
    for (size_t i = 0; i < ARRAY_COUNT(codes); i++) {
        struct stream_op op = claim(" lost", 0, 0);
        op.append.close = true;
        op.append.has_seq = true;
        op.append.seq = SLICE("z");
        fake.refuse = codes[i];
        assert_int_equal(rig_op(&rig, &op), codes[i]);
        assert_true(strlen(op.result.msg.text) > 0);
        fake.refuse = 0;
    }
    struct engine_stats after;
    engine_get_stats(rig.engine, &after);
    assert_int_equal(after.hot_bytes, before.hot_bytes);
    rig_expect(&rig, "s", "one");
    struct stream_op op = claim(" two", 0, 0);
    op.append.has_seq = true;
    op.append.seq = SLICE("a");
    assert_int_equal(rig_op(&rig, &op), 0);
    assert_false(op.result.duplicate);
    rig_expect(&rig, "s", "one two");
}

/* Without room the append waits for the notice that room was made. */
static void test_room(void **state)
{
    (void)state;
    bool done = false;
    struct stream_op op = request(" two");
    op.done = rig_done;
    op.context = &done;
    fake.refuse = ERR_AGAIN;
    assert_int_equal(stream_start(rig.worker, &op), STREAM_PENDING);
    rig_run(&rig);
    assert_false(done);
    rig_commit(&rig);
    assert_false(done);
    fake.refuse = 0;
    rig_commit(&rig);
    rig_commit(&rig);
    assert_true(done);
    assert_int_equal(op.result.code, 0);
    rig_expect(&rig, "s", "one two");
}

/* Over the budget of bytes that wait for a checkpoint appends are refused, not swallowed. */
static void test_budget(void **state)
{
    (void)state;
    rig.engine->config.hot_bytes_max = 8;
    assert_int_equal(rig_post_body(&rig, "s", TEXT, "12345"), 0);
    assert_int_equal(rig_post_body(&rig, "s", TEXT, "6"), ERR_BUSY);
    assert_int_equal(rig_put(&rig, "t", TEXT, "1"), ERR_BUSY);
    rig_expect(&rig, "s", "one12345");
}

/* Empty without closing, no type, a malformed type, an overlong id or sequence: 400. */
static void test_malformed(void **state)
{
    (void)state;
    char id[PRODUCER_ID_BYTES_MAX + 1];
    memset(id, 'i', sizeof(id));
    struct stream_op ops[] = {request(""), request("x"), request("x"), request("x"), request("x")};
    ops[1].append.content_type = (struct slice){0};
    ops[2].append.content_type = SLICE("garbage");
    ops[3].append.producer.id = (struct slice){id, sizeof(id)};
    ops[4].append.has_seq = true;
    ops[4].append.seq = (struct slice){id, sizeof(id)};
    for (size_t i = 0; i < ARRAY_COUNT(ops); i++) {
        assert_int_equal(rig_op(&rig, &ops[i]), ERR_INVALID);
        assert_true(strlen(ops[i].result.msg.text) > 0);
    }
}

/* On a missing stream even a malformed request is 404. */
static void test_missing_first(void **state)
{
    (void)state;
    struct stream_op op = request("");
    op.name = SLICE("missing");
    assert_int_equal(rig_op(&rig, &op), ERR_NOTFOUND);
}

/* Another media type conflicts; parameters do not matter. */
static void test_type(void **state)
{
    (void)state;
    assert_int_equal(rig_post_body(&rig, "s", "application/json", "1"), ERR_CONFLICT);
    assert_int_equal(rig_post_body(&rig, "s", "Text/Plain; charset=utf-8", "!"), 0);
}

/* Closing alone works with any Content-Type, and again; appending then is refused with the end. */
static void test_close(void **state)
{
    (void)state;
    struct stream_op op = request("");
    op.append.close = true;
    op.append.content_type = SLICE("gar bage");
    assert_int_equal(rig_op(&rig, &op), 0);
    assert_true(op.result.closed);
    assert_int_equal(rig_op(&rig, &op), 0);
    op = request("x");
    assert_int_equal(rig_op(&rig, &op), ERR_CLOSED);
    assert_true(op.result.closed);
    assert_true(op.result.has_next);
    assert_int_equal(op.result.next, 3);
    op.append.close = true;
    assert_int_equal(rig_op(&rig, &op), ERR_CLOSED);
}

/* That a stream is closed is told before its type is compared. */
static void test_closed_first(void **state)
{
    (void)state;
    struct stream_op op = request("");
    op.append.close = true;
    assert_int_equal(rig_op(&rig, &op), 0);
    assert_int_equal(rig_post_body(&rig, "s", "application/json", "1"), ERR_CLOSED);
}

/* A refusal that tells of closure is not given before the closure is durable. */
static void test_closed_parked(void **state)
{
    (void)state;
    bool done[2] = {false, false};
    struct stream_op close = request("");
    struct stream_op late = request("x");
    close.append.close = true;
    close.done = late.done = rig_done;
    close.context = &done[0];
    late.context = &done[1];
    assert_int_equal(stream_start(rig.worker, &close), STREAM_PENDING);
    assert_int_equal(stream_start(rig.worker, &late), STREAM_PENDING);
    rig_run(&rig);
    assert_false(done[1]);
    fake_break();
    rig_run(&rig);
    assert_int_equal(close.result.code, ERR_UNKNOWN);
    assert_int_equal(late.result.code, ERR_UNKNOWN);
    assert_false(late.result.closed);
}

/* Duplicates, gaps, stale epochs and fresh ones are told apart, and only what is new is kept. */
static void test_producer(void **state)
{
    (void)state;
    for (uint64_t seq = 0; seq < 3; seq++) {
        struct stream_op op = claim("x", 0, seq);
        assert_int_equal(rig_op(&rig, &op), 0);
        assert_int_equal(op.result.producer_seq, seq);
    }
    struct stream_op dup = claim("Z", 0, 1);
    assert_int_equal(rig_op(&rig, &dup), 0);
    assert_true(dup.result.duplicate);
    assert_int_equal(dup.result.producer_seq, 2);
    assert_int_equal(dup.result.next, 6);
    struct stream_op gap = claim("Z", 0, 7);
    assert_int_equal(rig_op(&rig, &gap), ERR_CONFLICT);
    assert_true(gap.result.seq_gap);
    assert_int_equal(gap.result.producer_seq_expected, 3);
    assert_int_equal(gap.result.producer_seq_received, 7);
    struct stream_op late = claim("Z", 1, 1);
    assert_int_equal(rig_op(&rig, &late), ERR_INVALID);
    struct stream_op epoch = claim("y", 1, 0);
    assert_int_equal(rig_op(&rig, &epoch), 0);
    struct stream_op stale = claim("Z", 0, 3);
    assert_int_equal(rig_op(&rig, &stale), ERR_PERM);
    assert_true(stale.result.stale_epoch);
    assert_int_equal(stale.result.producer_epoch, 1);
    rig_expect(&rig, "s", "onexxxy");
}

/* A retried request repeats its Stream-Seq too; a Stream-Seq conflict does not advance the
 * producer. */
static void test_producer_and_seq(void **state)
{
    (void)state;
    struct stream_op op = claim("x", 0, 0);
    op.append.has_seq = true;
    op.append.seq = SLICE("b");
    assert_int_equal(rig_op(&rig, &op), 0);
    assert_int_equal(rig_op(&rig, &op), 0);
    assert_true(op.result.duplicate);
    op.append.producer.seq = 1;
    assert_int_equal(rig_op(&rig, &op), ERR_CONFLICT);
    assert_true(op.result.seq_conflict);
    assert_non_null(strstr(op.result.msg.text, "equence"));
    op.append.seq = SLICE("c");
    assert_int_equal(rig_op(&rig, &op), 0);
    assert_false(op.result.duplicate);
}

/* Stream-Seq compares byte by byte. */
static void test_seq_order(void **state)
{
    (void)state;
    static const struct {
        const char *seq;
        int code;
    } cases[] = {
        {"10", 0}, {"10", ERR_CONFLICT}, {"09", ERR_CONFLICT}, {"2", 0}, {"9", 0}, {"Z", 0},
        {"a", 0},  {"\xc3\xa9", 0}};
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct stream_op op = request(".");
        op.append.has_seq = true;
        op.append.seq = slice_of(cases[i].seq);
        assert_int_equal(rig_op(&rig, &op), cases[i].code);
    }
}

/* The request that closed the stream is a duplicate for ever; another claim is refused. */
static void test_closer(void **state)
{
    (void)state;
    struct stream_op op = claim("!", 0, 0);
    op.append.close = true;
    assert_int_equal(rig_op(&rig, &op), 0);
    assert_false(op.result.duplicate);
    assert_int_equal(rig_op(&rig, &op), 0);
    assert_true(op.result.duplicate);
    assert_true(op.result.closed);
    struct stream_op next = claim("!", 0, 1);
    assert_int_equal(rig_op(&rig, &next), ERR_CLOSED);
    struct stream_op close = claim("", 0, 1);
    close.append.close = true;
    assert_int_equal(rig_op(&rig, &close), ERR_CLOSED);
    rig_expect(&rig, "s", "one!");
}

/* The answer to a duplicate tells the stream's closure, not the request's. */
static void test_duplicate_closed(void **state)
{
    (void)state;
    struct stream_op op = claim("x", 0, 0);
    assert_int_equal(rig_op(&rig, &op), 0);
    op.append.close = true;
    assert_int_equal(rig_op(&rig, &op), 0);
    assert_true(op.result.duplicate);
    assert_false(op.result.closed);
}

/* JSON is validated and flattened; an invalid body changes nothing. */
static void test_json(void **state)
{
    (void)state;
    assert_int_equal(rig_put(&rig, "j", "application/json", ""), 0);
    assert_int_equal(rig_post_body(&rig, "j", "application/json", "[1,{\"a\":2}]"), 0);
    assert_int_equal(rig_post_body(&rig, "j", "application/json", "[1,"), ERR_INVALID);
    assert_int_equal(rig_post_body(&rig, "j", "application/json", "[]"), ERR_INVALID);
    rig_expect(&rig, "j", "1,{\"a\":2},");
}

/* A large body is kept by reference: the tail has the request's block. */
static void test_large(void **state)
{
    (void)state;
    struct block *b = block_try_create(100 * KIB);
    memset(b->data, 'x', b->cap);
    struct stream_op op = request("");
    op.append.body = (struct slice){b->data, b->cap};
    op.append.body_block = b;
    assert_int_equal(rig_op(&rig, &op), 0);
    assert_int_equal(b->refs, 2);
    block_unref(b);
    char *all = rig_read(&rig, "s", 0);
    assert_int_equal(strlen(all), 3 + 100 * KIB);
    free(all);
}

/* At the greatest length the answer is 507. */
static void test_length(void **state)
{
    (void)state;
    struct stream *s = table_name(rig.engine, SLICE("s"));
    s->staged.tail = STREAM_OFFSET_MAX - 1;
    assert_int_equal(rig_post_body(&rig, "s", TEXT, "12"), ERR_NOSPC);
    s->staged.tail = 3;
    stream_unref(s);
}

/* A large JSON body is looked through on the pool, not while others wait for this worker; a small
 * one, and any body that is kept as it is, at once. */
static void test_heavy(void **state)
{
    (void)state;
    char *body = malloc(PREPARE_BYTES_MAX + 2);
    memset(body, '1', PREPARE_BYTES_MAX + 1);
    body[PREPARE_BYTES_MAX + 1] = '\0';
    assert_int_equal(rig_put(&rig, "j", "application/json", ""), 0);
    for (int i = 0; i < 3; i++) {
        bool done = false;
        bool heavy = i == 0;
        struct stream_op op = request(i == 1 ? "1" : body);
        op.name = i == 2 ? SLICE("s") : SLICE("j");
        op.append.content_type = i == 2 ? SLICE(TEXT) : SLICE("application/json");
        op.done = rig_done;
        op.context = &done;
        unsigned stages = fake.stages;
        assert_int_equal(stream_start(rig.worker, &op), STREAM_PENDING);
        assert_int_equal(fake.stages, stages + (heavy ? 0 : 1));
        rig_run(&rig);
        assert_int_equal(fake.stages, stages + 1);
        rig_commit(&rig);
        assert_true(done);
        assert_int_equal(op.result.code, 0);
    }
    body[0] = 'x';
    assert_int_equal(rig_post_body(&rig, "j", "application/json", body), ERR_INVALID);
    assert_int_equal(rig_put(&rig, "k", "application/json", body), ERR_INVALID);
    free(body);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_rig, close_rig)
    const struct CMUnitTest tests[] = {
        TEST(test_append),
        TEST(test_parked),
        TEST(test_log_failure),
        TEST(test_refused),
        TEST(test_room),
        TEST(test_budget),
        TEST(test_malformed),
        TEST(test_missing_first),
        TEST(test_type),
        TEST(test_close),
        TEST(test_closed_first),
        TEST(test_closed_parked),
        TEST(test_producer),
        TEST(test_producer_and_seq),
        TEST(test_seq_order),
        TEST(test_closer),
        TEST(test_duplicate_closed),
        TEST(test_json),
        TEST(test_large),
        TEST(test_length),
        TEST(test_heavy),
    };
    return UNIT_RUN(tests);
}
