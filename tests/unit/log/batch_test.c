/* Batches: order of pieces, and memory that is kept. */
#include "log/batch.c"

#include "sim/fakedisk.h"
#include "unit/base/unit.h"

static struct block *block_of(const char *text)
{
    size_t len = strlen(text);
    struct block *b = block_try_create(len);
    assert_non_null(b);
    memcpy(b->data, text, len);
    return b;
}

/* Copied and referenced bytes come out in the order in which they went in. */
static void test_order(void **state)
{
    (void)state;
    struct fakedisk *disk = fakedisk_create(1);
    fakedisk_add_dir(disk, "/w");
    struct segment_dir dir = {
        .sys = fakedisk_sys(disk), .path = "/w", .segment_bytes = 8192, .zero_fill = true};
    struct chain chain;
    chain_init(&chain, &dir);
    struct segment *s = NULL;
    assert_int_equal(segment_create(&dir, 0, &s), 0);
    chain_append(&chain, s);
    struct batch b;
    batch_init(&b);
    struct block *big = block_of("BIG");
    struct block *other = block_of("OTHER");
    assert_int_equal(batch_reserve(&b, 100), 0);
    batch_put_block(&b, (struct slice){big->data, 3}, big);
    batch_put(&b, "one", 3);
    batch_put_zeros(&b, 2);
    batch_put_block(&b, (struct slice){other->data, 5}, other);
    batch_put(&b, "", 0);
    batch_put(&b, "two", 3);
    static struct chain_writer w;
    chain_writer_init(&w, &chain, 0);
    batch_write(&b, &w);
    assert_int_equal(chain_writer_flush(&w), 0);
    char out[16];
    assert_int_equal(chain_read(&chain, 0, out, sizeof(out)), 16);
    assert_memory_equal(out, "BIGone\0\0OTHERtwo", 16);
    batch_clear(&b);
    assert_int_equal(b.len + b.piece_count, 0);
    batch_finish(&b);
    block_unref(big);
    block_unref(other);
    chain_finish(&chain);
    fakedisk_destroy(disk);
}

/* Memory is kept from batch to batch, but not that of a peak. */
static void test_memory(void **state)
{
    (void)state;
    struct batch b;
    batch_init(&b);
    assert_int_equal(batch_reserve(&b, 1000), 0);
    const char *bytes = b.bytes;
    batch_put(&b, "x", 1);
    batch_clear(&b);
    assert_int_equal(batch_reserve(&b, 1000), 0);
    assert_ptr_equal(b.bytes, bytes);
    assert_int_equal(batch_reserve(&b, 2 * BATCH_BYTES_KEPT), 0);
    batch_clear(&b);
    assert_null(b.bytes);
    batch_finish(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_order), cmocka_unit_test(test_memory)};
    return UNIT_RUN(tests);
}
