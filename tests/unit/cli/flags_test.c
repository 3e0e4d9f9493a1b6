/* Flags from a table: where values come from, and what is said about wrong ones. */
#include "cli/flags.c"

#include "unit/base/unit.h"

struct settings {
    const char *dir;
    uint64_t count;
    uint64_t page;
    uint64_t timeout;
    uint64_t mode;
    uint64_t loud;
};

#define AT(field) offsetof(struct settings, field)

static const struct flag flags[] = {
    {"data-dir", "DIR", "./data", "a place", NULL, FLAG_TEXT, AT(dir), 0, 0},
    {"count", "N", NULL, "how many", NULL, FLAG_COUNT, AT(count), 1, 100},
    {"page", "SIZE", "4MiB", "bytes", NULL, FLAG_SIZE, AT(page), 1024, 1024 * MIB},
    {"time-out", "TIME", "30s", "time", NULL, FLAG_DURATION, AT(timeout), 1, 3600000},
    {"mode", "a|bc", "a", "word", "a|bc", FLAG_CHOICE, AT(mode), 0, 0},
    {"loud", NULL, NULL, "switch", NULL, FLAG_SWITCH, AT(loud), 0, 0},
};

static char *no_env(const char *name)
{
    (void)name;
    return NULL;
}

static char *some_env(const char *name)
{
    static char values[3][8] = {"env", "20s", "true"};

    if (strcmp(name, "ARBE_DATA_DIR") == 0) {
        return values[0];
    }
    if (strcmp(name, "ARBE_TIME_OUT") == 0) {
        return values[1];
    }
    return strcmp(name, "ARBE_LOUD") == 0 ? values[2] : NULL;
}

static char *empty_env(const char *name)
{
    static char empty[1];

    return strcmp(name, "ARBE_COUNT") == 0 ? empty : NULL;
}

static int parse(struct settings *settings, flags_env_fn env, struct errmsg *msg, const char *a,
                 const char *b)
{
    char memory[2][64];
    char *argv[2] = {memory[0], memory[1]};
    int argc = (a != NULL) + (b != NULL);

    *settings = (struct settings){.count = 0};
    (void)snprintf(memory[0], sizeof(memory[0]), "%s", a == NULL ? "" : a);
    (void)snprintf(memory[1], sizeof(memory[1]), "%s", b == NULL ? "" : b);
    return flags_parse(flags, ARRAY_COUNT(flags), settings, argc, argv, env, msg);
}

/* Nothing given: the defaults, and zero where there is none. */
static void uses_defaults(void **state)
{
    struct settings s;
    struct errmsg msg;

    (void)state;
    assert_int_equal(parse(&s, no_env, &msg, NULL, NULL), 0);
    assert_string_equal(s.dir, "./data");
    assert_int_equal(s.count, 0);
    assert_int_equal(s.page, 4 * MIB);
    assert_int_equal(s.timeout, 30000);
    assert_int_equal(s.mode, 0);
    assert_int_equal(s.loud, 0);
}

/* Both spellings of a value, and switches without one. */
static void takes_values(void **state)
{
    struct settings s;
    struct errmsg msg;

    (void)state;
    assert_int_equal(parse(&s, no_env, &msg, "--count", "7"), 0);
    assert_int_equal(s.count, 7);
    assert_int_equal(parse(&s, no_env, &msg, "--page=64KiB", "--mode=bc"), 0);
    assert_int_equal(s.page, 64 * KIB);
    assert_int_equal(s.mode, 1);
    assert_int_equal(parse(&s, no_env, &msg, "--loud", "--time-out=5m"), 0);
    assert_int_equal(s.loud, 1);
    assert_int_equal(s.timeout, 300000);
    assert_int_equal(parse(&s, no_env, &msg, "--page=4096", NULL), 0);
    assert_int_equal(s.page, 4096);
}

/* The environment is before the default and behind the command line. */
static void reads_environment(void **state)
{
    struct settings s;
    struct errmsg msg;

    (void)state;
    assert_int_equal(parse(&s, some_env, &msg, "--time-out=40s", NULL), 0);
    assert_string_equal(s.dir, "env");
    assert_int_equal(s.timeout, 40000);
    assert_int_equal(s.loud, 1);
    assert_int_equal(parse(&s, empty_env, &msg, NULL, NULL), ERR_INVALID);
    assert_non_null(strstr(msg.text, "ARBE_COUNT"));
}

/* Every kind refuses what it cannot take, and names flag, value and what would be good. */
static void refuses_values(void **state)
{
    const char *bad[] = {"abc", "-1", "", "1e9", "18446744073709551616", "+1", " 1", "0x10", "nan"};
    const char *names[] = {"--count", "--page", "--time-out", "--mode"};
    struct settings s;
    struct errmsg msg;

    (void)state;
    for (size_t n = 0; n < ARRAY_COUNT(names); n++) {
        for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
            assert_int_equal(parse(&s, no_env, &msg, names[n], bad[i]), ERR_INVALID);
            assert_non_null(strstr(msg.text, names[n]));
            assert_non_null(strstr(msg.text, bad[i]));
            assert_non_null(strstr(msg.text, "it takes"));
        }
    }
    assert_int_equal(parse(&s, no_env, &msg, "--count=101", NULL), ERR_INVALID);
    assert_non_null(strstr(msg.text, "from 1 to 100"));
    assert_int_equal(parse(&s, no_env, &msg, "--count=0", NULL), ERR_INVALID);
    assert_int_equal(parse(&s, no_env, &msg, "--page=1023", NULL), ERR_INVALID);
    assert_int_equal(parse(&s, no_env, &msg, "--data-dir=", NULL), ERR_INVALID);
    assert_int_equal(parse(&s, no_env, &msg, "--loud=maybe", NULL), ERR_INVALID);
}

/* A flag that does not exist is answered with the one that was likely meant. */
static void suggests(void **state)
{
    struct settings s;
    struct errmsg msg;

    (void)state;
    assert_int_equal(parse(&s, no_env, &msg, "--cuont", "1"), ERR_INVALID);
    assert_non_null(strstr(msg.text, "did you mean --count?"));
    assert_int_equal(parse(&s, no_env, &msg, "--datadir=x", NULL), ERR_INVALID);
    assert_non_null(strstr(msg.text, "did you mean --data-dir?"));
    assert_int_equal(parse(&s, no_env, &msg, "--completely-else", NULL), ERR_INVALID);
    assert_null(strstr(msg.text, "did you mean"));
    assert_int_equal(parse(&s, no_env, &msg, "count", NULL), ERR_INVALID);
    assert_int_equal(parse(&s, no_env, &msg, "--", NULL), ERR_INVALID);
}

/* A flag at the end without its value. */
static void wants_value(void **state)
{
    struct settings s;
    struct errmsg msg;

    (void)state;
    assert_int_equal(parse(&s, no_env, &msg, "--count", NULL), ERR_INVALID);
    assert_non_null(strstr(msg.text, "--count needs a value: N"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uses_defaults),     cmocka_unit_test(takes_values),
        cmocka_unit_test(reads_environment), cmocka_unit_test(refuses_values),
        cmocka_unit_test(suggests),          cmocka_unit_test(wants_value),
    };

    return UNIT_RUN(tests);
}
