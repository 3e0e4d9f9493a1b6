/* The sandboxes' key on the disk: made once, kept, private, and never guessed at. */
#include "app/sandbox_key.c"

#include "unit/base/unit.h"

#include <stdlib.h>

struct rig {
    char dir[64];
    char file[96];
};

static void open_rig(struct rig *r)
{
    (void)snprintf(r->dir, sizeof(r->dir), "/tmp/arbe-sandbox-key-XXXXXX");
    assert_non_null(mkdtemp(r->dir));
    (void)snprintf(r->file, sizeof(r->file), "%s/keys/sandbox.key", r->dir);
}

static void close_rig(const struct rig *r)
{
    char keys[96];

    (void)snprintf(keys, sizeof(keys), "%s/keys", r->dir);
    (void)unlink(r->file); /* may not be there */
    assert_int_equal(rmdir(keys), 0);
    assert_int_equal(rmdir(r->dir), 0);
}

/* The first start makes it, private; the next ones find the same. */
static void makes_it_once(void **state)
{
    struct rig r;
    unsigned char first[SANDBOX_KEY_BYTES] = {0};
    unsigned char second[SANDBOX_KEY_BYTES] = {0};
    unsigned char zeros[SANDBOX_KEY_BYTES] = {0};
    struct errmsg msg;
    struct stat status;

    (void)state;
    open_rig(&r);
    assert_int_equal(sandbox_key_load(r.dir, first, &msg), 0);
    assert_memory_not_equal(first, zeros, sizeof(zeros));
    assert_int_equal(stat(r.file, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    assert_int_equal(status.st_size, SANDBOX_KEY_BYTES);
    assert_int_equal(sandbox_key_load(r.dir, second, &msg), 0);
    assert_memory_equal(first, second, sizeof(first));
    close_rig(&r);
}

/* What was left by a crash in the middle is no key. */
static void makes_it_after_a_crash(void **state)
{
    struct rig r;
    char fresh[128];
    unsigned char key[SANDBOX_KEY_BYTES];
    struct errmsg msg;

    (void)state;
    open_rig(&r);
    assert_int_equal(sandbox_key_load(r.dir, key, &msg), 0);
    (void)snprintf(fresh, sizeof(fresh), "%s.new", r.file);
    assert_int_equal(rename(r.file, fresh), 0);
    assert_int_equal(truncate(fresh, 5), 0);
    assert_int_equal(sandbox_key_load(r.dir, key, &msg), 0);
    assert_int_equal(access(fresh, F_OK), -1);
    close_rig(&r);
}

static void assert_refused(const struct rig *r, const char *part)
{
    unsigned char key[SANDBOX_KEY_BYTES];
    struct errmsg msg = {{0}};

    assert_int_equal(sandbox_key_load(r->dir, key, &msg), ERR_MISMATCH);
    assert_non_null(strstr(msg.text, part));
}

/* One that others may read, or of another size, is refused and stays as it is. */
static void refuses_others(void **state)
{
    struct rig r;
    unsigned char key[SANDBOX_KEY_BYTES];
    struct errmsg msg;

    (void)state;
    open_rig(&r);
    assert_int_equal(sandbox_key_load(r.dir, key, &msg), 0);
    assert_int_equal(chmod(r.file, 0640), 0);
    assert_refused(&r, "may be read by others");
    assert_int_equal(chmod(r.file, 0600), 0);
    assert_int_equal(truncate(r.file, SANDBOX_KEY_BYTES - 1), 0);
    assert_refused(&r, "is damaged");
    assert_int_equal(truncate(r.file, SANDBOX_KEY_BYTES + 1), 0);
    assert_refused(&r, "is damaged");
    close_rig(&r);
}

/* A directory that is not there is told by name. */
static void tells_what_failed(void **state)
{
    unsigned char key[SANDBOX_KEY_BYTES];
    struct errmsg msg = {{0}};

    (void)state;
    assert_true(sandbox_key_load("/nonexistent/arbe", key, &msg) < 0);
    assert_non_null(strstr(msg.text, "cannot make /nonexistent/arbe/keys"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(makes_it_once),
        cmocka_unit_test(makes_it_after_a_crash),
        cmocka_unit_test(refuses_others),
        cmocka_unit_test(tells_what_failed),
    };

    return UNIT_RUN(tests);
}
