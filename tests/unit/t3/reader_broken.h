/* Streams that the server breaks off or ends while the connection stands. Part of reader_test.c,
 * whose live_reader, subscribe and assert_told it uses. */
#ifndef ARBE_TESTS_UNIT_T3_READER_BROKEN_H
#define ARBE_TESTS_UNIT_T3_READER_BROKEN_H

#include "unit/t3/fake_time.h"
#include "unit/t3/rpc_fake.h"

/* A reader with two subscriptions, both live; as requests they are the first and the second. */
static struct t3_reader *reader_of_two(void)
{
    struct t3_reader *r = live_reader();

    assert_int_equal(subscribe(r, "other"), 2);
    fake_chunk(2, "[a]");
    assert_told(r, "catching up 2!:[a]");
    t3_reader_ack(r, 2);
    assert_told(r, "live");
    return r;
}

/* One of them, whose request is the i-th by now, begins again and is acknowledged. */
static void comes_back(struct t3_reader *r, uint64_t id, uint64_t i)
{
    char want[32];

    assert_int_equal(fake->request_count, i);
    fake_chunk(i, "[b]");
    (void)snprintf(want, sizeof(want), "%d!:[b]", (int)id);
    assert_told(r, want);
    t3_reader_ack(r, id);
}

/* What the server breaks off begins again alone, on the connection that stands, after pauses of its
 * own: they grow until it was live for as long as the longest. The others go on meanwhile. */
static void test_broken(void **state)
{
    struct t3_reader *r = reader_of_two();

    (void)state;
    fake_error(2, T3_RPC_ERROR_DIED);
    fake_chunk(1, "[2]");
    assert_told(r, "2~DIED 500 catching up 1:[2]");
    t3_reader_ack(r, 1);
    fake_sleep(499);
    assert_told(r, "");
    assert_int_equal(fake->request_count, 2);
    fake_sleep(1);
    assert_true(is_ready(r));
    assert_told(r, "");
    assert_string_equal(fake->requests[2].method, "other");
    comes_back(r, 2, 3);
    assert_told(r, "live");
    fake_sleep(4999);
    fake_done(3);
    assert_told(r, "2~CLOSED 750 catching up");
    fake_error(1, T3_RPC_ERROR_INTERRUPTED); /* that has pauses of its own */
    assert_told(r, "1~INTERRUPTED 500");
    fake_sleep(500);
    assert_told(r, "");
    comes_back(r, 1, 4);
    fake_sleep(249);
    assert_told(r, "");
    fake_sleep(1);
    assert_told(r, "");
    comes_back(r, 2, 5);
    assert_told(r, "live");
    fake_sleep(5000);
    fake_error(5, T3_RPC_ERROR_DIED);
    assert_told(r, "2~DIED 500 catching up");
    assert_int_equal(fake_connects, 1);
    assert_int_equal(fake_acks, 6);
    t3_reader_free(r);
}

/* What waits for its pause can be unsubscribed, and is asked for at once on another connection,
 * where its pauses go on growing. A chunk that was given before needs no acknowledgement. */
static void test_broken_and_more(void **state)
{
    struct t3_reader *r = reader_of_two();

    (void)state;
    fake_chunk(2, "[c]");
    fake_error(2, T3_RPC_ERROR_DIED);
    assert_told(r, "2:[c] 2~DIED 500 catching up");
    t3_reader_ack(r, 2);
    assert_int_equal(fake_acks, 2);
    fake_closed(T3_RPC_ERROR_DEFECT);
    assert_told(r, "lost 500 DEFECT");
    fake_sleep(500);
    assert_told(r, "connecting");
    assert_int_equal(fake->request_count, 2);
    fake_open();
    fake_error(2, T3_RPC_ERROR_DIED);
    assert_told(r, "catching up 2~DIED 750");
    t3_reader_unsubscribe(r, 2);
    fake_sleep(750); /* the pause of what is gone */
    fake_chunk(1, "[2]");
    assert_told(r, "1!:[2]");
    t3_reader_ack(r, 1);
    assert_told(r, "live");
    assert_int_equal(fake->request_count, 2);
    t3_reader_free(r);
}

/* It cannot be asked for again: the connection has ended, or there is no memory. */
static void test_broken_not_asked(void **state)
{
    struct t3_reader *r = live_reader();

    (void)state;
    fake_error(1, T3_RPC_ERROR_DIED);
    assert_told(r, "1~DIED 500 catching up");
    fake_closed(T3_RPC_ERROR_CLOSED);
    fake_sleep(500);
    assert_told(r, "lost 500 CLOSED");
    fake_sleep(500);
    assert_told(r, "connecting");
    fake_open();
    fake_error(1, T3_RPC_ERROR_DIED);
    assert_told(r, "catching up 1~DIED 750");
    fake_subscribe = T3_RPC_ERROR_MEMORY;
    fake_sleep(750);
    assert_told(r, "lost 750 MEMORY");
    fake_subscribe = T3_RPC_OK;
    assert_null(fake);
    t3_reader_free(r);
}

#endif
