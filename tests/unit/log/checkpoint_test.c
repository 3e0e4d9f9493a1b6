/* One checkpoint: all of it or nothing, in packs and catalog alike. */
#include "unit/base/fault.h"

#include "log/checkpoint.c"

#undef malloc
#undef calloc
#undef realloc

#include "unit/log/catalog_fixture.h"

#define DIR_PATH "/packs"

struct fixture {
    struct catalog_fixture base;
    struct pack_set *packs;
    pack_id next_pack;
    struct output_target target;
};

static void init(struct fixture *f)
{
    *f = (struct fixture){.next_pack = 1};
    fixture_init(&f->base);
    fakedisk_add_dir(f->base.disk, DIR_PATH);
    struct sys *sys = fakedisk_sys(f->base.disk);
    assert_int_equal(pack_set_open(sys, DIR_PATH, f->base.state.uuid, &f->packs, &f->base.msg), 0);
    f->target = (struct output_target){
        .catalog = f->base.catalog, .packs = f->packs, .next_pack = &f->next_pack, .sync = true};
}

static void finish(struct fixture *f)
{
    fault_countdown = -1;
    pack_set_close(f->packs);
    fixture_finish(&f->base);
}

static int count_file(void *context, const char *name)
{
    (void)name;
    ++*(unsigned *)context;
    return 0;
}

static unsigned pack_files(struct fixture *f)
{
    struct sys *sys = fakedisk_sys(f->base.disk);
    unsigned count = 0;
    assert_int_equal(sys->list_dir(sys->context, DIR_PATH, count_file, &count), 0);
    return count;
}

/* Adds five bytes as a stream, with a producer. */
static int add_stream(struct checkpoint *c, stream_id id, const char *name)
{
    const struct slice bytes = SLICE("hello");
    const struct checkpoint_range range = {
        .pieces = &bytes, .piece_count = 1, .marks = SLICE("\x0b")};
    const struct producer_meta producer = {.id = SLICE("p"), .epoch = 1, .seq = 2};
    const struct checkpoint_item item = {.id = id,
                                         .meta = fixture_meta(id, name, 5),
                                         .ranges = &range,
                                         .range_count = 1,
                                         .producers = &producer,
                                         .producer_count = 1};
    return checkpoint_add(c, &item);
}

static int join_note(void *context, struct slice key, struct slice value)
{
    char *out = context;
    size_t len = strlen(out);
    (void)snprintf(out + len, 64 - len, "%.*s=%.*s ", (int)key.len, key.ptr, (int)value.len,
                   value.ptr);
    return 0;
}

static void expect(struct fixture *f, const char *notes, uint64_t streams, unsigned packs)
{
    char got[64] = "";
    assert_int_equal(catalog_each_note(f->base.catalog, SLICE(""), join_note, got, &f->base.msg),
                     0);
    assert_string_equal(got, notes);
    assert_int_equal(catalog_count(f->base.catalog), streams);
    assert_int_equal(pack_files(f), packs);
}

struct seen {
    stream_id id;
    struct extent extent;
    unsigned count;
};

static void see_extent(void *context, stream_id id, const struct extent *e)
{
    struct seen *s = context;
    s->id = id;
    s->extent = *e;
    s->count++;
}

/* What was added is there once it is committed: bytes in a pack, all else in the catalog. */
static void committed(void **state)
{
    (void)state;
    struct fixture f;
    struct checkpoint *c;
    struct slice value = SLICE("1");
    struct seen seen = {0};
    struct catalog_stream stream;
    char bytes[5];
    char marks[1];
    init(&f);
    assert_int_equal(checkpoint_create(&f.target, &c), 0);
    assert_int_equal(add_stream(c, 7, "a"), 0);
    assert_int_equal(add_stream(c, 8, "b"), 0);
    checkpoint_note(c, SLICE("k"), &value);
    checkpoint_note(c, SLICE("l"), &value);
    assert_int_equal(checkpoint_commit(c, &f.base.state), 0);
    checkpoint_each_added(c, see_extent, &seen);
    checkpoint_destroy(c);
    expect(&f, "k=1 l=1 ", 2, 1);
    assert_int_equal(seen.count, 2);
    assert_int_equal(seen.id, 8);
    assert_int_equal(pack_read_extent(f.packs, &seen.extent, bytes, marks), 0);
    assert_memory_equal(bytes, "hello", 5);
    assert_int_equal(catalog_load(f.base.catalog, 7, &stream), 0);
    assert_int_equal(stream.producer_count, 1);
    assert_int_equal(stream.extent_count, 1);
    catalog_stream_finish(&stream);

    const struct slice gone = SLICE("p");
    const struct checkpoint_item forget = {.id = 8,
                                           .meta = fixture_meta(8, "b", 5),
                                           .forgotten_producers = &gone,
                                           .forgotten_count = 1};
    assert_int_equal(checkpoint_create(&f.target, &c), 0);
    assert_int_equal(checkpoint_add(c, &(struct checkpoint_item){.id = 7, .dropped = true}), 0);
    assert_int_equal(checkpoint_add(c, &forget), 0);
    checkpoint_note(c, SLICE("k"), NULL);
    assert_int_equal(checkpoint_commit(c, &f.base.state), 0);
    checkpoint_destroy(c);
    fixture_reopen(&f.base);
    f.target.catalog = f.base.catalog;
    expect(&f, "l=1 ", 1, 1);
    assert_int_equal(catalog_load(f.base.catalog, 8, &stream), 0);
    assert_int_equal(stream.producer_count, 0);
    catalog_stream_finish(&stream);
    finish(&f);
}

/* One that is given up, and one whose commit is refused, leave neither entries nor packs. */
static void nothing_without_commit(void **state)
{
    (void)state;
    struct fixture f;
    struct slice value = SLICE("1");
    init(&f);
    for (int refused = 0; refused < 2; refused++) {
        struct checkpoint *c;
        assert_int_equal(checkpoint_create(&f.target, &c), 0);
        assert_int_equal(add_stream(c, 7, "a"), 0);
        checkpoint_note(c, SLICE("k"), &value);
        if (refused) {
            fakedisk_fail(f.base.disk, CALL_COMMIT, 0, ERR_NOSPC, false);
            assert_int_equal(checkpoint_commit(c, &f.base.state), ERR_NOSPC);
        }
        checkpoint_destroy(c);
        expect(&f, "", 0, 0);
    }
    checkpoint_destroy(NULL);
    finish(&f);
}

/* Without memory for what it has to remember, a checkpoint ends. */
static void memory_runs_out(void **state)
{
    (void)state;
    struct fixture f;
    struct checkpoint *c = NULL;
    init(&f);
    fault_countdown = 0;
    assert_int_equal(checkpoint_create(&f.target, &c), ERR_NOMEM);
    fault_countdown = -1;
    assert_int_equal(checkpoint_create(&f.target, &c), 0);
    fault_countdown = 0;
    assert_int_equal(add_stream(c, 7, "a"), ERR_NOMEM);
    fault_countdown = -1;
    checkpoint_destroy(c);
    expect(&f, "", 0, 0);
    finish(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(committed),
        cmocka_unit_test(nothing_without_commit),
        cmocka_unit_test(memory_runs_out),
    };
    return UNIT_RUN(tests);
}
