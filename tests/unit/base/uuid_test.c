/* UUIDs: the layout of version 7, their text, and that a source only goes up. */
#include "base/uuid.c"

#include <pthread.h>
#include <stdlib.h>

#include "unit/base/unit.h"

#define MS UINT64_C(0x017f22e279b0) /* of the example in RFC 9562, appendix A.6 */

/* The example of the RFC comes out to the bit. */
static void test_rfc_example(void **state)
{
    static const unsigned char random[UUID_RANDOM_BYTES] = {0x0c, 0xc3, 0x18, 0xc4, 0xdc,
                                                            0x0c, 0x0c, 0x07, 0x39, 0x8f};
    char text[UUID_TEXT_BYTES];
    (void)state;
    struct uuid u = uuid_make_v7(MS, random);
    uuid_format(&u, text);
    assert_string_equal(text, "017f22e2-79b0-7cc3-98c4-dc0c0c07398f");
}

/* Version and variant stand whatever the random bits, and a clock beyond 48 bits loses its top. */
static void test_fixed_bits(void **state)
{
    unsigned char random[UUID_RANDOM_BYTES];
    (void)state;
    for (int fill = 0; fill <= 0xff; fill += 0xff) {
        memset(random, fill, sizeof(random));
        struct uuid u = uuid_make_v7(UINT64_MAX, random);
        assert_int_equal(u.bytes[6] >> 4, 7);
        assert_int_equal(u.bytes[8] >> 6, 2);
        assert_int_equal(u.bytes[0], 0xff);
        assert_int_equal(u.bytes[7], fill);
    }
}

/* Only the canonical text is read, and gives the same text again. */
static void test_parse(void **state)
{
    static const char *const bad[] = {
        "",
        "017f22e2-79b0-7cc3-98c4-dc0c0c07398",
        "017f22e2-79b0-7cc3-98c4-dc0c0c07398f0",
        "017F22E2-79B0-7CC3-98C4-DC0C0C07398F",
        "017f22e279b0-7cc3-98c4-dc0c0c07398f-",
        "{17f22e2-79b0-7cc3-98c4-dc0c0c07398}",
        "017f22e2-79b0-7cc3-98c4-dc0c0c07398g",
        "017f22e2_79b0-7cc3-98c4-dc0c0c07398f",
        "017f22e2-79b0-7cc3-98c4-dc0c0c0739 f",
    };
    struct uuid u;
    char text[UUID_TEXT_BYTES];
    (void)state;
    assert_true(uuid_parse(SLICE("00112233-4455-6677-8899-aabbccddeeff"), &u));
    uuid_format(&u, text);
    assert_string_equal(text, "00112233-4455-6677-8899-aabbccddeeff");
    assert_int_equal(u.bytes[15], 0xff);
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        assert_false(uuid_parse(slice_of(bad[i]), &u));
    }
    assert_false(uuid_parse((struct slice){NULL, 0}, &u));
}

static void next_text(struct uuid_source *s, uint64_t ms, char out[static UUID_TEXT_BYTES])
{
    struct uuid u;
    assert_int_equal(uuid_source_next(s, ms, &u), 0);
    assert_int_equal(u.bytes[6] >> 4, 7);
    assert_int_equal(u.bytes[8] >> 6, 2);
    uuid_format(&u, out);
}

/* Each text is greater than the one before: within a millisecond, past the end of its counter, and
 * when the clock is set back; and it follows the clock when that goes on. */
static void test_monotonic(void **state)
{
    struct uuid_source s = {0};
    char last[UUID_TEXT_BYTES];
    char text[UUID_TEXT_BYTES];
    (void)state;
    next_text(&s, MS, last);
    for (int i = 0; i < 10000; i++) {
        next_text(&s, i % 3 == 0 ? MS - 5000 : MS, text);
        assert_true(strcmp(last, text) < 0);
        memcpy(last, text, sizeof(last));
    }
    next_text(&s, MS + 60000, text);
    assert_true(strcmp(last, text) < 0);
    assert_memory_equal(text, "017f22e3-6410", 13); /* MS + 60000 */
}

/* The counter of a millisecond begins in its lower half, so that it has room. */
static void test_counter_room(void **state)
{
    struct uuid_source s = {0};
    (void)state;
    assert_true(take_order(&s, MS, 0xffff) == (MS << 12 | 0x7ff));
    assert_true(take_order(&s, MS, 0xffff) == (MS << 12 | 0x800));
    assert_true(take_order(&s, MS + 1, 3) == ((MS + 1) << 12 | 3));
    atomic_store(&s.last, MS << 12 | 0xfff);
    assert_true(take_order(&s, MS, 0) == (MS + 1) << 12);
}

#define THREADS 4
#define EACH    5000

struct taker {
    struct uuid_source *source;
    uint64_t orders[EACH];
};

static void *take_many(void *context)
{
    struct taker *t = context;
    for (size_t i = 0; i < EACH; i++) {
        t->orders[i] = take_order(t->source, MS, 0);
    }
    return NULL;
}

static int compare_orders(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Threads that share a source never get the same place. */
static void test_threads(void **state)
{
    static struct taker takers[THREADS];
    static uint64_t all[THREADS * EACH];
    pthread_t threads[THREADS];
    struct uuid_source s = {0};
    (void)state;
    for (size_t i = 0; i < THREADS; i++) {
        takers[i].source = &s;
        assert_int_equal(pthread_create(&threads[i], NULL, take_many, &takers[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        memcpy(all + i * EACH, takers[i].orders, sizeof(takers[i].orders));
        for (size_t j = 1; j < EACH; j++) {
            assert_true(takers[i].orders[j - 1] < takers[i].orders[j]);
        }
    }
    qsort(all, ARRAY_COUNT(all), sizeof(all[0]), compare_orders);
    for (size_t i = 1; i < ARRAY_COUNT(all); i++) {
        assert_true(all[i - 1] < all[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rfc_example),  cmocka_unit_test(test_fixed_bits),
        cmocka_unit_test(test_parse),        cmocka_unit_test(test_monotonic),
        cmocka_unit_test(test_counter_room), cmocka_unit_test(test_threads),
    };
    return UNIT_RUN(tests);
}
