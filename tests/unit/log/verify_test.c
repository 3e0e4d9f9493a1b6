/* The verifier as a whole: good directories of many kinds, failing reads, what it says. */
#include "unit/base/fault.h"

#include "log/verify.c"

#include "unit/log/verify_fixture.h"

static void test_good_directories(void **state)
{
    (void)state;
    struct site s;
    site_build(&s);
    site_expect_good(&s);
    assert_int_equal(s.report.streams, SITE_LATE);
    assert_int_equal(s.report.forks, 3);
    assert_int_equal(s.report.soft_deleted, 1);
    assert_int_equal(s.report.producers, 1);
    assert_int_equal(s.report.note_entries, 1);
    assert_int_equal(s.report.log_records, 4);
    assert_int_equal(s.report.notes, 0);
    /* After recovery, with and without a last checkpoint. */
    for (unsigned i = 0; i < 6; i++) {
        assert_int_equal(pool_create(0, &s.rig.pool), 0);
        s.rig.config.pool = s.rig.pool;
        rig_attach(&s.rig);
        assert_int_equal(rig_post_body(&s.rig, "text", "text/plain", "more"), 0);
        if (i == 2) {
            assert_int_equal(rig_delete(&s.rig, "heir"), 0); /* and with it its source */
        }
        if (i == 3) {
            assert_int_equal(rig_delete(&s.rig, "text"), 0); /* kept for forks */
            assert_int_equal(rig_put(&s.rig, "heir", "text/plain", "again"), 0);
        }
        if (i == 4) {
            assert_int_equal(rig_put(&s.rig, "text2", "text/plain", "x"), 0);
            assert_int_equal(rig_delete(&s.rig, "fork2"), 0);
        }
        rig_detach(&s.rig, i % 2 == 1);
        pool_destroy(s.rig.pool);
        site_expect_good(&s);
        if (i >= 3) {
            break;
        }
    }
    site_remove(&s);
}

/* Extents that were merged, packs that were rewritten and removed. */
static void test_after_compaction(void **state)
{
    (void)state;
    struct site s = {0};
    rig_open(&s.rig);
    for (unsigned i = 0; i < 60; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "s%u", i % 7);
        (void)rig_put(&s.rig, name, "text/plain", "");
        assert_int_equal(rig_post_body(&s.rig, name, "text/plain", "some bytes of a message"), 0);
        if (i % 9 == 8) {
            assert_int_equal(rig_delete(&s.rig, name), 0);
        }
        site_save(&s.rig);
    }
    site_down(&s);
    site_expect_good(&s);
    assert_true(s.report.packs < 30);
    site_remove(&s);
}

static void test_memory_mode(void **state)
{
    (void)state;
    struct site s = {0};
    rig_open(&s.rig);
    rig_detach(&s.rig, false);
    site_remove(&s);
    assert_int_equal(mkdir(s.rig.dir, 0700), 0);
    s.rig.config.store.durability = DURABILITY_MEMORY;
    rig_attach(&s.rig);
    site_fill(&s.rig);
    site_down(&s);
    site_expect_good(&s);
    assert_true(s.report.memory);
    site_remove(&s);
}

static void test_new_and_foreign(void **state)
{
    (void)state;
    struct site s = {0};
    struct errmsg msg = {{0}};
    struct verify_report report;
    rig_open(&s.rig);
    site_down(&s);
    site_expect_good(&s);
    assert_int_equal(s.report.streams, 0);
    site_remove(&s);
    const struct verify_config config = {
        .sys = &s.rig.sys, .dir = s.rig.dir, .context = &s, .found = site_found};
    assert_int_equal(verify_run(&config, &report, &msg), ERR_NOTFOUND);
    assert_int_equal(mkdir(s.rig.dir, 0700), 0);
    assert_int_equal(verify_run(&config, &report, &msg), ERR_INVALID);
    assert_non_null(strstr(msg.text, "is no data directory"));
    assert_int_equal(rmdir(s.rig.dir), 0);
}

/* What a running server would say; 0: it lets go. */
static log_pos durable;

static int on_durable(void *context, log_pos *ret_durable, struct errmsg *msg)
{
    (void)context;
    *ret_durable = durable;
    return durable ? 0 : err_set(msg, ERR_AGAIN, "nothing is held");
}

/* What a running server says is durable must be there; what is behind does not matter. */
static void test_running(void **state)
{
    (void)state;
    struct site s;
    struct errmsg msg = {{0}};
    site_build(&s);
    site_expect_good(&s);
    const struct verify_config config = {.sys = &s.rig.sys,
                                         .dir = s.rig.dir,
                                         .running = true,
                                         .context = &s,
                                         .durable = on_durable,
                                         .found = site_found};
    struct edit e;
    edit_begin(&s, &e);
    log_pos checkpoint = edit_state(&e).checkpoint;
    edit_end(&e);
    log_pos end = checkpoint + s.report.log_bytes;
    durable = end;
    s.len = 0;
    assert_int_equal(verify_run(&config, &s.report, &msg), 0);
    assert_int_equal(s.report.damages, 0);
    durable = end + 64;
    s.len = 0;
    assert_int_equal(verify_run(&config, &s.report, &msg), 0);
    assert_true(site_says(&s, "wal", "a restart would lose what is between"));
    site_flip(&s, "wal/wal-0000000000000000", SEGMENT_HEADER_BYTES + end + 3);
    durable = end;
    s.len = 0;
    assert_int_equal(verify_run(&config, &s.report, &msg), 0);
    assert_int_equal(s.report.damages, 0);
    durable = 0;
    assert_int_equal(verify_run(&config, &s.report, &msg), ERR_AGAIN);
    assert_string_equal(msg.text, "nothing is held");
    site_remove(&s);
}

static struct sys real;
static unsigned countdown; /* reads until one fails; 0: none does */

static int64_t failing_pread(void *context, int fd, void *buf, size_t len, uint64_t offset)
{
    if (countdown > 0 && --countdown == 0) {
        return ERR_IO;
    }
    return real.pread(context, fd, buf, len, offset);
}

static int failing_open(void *context, const char *path)
{
    if (countdown > 0 && --countdown == 0) {
        return ERR_PERM;
    }
    return real.open_read(context, path);
}

/* Each single read and open fails once: that is told, whatever it was, and the rest is checked. */
static void test_every_read_fails(void **state)
{
    (void)state;
    struct site s;
    site_build(&s);
    real = s.rig.sys;
    s.rig.sys.pread = failing_pread;
    s.rig.sys.open_read = failing_open;
    bool hit = true;
    for (unsigned i = 1; hit; i++) {
        countdown = i;
        site_verify(&s);
        hit = countdown == 0;
        assert_true(i < 2000);
        if (hit && s.report.damages == 0) {
            fail_msg("read %u failed and nothing was said", i);
        }
        countdown = 0;
    }
    s.rig.sys = real;
    site_expect_good(&s);
    site_remove(&s);
}

/* Names and sentences hold whatever bytes a name has. */
static void test_names(void **state)
{
    (void)state;
    char out[VERIFY_NAME_BYTES];
    assert_string_equal(verify_name(SLICE("a\n\x1b[31m\xc3\xa4"), out), "\"a??[31m??\"");
    char name[STREAM_NAME_BYTES_MAX];
    memset(name, 'x', sizeof(name));
    size_t len = strlen(verify_name((struct slice){name, sizeof(name)}, out));
    assert_int_equal(len, VERIFY_NAME_BYTES - 1);
    assert_string_equal(out + len - 4, "...\"");
}

static void test_no_memory(void **state)
{
    (void)state;
    site_try_memory();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_directories),
        cmocka_unit_test(test_after_compaction),
        cmocka_unit_test(test_memory_mode),
        cmocka_unit_test(test_new_and_foreign),
        cmocka_unit_test(test_running),
        cmocka_unit_test(test_every_read_fails),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_no_memory),
    };
    return UNIT_RUN(tests);
}
