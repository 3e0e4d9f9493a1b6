/* Copying into a new directory: no memory, paths that are too long, what is taken away. */
#include "unit/base/fault.h"

#include "log/transfer.c"

#include "unit/log/verify_fixture.h"

static void on_progress(void *context, uint64_t done, uint64_t total)
{
    (void)context;
    assert_true(done <= total);
}

static struct backup_config config_of(struct site *s, const char *to)
{
    return (struct backup_config){
        .sys = &s->rig.sys, .from = s->rig.dir, .to = to, .progress = on_progress};
}

static void test_no_memory(void **state)
{
    (void)state;
    struct site s;
    struct errmsg msg = {{0}};
    struct backup_report report;
    char to[128];
    site_build(&s);
    (void)snprintf(to, sizeof(to), "%s.to", s.rig.dir);
    const struct backup_config config = config_of(&s, to);
    fault_countdown = 0;
    int rc = backup_make(&config, &report, &msg);
    fault_countdown = -1;
    assert_int_equal(rc, ERR_NOMEM);
    assert_int_equal(access(to, F_OK), -1);
    site_remove(&s);
}

static void test_long_paths(void **state)
{
    (void)state;
    struct site s;
    struct errmsg msg = {{0}};
    struct backup_report report;
    char to[2000];
    site_build(&s);
    memset(to, 'p', sizeof(to) - 1);
    to[sizeof(to) - 1] = '\0';
    struct backup_config config = config_of(&s, to);
    assert_int_equal(backup_make(&config, &report, &msg), ERR_INVALID);
    config.to = s.rig.dir;
    config.from = to;
    assert_int_equal(backup_make(&config, &report, &msg), ERR_INVALID);
    assert_int_equal(backup_restore(&config, &report, &msg), ERR_INVALID);
    site_remove(&s);
}

/* Names are read back from the lines of the manifest, those with odd characters too. */
static void test_take_back(void **state)
{
    (void)state;
    struct site s;
    struct errmsg msg = {{0}};
    struct transfer t;
    struct transfer_file f;
    char to[128];
    char path[256];
    site_build(&s);
    (void)snprintf(to, sizeof(to), "%s.to", s.rig.dir);
    const struct backup_config config = config_of(&s, to);
    assert_int_equal(transfer_begin(&t, &config, false, &msg), 0);
    assert_int_equal(transfer_create(&t, "keys/a-b_c.pem", &f), 0);
    assert_int_equal(transfer_write(&t, &f, "x", 1), 0);
    assert_int_equal(transfer_close(&t, &f), 0);
    (void)snprintf(path, sizeof(path), "%s/keys/a-b_c.pem", to);
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(transfer_fail(&t, ERR_IO, "something"), ERR_IO);
    assert_int_equal(transfer_fail(&t, ERR_NOSPC, "something else"), ERR_IO);
    assert_string_equal(msg.text, "something: the disk reported an error");
    assert_int_equal(transfer_write(&t, &f, "x", 1), ERR_IO);
    assert_int_equal(transfer_finish(&t, NULL), ERR_IO);
    transfer_end(&t);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(nftw(to, rig_remove, 8, FTW_DEPTH | FTW_PHYS), 0);
    site_remove(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_long_paths),
        cmocka_unit_test(test_take_back),
    };
    return UNIT_RUN(tests);
}
