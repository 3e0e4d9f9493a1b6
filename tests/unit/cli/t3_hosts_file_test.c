/* Changing the hosts' file: what is changed, and that nothing else is. */
#include "cli/t3_hosts_file.c"

#include "unit/base/unit.h"

#include <sys/stat.h>

static char path[64];

static int begin(void **state)
{
    char dir[64] = "/tmp/arbe-t3-file-XXXXXX";

    (void)state;
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof(path), "%.40s/t3", dir);
    return 0;
}

static int end(void **state)
{
    (void)state;
    (void)unlink(path); /* not every test leaves one */
    *strrchr(path, '/') = '\0';
    return rmdir(path);
}

static void put(const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void assert_file(const char *wanted)
{
    char text[4096] = "";
    FILE *file = fopen(path, "r");

    assert_non_null(file);
    assert_int_equal(fread(text, 1, sizeof(text) - 1, file), strlen(wanted));
    assert_int_equal(fclose(file), 0);
    assert_string_equal(text, wanted);
}

static const struct t3_section mac = {"mac", "http://m", "t3-tokens/mac", NULL, false};

/* A section comes to the end, behind a blank line, or in the place of the one with that name. */
static void puts_sections(void **state)
{
    const char *const cases[][2] = {
        {"", "[mac]\nurl = http://m\nsecret-file = t3-tokens/mac\n"},
        {"# x\n", "# x\n\n[mac]\nurl = http://m\nsecret-file = t3-tokens/mac\n"},
        {"[a]\nurl = u", "[a]\nurl = u\n\n[mac]\nurl = http://m\nsecret-file = t3-tokens/mac\n"},
        {"[ mac ]\r\nurl = u\r\n\r\n# of b\r\n[b]\r\nurl = v",
         "[mac]\nurl = http://m\nsecret-file = t3-tokens/mac\n\r\n# of b\r\n[b]\r\nurl = v"},
        {"[macs]\nurl = u\n[mac]\n# in it\nca-file = x\n[b]\nurl = v\n",
         "[macs]\nurl = u\n[mac]\nurl = http://m\nsecret-file = t3-tokens/mac\n[b]\nurl = v\n"},
        {"# [mac]\n[b]\nurl = v\n",
         "# [mac]\n[b]\nurl = v\n\n[mac]\nurl = http://m\nsecret-file = t3-tokens/mac\n"},
    };
    struct errmsg msg = {{0}};

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        put(cases[i][0]);
        assert_int_equal(t3_hosts_file_put(path, &mac, &msg), 0);
        assert_file(cases[i][1]);
        assert_int_equal(t3_hosts_file_put(path, &mac, &msg), 0); /* once more changes nothing */
        assert_file(cases[i][1]);
    }
}

/* What is put in and taken out again, once or often, leaves the file as it was. */
static void does_not_grow(void **state)
{
    const char *const cases[] = {"", "# x\n", "[a]\nurl = u\n", "[a]\r\nurl = u\r\n\r\n", "\n\n"};
    const struct t3_section box = {"box", "http://b", NULL, NULL, false};
    struct errmsg msg = {{0}};

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        put(cases[i]);
        for (int round = 0; round < 3; round++) {
            assert_int_equal(t3_hosts_file_put(path, &mac, &msg), 0);
            assert_int_equal(t3_hosts_file_remove(path, "mac", &msg), 0);
            assert_file(cases[i]);
        }
    }
    put("");
    assert_int_equal(t3_hosts_file_put(path, &mac, &msg), 0);
    assert_int_equal(t3_hosts_file_put(path, &box, &msg), 0);
    for (int round = 0; round < 3; round++) { /* the first of two, each time */
        assert_int_equal(t3_hosts_file_remove(path, "mac", &msg), 0);
        assert_file("[box]\nurl = http://b\n");
        assert_int_equal(t3_hosts_file_put(path, &mac, &msg), 0);
        assert_int_equal(t3_hosts_file_remove(path, "box", &msg), 0);
        assert_file("[mac]\nurl = http://m\nsecret-file = t3-tokens/mac\n");
        assert_int_equal(t3_hosts_file_put(path, &box, &msg), 0);
    }
}

/* Taken out again, the file is as it was but for blank lines; of others nothing is lost. */
static void removes_sections(void **state)
{
    struct errmsg msg = {{0}};

    (void)state;
    put("# x\n[a]\nurl = u\n# y\n[mac]\nurl = http://m\n\n# z\n[b]\nurl = v\n");
    assert_int_equal(t3_hosts_file_remove(path, "mac", &msg), 0);
    assert_file("# x\n[a]\nurl = u\n# y\n\n# z\n[b]\nurl = v\n");
    assert_int_equal(t3_hosts_file_remove(path, "nobody", &msg), 0);
    assert_int_equal(t3_hosts_file_remove(path, "b", &msg), 0);
    assert_int_equal(t3_hosts_file_remove(path, "a", &msg), 0);
    assert_file("# x\n# y\n\n# z\n");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(t3_hosts_file_remove(path, "a", &msg), 0);
    assert_int_equal(access(path, F_OK), -1); /* there was none, and none is made */
}

/* A file beyond the cap is refused, and stays. */
static void caps_the_file(void **state)
{
    static char text[CONFIG_FILE_BYTES_MAX];
    struct stat info;
    struct errmsg msg = {{0}};

    (void)state;
    memset(text, '#', sizeof(text) - 1);
    put(text);
    assert_int_equal(t3_hosts_file_put(path, &mac, &msg), ERR_INVALID);
    assert_non_null(strstr(msg.text, "more than 65536 bytes"));
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_size, sizeof(text) - 1);
}

/* No value becomes a second line, or is another one when it is read: the file stays as it was. */
static void refuses_values(void **state)
{
    const char *const bad[] = {"",      "/a\nurl = http://x", "/a\r",      "/a ", " /a",
                               "/a\tb", "/a\x1b[2Jb",         "/a\xc2\x9b"};
    struct errmsg msg;

    (void)state;
    put("# x\n");
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        struct t3_section sections[] = {mac, mac, mac, mac};

        sections[0].ca_file = bad[i];
        sections[1].url = bad[i];
        sections[2].secret_file = bad[i];
        sections[3].label = bad[i];
        for (size_t j = 0; j < ARRAY_COUNT(sections); j++) {
            msg.text[0] = '\0';
            assert_int_equal(t3_hosts_file_put(path, &sections[j], &msg), ERR_INVALID);
            assert_true(msg.text[0] != '\0');
        }
        assert_file("# x\n");
    }
    assert_int_equal(t3_hosts_file_check_value("ca-file", "/a b/\xc3\xa4.pem", &msg), 0);
}

/* A link to the file, as people keep who have their settings elsewhere, stays a link. */
static void follows_links(void **state)
{
    char real[80];
    struct stat info;
    struct errmsg msg = {{0}};

    (void)state;
    (void)snprintf(real, sizeof(real), "%s.real", path);
    put("");
    assert_int_equal(rename(path, real), 0);
    assert_int_equal(symlink(real, path), 0);
    assert_int_equal(t3_hosts_file_put(path, &mac, &msg), 0);
    assert_int_equal(lstat(path, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_file("[mac]\nurl = http://m\nsecret-file = t3-tokens/mac\n");
    assert_int_equal(unlink(real), 0);
}

/* Nor does one whose target is not there yet, however many links lead to it; a circle is none. */
static void follows_links_to_nothing(void **state)
{
    char link[80];
    char real[80];
    struct stat info;
    struct errmsg msg = {{0}};
    int fd = -1;

    (void)state;
    (void)snprintf(link, sizeof(link), "%s.link", path);
    (void)snprintf(real, sizeof(real), "%s.real", path);
    assert_int_equal(symlink(link, path), 0);
    assert_int_equal(symlink("t3.real", link), 0); /* from where that link is */
    assert_int_equal(t3_hosts_file_lock(path, &fd, &msg), 0);
    assert_int_equal(t3_hosts_file_put(path, &mac, &msg), 0);
    t3_hosts_file_unlock(path, fd); /* end() would find a lock that stayed */
    assert_int_equal(lstat(path, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_int_equal(lstat(link, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_int_equal(lstat(real, &info), 0);
    assert_true(S_ISREG(info.st_mode));
    assert_file("[mac]\nurl = http://m\nsecret-file = t3-tokens/mac\n");
    assert_int_equal(unlink(real), 0);
    assert_int_equal(unlink(link), 0);
    assert_int_equal(symlink("t3", link), 0);
    assert_int_equal(t3_hosts_file_put(path, &mac, &msg), ERR_IO);
    assert_int_equal(t3_hosts_file_check_place(path, &msg), ERR_IO);
    assert_non_null(strstr(msg.text, "cannot follow the link /tmp/"));
    assert_int_equal(lstat(path, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_int_equal(unlink(link), 0);
}

/* Tokens are beside the file, under names that can be those of files. */
static void names_tokens(void **state)
{
    char out[T3_HOSTS_PATH_BYTES];
    char label[300];
    struct errmsg msg;

    (void)state;
    t3_hosts_file_token_path("/a/b/t3", "mac", out);
    assert_string_equal(out, "/a/b/t3-tokens/mac");
    t3_hosts_file_token_path("t3", "mac", out);
    assert_string_equal(out, "t3-tokens/mac");
    memset(label, 'x', sizeof(label));
    label[200] = '\0';
    assert_int_equal(t3_hosts_file_check_label(label, &msg), 0);
    label[200] = 'x';
    label[201] = '\0';
    assert_int_equal(t3_hosts_file_check_label(label, &msg), ERR_INVALID);
    assert_int_equal(t3_hosts_file_check_label("..", &msg), ERR_INVALID);
}

#define RIG_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(puts_sections), RIG_TEST(removes_sections),
        RIG_TEST(caps_the_file), RIG_TEST(follows_links),
        RIG_TEST(names_tokens),  RIG_TEST(refuses_values),
        RIG_TEST(does_not_grow), RIG_TEST(follows_links_to_nothing),
    };

    return UNIT_RUN(tests);
}
