/* The data directory on a real disk: who may read it, who may have it. */
#include "log/data_dir.c"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit/base/unit.h"

struct fixture {
    struct sys sys;
    char top[64];
    char dir[96];
    char lock[128];
};

static void fixture_init(struct fixture *f)
{
    sys_posix_init(&f->sys);
    (void)snprintf(f->top, sizeof(f->top), "/tmp/arbe-data-XXXXXX");
    assert_non_null(mkdtemp(f->top));
    (void)snprintf(f->dir, sizeof(f->dir), "%s/data", f->top);
    (void)snprintf(f->lock, sizeof(f->lock), "%s/data/lock", f->top);
}

static void fixture_finish(struct fixture *f)
{
    (void)unlink(f->lock); /* not every test makes it */
    (void)rmdir(f->dir);   /* likewise */
    assert_int_equal(rmdir(f->top), 0);
}

static unsigned mode_of(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return st.st_mode & 0777;
}

/* It is made private, and one process at a time has it. */
static void test_take(void **state)
{
    (void)state;
    struct fixture f;
    struct errmsg msg = {{0}};
    int fd = -1;
    int other = -1;
    fixture_init(&f);
    assert_int_equal(data_dir_take(&f.sys, f.dir, &fd, &msg), 0);
    assert_int_equal(mode_of(f.dir), 0700);
    assert_int_equal(data_dir_sync_entry(&f.sys, f.dir), 0);
    assert_int_equal(data_dir_take(&f.sys, f.dir, &other, &msg), ERR_LOCKED);
    assert_int_equal(other, -1);
    assert_non_null(strstr(msg.text, "another process"));
    f.sys.close(NULL, fd);
    fixture_finish(&f);
}

/* Others lose their rights, at every start, but not where other things stand too. */
static void test_tightens(void **state)
{
    (void)state;
    struct fixture f;
    struct errmsg msg;
    char letter[128];
    int fd = -1;
    fixture_init(&f);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(mkdir(f.dir, 0700) == 0, round == 0);
        assert_int_equal(chmod(f.dir, 0755), 0);
        assert_int_equal(data_dir_take(&f.sys, f.dir, &fd, &msg), 0);
        assert_int_equal(mode_of(f.dir), 0700);
        f.sys.close(NULL, fd);
    }
    static const char *const parts[] = {"wal", "packs", "catalog", "letter"};
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
        (void)snprintf(letter, sizeof(letter), "%s/%s", f.dir, parts[i]);
        assert_int_equal(mkdir(letter, 0700), 0);
    }
    assert_int_equal(chmod(f.dir, 0755), 0);
    assert_int_equal(data_dir_take(&f.sys, f.dir, &fd, &msg), 0);
    assert_int_equal(mode_of(f.dir), 0755);
    f.sys.close(NULL, fd);
    for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
        (void)snprintf(letter, sizeof(letter), "%s/%s", f.dir, parts[i]);
        assert_int_equal(rmdir(letter), 0);
    }
    fixture_finish(&f);
}

/* A directory with something in it that is not ours is left alone, unless it was a data directory
 * before; hidden files and what a fresh file system has are no reason. */
static void test_foreign(void **state)
{
    (void)state;
    static const struct {
        const char *names; /* directories that are there, separated by spaces */
        int code;
    } cases[] = {
        {"", 0},
        {"lost+found", 0},
        {".hidden", 0},
        {"wal packs", 0}, /* a first start that was cut short */
        {"lost+found reserve keys catalog packs wal", 0},
        {"letter", ERR_MISMATCH},
        {".hidden letter", ERR_MISMATCH},
        {"wal packs letter", ERR_MISMATCH},
        {"wal packs catalog letter", ERR_MISMATCH},
        {"src docs tests", ERR_MISMATCH},
    };
    struct fixture f;
    fixture_init(&f);
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct errmsg msg = {{0}};
        char names[64];
        char path[160];
        int fd = -1;
        char *rest = names;
        assert_int_equal(mkdir(f.dir, 0755), 0);
        (void)snprintf(names, sizeof(names), "%s", cases[i].names);
        for (char *name; (name = strsep(&rest, " ")) != NULL && *name != '\0';) {
            (void)snprintf(path, sizeof(path), "%s/%s", f.dir, name);
            assert_int_equal(mkdir(path, 0700), 0);
        }
        assert_int_equal(data_dir_take(&f.sys, f.dir, &fd, &msg), cases[i].code);
        assert_int_equal(access(f.lock, F_OK) == 0, cases[i].code == 0);
        if (cases[i].code == 0) {
            f.sys.close(NULL, fd);
        } else {
            assert_non_null(strstr(msg.text, "such as"));
            assert_int_equal(mode_of(f.dir), 0755);
        }
        (void)unlink(f.lock);
        rest = names;
        (void)snprintf(names, sizeof(names), "%s", cases[i].names);
        for (char *name; (name = strsep(&rest, " ")) != NULL && *name != '\0';) {
            (void)snprintf(path, sizeof(path), "%s/%s", f.dir, name);
            assert_int_equal(rmdir(path), 0);
        }
        assert_int_equal(rmdir(f.dir), 0);
    }
    fixture_finish(&f);
}

/* What is in the way is said in words about files. */
static void test_sentences(void **state)
{
    (void)state;
    struct fixture f;
    struct errmsg msg;
    char below[128];
    int fd = -1;
    fixture_init(&f);
    (void)snprintf(below, sizeof(below), "%s/below", f.dir);
    assert_int_equal(data_dir_take(&f.sys, below, &fd, &msg), ERR_NOTFOUND);
    assert_non_null(strstr(msg.text, "stand in does not exist"));
    assert_int_equal(mkdir(f.dir, 0700), 0);
    assert_int_equal(mkdir(f.lock, 0700), 0);
    assert_int_equal(data_dir_take(&f.sys, f.dir, &fd, &msg), ERR_FILEKIND);
    assert_non_null(strstr(msg.text, "in the way"));
    assert_int_equal(fd, -1);
    assert_int_equal(rmdir(f.lock), 0);
    fixture_finish(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_take),
        cmocka_unit_test(test_tightens),
        cmocka_unit_test(test_foreign),
        cmocka_unit_test(test_sentences),
    };
    return UNIT_RUN(tests);
}
