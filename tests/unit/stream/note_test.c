/* Notes over the real store. */
#include "stream/note.c"

#include "unit/stream/rig.h"

/* Starts an operation with the batch; the caller runs it. */
static void start(struct stream_op *op, const struct buf *batch)
{
    *op = (struct stream_op){.verb = STREAM_NOTE, .note = {.changes = buf_slice(batch)}};
}

/* One put, or a deletion when value is NULL; returns the code. */
static int change(struct rig *rig, const char *key, const char *value)
{
    struct buf b;
    struct stream_op op;
    buf_init(&b, NOTE_BATCH_BYTES_MAX);
    if (value) {
        note_put(&b, slice_of(key), slice_of(value));
    } else {
        note_delete(&b, slice_of(key));
    }
    start(&op, &b);
    int code = rig_op(rig, &op);
    buf_finish(&b);
    return code;
}

static int add_text(void *context, struct slice key, struct slice value)
{
    struct buf *out = context;
    buf_append_format(out, "%.*s=%.*s ", (int)key.len, key.ptr, (int)value.len, value.ptr);
    return 0;
}

static void expect(struct rig *rig, const char *prefix, const char *want)
{
    struct buf out;
    struct errmsg msg = {{0}};
    buf_init(&out, MIB);
    int code = engine_each_note(rig->engine, slice_of(prefix), add_text, &out, &msg);
    if (code != 0) {
        fail_msg("%s: %s", err_name(code), msg.text);
    }
    buf_append_char(&out, '\0');
    assert_string_equal(out.ptr, want);
    buf_finish(&out);
}

static void checkpoint(struct rig *rig)
{
    struct store *store = rig->engine->store;
    assert_int_equal(store->ops->checkpoint(store), 0);
}

/* What is put is there: before and after a checkpoint, a restart, and both. */
static void notes_stay(void **state)
{
    (void)state;
    struct rig rig;
    rig_open(&rig);
    assert_int_equal(change(&rig, "a", "1"), 0);
    assert_int_equal(change(&rig, "b/x", "2"), 0);
    expect(&rig, "", "a=1 b/x=2 ");
    rig_reopen(&rig, false);
    expect(&rig, "", "a=1 b/x=2 ");
    checkpoint(&rig);
    assert_int_equal(rig.engine->notes.bytes, 0);
    expect(&rig, "", "a=1 b/x=2 ");
    assert_int_equal(change(&rig, "b/w", "3"), 0);
    assert_int_equal(change(&rig, "a", "4"), 0);
    assert_int_equal(change(&rig, "b/x", NULL), 0);
    expect(&rig, "", "a=4 b/w=3 ");
    expect(&rig, "b/", "b/w=3 ");
    rig_reopen(&rig, true);
    expect(&rig, "", "a=4 b/w=3 ");
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(notes_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
