/* Producers: the table of verdicts, and the cap. */
#include "unit/base/fault.h"

#include "stream/producer.c"

#include <stdio.h>

#include "unit/base/unit.h"

/* PROTOCOL.md 5.2.1, line by line. */
static void test_verdicts(void **state)
{
    (void)state;
    static const struct {
        uint64_t epoch;
        uint64_t seq;
        enum producer_verdict verdict;
    } cases[] = {
        {4, 0, PRODUCER_STALE_EPOCH}, {4, 9, PRODUCER_STALE_EPOCH},
        {6, 0, PRODUCER_ACCEPT},      {6, 1, PRODUCER_EPOCH_SEQ},
        {9, 0, PRODUCER_ACCEPT},      {5, 0, PRODUCER_DUPLICATE},
        {5, 7, PRODUCER_DUPLICATE},   {5, 8, PRODUCER_ACCEPT},
        {5, 9, PRODUCER_GAP},         {5, UINT64_C(9007199254740991), PRODUCER_GAP},
    };
    const struct producer_state known = {.epoch = 5, .seq = 7};
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        assert_int_equal(producer_judge(&known, cases[i].epoch, cases[i].seq), cases[i].verdict);
    }
}

/* A producer never seen begins at 0, in whatever epoch. */
static void test_unknown(void **state)
{
    (void)state;
    assert_int_equal(producer_judge(NULL, 0, 0), PRODUCER_ACCEPT);
    assert_int_equal(producer_judge(NULL, 12, 0), PRODUCER_ACCEPT);
    assert_int_equal(producer_judge(NULL, 0, 1), PRODUCER_GAP);
}

static struct producer *add(struct producers *p, const char *id, int64_t used_ms)
{
    struct producer *producer;
    assert_int_equal(producers_add(p, slice_of(id), &producer), 0);
    producer->staged.used_ms = used_ms;
    return producer;
}

/* What was added is found under its id, until it is removed. */
static void test_map(void **state)
{
    (void)state;
    struct producers *p = producers_create();
    struct producer *a = add(p, "a", 0);
    add(p, "b", 0);
    assert_ptr_equal(producers_find(p, SLICE("a")), a);
    assert_null(producers_find(p, SLICE("c")));
    assert_null(producers_find(NULL, SLICE("a")));
    producers_remove(p, a);
    assert_null(producers_find(p, SLICE("a")));
    producers_destroy(p);
    producers_destroy(NULL);
}

/* At the cap the idle ones make room, but not one that a staged record still names. */
static void test_cap(void **state)
{
    (void)state;
    struct producers *p = producers_create();
    char id[16];
    for (unsigned i = 0; i < PRODUCERS_PER_STREAM_MAX; i++) {
        assert_int_equal(producers_make_room(p, 0), 0);
        (void)snprintf(id, sizeof(id), "%u", i);
        add(p, id, i < 2 ? 0 : 1000);
    }
    producers_find(p, SLICE("1"))->pins = 1;
    int64_t week_ms = (int64_t)PRODUCER_IDLE_MS;
    assert_int_equal(producers_make_room(p, week_ms - 1), ERR_LIMIT);
    assert_int_equal(producers_make_room(p, week_ms), 0);
    assert_null(producers_find(p, SLICE("0")));
    assert_non_null(producers_find(p, SLICE("1")));
    assert_int_equal(p->gone_count, 1);
    producers_clear_gone(p, 1);
    assert_int_equal(p->gone_count, 0);
    producers_find(p, SLICE("1"))->pins = 0;
    producers_destroy(p);
}

/* Without memory nothing is added and nothing is forgotten. */
static void test_faults(void **state)
{
    (void)state;
    struct producers *p = producers_create();
    struct producer *producer = NULL;
    fault_countdown = 0;
    assert_int_equal(producers_add(p, SLICE("a"), &producer), ERR_NOMEM);
    assert_null(producers_create());
    fault_countdown = -1;
    assert_null(producer);
    assert_null(producers_find(p, SLICE("a")));
    producers_destroy(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verdicts), cmocka_unit_test(test_unknown), cmocka_unit_test(test_map),
        cmocka_unit_test(test_cap),      cmocka_unit_test(test_faults),
    };
    return UNIT_RUN(tests);
}
