/* Damage to what forks and sources say of each other: each kind is named. */
#include "unit/base/fault.h"

#include "log/verify_forks.c"

#include "unit/log/verify_fixture.h"

static void change(struct site *s, stream_id id, void (*how)(struct stream_meta *m))
{
    struct edit e;
    char bytes[CATALOG_STREAM_BYTES_MAX];
    edit_begin(s, &e);
    struct stream_meta m = edit_stream(&e, id, bytes);
    how(&m);
    edit_put_stream(&e, &m);
    edit_end(&e);
}

static void more_refs(struct stream_meta *m)
{
    m->fork_refs++;
}

static void no_refs(struct stream_meta *m)
{
    m->fork_refs = 0;
}

static void soft(struct stream_meta *m)
{
    m->soft_deleted = true;
}

static void of_nothing(struct stream_meta *m)
{
    m->source_id = 0x7777;
}

static void of_itself(struct stream_meta *m)
{
    m->source_id = m->id;
}

static void of_itself_in_two(struct stream_meta *m)
{
    m->source_id = SITE_FORK_2;
}

static void too_far(struct stream_meta *m)
{
    m->fork_offset += 100;
    m->tail += 100;
}

static void refs_too_high(struct site *s)
{
    change(s, SITE_TEXT, more_refs);
}

static void refs_too_low(struct site *s)
{
    change(s, SITE_FORK, no_refs);
}

static void refs_of_soft_too_low(struct site *s)
{
    change(s, SITE_SOFT, no_refs);
}

static void soft_without_forks(struct site *s)
{
    change(s, SITE_LATE, soft);
}

static void source_unknown(struct site *s)
{
    change(s, SITE_FORK_2, of_nothing);
}

static void own_source(struct site *s)
{
    change(s, SITE_FORK, of_itself);
}

static void circle(struct site *s)
{
    change(s, SITE_FORK, of_itself_in_two);
}

static void beyond_source(struct site *s)
{
    change(s, SITE_FORK_2, too_far);
}

static void source_gone(struct site *s)
{
    struct edit e;
    edit_begin(s, &e);
    edit_del(&e, TABLE_STREAMS, key_of(SITE_SOFT));
    edit_end(&e);
}

static const struct damage damages[] = {
    {"a fork too many", refs_too_high, CATALOG_FILE,
     "stream 1 says that it has 2 forks, and there are 1: once deleted it is never removed"},
    {"a fork too few", refs_too_low, CATALOG_FILE,
     "stream 5 says that it has 0 forks, and there are 1: deleting it"},
    {"a fork too few, deleted", refs_of_soft_too_low, CATALOG_FILE,
     "stream 7 says that it has 0 forks"},
    {"kept for no forks", soft_without_forks, CATALOG_FILE,
     "stream 9 was deleted and is kept for forks, and has none"},
    {"a fork of nothing", source_unknown, CATALOG_FILE,
     "stream 6 says that it is a fork of the later stream 30583"},
    {"a fork of itself", own_source, CATALOG_FILE,
     "stream 5 says that it is a fork of the later stream 5"},
    {"a circle of forks", circle, CATALOG_FILE,
     "stream 5 says that it is a fork of the later stream 6"},
    {"a fork behind its source's end", beyond_source, CATALOG_FILE, "reads of the rest fail"},
    {"a source that is gone", source_gone, CATALOG_FILE,
     "stream 8 is a fork of stream 7, which does not exist"},
};

static void test_damages(void **state)
{
    (void)state;
    site_try(damages, ARRAY_COUNT(damages));
}

/* A chain as long as may be is good; one more stream is told. */
static void test_depth(void **state)
{
    (void)state;
    struct site s = {0};
    rig_open(&s.rig);
    assert_int_equal(rig_put(&s.rig, "0", "text/plain", "x"), 0);
    for (unsigned i = 1; i <= FORK_DEPTH_MAX; i++) {
        char name[16];
        char source[16];
        (void)snprintf(name, sizeof(name), "%u", i);
        (void)snprintf(source, sizeof(source), "%u", i - 1);
        assert_int_equal(rig_fork(&s.rig, name, source), 0);
    }
    assert_int_equal(rig_put(&s.rig, "below", "text/plain", ""), 0);
    site_save(&s.rig);
    site_down(&s);
    site_expect_good(&s);
    assert_int_equal(s.report.forks, FORK_DEPTH_MAX);
    struct edit e;
    char bytes[CATALOG_STREAM_BYTES_MAX];
    edit_begin(&s, &e);
    struct stream_meta m = edit_stream(&e, FORK_DEPTH_MAX + 2, bytes);
    m.source_id = FORK_DEPTH_MAX + 1;
    edit_put_stream(&e, &m);
    edit_end(&e);
    site_verify(&s);
    assert_true(site_says(&s, CATALOG_FILE, "is a fork over more than 64 streams"));
    site_remove(&s);
}

static void test_no_memory(void **state)
{
    (void)state;
    site_try_memory();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_damages),
        cmocka_unit_test(test_depth),
        cmocka_unit_test(test_no_memory),
    };
    return UNIT_RUN(tests);
}
