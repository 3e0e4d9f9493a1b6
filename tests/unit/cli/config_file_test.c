/* The configuration file: what a line may be, and what is said about others. */
#include "cli/config_file.c"

#include "unit/base/unit.h"

#include <stdio.h>

struct settings {
    const char *dir;
    uint64_t count;
    const char *config;
};

#define AT(field) offsetof(struct settings, field)

static const struct flag flags[] = {
    {"data-dir", "DIR", "./data", "a place", NULL, FLAG_TEXT, AT(dir), 0, 0},
    {"count", "N", NULL, "how many", NULL, FLAG_COUNT, AT(count), 1, 100},
    {"config", "FILE", NULL, "file", NULL, FLAG_CONFIG, AT(config), 0, 0},
};

static int apply(char *text, struct settings *settings, struct errmsg *msg)
{
    struct flag_origin origins[ARRAY_COUNT(flags)];
    const struct flag_table table = {flags, ARRAY_COUNT(flags), settings, origins};

    *settings = (struct settings){.count = 0};
    assert_int_equal(flags_set_defaults(&table, msg), 0);
    return config_file_apply("conf", text, &table, msg);
}

/* White space and comments around settings. */
static void takes_lines(void **state)
{
    char text[] = "# a comment = 1\r\n\n   \t\n  data-dir =\t/a b#c = d  \r\ncount=7";
    struct settings s;
    struct errmsg msg;

    (void)state;
    assert_int_equal(apply(text, &s, &msg), 0);
    assert_string_equal(s.dir, "/a b#c = d");
    assert_int_equal(s.count, 7);
}

static void says(const char *text, const char *wanted)
{
    char memory[200];
    struct settings s;
    struct errmsg msg = {{0}};

    (void)snprintf(memory, sizeof(memory), "%s", text);
    assert_int_equal(apply(memory, &s, &msg), ERR_INVALID);
    if (strstr(msg.text, wanted) == NULL) {
        fail_msg("\"%s\" is not in \"%s\"", wanted, msg.text);
    }
}

/* Each wrong line is named by its number. */
static void refuses_lines(void **state)
{
    (void)state;
    says("\n\ncuont = 1\n", "conf:3: there is no setting \"cuont\"; did you mean \"count\"?");
    says("else-where = 1", "conf:1: there is no setting \"else-where\"");
    says("count = 0", "conf:1: count: \"0\" is not good: it takes a whole number from 1 to 100");
    says("count = 1\ncount = 2", "conf:2: \"count\" stands in line 1 already");
    says("count 1", "conf:1: \"count 1\" is not good: a line is name = value");
    says("data-dir =", "conf:1: data-dir: an empty value is not good");
    says("config = x", "conf:1: config cannot stand in a file");
    says("= 1", "conf:1: there is no setting \"\"");
    says("--count = 1", "conf:1: there is no setting \"--count\"; did you mean \"count\"?");
}

static int read_back(const char *bytes, size_t len, char **ret_text, struct errmsg *msg)
{
    char path[] = "/tmp/arbe-config-XXXXXX";
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, len), len);
    assert_int_equal(close(fd), 0);
    int code = config_file_read(path, "configuration file", ret_text, msg);

    assert_int_equal(unlink(path), 0);
    return code;
}

/* A file is read whole, up to the cap, and only when it is text. */
static void reads_files(void **state)
{
    static char large[CONFIG_FILE_BYTES_MAX + 1];
    char *text = NULL;
    struct errmsg msg = {{0}};

    (void)state;
    memset(large, '#', sizeof(large));
    assert_int_equal(read_back("count = 1\n", 10, &text, &msg), 0);
    assert_string_equal(text, "count = 1\n");
    free(text);
    assert_int_equal(read_back("", 0, &text, &msg), 0);
    assert_string_equal(text, "");
    free(text);
    assert_int_equal(read_back(large, CONFIG_FILE_BYTES_MAX, &text, &msg), 0);
    free(text);
    assert_int_equal(read_back(large, sizeof(large), &text, &msg), ERR_INVALID);
    assert_non_null(strstr(msg.text, "at most 65536 bytes"));
    assert_int_equal(read_back("a\0b", 3, &text, &msg), ERR_INVALID);
    assert_non_null(strstr(msg.text, "zero byte"));
    assert_int_equal(config_file_read("/tmp", "thing", &text, &msg), ERR_INVALID);
    assert_non_null(strstr(msg.text, "/tmp is not a file"));
    assert_int_equal(config_file_read("/nowhere/conf", "thing", &text, &msg), ERR_IO);
    assert_non_null(strstr(msg.text, "/nowhere/conf"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_lines),
        cmocka_unit_test(refuses_lines),
        cmocka_unit_test(reads_files),
    };

    return UNIT_RUN(tests);
}
