/* Error codes, their table, and sentences that are cut rather than overrun. */
#include "base/err.c"

#include "unit/base/unit.h"

/* Every code has a name, a sentence and an HTTP status of an error, and no two share a name. */
static void test_every_code_has_a_row(void **state)
{
    (void)state;
    for (int code = -1; code >= -(int)ERR_INDEX_COUNT; code--) {
        assert_true(err_name(code)[0] != '\0');
        assert_true(err_text(code)[0] != '\0');
        assert_in_range(err_status(code), 400, 599);
        for (int other = code + 1; other < 0; other++) {
            assert_string_not_equal(err_name(code), err_name(other));
        }
    }
    assert_string_equal(err_name(ERR_NOSPC), "NOSPC");
    assert_int_equal(err_status(ERR_NOSPC), 507);
    assert_string_equal(err_text(ERR_NOMEM), "out of memory");
}

/* Zero is success; a number that is no code still yields printable answers. */
static void test_numbers_that_are_no_codes(void **state)
{
    const int wrong[] = {1, 1000, -(int)ERR_INDEX_COUNT - 1, INT32_MIN};

    (void)state;
    assert_string_equal(err_name(0), "OK");
    assert_string_equal(err_text(0), "no error");
    assert_int_equal(err_status(0), 200);
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        assert_string_equal(err_name(wrong[i]), "?");
        assert_string_equal(err_text(wrong[i]), "an error without a name");
        assert_int_equal(err_status(wrong[i]), 500);
    }
}

/* What is said of a file never speaks of streams and requests. */
static void test_file_sentences(void **state)
{
    static const char *const words[] = {"stream", "request", "configuration"};

    (void)state;
    for (const int *code = (const int[]){ENOENT, EEXIST, EACCES, EMFILE, EISDIR, EIO, ENOSPC, 0};
         *code != 0; code++) {
        for (size_t i = 0; i < ARRAY_COUNT(words); i++) {
            assert_null(strstr(err_file_text(err_from_errno(*code)), words[i]));
        }
    }
    assert_string_equal(err_file_text(ERR_NOSPC), err_text(ERR_NOSPC));
}

/* Errno values with a meaning of their own keep it; the rest, EINVAL included, are I/O errors. */
static void test_errno_is_translated(void **state)
{
    const struct {
        int from;
        int to;
    } cases[] = {
        {ENOMEM, ERR_NOMEM},    {ENOSPC, ERR_NOSPC},        {EDQUOT, ERR_NOSPC},
        {ENOENT, ERR_NOTFOUND}, {EEXIST, ERR_EXISTS},       {EACCES, ERR_PERM},
        {EPERM, ERR_PERM},      {EROFS, ERR_PERM},          {EAGAIN, ERR_AGAIN},
        {EINTR, ERR_AGAIN},     {EMFILE, ERR_LIMIT},        {ENFILE, ERR_LIMIT},
        {EIO, ERR_IO},          {EINVAL, ERR_IO},           {EBADF, ERR_IO},
        {12345, ERR_IO},        {ENOTDIR, ERR_FILEKIND},    {EISDIR, ERR_FILEKIND},
        {ELOOP, ERR_FILEKIND},  {ENAMETOOLONG, ERR_TOOBIG},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        assert_int_equal(err_from_errno(cases[i].from), cases[i].to);
    }
}

/* Setting a sentence returns the code, so that both happen in one return statement. */
static void test_set_formats_and_returns_the_code(void **state)
{
    struct errmsg msg;

    (void)state;
    assert_int_equal(err_set(&msg, ERR_IO, "file %s, byte %d", "a.pack", 7), ERR_IO);
    assert_string_equal(msg.text, "file a.pack, byte 7");
    assert_int_equal(err_set(NULL, ERR_IO, "nobody asked"), ERR_IO);
    assert_int_equal(err_prefix(NULL, ERR_IO, "nobody asked"), ERR_IO);
}

/* Each layer puts its prefix in front, the outermost first. */
static void test_prefixes_stack(void **state)
{
    struct errmsg msg;

    (void)state;
    err_set(&msg, ERR_IO, "short read");
    assert_int_equal(err_prefix(&msg, ERR_IO, "segment %d", 3), ERR_IO);
    err_prefix(&msg, ERR_IO, "recovery");
    assert_string_equal(msg.text, "recovery: segment 3: short read");
}

/* When nothing was said yet, the prefix stands before the code's own sentence. */
static void test_prefix_of_silence_uses_the_default_sentence(void **state)
{
    struct errmsg msg = {.text = ""};

    (void)state;
    err_prefix(&msg, ERR_NOMEM, "catalog");
    assert_string_equal(msg.text, "catalog: out of memory");
}

/* A sentence longer than the room is cut and ends with a NUL, whatever its length. */
static void test_long_sentences_are_cut(void **state)
{
    char longer[400];

    (void)state;
    memset(longer, 'x', sizeof(longer));
    for (int len = 240; len < 270; len++) {
        struct errmsg msg;
        size_t want = len < 256 ? (size_t)len : 255;

        err_set(&msg, ERR_IO, "%.*s", len, longer);
        assert_int_equal(strlen(msg.text), want);
        err_set(&msg, ERR_IO, "end");
        err_prefix(&msg, ERR_IO, "%.*s", len, longer);
        want = len + 5 < 256 ? (size_t)len + 5 : (size_t)len + 2 > 255 ? want : 255;
        assert_int_equal(strlen(msg.text), want);
        err_set(&msg, ERR_IO, "%.*s", len, longer);
        err_prefix(&msg, ERR_IO, "front");
        assert_int_equal(strlen(msg.text), len + 7 < 256 ? (size_t)len + 7 : 255);
        assert_memory_equal(msg.text, "front: xx", 9);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_code_has_a_row),
        cmocka_unit_test(test_numbers_that_are_no_codes),
        cmocka_unit_test(test_errno_is_translated),
        cmocka_unit_test(test_file_sentences),
        cmocka_unit_test(test_set_formats_and_returns_the_code),
        cmocka_unit_test(test_prefixes_stack),
        cmocka_unit_test(test_prefix_of_silence_uses_the_default_sentence),
        cmocka_unit_test(test_long_sentences_are_cut),
    };

    return UNIT_RUN(tests);
}
