/* The fake disk keeps its own promises: what was synced survives, what was not may go in every way
 * that a real disk has. */
#include "sim/fakedisk.h"

#include "base/err.h"
#include "unit/base/unit.h"

#define FILE_BYTES 4096u

struct fixture {
    struct fakedisk *disk;
    struct sys *sys;
};

static struct fixture make(uint64_t seed)
{
    struct fixture x = {.disk = fakedisk_create(seed)};
    x.sys = fakedisk_sys(x.disk);
    fakedisk_add_dir(x.disk, "/d");
    return x;
}

static int put(struct fixture *x, int fd, uint64_t at, char fill, size_t len)
{
    char bytes[FILE_BYTES];
    memset(bytes, fill, len);
    struct iovec iov = {bytes, len};
    return x->sys->pwritev(x->sys->context, fd, &iov, 1, at);
}

static int make_file(struct fixture *x, const char *path)
{
    int fd = x->sys->open(x->sys->context, path, true);
    assert_true(fd >= 0);
    return fd;
}

static void crash_and_restart(struct fixture *x, uint64_t seed)
{
    fakedisk_crash(x->disk, seed);
    assert_int_equal(x->sys->open(x->sys->context, "/d/a", false), ERR_IO);
    fakedisk_restart(x->disk);
}

/* Bytes that were synced, in a file whose name was, are there after any crash. */
static void keeps_what_was_synced(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct fixture x = make(seed);
        int fd = make_file(&x, "/d/a");
        assert_int_equal(put(&x, fd, 0, 'a', FILE_BYTES), 0);
        assert_int_equal(x.sys->fdatasync(x.sys->context, fd), 0);
        assert_int_equal(x.sys->sync_dir(x.sys->context, "/d"), 0);
        assert_int_equal(put(&x, fd, 512, 'b', 512), 0);
        crash_and_restart(&x, seed);
        char got[FILE_BYTES];
        assert_true(fakedisk_peek(x.disk, "/d/a", 0, got, sizeof(got)));
        for (size_t i = 0; i < sizeof(got); i++) {
            bool overwritten = i >= 512 && i < 1024;
            assert_true(got[i] == 'a' || (overwritten && got[i] == 'b'));
        }
        x.sys->close(x.sys->context, fd);
        fakedisk_destroy(x.disk);
    }
}

/* Over many seeds a file without a sync is lost, kept whole, kept in part, and cut short. */
static void loses_in_every_way(void **state)
{
    (void)state;
    unsigned lost = 0;
    unsigned whole = 0;
    unsigned partial = 0;
    unsigned cut = 0;
    for (uint64_t seed = 0; seed < 400; seed++) {
        struct fixture x = make(seed);
        int fd = make_file(&x, "/d/a");
        for (unsigned i = 0; i < 8; i++) {
            assert_int_equal(put(&x, fd, i * 512, 'a', 512), 0);
        }
        crash_and_restart(&x, seed);
        uint64_t size = 0;
        char got[FILE_BYTES];
        if (!fakedisk_file_size(x.disk, "/d/a", &size)) {
            lost++;
        } else if (size < FILE_BYTES) {
            cut++;
        } else {
            assert_true(fakedisk_peek(x.disk, "/d/a", 0, got, sizeof(got)));
            size_t kept = 0;
            for (size_t i = 0; i < sizeof(got); i++) {
                kept += got[i] == 'a';
            }
            *(kept == sizeof(got) ? &whole : &partial) += 1;
        }
        fakedisk_destroy(x.disk);
    }
    assert_true(lost > 0 && whole > 0 && partial > 0 && cut > 0);
}

/* A directory keeps a prefix of its changes, never a later one without an earlier one. */
static void keeps_a_prefix_of_names(void **state)
{
    (void)state;
    bool seen[4] = {false};
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct fixture x = make(seed);
        (void)make_file(&x, "/d/a");
        assert_int_equal(x.sys->rename(x.sys->context, "/d/a", "/d/b"), 0);
        (void)make_file(&x, "/d/c");
        crash_and_restart(&x, seed);
        uint64_t size;
        bool a = fakedisk_file_size(x.disk, "/d/a", &size);
        bool b = fakedisk_file_size(x.disk, "/d/b", &size);
        bool c = fakedisk_file_size(x.disk, "/d/c", &size);
        assert_false(a && b);
        assert_true(!c || b);
        seen[c ? 3 : b ? 2 : a ? 1 : 0] = true;
        fakedisk_destroy(x.disk);
    }
    assert_true(seen[0] && seen[1] && seen[2] && seen[3]);
}

/* After a failed sync the pages look clean: a later sync that succeeds does not bring them back. */
static void failed_sync_lies(void **state)
{
    (void)state;
    unsigned lost = 0;
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct fixture x = make(seed);
        int fd = make_file(&x, "/d/a");
        assert_int_equal(x.sys->sync_dir(x.sys->context, "/d"), 0);
        assert_int_equal(put(&x, fd, 0, 'a', 512), 0);
        fakedisk_fail(x.disk, CALL_FDATASYNC, 0, ERR_IO, false);
        assert_int_equal(x.sys->fdatasync(x.sys->context, fd), ERR_IO);
        char got[512];
        assert_true(fakedisk_peek(x.disk, "/d/a", 0, got, sizeof(got)) && got[0] == 'a');
        assert_int_equal(x.sys->fdatasync(x.sys->context, fd), 0);
        crash_and_restart(&x, seed);
        lost += !fakedisk_peek(x.disk, "/d/a", 0, got, sizeof(got)) || got[0] != 'a';
        fakedisk_destroy(x.disk);
    }
    assert_true(lost > 10 && lost < 90);
}

/* A planned fault strikes the call it was planned for, once or from there on. */
static void fails_the_call_that_was_named(void **state)
{
    (void)state;
    struct fixture x = make(1);
    int fd = make_file(&x, "/d/a");
    fakedisk_fail(x.disk, CALL_PWRITEV, 1, ERR_IO, false);
    assert_int_equal(put(&x, fd, 0, 'a', 10), 0);
    assert_int_equal(put(&x, fd, 0, 'a', 10), ERR_IO);
    assert_true(fakedisk_fault_hit(x.disk));
    assert_int_equal(put(&x, fd, 0, 'a', 10), 0);
    fakedisk_fail(x.disk, CALL_ANY, 0, ERR_IO, true);
    assert_int_equal(put(&x, fd, 0, 'a', 10), ERR_IO);
    assert_int_equal(x.sys->unlink(x.sys->context, "/d/a"), ERR_IO);
    fakedisk_destroy(x.disk);
}

/* A full disk refuses to allocate, and takes it again once there is room. */
static void runs_full(void **state)
{
    (void)state;
    struct fixture x = make(1);
    fakedisk_set_capacity(x.disk, 8192);
    int fd = make_file(&x, "/d/a");
    assert_int_equal(x.sys->allocate(x.sys->context, fd, 8192), 0);
    int other = make_file(&x, "/d/b");
    assert_int_equal(x.sys->allocate(x.sys->context, other, 4096), ERR_NOSPC);
    assert_int_equal(put(&x, other, 0, 'b', 10), ERR_NOSPC);
    assert_int_equal(put(&x, fd, 8000, 'a', 100), 0);
    x.sys->close(x.sys->context, fd);
    assert_int_equal(x.sys->unlink(x.sys->context, "/d/a"), 0);
    assert_int_equal(x.sys->sync_dir(x.sys->context, "/d"), 0);
    assert_int_equal(x.sys->allocate(x.sys->context, other, 4096), 0);
    fakedisk_destroy(x.disk);
}

/* A lock is held until it is closed, or until the process is gone. */
static void locks(void **state)
{
    (void)state;
    struct fixture x = make(1);
    int fd = x.sys->lock(x.sys->context, "/d/lock");
    assert_true(fd >= 0);
    assert_int_equal(x.sys->lock(x.sys->context, "/d/lock"), ERR_LOCKED);
    x.sys->close(x.sys->context, fd);
    assert_true(x.sys->lock(x.sys->context, "/d/lock") >= 0);
    fakedisk_restart(x.disk);
    assert_true(x.sys->lock(x.sys->context, "/d/lock") >= 0);
    fakedisk_destroy(x.disk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_what_was_synced),
        cmocka_unit_test(loses_in_every_way),
        cmocka_unit_test(keeps_a_prefix_of_names),
        cmocka_unit_test(failed_sync_lies),
        cmocka_unit_test(fails_the_call_that_was_named),
        cmocka_unit_test(runs_full),
        cmocka_unit_test(locks),
    };
    return UNIT_RUN(tests);
}
