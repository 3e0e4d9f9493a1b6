/* The file that says who one is to which server. */
#include "cli/login.c"

#include "unit/base/unit.h"

static char dir[] = "/tmp/arbe-login-XXXXXX";
static char path[LOGIN_PATH_BYTES];

static int set_up(void **state)
{
    struct errmsg msg;

    (void)state;
    assert_non_null(mkdtemp(dir));
    assert_int_equal(setenv("XDG_CONFIG_HOME", dir, 1), 0);
    return login_locate(path, &msg);
}

static int clean(void **state)
{
    char above[100];

    (void)state;
    (void)unlink(path); /* the last test may have removed it */
    (void)snprintf(above, sizeof(above), "%s/arbe", dir);
    return rmdir(above) | rmdir(dir);
}

static void write_file(const char *text, mode_t mode)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, mode), 0);
}

/* The place follows XDG_CONFIG_HOME, then HOME; without either there is none. */
static void has_a_place(void **state)
{
    char place[LOGIN_PATH_BYTES];
    char expected[100];
    struct errmsg msg = {{0}};

    (void)state;
    (void)snprintf(expected, sizeof(expected), "%s/arbe/login", dir);
    assert_string_equal(path, expected);
    assert_int_equal(setenv("XDG_CONFIG_HOME", "relative", 1), 0);
    assert_int_equal(setenv("HOME", "/home/x", 1), 0);
    assert_int_equal(login_locate(place, &msg), 0);
    assert_string_equal(place, "/home/x/.config/arbe/login");
    assert_int_equal(unsetenv("HOME"), 0);
    assert_int_equal(login_locate(place, &msg), ERR_INVALID);
    assert_int_equal(setenv("XDG_CONFIG_HOME", dir, 1), 0);
}

/* What was written is read again, from a file that nobody else may read, in a new directory. */
static void keeps_what_it_was_given(void **state)
{
    const struct login login = {.url = "http://h:1", .key = "arbe_k", .house = "id"};
    const struct login without = {.url = "http://h:2", .key = "arbe_l"};
    struct login again;
    struct stat info;
    struct errmsg msg = {{0}};

    (void)state;
    assert_int_equal(login_read(path, &again, &msg), 0); /* there is none */
    assert_string_equal(again.url, "");
    assert_int_equal(login_write(path, &login, &msg), 0);
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0600);
    assert_int_equal(login_read(path, &again, &msg), 0);
    assert_string_equal(again.url, "http://h:1");
    assert_string_equal(again.key, "arbe_k");
    assert_string_equal(again.house, "id");
    assert_int_equal(login_write(path, &without, &msg), 0);
    assert_int_equal(login_read(path, &again, &msg), 0);
    assert_string_equal(again.url, "http://h:2");
    assert_string_equal(again.house, "");
}

/* A file that others may use, or that says something else, is refused in a sentence. */
static void refuses_other_files(void **state)
{
    static const struct {
        const char *text;
        mode_t mode;
        int code;
        const char *sentence;
    } cases[] = {
        {"url = u\n", 0640, ERR_PERM, "may be read or written by others (mode 640)"},
        {"url = u\n", 0602, ERR_PERM, "may be read or written by others (mode 602)"},
        {"url = u\nurk = u\n", 0600, ERR_INVALID, ":2: there is no setting \"urk\""},
        {"url = u\nurl = u\n", 0600, ERR_INVALID, "stands in line 1 already"},
        {"url =\n", 0600, ERR_INVALID, "an empty value is not good"},
    };
    struct login login = {.url = "untouched"};
    struct errmsg msg = {{0}};

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        write_file(cases[i].text, cases[i].mode);
        assert_int_equal(login_read(path, &login, &msg), cases[i].code);
        if (strstr(msg.text, cases[i].sentence) == NULL) {
            fail_msg("%s", msg.text);
        }
        assert_string_equal(login.url, "untouched");
    }
}

/* Removing tells whether there was one; a place that cannot be written is told. */
static void removes_and_fails(void **state)
{
    const struct login login = {.url = "http://h:1", .key = "arbe_k"};
    bool there = false;
    struct errmsg msg = {{0}};

    (void)state;
    assert_int_equal(login_remove(path, &there, &msg), 0);
    assert_true(there);
    assert_int_equal(login_remove(path, &there, &msg), 0);
    assert_false(there);
    assert_int_equal(login_write("/proc/no/such/login", &login, &msg), ERR_IO);
    assert_non_null(strstr(msg.text, "cannot write the login /proc/no/such/login: No such file"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_a_place),
        cmocka_unit_test(keeps_what_it_was_given),
        cmocka_unit_test(refuses_other_files),
        cmocka_unit_test(removes_and_fails),
    };

    return cmocka_run_group_tests(tests, set_up, clean);
}
