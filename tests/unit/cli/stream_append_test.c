/* What becomes of messages before they are sent. */
#include "cli/stream_append.c"

#include "unit/base/unit.h"

static struct stream_call call = {.name = "append"};

static struct appending appending(bool json, bool text, size_t bytes_max)
{
    struct appending a = {.call = &call, .json = json};

    call.set = (struct stream_settings){.text = text};
    buf_init(&a.encoded, bytes_max);
    return a;
}

static void assert_slice(struct slice got, const char *wanted)
{
    assert_int_equal(got.len, strlen(wanted));
    assert_memory_equal(got.ptr, wanted, got.len);
}

/* A message that cannot be made a string is refused, rather than sent as none or changed. */
static void strings_are_whole_or_refused(void **state)
{
    struct appending a = appending(true, true, 16);
    struct slice message = SLICE("a \"b\"");

    (void)state;
    assert_int_equal(encode(&a, &message), 0);
    assert_slice(message, "\"a \\\"b\\\"\"");
    message = SLICE("\n\n\n\n\n\n\n\n");
    assert_int_equal(encode(&a, &message), COMMAND_FAILED);
    buf_finish(&a.encoded);
    a = appending(true, true, 16);
    message = SLICE("a\xff");
    assert_int_equal(encode(&a, &message), COMMAND_FAILED);
    assert_slice(message, "a\xff");
    buf_finish(&a.encoded);
}

/* Other streams and other flags leave a message as it is. */
static void bytes_stay(void **state)
{
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        struct appending a = appending(kind == 1, kind == 2, 16);
        struct slice message = SLICE("\xff\n");

        assert_int_equal(encode(&a, &message), 0);
        assert_slice(message, "\xff\n");
        buf_finish(&a.encoded);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings_are_whole_or_refused),
        cmocka_unit_test(bytes_stay),
    };

    return UNIT_RUN(tests);
}
