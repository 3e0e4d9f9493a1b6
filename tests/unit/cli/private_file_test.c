/* Files that hold secrets: who may read them, and what becomes of the old one. */
#include "unit/cli/file_fault.h"

#include "cli/private_file.c"

#include "unit/base/unit.h"

#include <stdlib.h>
#include <sys/wait.h>

static char home[64];

static int begin(void **state)
{
    (void)state;
    (void)snprintf(home, sizeof(home), "/tmp/arbe-private-XXXXXX");
    return mkdtemp(home) == NULL;
}

static int end(void **state)
{
    (void)state;
    return rmdir(home);
}

static mode_t mode_of(const char *path)
{
    struct stat info;

    assert_int_equal(stat(path, &info), 0);
    return info.st_mode & 0777;
}

static void assert_holds(const char *path, const char *text)
{
    char memory[100] = "";
    FILE *file = fopen(path, "r");

    assert_non_null(file);
    assert_int_equal(fread(memory, 1, sizeof(memory) - 1, file), strlen(text));
    assert_int_equal(fclose(file), 0);
    assert_string_equal(memory, text);
}

/* All directories are made, for the user only, and the file too, whatever the umask. */
static void makes_what_is_missing(void **state)
{
    char path[128];
    struct errmsg msg = {{0}};
    bool there = false;

    (void)state;
    (void)umask(0);
    (void)snprintf(path, sizeof(path), "%s/a/b/c/file", home);
    assert_int_equal(private_file_write(path, "the file", SLICE("one"), &msg), 0);
    assert_holds(path, "one");
    assert_int_equal(mode_of(path), 0600);
    assert_int_equal(private_file_remove(path, "the file", &there, &msg), 0);
    assert_true(there);
    assert_int_equal(private_file_remove(path, "the file", &there, &msg), 0);
    assert_false(there);
    for (int i = 0; i < 3; i++) {
        *strrchr(path, '/') = '\0';
        assert_int_equal(mode_of(path), 0700);
        assert_int_equal(rmdir(path), 0);
    }
}

/* The id of a process that is no more. */
static long dead(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        _exit(0);
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    return pid;
}

/* New files of those who live are left alone, as is all that only looks like one. */
static void removes_what_is_left_only(void **state)
{
    char entry[64];

    (void)state;
    (void)snprintf(entry, sizeof(entry), ".file.%ld.abcdef", (long)getpid());
    assert_false(is_left(entry, "file"));
    (void)snprintf(entry, sizeof(entry), ".file.%ld.abcdef", dead());
    assert_true(is_left(entry, "file"));
    assert_false(is_left(entry, "fil"));
    assert_false(is_left(entry, "file2"));
    assert_false(is_left(entry + 1, "file"));
    entry[strlen(entry) - 1] = '\0';
    assert_false(is_left(entry, "file"));
    assert_false(is_left(".file.lock", "file"));
    assert_false(is_left(".file.0.abcdef", "file"));
    assert_false(is_left(".file.-5.abcdef", "file"));
    assert_false(is_left(".file", "file"));
    assert_false(is_left("", "file"));
}

#define WRITERS 16

/* Many at once write the same: it is one of theirs, whole, and nobody's fails. */
static void writes_at_once(void **state)
{
    char path[128];
    char text[100];
    struct errmsg msg = {{0}};
    bool there;

    (void)state;
    (void)snprintf(path, sizeof(path), "%s/file", home);
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    for (int i = 0; i < WRITERS; i++) {
        if (fork() == 0) {
            bool good = true;

            for (int round = 0; good && round < 20; round++) {
                good = private_file_write(path, "the file", slice_of(text), &msg) == 0;
            }
            _exit(good ? 0 : 1);
        }
    }
    for (int i = 0; i < WRITERS; i++) {
        int status = -1;

        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    assert_holds(path, text);
    assert_int_equal(private_file_remove(path, "the file", &there, &msg), 0);
}

/* One at a time has it; who lets go leaves nothing behind, and a link is not followed. */
static void locks(void **state)
{
    char path[128];
    char beside[128];
    struct errmsg msg = {{0}};
    int fd = -1;
    int other = -1;

    (void)state;
    (void)snprintf(path, sizeof(path), "%s/file", home);
    (void)snprintf(beside, sizeof(beside), "%s/.file.lock", home);
    assert_int_equal(private_file_lock(path, "the file", &fd, &msg), 0);
    assert_int_equal(private_file_lock(path, "the file", &other, &msg), ERR_AGAIN);
    assert_non_null(strstr(msg.text, "is being changed by another command"));
    private_file_unlock(path, fd);
    assert_int_equal(access(beside, F_OK), -1);
    assert_int_equal(private_file_lock(path, "the file", &fd, &msg), 0);
    private_file_unlock(path, fd);
    assert_int_equal(symlink("/tmp/arbe-nowhere", beside), 0);
    assert_int_equal(private_file_lock(path, "the file", &fd, &msg), ERR_IO);
    assert_int_equal(unlink(beside), 0);
}

/* A lock whose file was removed by who had it is none: the next one would have another. It is
 * looked at once: a file system on which no file is of its name would be looked at for ever. */
static void locks_the_file_of_that_name(void **state)
{
    char path[128];
    char beside[128];
    struct errmsg msg;
    int fd;

    (void)state;
    (void)snprintf(beside, sizeof(beside), "%s/.file.lock", home);
    fd = open(beside, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_true(is_current(fd, beside));
    assert_int_equal(unlink(beside), 0);
    assert_false(is_current(fd, beside));
    assert_int_equal(close(fd), 0);
    (void)snprintf(path, sizeof(path), "%s/file", home);
    file_fault_lstat = true;
    assert_int_equal(private_file_lock(path, "the file", &fd, &msg), ERR_AGAIN);
    file_fault_lstat = false;
    assert_int_equal(unlink(beside), 0);
}

/* It is replaced as a whole, also one that others could read, and after one that died. */
static void replaces(void **state)
{
    char path[128];
    char beside[128];
    struct errmsg msg = {{0}};
    bool there;

    (void)state;
    (void)snprintf(path, sizeof(path), "%s/file", home);
    (void)snprintf(beside, sizeof(beside), "%s/.file.%ld.abcdef", home, dead());
    assert_int_equal(private_file_write(path, "the file", SLICE("one"), &msg), 0);
    assert_int_equal(chmod(path, 0644), 0);
    assert_int_equal(symlink("/nowhere/else", beside), 0);
    assert_int_equal(private_file_write(path, "the file", SLICE("two"), &msg), 0);
    assert_holds(path, "two");
    assert_int_equal(mode_of(path), 0600);
    assert_int_equal(access(beside, F_OK), -1);
    assert_int_equal(private_file_remove(path, "the file", &there, &msg), 0);
}

/* What cannot be written leaves the old one, and nothing beside it; the sentence names it. */
static void fails_whole(void **state)
{
    char path[128];
    static char longer[PRIVATE_PATH_BYTES + 1];
    struct errmsg msg = {{0}};

    (void)state;
    (void)snprintf(path, sizeof(path), "%s/dir", home);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(private_file_write(path, "the token", SLICE("x"), &msg), ERR_IO);
    assert_non_null(strstr(msg.text, "cannot write the token /tmp/"));
    assert_int_equal(rmdir(path), 0); /* that there is nothing beside it, `end` looks */
    memset(longer, 'x', PRIVATE_PATH_BYTES);
    assert_int_equal(private_file_write(longer, "the token", SLICE("x"), &msg), ERR_INVALID);
}

/* The one that is given next: it is the same again where none was left open. */
static int lowest_descriptor(void)
{
    int fd = dup(0);

    assert_true(fd >= 0);
    (void)close(fd);
    return fd;
}

/* Each call in its turn fails, alone or with all behind it: the file is the old one or the new one,
 * whole, and only its owner's; nothing is left beside it, and the sentence says why. */
static void fails_at_any_call(void **state)
{
    char path[128];
    struct errmsg msg;
    bool there;
    int lowest = lowest_descriptor();

    (void)state;
    (void)snprintf(path, sizeof(path), "%s/file", home);
    for (int ever = 0; ever < 2; ever++) {
        int code = ERR_IO;

        for (long i = 0; code != 0; i++) {
            assert_int_equal(private_file_write(path, "the file", SLICE("old"), &msg), 0);
            msg.text[0] = '\0';
            file_fault_after(i, ever == 1);
            code = private_file_write(path, "the file", SLICE("fresh"), &msg);
            file_fault_after(-1, false);
            assert_true(code == 0 || code == ERR_IO);
            assert_true(code == 0 || (strstr(msg.text, "cannot write the file /tmp/") != NULL &&
                                      strstr(msg.text, ": No space left on device") != NULL));
            assert_holds(path, code == 0 ? "fresh" : "old");
            assert_int_equal(mode_of(path), 0600);
            assert_true(code != 0 || i >= 5);
        }
    }
    assert_int_equal(private_file_remove(path, "the file", &there, &msg), 0);
    assert_int_equal(lowest_descriptor(), lowest); /* what is left beside the file, `end` finds */
}

/* So it is with the lock: who has not got it holds nothing, and the next one gets it. */
static void locks_or_not_at_any_call(void **state)
{
    char path[128];
    struct errmsg msg;
    int lowest = lowest_descriptor();
    int fd;

    (void)state;
    (void)snprintf(path, sizeof(path), "%s/file", home);
    for (int ever = 0; ever < 2; ever++) {
        int code = ERR_IO;

        for (long i = 0; code != 0; i++) {
            file_fault_after(i, ever == 1);
            code = private_file_lock(path, "the file", &fd, &msg);
            file_fault_after(-1, false);
            assert_true(code == 0 || code == ERR_IO || code == ERR_AGAIN);
            if (code != 0) {
                assert_true(msg.text[0] != '\0');
                assert_int_equal(private_file_lock(path, "the file", &fd, &msg), 0);
            }
            private_file_unlock(path, fd);
            assert_true(code != 0 || i >= 4);
        }
    }
    assert_int_equal(lowest_descriptor(), lowest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(makes_what_is_missing),
        cmocka_unit_test(removes_what_is_left_only),
        cmocka_unit_test(writes_at_once),
        cmocka_unit_test(locks),
        cmocka_unit_test(locks_the_file_of_that_name),
        cmocka_unit_test(replaces),
        cmocka_unit_test(fails_whole),
        cmocka_unit_test(fails_at_any_call),
        cmocka_unit_test(locks_or_not_at_any_call),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
