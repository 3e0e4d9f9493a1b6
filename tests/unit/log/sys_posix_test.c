/* The real system calls, on a real directory. */
#include "log/sys_posix.c"

#include <stdlib.h>

#include "unit/base/unit.h"

struct fixture {
    struct sys sys;
    char dir[64];
    char path[128];
};

static void fixture_init(struct fixture *f)
{
    sys_posix_init(&f->sys);
    (void)snprintf(f->dir, sizeof(f->dir), "/tmp/arbe-sys-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    (void)snprintf(f->path, sizeof(f->path), "%s/file", f->dir);
}

static void fixture_finish(struct fixture *f)
{
    (void)unlink(f->path); /* some tests remove it themselves */
    assert_int_equal(rmdir(f->dir), 0);
}

/* A file is created once, private to its user, and written and read at offsets. */
static void test_file(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct sys *s = &f.sys;
    assert_int_equal(s->open(NULL, f.path, false), ERR_NOTFOUND);
    int fd = s->open(NULL, f.path, true);
    assert_true(fd >= 0);
    assert_int_equal(s->open(NULL, f.path, true), ERR_EXISTS);
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    struct iovec iov[] = {{(void *)(uintptr_t) "abc", 3}, {(void *)(uintptr_t) "def", 3}};
    assert_int_equal(s->pwritev(NULL, fd, iov, 2, 10), 0);
    assert_int_equal(s->size(NULL, fd), 16);
    char bytes[20];
    assert_int_equal(s->pread(NULL, fd, bytes, 20, 10), 6);
    assert_memory_equal(bytes, "abcdef", 6);
    assert_int_equal(s->pread(NULL, fd, bytes, 20, 100), 0);
    assert_int_equal(s->allocate(NULL, fd, 5000), 0);
    assert_int_equal(s->size(NULL, fd), 5000);
    assert_int_equal(s->truncate(NULL, fd, 7), 0);
    assert_int_equal(s->size(NULL, fd), 7);
    assert_int_equal(s->fdatasync(NULL, fd), 0);
    s->close(NULL, fd);
    assert_int_equal(s->fdatasync(NULL, fd), ERR_IO);
    fixture_finish(&f);
}

/* A link is not followed: whoever may write into the directory must not redirect our files. */
static void test_no_links(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    assert_int_equal(symlink("/etc/passwd", f.path), 0);
    assert_true(f.sys.open(NULL, f.path, false) < 0);
    assert_true(f.sys.lock(NULL, f.path) < 0);
    fixture_finish(&f);
}

static int count_entry(void *context, const char *name)
{
    ++*(unsigned *)context;
    return strcmp(name, "stop") == 0 ? ERR_STOPPING : 0;
}

/* Directories: made once or found, listed without dots, synced; names move and go. */
static void test_directories(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    struct sys *s = &f.sys;
    char other[128];
    (void)snprintf(other, sizeof(other), "%s/stop", f.dir);
    assert_int_equal(s->mkdir(NULL, f.path), 0);
    assert_int_equal(s->mkdir(NULL, f.path), 0);
    struct stat st;
    assert_int_equal(stat(f.path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    unsigned count = 0;
    assert_int_equal(s->list_dir(NULL, f.dir, count_entry, &count), 0);
    assert_int_equal(count, 1);
    assert_int_equal(s->rename(NULL, f.path, other), 0);
    assert_int_equal(s->list_dir(NULL, f.dir, count_entry, &count), ERR_STOPPING);
    assert_int_equal(s->list_dir(NULL, f.path, count_entry, &count), ERR_NOTFOUND);
    assert_int_equal(s->sync_dir(NULL, f.dir), 0);
    assert_int_equal(s->sync_dir(NULL, f.path), ERR_NOTFOUND);
    assert_int_equal(rmdir(other), 0);
    assert_int_equal(s->unlink(NULL, f.path), ERR_NOTFOUND);
    int fd = s->open(NULL, f.path, true);
    assert_true(fd >= 0);
    s->close(NULL, fd);
    assert_int_equal(s->mkdir(NULL, f.path), ERR_FILEKIND);
    assert_int_equal(s->unlink(NULL, f.path), 0);
    fixture_finish(&f);
}

/* The rights of others are taken from a directory that is this user's, and from no other one. */
static void test_make_private(void **state)
{
    (void)state;
    struct fixture f;
    struct stat st;
    fixture_init(&f);
    assert_int_equal(chmod(f.dir, 01755), 0);
    assert_int_equal(f.sys.make_private(NULL, f.dir), 0);
    assert_int_equal(stat(f.dir, &st), 0);
    assert_int_equal(st.st_mode & 07777, 01700);
    assert_int_equal(f.sys.make_private(NULL, f.path), ERR_NOTFOUND);
    if (geteuid() == 0) {
        assert_int_equal(chown(f.dir, 12345, 12345), 0);
        assert_int_equal(chmod(f.dir, 0755), 0);
        assert_int_equal(f.sys.make_private(NULL, f.dir), 0);
        assert_int_equal(stat(f.dir, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0755);
    }
    fixture_finish(&f);
}

/* A second lock is refused while the first is held. */
static void test_lock(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    int fd = f.sys.lock(NULL, f.path);
    assert_true(fd >= 0);
    assert_int_equal(f.sys.lock(NULL, f.path), ERR_LOCKED);
    f.sys.close(NULL, fd);
    fd = f.sys.lock(NULL, f.path);
    assert_true(fd >= 0);
    f.sys.close(NULL, fd);
    fixture_finish(&f);
}

/* A vector is moved forward by what was written, over whole and partial pieces. */
static void test_advance(void **state)
{
    (void)state;
    char bytes[10];
    struct iovec iov[3] = {{bytes, 3}, {bytes + 3, 0}, {bytes + 3, 7}};
    assert_int_equal(advance_iov(iov, 3, 2), 0);
    assert_ptr_equal(iov[0].iov_base, bytes + 2);
    assert_int_equal(iov[0].iov_len, 1);
    assert_int_equal(advance_iov(iov, 3, 1), 2);
    assert_int_equal(advance_iov(iov + 2, 1, 5), 0);
    assert_int_equal(iov[2].iov_len, 2);
    assert_int_equal(advance_iov(iov + 2, 1, 2), 1);
}

/* A write that came back short is continued where it stopped. */
static void test_short_write(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f);
    int fd = f.sys.open(NULL, f.path, true);
    assert_true(fd >= 0);
    struct iovec iov[] = {{(void *)(uintptr_t) "abc", 3}, {(void *)(uintptr_t) "defg", 4}};
    assert_int_equal(pwritev(fd, iov, 1, 0), 3);
    assert_int_equal(continue_pwritev(fd, iov, 2, 0, 3), 0);
    char bytes[8];
    assert_int_equal(f.sys.pread(NULL, fd, bytes, 8, 0), 7);
    assert_memory_equal(bytes, "abcdefg", 7);
    assert_int_equal(continue_pwritev(-1, iov, 2, 0, 3), ERR_IO);
    f.sys.close(NULL, fd);
    fixture_finish(&f);
}

/* Clocks run, and random bytes differ. */
static void test_clock_and_random(void **state)
{
    (void)state;
    struct sys s;
    sys_posix_init(&s);
    assert_true(s.now_ms(NULL) > 1700000000000);
    uint64_t before = s.mono_ms(NULL);
    assert_true(s.mono_ms(NULL) >= before);
    uint64_t before_us = s.mono_us(NULL);
    assert_true(s.mono_us(NULL) >= before_us);
    assert_true(before_us / 1000 - before < 60000);
    char a[32] = {0};
    char b[32] = {0};
    s.random(NULL, a, sizeof(a));
    s.random(NULL, b, sizeof(b));
    assert_memory_not_equal(a, b, sizeof(a));
    assert_int_equal(s.catalog_commit(NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file),        cmocka_unit_test(test_no_links),
        cmocka_unit_test(test_directories), cmocka_unit_test(test_make_private),
        cmocka_unit_test(test_lock),        cmocka_unit_test(test_advance),
        cmocka_unit_test(test_short_write), cmocka_unit_test(test_clock_and_random),
    };
    return UNIT_RUN(tests);
}
