/* How answers leave: with their heads, behind them, or without a body. What carries them is stood
 * in for here. */
#include "serve/reply.c"

#include "unit/base/unit.h"

#include <stdio.h>
#include <stdlib.h>

/* What was done, and what is to be met. */
static struct {
    bool dropped;      /* the session was */
    bool answered;     /* the answer was queued whole */
    bool kept;         /* and the connection goes on */
    unsigned refuse;   /* the connection refuses the so manieth piece, from 1 on; 0: none */
    unsigned pieces;   /* queued */
    size_t first_len;  /* of the first one, the head with what goes along */
    size_t second_len; /* of the second one */
    char head[1024];   /* the beginning of the first one */
} seen;

int conn_send_copy(struct conn *c, struct slice bytes)
{
    (void)c;
    if (++seen.pieces == seen.refuse) {
        return ERR_NOMEM;
    }
    if (seen.pieces == 1) {
        seen.first_len = bytes.len;
        (void)snprintf(seen.head, sizeof(seen.head), "%.*s", (int)bytes.len, bytes.ptr);
    } else {
        seen.second_len = bytes.len;
    }
    return 0;
}

void session_drop(struct session *s)
{
    (void)s;
    assert_false(seen.dropped);
    seen.dropped = true;
}

void session_answered(struct session *s, bool keep, uint64_t unread_body_bytes)
{
    (void)s;
    assert_int_equal(unread_body_bytes, 0);
    seen.answered = true;
    seen.kept = keep;
}

void exchange_destroy(struct exchange *x)
{
    (void)x;
}

uint64_t body_unread(const struct body *b)
{
    (void)b;
    return 0;
}

const char *worker_date(struct worker *w)
{
    (void)w;
    return "Mon, 30 Nov 2026 13:10:00 GMT";
}

/* Answers with so many bytes; the connection refuses its `refuse`th piece. */
static void answer(size_t len, bool head_only, unsigned refuse)
{
    static struct server server;
    struct worker worker = {.server = &server};
    struct session session = {.worker = &worker};
    struct exchange x = {.worker = &worker,
                         .session = &session,
                         .method = head_only ? HTTP_HEAD : HTTP_GET,
                         .head_only = head_only,
                         .keep = true,
                         .chunked_ok = true};
    char *body = calloc(1, len + 1);

    assert_non_null(body);
    memset(&seen, 0, sizeof(seen));
    seen.refuse = refuse;
    buf_init(&worker.out, 64 * KIB);
    reply_begin(&x, 200, REPLY_NO_STORE);
    reply_send(&x, (struct slice){body, len});
    buf_finish(&worker.out);
    free(body);
}

/* A short body goes with its head, a long one behind it. */
static void sends_bodies_of_any_length(void **state)
{
    (void)state;
    answer(0, false, 0);
    assert_true(seen.answered && seen.kept && seen.pieces == 1);
    assert_non_null(strstr(seen.head, "\r\nContent-Length: 0\r\n"));
    size_t head_len = seen.first_len;

    answer(COPIED_BYTES_MAX, false, 0);
    assert_true(seen.answered && seen.pieces == 1);
    assert_true(seen.first_len > COPIED_BYTES_MAX + head_len);
    answer(COPIED_BYTES_MAX + 1, false, 0);
    assert_true(seen.answered && seen.pieces == 2);
    assert_true(seen.first_len < 2 * head_len);
    assert_int_equal(seen.second_len, COPIED_BYTES_MAX + 1);
    assert_non_null(strstr(seen.head, "\r\nContent-Length: 16385\r\n"));
}

/* HEAD has the length of a body alone, however long it would be. */
static void answers_head_without_a_body(void **state)
{
    (void)state;
    answer(5, true, 0);
    assert_true(seen.answered && seen.pieces == 1);
    assert_non_null(strstr(seen.head, "\r\nContent-Length: 5\r\n"));
    size_t head_len = seen.first_len;

    answer(COPIED_BYTES_MAX + 1, true, 0);
    assert_true(seen.answered && seen.pieces == 1);
    assert_true(seen.first_len < head_len + 16);
}

/* A connection that takes the head or the body no more is dropped, once. */
static void drops_what_cannot_leave(void **state)
{
    (void)state;
    answer(5, false, 1);
    assert_true(seen.dropped && !seen.answered);
    answer(COPIED_BYTES_MAX + 1, false, 1);
    assert_true(seen.dropped && !seen.answered && seen.pieces == 1);
    answer(COPIED_BYTES_MAX + 1, false, 2);
    assert_true(seen.dropped && !seen.answered && seen.pieces == 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sends_bodies_of_any_length),
        cmocka_unit_test(answers_head_without_a_body),
        cmocka_unit_test(drops_what_cannot_leave),
    };

    return UNIT_RUN(tests);
}
