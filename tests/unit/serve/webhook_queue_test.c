/* Who is next: fairness between hosts, the caps, and the end of it all. */
#include "unit/base/fault.h"

#include "serve/webhook_queue.c"

#include <stdio.h>

#include "sim/fakedisk.h"
#include "unit/base/unit.h"

struct item {
    struct webhook_place place;
    unsigned number;
    unsigned host;
    bool under_way;
};

static struct slice key_of(unsigned host, char *memory, size_t size)
{
    int len = snprintf(memory, size, "host-%u:443", host);

    return (struct slice){memory, (size_t)len};
}

static void push(struct webhook_queue *q, struct item *item, unsigned host, unsigned number)
{
    char key[32];

    *item = (struct item){.number = number, .host = host};
    list_init(&item->place.link);
    assert_int_equal(webhook_queue_push(q, &item->place, key_of(host, key, sizeof(key))), 0);
}

static struct item *next(struct webhook_queue *q)
{
    struct webhook_place *place = webhook_queue_next(q);

    return place == NULL ? NULL : container_of(place, struct item, place);
}

/* One host: in order, and no more at a time than it may have. */
static void test_order(void **state)
{
    (void)state;
    struct webhook_queue q;
    struct item items[6];

    webhook_queue_init(&q, 2, 1);
    for (unsigned i = 0; i < 6; i++) {
        push(&q, &items[i], 0, i);
    }
    assert_ptr_equal(next(&q), &items[0]);
    assert_ptr_equal(next(&q), &items[1]);
    assert_null(next(&q));
    webhook_queue_end(&q, &items[1].place, false);
    assert_ptr_equal(next(&q), &items[2]);
    assert_null(next(&q));
    webhook_queue_end(&q, &items[0].place, true); /* timed out: one at a time from now on */
    assert_null(next(&q));
    webhook_queue_end(&q, &items[2].place, true);
    assert_ptr_equal(next(&q), &items[3]);
    assert_null(next(&q));
    webhook_queue_end(&q, &items[3].place, false);
    assert_ptr_equal(next(&q), &items[4]);
    assert_ptr_equal(next(&q), &items[5]);
    webhook_queue_end(&q, &items[4].place, false);
    webhook_queue_end(&q, &items[5].place, false);
    webhook_queue_finish(&q);
}

/* Hosts take turns, however many requests one of them has and whenever the others come. */
static void test_turns(void **state)
{
    (void)state;
    struct webhook_queue q;
    struct item many[50];
    struct item few[2];

    webhook_queue_init(&q, 100, 1);
    for (unsigned i = 0; i < 50; i++) {
        push(&q, &many[i], 0, i);
    }
    assert_ptr_equal(next(&q), &many[0]);
    push(&q, &few[0], 1, 0);
    push(&q, &few[1], 2, 0);
    assert_ptr_equal(next(&q), &many[1]);
    assert_ptr_equal(next(&q), &few[0]);
    assert_ptr_equal(next(&q), &few[1]);
    assert_ptr_equal(next(&q), &many[2]);
    struct webhook_place *place;
    unsigned drained = 0;

    while ((place = webhook_queue_drain(&q)) != NULL) {
        drained++;
    }
    assert_int_equal(drained, 47);
    for (unsigned i = 0; i < 3; i++) {
        webhook_queue_end(&q, &many[i].place, false);
    }
    webhook_queue_end(&q, &few[0].place, false);
    webhook_queue_end(&q, &few[1].place, false);
    webhook_queue_finish(&q);
}

/* A host that is put off loses its turns to the others until it is resumed; then it comes first. */
static void test_put_off(void **state)
{
    (void)state;
    struct webhook_queue q;
    struct item items[7];

    webhook_queue_init(&q, 2, 1);
    assert_null(webhook_queue_peek(&q));
    assert_null(webhook_queue_first_put_off(&q));
    for (unsigned i = 0; i < 6; i++) {
        push(&q, &items[i], i % 3, i);
    }
    assert_ptr_equal(webhook_queue_peek(&q), &items[0].place);
    assert_ptr_equal(next(&q), &items[0]);
    assert_ptr_equal(next(&q), &items[1]);
    webhook_queue_put_off(&q); /* host 2 */
    webhook_queue_put_off(&q); /* host 0, of which one is under way */
    assert_ptr_equal(next(&q), &items[4]);
    assert_null(next(&q));
    push(&q, &items[6], 2, 6);
    assert_null(webhook_queue_peek(&q));
    webhook_queue_end(&q, &items[0].place, false);
    webhook_queue_end(&q, &items[1].place, false);
    assert_null(webhook_queue_peek(&q));
    push(&q, &items[1], 1, 7);
    struct webhook_host *first = webhook_queue_first_put_off(&q);

    assert_ptr_equal(first, items[2].place.host);
    webhook_queue_resume(&q, first);
    webhook_queue_resume(&q, first); /* nothing more to be done */
    assert_ptr_equal(next(&q), &items[2]);
    assert_ptr_equal(next(&q), &items[1]);
    assert_ptr_equal(next(&q), &items[5]);
    assert_null(next(&q)); /* host 2 has as many as it may */
    assert_ptr_equal(webhook_queue_drain(&q), &items[6].place);
    assert_ptr_equal(webhook_queue_drain(&q), &items[3].place); /* though it is put off */
    assert_null(webhook_queue_drain(&q));
    for (unsigned i = 1; i < 6; i++) {
        if (i != 3) {
            webhook_queue_end(&q, &items[i].place, false);
        }
    }
    webhook_queue_finish(&q);
}

/* Hosts with nothing to do are remembered, but no more than so many. */
static void test_idle(void **state)
{
    (void)state;
    struct webhook_queue q;
    struct item item;

    webhook_queue_init(&q, 1, 1);
    for (unsigned i = 0; i < WEBHOOK_HOSTS_IDLE_MAX + 100; i++) {
        push(&q, &item, i, 0);
        assert_ptr_equal(next(&q), &item);
        item.place.host->resolved = malloc(8);
        webhook_queue_end(&q, &item.place, false);
    }
    assert_int_equal(q.hosts.count, WEBHOOK_HOSTS_IDLE_MAX);
    assert_int_equal(q.idle_count, WEBHOOK_HOSTS_IDLE_MAX);
    push(&q, &item, WEBHOOK_HOSTS_IDLE_MAX + 99, 0); /* the latest is known still */
    assert_non_null(item.place.host->resolved);
    assert_int_equal(q.hosts.count, WEBHOOK_HOSTS_IDLE_MAX);
    assert_ptr_equal(next(&q), &item);
    webhook_queue_end(&q, &item.place, false);
    push(&q, &item, 0, 0); /* the oldest is not */
    assert_null(item.place.host->resolved);
    assert_ptr_equal(next(&q), &item);
    webhook_queue_end(&q, &item.place, false);
    webhook_queue_finish(&q);
}

#define HOSTS 7u
#define ITEMS 400u
#define EACH  3u

/* Random traffic: per host the order is kept and the cap holds, whoever can be sent is, and nothing
 * is lost. */
static void test_model(void **state)
{
    (void)state;
    static struct item items[ITEMS];
    struct webhook_queue q;
    unsigned under_way[HOSTS] = {0};
    unsigned last[HOSTS] = {0};
    unsigned waiting[HOSTS] = {0};
    unsigned pushed = 0;
    unsigned sent = 0;
    uint64_t random = 99;

    webhook_queue_init(&q, EACH, 5);
    for (unsigned step = 0; step < 20000 && sent < ITEMS; step++) {
        uint64_t what = fakedisk_below(&random, 3);
        unsigned at = (unsigned)fakedisk_below(&random, ITEMS);

        if (what == 0 && pushed < ITEMS) {
            unsigned host = (unsigned)fakedisk_below(&random, HOSTS);

            push(&q, &items[pushed], host, pushed + 1);
            pushed++;
            waiting[host]++;
        } else if (what == 1) {
            struct item *item = next(&q);
            bool any = false;

            for (unsigned i = 0; i < HOSTS; i++) {
                any = any || (waiting[i] > 0 && under_way[i] < EACH);
            }
            assert_int_equal(item != NULL, any);
            if (item != NULL) {
                assert_true(item->number > last[item->host]);
                last[item->host] = item->number;
                item->under_way = true;
                waiting[item->host]--;
                under_way[item->host]++;
            }
        } else if (items[at].under_way) {
            items[at].under_way = false;
            under_way[items[at].host]--;
            webhook_queue_end(&q, &items[at].place, false);
            sent++;
        }
    }
    assert_int_equal(sent, ITEMS);
    assert_int_equal(q.waiting_count, 0);
    webhook_queue_finish(&q);
}

/* No memory for a host: the request is not in the queue, and the queue is as before. */
static void test_no_memory(void **state)
{
    (void)state;
    struct webhook_queue q;
    struct item item = {.number = 0};

    webhook_queue_init(&q, 1, 1);
    list_init(&item.place.link);
    fault_countdown = 0;
    assert_int_equal(webhook_queue_push(&q, &item.place, SLICE("a:1")), ERR_NOMEM);
    fault_countdown = -1;
    assert_null(next(&q));
    assert_int_equal(q.hosts.count, 0);
    push(&q, &item, 1, 1);
    assert_ptr_equal(next(&q), &item);
    webhook_queue_end(&q, &item.place, false);
    webhook_queue_finish(&q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),   cmocka_unit_test(test_turns),
        cmocka_unit_test(test_put_off), cmocka_unit_test(test_idle),
        cmocka_unit_test(test_model),   cmocka_unit_test(test_no_memory),
    };

    return UNIT_RUN(tests);
}
