/* Files that hold secrets: who may read them, and what becomes of the old one. */
#include "cli/private_file.c"

#include "unit/base/unit.h"

#include <stdlib.h>

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

/* It is replaced as a whole, also one that others could read, and after one that died. */
static void replaces(void **state)
{
    char path[128];
    char beside[128];
    struct errmsg msg = {{0}};
    bool there;

    (void)state;
    (void)snprintf(path, sizeof(path), "%s/file", home);
    (void)snprintf(beside, sizeof(beside), "%s/.file.new", home);
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
    char beside[128];
    static char longer[PRIVATE_PATH_BYTES + 1];
    struct errmsg msg = {{0}};

    (void)state;
    (void)snprintf(path, sizeof(path), "%s/dir", home);
    (void)snprintf(beside, sizeof(beside), "%s/.dir.new", home);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(private_file_write(path, "the token", SLICE("x"), &msg), ERR_IO);
    assert_non_null(strstr(msg.text, "cannot write the token /tmp/"));
    assert_int_equal(access(beside, F_OK), -1);
    assert_int_equal(rmdir(path), 0);
    memset(longer, 'x', PRIVATE_PATH_BYTES);
    assert_int_equal(private_file_write(longer, "the token", SLICE("x"), &msg), ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(makes_what_is_missing),
        cmocka_unit_test(replaces),
        cmocka_unit_test(fails_whole),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
