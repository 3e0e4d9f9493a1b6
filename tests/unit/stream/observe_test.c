/* The engine's observer hears of each durable growth and of each end, and of nothing else. */
#include "unit/stream/fake_store.h"

#include "stream/observe.c"

#include "unit/stream/rig.h"

#define TEXT "text/plain"
#define JSON "application/json"

/* Hears of names that begin with "on". */
struct ear {
    unsigned asked;
    unsigned grew;
    unsigned dropped;
    unsigned made;
    char name[64];
    uint64_t id;
    uint64_t tail;
    bool deaf;
};

static struct rig rig;
static struct ear ear;

static bool ear_matches(void *context, struct slice name)
{
    struct ear *e = context;
    e->asked++;
    return !e->deaf && slice_starts_with(name, SLICE("on"));
}

static void note(struct ear *e, struct slice name, uint64_t id)
{
    assert_true(name.len < sizeof(e->name));
    memcpy(e->name, name.ptr, name.len);
    e->name[name.len] = '\0';
    e->id = id;
}

static void ear_grew(void *context, struct slice name, uint64_t id, uint64_t tail)
{
    struct ear *e = context;
    note(e, name, id);
    e->tail = tail;
    e->grew++;
}

static void ear_dropped(void *context, struct slice name, uint64_t id)
{
    struct ear *e = context;
    note(e, name, id);
    e->dropped++;
}

static void ear_made(void *context, struct slice name, uint64_t id, uint64_t tail)
{
    struct ear *e = context;
    note(e, name, id);
    e->tail = tail;
    e->made++;
}

static const struct engine_observer observer = {&ear, ear_matches, ear_grew, ear_dropped, ear_made};

static int open_rig(void **state)
{
    (void)state;
    ear = (struct ear){0};
    rig_open(&rig);
    engine_observe(rig.engine, &observer);
    return 0;
}

static int close_rig(void **state)
{
    (void)state;
    rig_close(&rig);
    return 0;
}

static void expect(unsigned grew, unsigned dropped)
{
    assert_int_equal(ear.grew, grew);
    assert_int_equal(ear.dropped, dropped);
}

/* A stream without bytes of its own is told as made, any other one as grown. */
static void test_made(void **state)
{
    (void)state;
    assert_int_equal(rig_put(&rig, "on", TEXT, ""), 0);
    expect(0, 0);
    assert_int_equal(ear.made, 1);
    assert_int_equal(ear.tail, 0);
    assert_string_equal(ear.name, "on");
    assert_int_equal(rig_put(&rig, "on", TEXT, ""), 0);
    assert_int_equal(ear.made, 1);
    assert_int_equal(rig_put(&rig, "on/2", TEXT, "x"), 0);
    expect(1, 0);
    assert_int_equal(rig_fork(&rig, "on/3", "on/2"), 0);
    expect(1, 0);
    assert_int_equal(ear.made, 2);
    assert_int_equal(ear.tail, 1);
    assert_int_equal(rig_put(&rig, "off", TEXT, ""), 0);
    assert_int_equal(ear.made, 2);
}

/* An append is told with name, id and tail. */
static void test_append(void **state)
{
    (void)state;
    assert_int_equal(rig_put(&rig, "on", TEXT, ""), 0);
    expect(0, 0);
    assert_int_equal(rig_post_body(&rig, "on", TEXT, "abc"), 0);
    expect(1, 0);
    struct stream *s = table_name(rig.engine, SLICE("on"));
    assert_string_equal(ear.name, "on");
    assert_int_equal(ear.id, s->id);
    assert_int_equal(ear.tail, 3);
    stream_unref(s);
    assert_int_equal(rig_post_body(&rig, "on", TEXT, "d"), 0);
    expect(2, 0);
    assert_int_equal(ear.tail, 4);
}

/* A creation is told when it brought bytes; again when it is repeated it is not. */
static void test_create(void **state)
{
    (void)state;
    assert_int_equal(rig_put(&rig, "on/1", TEXT, "abc"), 0);
    expect(1, 0);
    assert_int_equal(ear.tail, 3);
    assert_int_equal(rig_put(&rig, "on/1", TEXT, "abc"), 0);
    assert_int_equal(rig_put(&rig, "on/2", JSON, "[]"), 0);
    expect(1, 0);
}

/* Nothing is told before it is durable. */
static void test_durable(void **state)
{
    (void)state;
    bool done = false;
    assert_int_equal(rig_put(&rig, "on", TEXT, ""), 0);
    struct stream_op op = {.verb = STREAM_APPEND, .name = SLICE("on")};
    op.append.content_type = SLICE(TEXT);
    op.append.body = SLICE("d");
    op.done = rig_done;
    op.context = &done;
    assert_int_equal(stream_start(rig.worker, &op), STREAM_PENDING);
    rig_run(&rig);
    expect(0, 0);
    rig_commit(&rig);
    assert_true(done);
    expect(1, 0);
}

/* An append whose fate is unknown is not told. */
static void test_failed_log(void **state)
{
    (void)state;
    bool done = false;
    assert_int_equal(rig_put(&rig, "on", TEXT, ""), 0);
    struct stream_op op = {.verb = STREAM_APPEND, .name = SLICE("on")};
    op.append.content_type = SLICE(TEXT);
    op.append.body = SLICE("d");
    op.done = rig_done;
    op.context = &done;
    assert_int_equal(stream_start(rig.worker, &op), STREAM_PENDING);
    fake.failed = true;
    rig_commit(&rig);
    workers_notice(rig.engine);
    rig_run(&rig);
    assert_true(done);
    assert_int_equal(op.result.code, ERR_UNKNOWN);
    expect(0, 0);
}

/* Closing is no growth; closing with bytes is. */
static void test_close(void **state)
{
    (void)state;
    assert_int_equal(rig_put(&rig, "on/1", TEXT, ""), 0);
    assert_int_equal(rig_put(&rig, "on/2", TEXT, ""), 0);
    struct stream_op op = {.verb = STREAM_APPEND, .name = SLICE("on/1")};
    op.append.close = true;
    assert_int_equal(rig_op(&rig, &op), 0);
    expect(0, 0);
    op.name = SLICE("on/2");
    op.append.content_type = SLICE(TEXT);
    op.append.body = SLICE("end");
    assert_int_equal(rig_op(&rig, &op), 0);
    expect(1, 0);
}

/* A producer's append is told, its duplicate is not. */
static void test_producer(void **state)
{
    (void)state;
    assert_int_equal(rig_put(&rig, "on", TEXT, ""), 0);
    struct stream_op op = {.verb = STREAM_APPEND, .name = SLICE("on")};
    op.append.content_type = SLICE(TEXT);
    op.append.body = SLICE("x");
    op.append.producer = (struct record_producer){.id = SLICE("p")};
    assert_int_equal(rig_op(&rig, &op), 0);
    expect(1, 0);
    assert_int_equal(rig_op(&rig, &op), 0);
    assert_true(op.result.duplicate);
    expect(1, 0);
}

/* A fork is told once it has bytes of its own. */
static void test_fork(void **state)
{
    (void)state;
    assert_int_equal(rig_put(&rig, "source", TEXT, "abc"), 0);
    assert_int_equal(rig_fork(&rig, "on/empty", "source"), 0);
    expect(0, 0);
    assert_int_equal(rig_post_body(&rig, "on/empty", TEXT, "d"), 0);
    expect(1, 0);
    assert_int_equal(ear.tail, 4);
    struct stream_op op = {.verb = STREAM_CREATE, .name = SLICE("on/full")};
    op.create.forked_from = SLICE("source");
    op.create.body = SLICE("xy");
    assert_int_equal(rig_op(&rig, &op), 0);
    expect(2, 0);
    assert_int_equal(ear.tail, 5);
}

/* A deletion is told, for good or soft. */
static void test_delete(void **state)
{
    (void)state;
    assert_int_equal(rig_put(&rig, "on/1", TEXT, ""), 0);
    assert_int_equal(rig_delete(&rig, "on/1"), 0);
    expect(0, 1);
    assert_string_equal(ear.name, "on/1");
    assert_int_equal(rig_put(&rig, "on/2", TEXT, "a"), 0);
    assert_int_equal(rig_fork(&rig, "fork", "on/2"), 0);
    assert_int_equal(rig_delete(&rig, "on/2"), 0);
    expect(1, 2);
    assert_int_equal(rig_delete(&rig, "fork"), 0);
    expect(1, 2);
}

/* A stream that expired is told of when somebody meets it. */
static void test_expiry(void **state)
{
    (void)state;
    struct stream_op op = {.verb = STREAM_CREATE, .name = SLICE("on")};
    op.create.expiry = (struct stream_expiry){.has_ttl = true, .ttl_seconds = 10};
    assert_int_equal(rig_op(&rig, &op), 0);
    rig_sleep(10000);
    assert_int_equal(rig_head(&rig, "on"), ERR_NOTFOUND);
    rig_commit(&rig);
    expect(0, 1);
}

/* A stream that nobody wants is asked about once, until the observer changes its mind. */
static void test_generation(void **state)
{
    (void)state;
    assert_int_equal(rig_put(&rig, "off", TEXT, "a"), 0);
    assert_int_equal(ear.asked, 1);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(rig_post_body(&rig, "off", TEXT, "a"), 0);
    }
    assert_int_equal(ear.asked, 1);
    engine_observer_changed(rig.engine);
    assert_int_equal(rig_post_body(&rig, "off", TEXT, "a"), 0);
    assert_int_equal(ear.asked, 2);
    expect(0, 0);
    assert_int_equal(rig_put(&rig, "on", TEXT, "a"), 0);
    expect(1, 0);
    ear.deaf = true;
    engine_observer_changed(rig.engine);
    assert_int_equal(rig_post_body(&rig, "on", TEXT, "a"), 0);
    expect(1, 0);
}

/* What was appended quietly is not told; what is durable together with it is. */
static void test_quiet(void **state)
{
    (void)state;
    bool done[2] = {false, false};
    struct stream_op ops[2] = {{.verb = STREAM_APPEND}, {.verb = STREAM_APPEND}};
    assert_int_equal(rig_put(&rig, "on", TEXT, ""), 0);
    for (int i = 0; i < 2; i++) {
        ops[i].name = SLICE("on");
        ops[i].append.content_type = SLICE(TEXT);
        ops[i].append.body = SLICE("x");
        ops[i].append.quiet = true;
        ops[i].done = rig_done;
        ops[i].context = &done[i];
    }
    assert_int_equal(rig_op(&rig, &ops[0]), 0);
    expect(0, 0);
    ops[0].done = rig_done;
    ops[0].context = &done[0];
    ops[1].append.quiet = false;
    assert_int_equal(stream_start(rig.worker, &ops[0]), STREAM_PENDING);
    assert_int_equal(stream_start(rig.worker, &ops[1]), STREAM_PENDING);
    rig_commit(&rig);
    assert_true(done[0] && done[1]);
    expect(1, 0);
    assert_int_equal(ear.tail, 3);
}

/* Without an observer nothing is asked, and one that comes later hears of later things only. */
static void test_away(void **state)
{
    (void)state;
    engine_observe(rig.engine, NULL);
    assert_int_equal(rig_put(&rig, "on", TEXT, "a"), 0);
    assert_int_equal(ear.asked, 0);
    engine_observe(rig.engine, &observer);
    struct stream_op op = {.verb = STREAM_APPEND, .name = SLICE("on")};
    op.append.close = true;
    assert_int_equal(rig_op(&rig, &op), 0);
    expect(0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_made, open_rig, close_rig),
        cmocka_unit_test_setup_teardown(test_append, open_rig, close_rig),
        cmocka_unit_test_setup_teardown(test_create, open_rig, close_rig),
        cmocka_unit_test_setup_teardown(test_durable, open_rig, close_rig),
        cmocka_unit_test_setup_teardown(test_failed_log, open_rig, close_rig),
        cmocka_unit_test_setup_teardown(test_close, open_rig, close_rig),
        cmocka_unit_test_setup_teardown(test_producer, open_rig, close_rig),
        cmocka_unit_test_setup_teardown(test_fork, open_rig, close_rig),
        cmocka_unit_test_setup_teardown(test_delete, open_rig, close_rig),
        cmocka_unit_test_setup_teardown(test_expiry, open_rig, close_rig),
        cmocka_unit_test_setup_teardown(test_generation, open_rig, close_rig),
        cmocka_unit_test_setup_teardown(test_quiet, open_rig, close_rig),
        cmocka_unit_test_setup_teardown(test_away, open_rig, close_rig),
    };
    return UNIT_RUN(tests);
}
