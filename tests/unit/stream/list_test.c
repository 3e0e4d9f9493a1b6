/* Lists over the real store. */
#include "stream/list.c"

#include "unit/stream/rig.h"

static int add_text(void *context, const struct stream_listed *l)
{
    struct buf *out = context;
    buf_append_format(out, "%.*s:%u%s ", (int)l->name.len, l->name.ptr, (unsigned)l->next,
                      l->closed ? "!" : "");
    return 0;
}

/* All streams of the prefix, page by page. */
static void expect(struct rig *rig, const char *prefix, size_t limit, const char *want)
{
    struct buf out;
    struct engine_list_end end = {0};
    struct engine_list_query q = {.prefix = slice_of(prefix), .limit = limit};
    buf_init(&out, MIB);
    do {
        q.after = end.last;
        assert_int_equal(engine_list(rig->engine, &q, add_text, &out, &end), 0);
    } while (end.more);
    buf_append_char(&out, '\0');
    assert_string_equal(out.ptr, want);
    buf_finish(&out);
}

static void checkpoint(struct rig *rig)
{
    struct store *store = rig->engine->store;
    assert_int_equal(store->ops->checkpoint(store), 0);
}

/* Streams are listed by name with their newest durable tail, wherever they are. */
static void names_in_order(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    expect(&rig, "", 10, "");
    assert_int_equal(rig_put(&rig, "b", "text/plain", "12"), 0);
    assert_int_equal(rig_put(&rig, "d", "text/plain", ""), 0);
    expect(&rig, "", 10, "b:2 d:0 ");
    checkpoint(&rig);
    expect(&rig, "", 10, "b:2 d:0 ");
    assert_int_equal(rig_post_body(&rig, "d", "text/plain", "123"), 0);
    assert_int_equal(rig_put(&rig, "c", "text/plain", "1"), 0);
    assert_int_equal(rig_put(&rig, "a", "text/plain", "1"), 0);
    assert_int_equal(rig_delete(&rig, "b"), 0);
    for (size_t limit = 1; limit < 5; limit++) {
        expect(&rig, "", limit, "a:1 c:1 d:3 ");
        expect(&rig, "c", limit, "c:1 ");
    }
    rig_reopen(&rig, false);
    expect(&rig, "", 2, "a:1 c:1 d:3 ");
    rig_reopen(&rig, true);
    expect(&rig, "", 2, "a:1 c:1 d:3 ");
    rig_close(&rig);
}

/* One that was deleted and made anew between two checkpoints is shown as it is now. */
static void made_anew(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(rig_put(&rig, "b", "text/plain", "12"), 0);
        assert_int_equal(rig_delete(&rig, "b"), 0);
    }
    assert_int_equal(rig_put(&rig, "a", "text/plain", "1"), 0);
    assert_int_equal(rig_put(&rig, "b", "text/plain", "123"), 0);
    assert_int_equal(rig_put(&rig, "c", "text/plain", "1"), 0);
    for (size_t limit = 1; limit < 5; limit++) {
        expect(&rig, "", limit, "a:1 b:3 c:1 ");
    }
    checkpoint(&rig);
    expect(&rig, "", 10, "a:1 b:3 c:1 ");
    assert_int_equal(rig_delete(&rig, "b"), 0);
    assert_int_equal(rig_put(&rig, "b", "text/plain", "1"), 0);
    assert_int_equal(rig_delete(&rig, "b"), 0);
    expect(&rig, "", 10, "a:1 c:1 ");
    assert_int_equal(rig_put(&rig, "b", "text/plain", ""), 0);
    expect(&rig, "", 10, "a:1 b:0 c:1 ");
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_in_order),
        cmocka_unit_test(made_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
