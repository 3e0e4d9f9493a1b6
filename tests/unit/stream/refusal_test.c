/* Statuses and sentences of refusals. */
#include "stream/refusal.c"

#include "unit/base/unit.h"

/* The disk's own words are not for clients; the others' are, and an empty one has a default. */
static void hides_the_inside(void **state)
{
    struct errmsg msg;

    (void)state;
    (void)err_set(&msg, ERR_IO, "write of /data/wal/1: EIO");
    assert_true(slice_equal(refusal_detail(ERR_IO, &msg), slice_of(err_text(ERR_IO))));
    assert_true(slice_equal(refusal_detail(ERR_CORRUPT, &msg), slice_of(err_text(ERR_CORRUPT))));
    (void)err_set(&msg, ERR_INVALID, "what");
    assert_true(slice_equal(refusal_detail(ERR_INVALID, &msg), SLICE("what")));
    msg.text[0] = '\0';
    assert_true(slice_equal(refusal_detail(ERR_CLOSED, &msg), slice_of(err_text(ERR_CLOSED))));
}

/* What was asked decides on the status of some, and on the words of a Stream-Seq that fell. */
static void depends_on_what_was_asked(void **state)
{
    struct stream_op op = {.verb = STREAM_CREATE, .result = {.code = ERR_GONE}};

    (void)state;
    assert_int_equal(refusal_status(&op), 409);
    op.verb = STREAM_HEAD;
    assert_int_equal(refusal_status(&op), 410);
    op = (struct stream_op){.verb = STREAM_APPEND,
                            .result = {.code = ERR_CONFLICT, .seq_conflict = true}};
    assert_true(slice_starts_with(refusal_of_op(&op), SLICE("Sequence conflict")));
    op.result.seq_conflict = false;
    assert_true(slice_equal(refusal_of_op(&op), slice_of(err_text(ERR_CONFLICT))));
    assert_int_equal(refusal_name_status(ERR_TOOBIG), 414);
    assert_int_equal(refusal_name_status(ERR_INVALID), 400);
}

/* Sentences with a number or a word in them. */
static void names_what_is_full(void **state)
{
    struct errmsg msg;

    (void)state;
    assert_int_equal(refusal_of_body(&msg, 9), ERR_TOOBIG);
    assert_string_equal(msg.text, "a request body has at most 9 bytes");
    assert_int_equal(refusal_of_reader(&msg, "a stream"), 503);
    assert_non_null(strstr(msg.text, "as many live readers as a stream may have"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hides_the_inside),
        cmocka_unit_test(depends_on_what_was_asked),
        cmocka_unit_test(names_what_is_full),
    };

    return UNIT_RUN(tests);
}
