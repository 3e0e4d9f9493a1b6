/* Commits that fail at each of LMDB's own calls. The program's pwrite and fdatasync stand before
 * those of the C library, for LMDB too. */
#include "log/catalog_env.c"

#include <sys/syscall.h>
#include <sys/uio.h>

#include "unit/log/catalog_fixture.h"

#define ROOT_BYTES 8192

/* What is to fail. */
struct faults {
    bool pages;   /* writes behind the root pages */
    bool roots;   /* writes of a root, without effect */
    bool late;    /* writes of a root after they took effect, and no second one takes effect */
    bool rewrite; /* writing both roots again */
    bool sync;    /* fdatasync */
    unsigned late_count;
};

static struct faults faults;

static ssize_t refuse(void)
{
    errno = EIO;
    return -1;
}

ssize_t pwrite(int fd, const void *buf, size_t n, off_t offset)
{
    bool both = n == ROOT_BYTES && offset == 0;
    bool root = !both && offset < ROOT_BYTES;
    if ((root && faults.roots) || (both && faults.rewrite) || (!root && !both && faults.pages) ||
        (root && faults.late && faults.late_count++ > 0)) {
        return refuse();
    }
    ssize_t done = syscall(SYS_pwrite64, fd, buf, n, offset);
    return root && faults.late ? refuse() : done;
}

/* LMDB writes neighbouring pages together, never a root. */
ssize_t writev(int fd, const struct iovec *iov, int count)
{
    return faults.pages ? refuse() : (ssize_t)syscall(SYS_writev, fd, iov, count);
}

int fdatasync(int fd)
{
    return faults.sync ? (int)refuse() : (int)syscall(SYS_fdatasync, fd);
}

static int put(struct catalog_fixture *f, stream_id id, const char *name)
{
    struct catalog_txn *t = fixture_begin(f);
    struct stream_meta meta = fixture_meta(id, name, 0);
    catalog_put_stream(t, &meta);
    return catalog_commit(t);
}

static int find(struct catalog_fixture *f, const char *name)
{
    stream_id id = 0;
    return catalog_find(f->catalog, slice_of(name), &id);
}

static void init(struct catalog_fixture *f)
{
    faults = (struct faults){0};
    fixture_init(f);
    assert_int_equal(put(f, 1, "a"), 0);
}

static void finish(struct catalog_fixture *f)
{
    faults = (struct faults){0};
    fixture_finish(f);
}

/* After a failure that is over, the transaction is not there and the next one goes through. */
static void check_clean(struct catalog_fixture *f)
{
    assert_int_equal(put(f, 2, "b"), ERR_IO);
    faults = (struct faults){0};
    assert_int_equal(find(f, "a"), 0);
    assert_int_equal(find(f, "b"), ERR_NOTFOUND);
    assert_int_equal(put(f, 3, "c"), 0);
    fixture_reopen(f);
    assert_int_equal(find(f, "b"), ERR_NOTFOUND);
    assert_int_equal(find(f, "c"), 0);
}

/* A commit whose pages could not be written or synced did not happen; others follow. */
static void test_failure_before_the_root(void **state)
{
    (void)state;
    struct catalog_fixture f;
    init(&f);
    faults.pages = true;
    check_clean(&f);
    finish(&f);
    init(&f);
    faults.sync = true;
    check_clean(&f);
    finish(&f);
}

/* A root that was not written is found to be the old one, and all goes on. */
static void test_old_root(void **state)
{
    (void)state;
    struct catalog_fixture f;
    init(&f);
    faults.roots = true;
    check_clean(&f);
    finish(&f);
}

/* A root that took effect though its write failed is found to be the new one: the commit is good
 * after all. */
static void test_new_root(void **state)
{
    (void)state;
    struct catalog_fixture f;
    init(&f);
    faults.late = true;
    assert_int_equal(put(&f, 2, "b"), 0);
    faults = (struct faults){0};
    assert_int_equal(find(&f, "b"), 0);
    assert_int_equal(put(&f, 3, "c"), 0);
    fixture_reopen(&f);
    assert_int_equal(find(&f, "b"), 0);
    finish(&f);
}

static bool pause_twice(void *context, unsigned attempt)
{
    struct catalog_fixture *f = context;
    assert_int_equal(find(f, "a"), 0);
    faults.rewrite = attempt < 2;
    return true;
}

/* While the disk does not take the roots again nobody knows how the commit ended; reads go on, and
 * it is tried for as long as the watch wants. */
static void test_wait(void **state)
{
    (void)state;
    struct catalog_fixture f;
    init(&f);
    f.catalog->watch = (struct catalog_watch){.context = &f, .pause = pause_twice};
    faults.roots = true;
    faults.rewrite = true;
    assert_int_equal(put(&f, 2, "b"), ERR_IO);
    faults = (struct faults){0};
    assert_int_equal(put(&f, 3, "c"), 0);
    finish(&f);
}

/* Without a watch the outcome stays unknown until the catalog is opened again. */
static void test_give_up(void **state)
{
    (void)state;
    struct catalog_fixture f;
    init(&f);
    faults.roots = true;
    faults.rewrite = true;
    assert_int_equal(put(&f, 2, "b"), ERR_UNKNOWN);
    faults = (struct faults){0};
    struct catalog_txn *t = NULL;
    assert_int_equal(catalog_begin(f.catalog, &t), ERR_UNKNOWN);
    assert_int_equal(find(&f, "a"), 0);
    fixture_reopen(&f);
    assert_int_equal(put(&f, 3, "c"), 0);
    finish(&f);
}

static void note_damage(void *context, const char *sentence)
{
    (void)snprintf(context, 512, "%s", sentence);
}

/* The operator hears where the damage is before LMDB ends the process. */
static void test_damage_is_told(void **state)
{
    (void)state;
    struct catalog_fixture f;
    char told[512] = "";
    init(&f);
    f.catalog->watch = (struct catalog_watch){.context = told, .damaged = note_damage};
    on_assert(f.catalog->env, "assertion");
    assert_non_null(strstr(told, f.dir));
    assert_non_null(strstr(told, "backup"));
    finish(&f);
}

/* Behind the last page the file has room for the next transactions. */
static void test_room_ahead(void **state)
{
    (void)state;
    struct catalog_fixture f;
    init(&f);
    int fd = -1;
    uint64_t used = 0;
    uint64_t size = 0;
    assert_int_equal(file_of(f.catalog, &fd, &used, &size), 0);
    assert_true(size >= used + AHEAD_BYTES);
    finish(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_failure_before_the_root),
        cmocka_unit_test(test_old_root),
        cmocka_unit_test(test_new_root),
        cmocka_unit_test(test_wait),
        cmocka_unit_test(test_give_up),
        cmocka_unit_test(test_damage_is_told),
        cmocka_unit_test(test_room_ahead),
    };
    return UNIT_RUN(tests);
}
