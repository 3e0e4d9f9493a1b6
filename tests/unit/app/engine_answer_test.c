/* Results of operations as answers, and pages as bodies. */
#include "app/engine_answer.c"

#include "unit/base/unit.h"

/* Whatever the size of the pieces that are asked for, the body is the same. */
static void walks_bodies(void **state)
{
    static const struct {
        bool json;
        const char *pieces[3];
        const char *body;
    } cases[] = {
        {false, {NULL}, ""},       {false, {"abc", "d", "efgh"}, "abcdefgh"},
        {true, {NULL}, "[]"},      {true, {"1,", "22", ",3,"}, "[1,22,3]"},
        {true, {"1", ","}, "[1]"},
    };
    struct block *block = block_try_create(1);

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct stream_piece pieces[3];
        struct stream_page page = {.json = cases[i].json, .pieces = pieces};

        for (size_t n = 0; n < 3 && cases[i].pieces[n] != NULL; n++) {
            const char *bytes = cases[i].pieces[n];

            pieces[n] = (struct stream_piece){.block = block, .ptr = bytes, .len = strlen(bytes)};
            page.bytes += pieces[n].len;
            page.piece_count++;
        }
        for (size_t size = 1; size < 12; size++) {
            struct engine_body body;
            char all[32] = "";
            size_t len = 0;
            size_t more;

            engine_body_begin(&body, &page);
            while ((more = engine_body_next(&body, all + len, size)) > 0) {
                assert_true(more <= size);
                len += more;
            }
            all[len] = '\0';
            assert_string_equal(all, cases[i].body);
        }
    }
    block_unref(block);
}

/* What a refusal says beside its sentence. */
static void answers_refusals(void **state)
{
    struct call call = {.verb = CALL_APPEND, .name = SLICE("s"), .body = SLICE("x")};
    struct stream_op op = {.verb = STREAM_APPEND,
                           .result = {.code = ERR_CLOSED, .closed = true, .has_next = true}};

    (void)state;
    call_begin(&call);
    engine_answer(&call, &op);
    assert_int_equal(call.result.error.code, STREAM_ERROR_CLOSED);
    assert_true(call.result.info.closed);
    assert_string_equal(call.result.info.next_offset, "0000000000000000_0000000000000000");

    op.result = (struct stream_result){.code = ERR_PERM, .stale_epoch = true, .producer_epoch = 7};
    call_begin(&call);
    engine_answer(&call, &op);
    assert_int_equal(call.result.error.code, STREAM_ERROR_FENCED);
    assert_int_equal(call.result.error.current_epoch, 7);

    op.result = (struct stream_result){
        .code = ERR_CONFLICT, .seq_gap = true, .producer_seq_expected = 3};
    call_begin(&call);
    engine_answer(&call, &op);
    assert_int_equal(call.result.error.code, STREAM_ERROR_SEQUENCE);
    assert_int_equal(call.result.error.expected_seq, 3);

    /* A sure refusal leaves nothing unknown; a failure does. Both may be tried again. */
    op.result = (struct stream_result){.code = ERR_BUSY};
    call_begin(&call);
    engine_answer(&call, &op);
    assert_int_equal(call.result.error.code, STREAM_ERROR_BUSY);
    assert_true(call.result.transient && !call.result.error.outcome_unknown);
    assert_int_equal(call.result.error.retry_after_ms, 1000);
    op.result = (struct stream_result){.code = ERR_UNKNOWN};
    call_begin(&call);
    engine_answer(&call, &op);
    assert_int_equal(call.result.error.code, STREAM_ERROR_BUSY);
    assert_true(call.result.error.outcome_unknown);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(walks_bodies),
        cmocka_unit_test(answers_refusals),
    };

    return UNIT_RUN(tests);
}
