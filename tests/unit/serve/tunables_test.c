/* Settings that are replaced while others read them. */
#include "serve/tunables.c"

#include "base/attr.h"
#include "unit/base/unit.h"

#include <pthread.h>
#include <stdio.h>

/* The newest is in force, and what was read before stays as it was. */
static void replaces_whole(void **state)
{
    char secret[] = "first";
    struct serve_tunables value = {{secret, 5}, 7, {0}};
    struct tunables t = {NULL};

    (void)state;
    assert_int_equal(tunables_set(&t, &value), 0);
    memset(secret, 'x', sizeof(secret)); /* the value has a copy */
    const struct serve_tunables *first = tunables_get(&t);

    assert_true(slice_equal(first->secret, SLICE("first")));
    assert_int_equal(first->connection_count_max, 7);
    value = (struct serve_tunables){SLICE("second"), 8, {0}};
    assert_int_equal(tunables_set(&t, &value), 0);
    assert_true(slice_equal(tunables_get(&t)->secret, SLICE("second")));
    assert_true(slice_equal(first->secret, SLICE("first")));
    tunables_finish(&t);
    tunables_finish(&t);
}

/* A reload that changes nothing costs nothing. */
static void keeps_equal(void **state)
{
    struct serve_tunables value = {SLICE("same"), 7, {.bytes_max = 9}};
    struct tunables t = {NULL};

    (void)state;
    assert_int_equal(tunables_set(&t, &value), 0);
    const struct serve_tunables *first = tunables_get(&t);

    assert_int_equal(tunables_set(&t, &value), 0);
    assert_ptr_equal(tunables_get(&t), first);
    tunables_finish(&t);
}

/* Each limit alone is a change. */
static void sees_every_limit(void **state)
{
    const struct serve_limits limits[] = {{.streams_max = 1},
                                          {.bytes_max = 1},
                                          {.requests_per_second = 1},
                                          {.body_bytes_per_second = 1},
                                          {.waiters_max = 1}};
    struct serve_tunables value = {SLICE("same"), 7, {0}};
    struct tunables t = {NULL};

    (void)state;
    assert_int_equal(tunables_set(&t, &value), 0);
    for (size_t i = 0; i < ARRAY_COUNT(limits); i++) {
        value.limits = limits[i];
        assert_int_equal(tunables_set(&t, &value), 0);
        assert_memory_equal(&tunables_get(&t)->limits, &limits[i], sizeof(limits[i]));
    }
    tunables_finish(&t);
}

#define REPLACEMENTS 1000u

static void *read_all(void *context)
{
    const struct tunables *t = context;
    uint32_t count = 0;

    while (count < REPLACEMENTS) {
        const struct serve_tunables *value = tunables_get(t);
        char wanted[16];
        int len = snprintf(wanted, sizeof(wanted), "%u", value->connection_count_max);

        assert_true(value->connection_count_max >= count);
        assert_true(slice_equal(value->secret, (struct slice){wanted, (size_t)len}));
        assert_int_equal(value->limits.waiters_max, value->connection_count_max);
        count = value->connection_count_max;
    }
    return NULL;
}

/* A reader never sees parts of two values. */
static void is_read_meanwhile(void **state)
{
    struct tunables t = {NULL};
    struct serve_tunables value = {SLICE("0"), 0, {0}};
    pthread_t reader;

    (void)state;
    assert_int_equal(tunables_set(&t, &value), 0);
    assert_int_equal(pthread_create(&reader, NULL, read_all, &t), 0);
    for (uint32_t i = 1; i <= REPLACEMENTS; i++) {
        char secret[16];
        int len = snprintf(secret, sizeof(secret), "%u", i);

        value = (struct serve_tunables){{secret, (size_t)len}, i, {.waiters_max = i}};
        assert_int_equal(tunables_set(&t, &value), 0);
    }
    assert_int_equal(pthread_join(reader, NULL), 0);
    tunables_finish(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replaces_whole),
        cmocka_unit_test(keeps_equal),
        cmocka_unit_test(sees_every_limit),
        cmocka_unit_test(is_read_meanwhile),
    };

    return UNIT_RUN(tests);
}
