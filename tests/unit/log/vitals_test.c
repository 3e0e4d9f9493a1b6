/* What the operator is told, and how badly; the numbers beside it. */
#include "log/vitals.c"

#include <string.h>

#include "unit/base/unit.h"

#define NEVER_SAID ((enum trouble)99)

struct fixture {
    struct store_events events;
    struct vitals vitals;
    unsigned said;
    enum trouble trouble; /* of the last sentence */
    char sentence[512];
};

static void on_trouble(void *context, enum trouble trouble, const char *sentence)
{
    struct fixture *f = context;
    f->said++;
    f->trouble = trouble;
    (void)snprintf(f->sentence, sizeof(f->sentence), "%s", sentence);
}

static void init(struct fixture *f)
{
    *f = (struct fixture){.trouble = NEVER_SAID};
    f->events = (struct store_events){.context = f, .trouble = on_trouble};
    vitals_init(&f->vitals, &f->events);
}

static struct store_health health(struct fixture *f, int log_error)
{
    struct store_health h;
    vitals_get_health(&f->vitals, log_error, &h);
    return h;
}

static struct store_stats stats(struct fixture *f)
{
    struct store_stats s = {0};
    vitals_get_stats(&f->vitals, &s);
    return s;
}

/* Each change is said once: the reason of a failure, another reason, and that it is over. */
static void test_checkpoint(void **state)
{
    (void)state;
    struct fixture f;
    init(&f);
    vitals_checkpoint(&f.vitals, "/d", 0);
    assert_int_equal(f.said, 0);
    vitals_checkpoint(&f.vitals, "/d", ERR_IO);
    vitals_checkpoint(&f.vitals, "/d", ERR_IO);
    assert_int_equal(f.said, 1);
    assert_int_equal(f.trouble, TROUBLE_BROKEN);
    assert_non_null(strstr(f.sentence, "/d"));
    assert_int_equal(health(&f, 0).checkpoint_error, ERR_IO);
    assert_int_equal(health(&f, 0).checkpoint_failures, 2);
    vitals_checkpoint(&f.vitals, "/d", ERR_NOSPC);
    assert_int_equal(f.said, 2);
    assert_non_null(strstr(health(&f, 0).text, "space"));
    vitals_checkpoint(&f.vitals, "/d", 0);
    vitals_checkpoint(&f.vitals, "/d", 0);
    assert_int_equal(f.said, 3);
    assert_int_equal(f.trouble, TROUBLE_OVER);
    assert_string_equal(health(&f, 0).text, "");
    assert_int_equal(health(&f, 0).checkpoint_failures, 0);
    assert_int_equal(stats(&f).checkpoint_failures, 3);
    vitals_finish(&f.vitals);
}

/* Compaction likewise; it does not make the server unwell. */
static void test_compaction(void **state)
{
    (void)state;
    struct fixture f;
    init(&f);
    vitals_compaction(&f.vitals, "/p", ERR_CORRUPT);
    vitals_compaction(&f.vitals, "/p", ERR_CORRUPT);
    assert_int_equal(f.said, 1);
    assert_int_equal(f.trouble, TROUBLE_BROKEN);
    assert_int_equal(health(&f, 0).compaction_error, ERR_CORRUPT);
    assert_string_equal(health(&f, 0).text, "");
    vitals_compaction(&f.vitals, "/p", 0);
    assert_int_equal(f.said, 2);
    assert_int_equal(f.trouble, TROUBLE_OVER);
    assert_int_equal(stats(&f).compaction_failures, 2);
    vitals_finish(&f.vitals);
}

/* A failed log is said once and told by health before anything else. */
static void test_log(void **state)
{
    (void)state;
    struct fixture f;
    init(&f);
    vitals_log(&f.vitals, "/w", 0);
    assert_int_equal(f.said, 0);
    vitals_log(&f.vitals, "/w", ERR_IO);
    vitals_log(&f.vitals, "/w", ERR_IO);
    assert_int_equal(f.said, 1);
    assert_int_equal(f.trouble, TROUBLE_BROKEN);
    vitals_checkpoint(&f.vitals, "/d", ERR_NOSPC);
    assert_non_null(strstr(health(&f, ERR_IO).text, "restart"));
    assert_int_equal(health(&f, ERR_IO).log_error, ERR_IO);
    vitals_finish(&f.vitals);
}

/* Nobody need listen. */
static void test_nobody_listens(void **state)
{
    (void)state;
    struct fixture f;
    init(&f);
    f.events.trouble = NULL;
    vitals_log(&f.vitals, "/w", ERR_IO);
    assert_int_equal(f.said, 0);
    vitals_finish(&f.vitals);
}

/* Rounds of compaction that found nothing to do are not counted. */
static void test_stats(void **state)
{
    (void)state;
    struct fixture f;
    init(&f);
    vitals_checkpointed(&f.vitals, 1500);
    vitals_checkpointed(&f.vitals, 3);
    vitals_compacted(&f.vitals, 0, 0, 1000);
    vitals_compacted(&f.vitals, 4096, 0, 2000);
    vitals_compacted(&f.vitals, 0, 2, 500);
    struct store_stats s = stats(&f);
    assert_int_equal(histogram_count_to(&s.checkpoint_us, HISTOGRAM_BOUNDS), 2);
    assert_int_equal(histogram_count_to(&s.checkpoint_us, 2), 1);
    assert_int_equal(s.checkpoint_us.sum, 1503);
    assert_int_equal(histogram_count_to(&s.compaction_us, HISTOGRAM_BOUNDS), 2);
    assert_int_equal(s.compaction_us.sum, 2500);
    assert_int_equal(s.compacted_bytes, 4096);
    assert_int_equal(health(&f, 0).checkpoints, 2);
    vitals_finish(&f.vitals);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_checkpoint), cmocka_unit_test(test_compaction),
        cmocka_unit_test(test_log),        cmocka_unit_test(test_nobody_listens),
        cmocka_unit_test(test_stats),
    };
    return UNIT_RUN(tests);
}
