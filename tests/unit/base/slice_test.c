/* Comparing, trimming, splitting and hashing of borrowed bytes. */
#include "base/slice.c"

#include "base/attr.h"
#include "unit/base/unit.h"

static const struct slice nothing = {NULL, 0};

/* Equality is by bytes; an empty slice equals another whatever its pointer. */
static void test_equal_compares_bytes(void **state)
{
    (void)state;
    assert_true(slice_equal(SLICE("a\0b"), SLICE("a\0b")));
    assert_false(slice_equal(SLICE("a\0b"), SLICE("a\0c")));
    assert_false(slice_equal(SLICE("a"), SLICE("ab")));
    assert_true(slice_equal(nothing, SLICE("")));
    assert_true(slice_equal(slice_of("text"), SLICE("text")));
}

/* Only the 26 ASCII letters fold; their neighbours and bytes beyond ASCII do not. */
static void test_nocase_folds_ascii_letters_only(void **state)
{
    (void)state;
    for (int a = 0; a < 256; a++) {
        for (int b = 0; b < 256; b++) {
            char left = (char)a;
            char right = (char)b;
            int low_a = a >= 'A' && a <= 'Z' ? a + 32 : a;
            int low_b = b >= 'A' && b <= 'Z' ? b + 32 : b;

            assert_int_equal(
                slice_equal_nocase((struct slice){&left, 1}, (struct slice){&right, 1}),
                low_a == low_b);
        }
    }
    assert_true(slice_equal_nocase(SLICE("Content-Type"), SLICE("cONTENT-tYPE")));
    assert_false(slice_equal_nocase(SLICE("Content-Type"), SLICE("Content-Typ")));
    assert_true(slice_equal_nocase(nothing, SLICE("")));
}

/* The order is that of unsigned bytes, and a prefix sorts before what it begins. */
static void test_compare_orders_bytes(void **state)
{
    const struct slice ascending[] = {nothing,      SLICE("\0"), SLICE("a"),
                                      SLICE("a\0"), SLICE("ab"), SLICE("\x80")};

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(ascending); i++) {
        for (size_t j = 0; j < ARRAY_COUNT(ascending); j++) {
            int order = slice_compare(ascending[i], ascending[j]);

            assert_int_equal((order > 0) - (order < 0), (i > j) - (i < j));
        }
    }
}

/* Everything begins with the empty slice and with itself. */
static void test_starts_with(void **state)
{
    (void)state;
    assert_true(slice_starts_with(SLICE("Bearer x"), SLICE("Bearer ")));
    assert_true(slice_starts_with(SLICE("ab"), SLICE("ab")));
    assert_false(slice_starts_with(SLICE("a"), SLICE("ab")));
    assert_false(slice_starts_with(SLICE("ba"), SLICE("ab")));
    assert_true(slice_starts_with(SLICE("a"), nothing));
    assert_true(slice_starts_with(nothing, nothing));
}

/* Only spaces and tabs are optional white space in HTTP; a line end is not. */
static void test_trim_takes_spaces_and_tabs(void **state)
{
    (void)state;
    assert_true(slice_equal(slice_trim(SLICE(" \t a b\t ")), SLICE("a b")));
    assert_true(slice_equal(slice_trim(SLICE("\ra\n")), SLICE("\ra\n")));
    assert_int_equal(slice_trim(SLICE(" \t ")).len, 0);
    assert_int_equal(slice_trim(nothing).len, 0);
}

/* Splitting yields every part, also empty ones at either end, and then ends. */
static void test_split_yields_every_part(void **state)
{
    struct slice rest = SLICE(",a,,b,");
    const struct slice want[] = {SLICE(""), SLICE("a"), SLICE(""), SLICE("b"), SLICE("")};
    struct slice part = SLICE("untouched");

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(want); i++) {
        assert_true(slice_split(&rest, ',', &part));
        assert_true(slice_equal(part, want[i]));
    }
    part = SLICE("untouched");
    assert_false(slice_split(&rest, ',', &part));
    assert_true(slice_equal(part, SLICE("untouched")));
}

/* Without a separator the whole is the only part; an empty text has one empty part. */
static void test_split_without_separator(void **state)
{
    struct slice rest = SLICE("abc");
    struct slice part;

    (void)state;
    assert_true(slice_split(&rest, ',', &part));
    assert_true(slice_equal(part, SLICE("abc")));
    assert_null(rest.ptr);
    rest = SLICE("");
    assert_true(slice_split(&rest, ',', &part));
    assert_int_equal(part.len, 0);
    assert_false(slice_split(&rest, ',', &part));
}

/* The comparison for secrets gives the answers of the plain one. */
static void test_constant_time_equality_agrees(void **state)
{
    (void)state;
    assert_true(slice_equal_constant_time(SLICE("secret"), SLICE("secret")));
    assert_false(slice_equal_constant_time(SLICE("secret"), SLICE("secreT")));
    assert_false(slice_equal_constant_time(SLICE("secret"), SLICE("Secret")));
    assert_false(slice_equal_constant_time(SLICE("secret"), SLICE("secrets")));
    assert_true(slice_equal_constant_time(nothing, SLICE("")));
}

/* The hash depends on the bytes, their number and the seed, and not on where they lie. */
static void test_hash_depends_on_content_alone(void **state)
{
    char bytes[64];
    char moved[65];
    uint64_t seen[65];

    (void)state;
    memset(bytes, 0, sizeof(bytes));
    memset(moved, 0, sizeof(moved));
    for (size_t len = 0; len <= 64; len++) {
        seen[len] = slice_hash((struct slice){bytes, len}, 1);
        assert_int_equal(seen[len], slice_hash((struct slice){moved + 1, len}, 1));
        assert_int_not_equal(seen[len], slice_hash((struct slice){bytes, len}, 2));
        for (size_t before = 0; before < len; before++) {
            assert_int_not_equal(seen[len], seen[before]);
        }
    }
    assert_int_equal(slice_hash(nothing, 1), seen[0]);
}

/* Any flipped bit changes about half of the bits of the hash. */
static void test_hash_mixes_every_bit(void **state)
{
    (void)state;
    for (size_t len = 1; len <= 40; len++) {
        char bytes[40] = {0};
        uint64_t before = slice_hash((struct slice){bytes, len}, 42);

        for (size_t bit = 0; bit < 8 * len; bit++) {
            uint64_t after;

            bytes[bit / 8] = (char)(bytes[bit / 8] ^ (1 << bit % 8));
            after = slice_hash((struct slice){bytes, len}, 42);
            bytes[bit / 8] = (char)(bytes[bit / 8] ^ (1 << bit % 8));
            assert_in_range(__builtin_popcountll(before ^ after), 10, 54);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_compares_bytes),
        cmocka_unit_test(test_nocase_folds_ascii_letters_only),
        cmocka_unit_test(test_compare_orders_bytes),
        cmocka_unit_test(test_starts_with),
        cmocka_unit_test(test_trim_takes_spaces_and_tabs),
        cmocka_unit_test(test_split_yields_every_part),
        cmocka_unit_test(test_split_without_separator),
        cmocka_unit_test(test_constant_time_equality_agrees),
        cmocka_unit_test(test_hash_depends_on_content_alone),
        cmocka_unit_test(test_hash_mixes_every_bit),
    };

    return UNIT_RUN(tests);
}
