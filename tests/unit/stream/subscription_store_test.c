/* Notes read back as they were written, and damage is noticed. */
#include "stream/subscription_store.c"

#include <stdlib.h>

#include "unit/base/unit.h"

/* A subscription with all that one can have, in `batch`. */
static void store_all(struct buf *batch)
{
    struct subscription *sub = subscription_create(SLICE("id/\xc3\xa9"));
    const struct subscription_definition def = {
        .type = SUBSCRIPTION_PULL_WAKE,
        .pattern = SLICE("a/**"),
        .target = SLICE("wake"),
        .description = SLICE("what it is for"),
        .has_description = true,
        .lease_ttl_ms = 600000,
        .hash = {1, 2, 3},
    };
    assert_int_equal(subscription_define(sub, &def), 0);
    sub->number = UINT64_C(0x0102030405060708);
    sub->created_ms = INT64_C(1700000000000);
    struct subscription_change c;
    subscription_change_init(&c, sub);
    c.create = true;
    c.after.generation = 7;
    c.after.phase = SUBSCRIPTION_LEASED;
    memcpy(c.after.wake_id, "w_0123456789abcdef01234567", SUBSCRIPTION_WAKE_ID_BYTES);
    c.after.lease_until_ms = 5;
    c.after.retry_at_ms = 6;
    c.after.failures = 9;
    struct block *holder = block_try_create(3);
    memcpy(holder->data, "one", 3);
    holder->len = 3;
    subscription_state_hold(&c.after, holder);
    struct subscription_link *l = subscription_link_create(sub, SLICE("a/b"), 0);
    l->dropped = true;
    assert_int_equal(subscription_attach(l), 0);
    const struct subscription_edit edit = {
        .link = l, .stream = 77, .acked = SUBSCRIPTION_START, .is_explicit = true, .fresh = true};
    subscription_change_edit(&c, &edit);
    subscription_store_change(batch, &c);
    subscription_change_drop(&c);
    subscription_destroy(sub);
}

static void test_read_back(void **state)
{
    (void)state;
    struct buf batch;
    buf_init(&batch, NOTE_BATCH_BYTES_MAX);
    store_all(&batch);
    struct slice rest = buf_slice(&batch);
    struct note_change change;
    struct subscription_note n;
    assert_int_equal(note_next(&rest, &change), 1);
    assert_int_equal(subscription_store_read(change.key, change.value, &n), 0);
    assert_int_equal(n.kind, SUBSCRIPTION_NOTE_DEFINITION);
    assert_true(slice_equal(n.id, SLICE("id/\xc3\xa9")));
    assert_true(n.number == UINT64_C(0x0102030405060708));
    assert_int_equal(n.created_ms, INT64_C(1700000000000));
    assert_int_equal(n.def.type, SUBSCRIPTION_PULL_WAKE);
    assert_int_equal(n.def.lease_ttl_ms, 600000);
    assert_true(slice_equal(n.def.pattern, SLICE("a/**")));
    assert_true(slice_equal(n.def.target, SLICE("wake")));
    assert_true(n.def.has_description);
    assert_true(slice_equal(n.def.description, SLICE("what it is for")));
    assert_int_equal(n.def.hash[2], 3);
    assert_int_equal(note_next(&rest, &change), 1);
    assert_int_equal(subscription_store_read(change.key, change.value, &n), 0);
    assert_int_equal(n.kind, SUBSCRIPTION_NOTE_STATE);
    assert_int_equal(n.state.phase, SUBSCRIPTION_LEASED);
    assert_int_equal(n.state.generation, 7);
    assert_int_equal(n.state.lease_until_ms, 5);
    assert_int_equal(n.state.retry_at_ms, 6);
    assert_int_equal(n.state.failures, 9);
    assert_true(n.state.failed);
    assert_true(slice_equal(n.state.holder, SLICE("one")));
    assert_memory_equal(n.state.wake_id, "w_0123456789abcdef01234567", sizeof(n.state.wake_id));
    assert_int_equal(note_next(&rest, &change), 1);
    assert_int_equal(subscription_store_read(change.key, change.value, &n), 0);
    assert_int_equal(n.kind, SUBSCRIPTION_NOTE_LINK);
    assert_true(slice_equal(n.path, SLICE("a/b")));
    assert_int_equal(n.stream, 77);
    assert_true(n.acked == SUBSCRIPTION_START);
    assert_true(n.is_explicit);
    assert_int_equal(note_next(&rest, &change), 0);
    buf_finish(&batch);
}

/* Every bit of a value, and of a key, counts. */
static void test_damage_shows(void **state)
{
    (void)state;
    struct buf batch;
    buf_init(&batch, NOTE_BATCH_BYTES_MAX);
    store_all(&batch);
    struct slice rest = buf_slice(&batch);
    struct note_change change;
    struct subscription_note n;
    while (note_next(&rest, &change) == 1) {
        for (size_t bit = 0; bit < 8 * (change.key.len + change.value.len); bit++) {
            bool in_key = bit / 8 < change.key.len;
            struct slice part = in_key ? change.key : change.value;
            char *at = (char *)(uintptr_t)part.ptr + bit / 8 - (in_key ? 0 : change.key.len);
            *at = (char)(*at ^ 1 << bit % 8);
            assert_int_equal(subscription_store_read(change.key, change.value, &n), ERR_CORRUPT);
            *at = (char)(*at ^ 1 << bit % 8);
        }
        for (size_t len = 0; len < change.value.len; len++) {
            struct slice cut = {change.value.ptr, len};
            assert_int_equal(subscription_store_read(change.key, cut, &n), ERR_CORRUPT);
        }
        assert_int_equal(subscription_store_read(change.key, change.value, &n), 0);
    }
    buf_finish(&batch);
}

/* A value whose checksum is right and whose contents are not is refused likewise. */
static void test_forged(void **state)
{
    (void)state;
    struct note_text key;
    struct note_text value;
    struct subscription_note n;
    number_key(&key, SLICE(SUBSCRIPTION_KEY_WAKE), 1);
    for (unsigned phase = 0; phase < 5; phase++) {
        for (unsigned extra = 0; extra < 2; extra++) {
            struct buf batch;
            buf_init(&batch, NOTE_BATCH_BYTES_MAX);
            value_init(&value, VALUE_STATE);
            put_u8(&value, phase);
            for (int i = 0; i < 4; i++) {
                put_u64(&value, i == 3 && phase == 4 ? UINT64_MAX : 1);
            }
            if (phase > 0) {
                buf_append(&value.buf, SLICE("w_0123456789abcdef01234567"));
            }
            put_text(&value, SLICE(""));
            if (extra) {
                put_u8(&value, 0);
            }
            put_note(&batch, &key, &value);
            int code = subscription_store_read(buf_slice(&key.buf), buf_slice(&value.buf), &n);
            assert_int_equal(code, phase > 2 || extra ? ERR_CORRUPT : 0);
            buf_finish(&batch);
        }
    }
    assert_int_equal(subscription_store_read(SLICE("sub/"), SLICE("whatever"), &n), ERR_CORRUPT);
    assert_int_equal(subscription_store_read(SLICE("x"), SLICE("whatever"), &n), ERR_CORRUPT);
}

/* What a deletion leaves is small enough for a full disk. */
static void test_tombstone_is_small(void **state)
{
    (void)state;
    struct subscription *sub = subscription_create(SLICE("s"));
    struct subscription_change c;
    struct buf batch;
    buf_init(&batch, NOTE_BATCH_BYTES_MAX);
    subscription_change_init(&c, sub);
    c.remove = true;
    c.removed_ms = INT64_MAX;
    c.after.generation = UINT64_MAX;
    subscription_store_change(&batch, &c);
    assert_true(note_frees(buf_slice(&batch)));
    buf_finish(&batch);
    subscription_change_drop(&c);
    subscription_destroy(sub);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read_back),
        cmocka_unit_test(test_damage_shows),
        cmocka_unit_test(test_forged),
        cmocka_unit_test(test_tombstone_is_small),
    };
    return UNIT_RUN(tests);
}
