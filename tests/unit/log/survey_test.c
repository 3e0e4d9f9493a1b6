/* What a directory is said to hold, and that damage and failing reads are told. */
#include "log/survey.c"

#include "unit/log/verify_fixture.h"

static void test_counts(void **state)
{
    (void)state;
    struct site s;
    struct survey found;
    struct errmsg msg = {{0}};
    site_build(&s);
    assert_int_equal(survey_run(&s.rig.sys, s.rig.dir, &found, &msg), 0);
    assert_int_equal(found.streams, SITE_LATE);
    assert_int_equal(found.forks, 3);
    assert_int_equal(found.soft_deleted, 1);
    assert_int_equal(found.closed, 0);
    assert_int_equal(found.expiring, 1);
    assert_int_equal(found.producers, 1);
    assert_int_equal(found.notes, 1);
    assert_int_equal(found.note_bytes, strlen("first") + strlen("of notes"));
    assert_int_equal(found.packs, 2);
    assert_true(found.live_bytes > 0 && found.live_bytes < found.pack_bytes);
    assert_true(found.log_files >= 1 && found.log_file_bytes >= MIB);
    assert_true(found.pages > 10 && found.page_bytes == 4096);
    assert_int_equal(found.unreadable, 0);
    assert_false(found.memory);
    assert_int_equal(found.largest_count, SITE_LATE);
    assert_int_equal(found.largest[0].id, SITE_SOFT);
    assert_memory_equal(found.largest[0].name, "soft", 4);
    for (size_t i = 1; i < found.largest_count; i++) {
        assert_true(found.largest[i - 1].bytes >= found.largest[i].bytes);
    }
    site_remove(&s);
}

/* The ten largest of many, in whatever order they come. */
static void test_rank(void **state)
{
    (void)state;
    struct survey *s = calloc(1, sizeof(*s));
    struct stream_meta m = {.name = SLICE("x")};
    for (uint64_t i = 0; i < 1000; i++) {
        m.id = i + 1;
        rank(s, &m, i * 7919 % 1009);
    }
    assert_int_equal(s->largest_count, SURVEY_LARGEST);
    assert_true(s->largest[0].bytes >= 1000);
    for (size_t i = 1; i < SURVEY_LARGEST; i++) {
        assert_true(s->largest[i - 1].bytes > s->largest[i].bytes);
    }
    free(s);
}

static void test_damage(void **state)
{
    (void)state;
    struct site s;
    struct survey found;
    struct errmsg msg = {{0}};
    struct edit e;
    site_build(&s);
    edit_begin(&s, &e);
    edit_put(&e, TABLE_STREAMS, key_of(SITE_LATE), SLICE("broken"));
    edit_put(&e, TABLE_NOTES, SLICE("first"), SLICE("broken"));
    edit_end(&e);
    assert_int_equal(survey_run(&s.rig.sys, s.rig.dir, &found, &msg), 0);
    assert_int_equal(found.unreadable, 2);
    site_unlink(&s, CATALOG_FILE);
    assert_int_equal(survey_run(&s.rig.sys, s.rig.dir, &found, &msg), ERR_NOTFOUND);
    site_remove(&s);
}

static struct sys real;
static unsigned countdown;

static int64_t failing_pread(void *context, int fd, void *buf, size_t len, uint64_t offset)
{
    if (countdown > 0 && --countdown == 0) {
        return ERR_IO;
    }
    return real.pread(context, fd, buf, len, offset);
}

/* A read that fails ends it with a sentence; one of a root or of a log file may be borne. */
static void test_failing_reads(void **state)
{
    (void)state;
    struct site s;
    struct survey found;
    site_build(&s);
    real = s.rig.sys;
    s.rig.sys.pread = failing_pread;
    unsigned failures = 0;
    for (unsigned i = 1; i < 60; i++) {
        struct errmsg msg = {{0}};
        countdown = i;
        int rc = survey_run(&s.rig.sys, s.rig.dir, &found, &msg);
        assert_true((rc == 0) == (msg.text[0] == '\0'));
        failures += rc != 0;
        countdown = 0;
    }
    assert_true(failures > 5);
    s.rig.sys = real;
    site_remove(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_rank),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_failing_reads),
    };
    return UNIT_RUN(tests);
}
