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
    const char *config;
    uint64_t act;
};

#define AT(field) offsetof(struct settings, field)

static const struct flag flags[] = {
    {"data-dir", "DIR", "./data", "a place", NULL, FLAG_TEXT, AT(dir), 0, 0},
    {"count", "N", NULL, "how many", NULL, FLAG_COUNT, AT(count), 1, 100},
    {"page", "SIZE", "4MiB", "bytes", NULL, FLAG_SIZE, AT(page), 1024, 1024 * MIB},
    {"time-out", "TIME", "30s", "time", NULL, FLAG_DURATION, AT(timeout), 1, 3600000},
    {"mode", "a|bc", "a", "word", "a|bc", FLAG_CHOICE, AT(mode), 0, 0},
    {"loud", NULL, NULL, "switch", NULL, FLAG_SWITCH, AT(loud), 0, 0},
    {"config", "FILE", NULL, "file", NULL, FLAG_CONFIG, AT(config), 0, 0},
    {"act", NULL, NULL, "something else", NULL, FLAG_ACTION, AT(act), 0, 0},
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
    const struct flag_table table = {flags, ARRAY_COUNT(flags), settings, NULL};

    return flags_parse(&table, argc, argv, env, msg);
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
    assert_int_equal(parse(&s, no_env, &msg, "--lxyd", NULL), ERR_INVALID);
    assert_non_null(strstr(msg.text, "did you mean --loud?"));
    assert_int_equal(parse(&s, no_env, &msg, "--l3", NULL), ERR_INVALID);
    assert_null(strstr(msg.text, "did you mean"));
    assert_int_equal(parse(&s, no_env, &msg, "count", NULL), ERR_INVALID);
    assert_int_equal(parse(&s, no_env, &msg, "--", NULL), ERR_INVALID);
}

/* A flag at the end without its value, or before another flag. */
static void wants_value(void **state)
{
    struct settings s;
    struct errmsg msg;

    (void)state;
    assert_int_equal(parse(&s, no_env, &msg, "--count", NULL), ERR_INVALID);
    assert_non_null(strstr(msg.text, "--count needs a value: N"));
    assert_int_equal(parse(&s, no_env, &msg, "--data-dir", "--loud"), ERR_INVALID);
    assert_non_null(strstr(msg.text, "--data-dir needs a value: "));
    assert_int_equal(parse(&s, no_env, &msg, "--data-dir", "--count=1"), ERR_INVALID);
    assert_int_equal(parse(&s, no_env, &msg, "--data-dir", "--odd"), 0);
    assert_int_equal(parse(&s, no_env, &msg, "--data-dir=--loud", NULL), 0);
}

/* The origin of a value is that of the strongest source. */
static void tells_origins(void **state)
{
    char argument[] = "--time-out=40s";
    char *argv[] = {argument};
    struct flag_origin origins[ARRAY_COUNT(flags)];
    struct settings s = {.count = 0};
    const struct flag_table table = {flags, ARRAY_COUNT(flags), &s, origins};
    struct errmsg msg;

    (void)state;
    assert_int_equal(flags_parse(&table, 1, argv, some_env, &msg), 0);
    assert_int_equal(origins[0].source, FLAG_FROM_ENVIRONMENT);
    assert_int_equal(origins[1].source, FLAG_FROM_DEFAULT);
    assert_int_equal(origins[3].source, FLAG_FROM_ARGUMENT);
}

static int check_environment(const char *a, struct errmsg *msg)
{
    char memory[2][64] = {"", "HOME=/"};
    char *environment[] = {memory[1], memory[0], NULL};
    struct settings s;
    const struct flag_table table = {flags, ARRAY_COUNT(flags), &s, NULL};

    (void)snprintf(memory[0], sizeof(memory[0]), "%s", a);
    return flags_check_environment(&table, environment, msg);
}

/* A slip is told; what is far from every flag, or is one, is not. */
static void knows_misspelt_variables(void **state)
{
    struct errmsg msg;

    (void)state;
    assert_int_equal(check_environment("ARBE_DATADIR=x", &msg), ERR_INVALID);
    assert_non_null(strstr(msg.text, "ARBE_DATADIR"));
    assert_non_null(strstr(msg.text, "did you mean ARBE_DATA_DIR?"));
    assert_int_equal(check_environment("ARBE_TIMEOUT=x", &msg), ERR_INVALID);
    assert_int_equal(check_environment("ARBE_CUONT=x", &msg), 0);
    assert_int_equal(check_environment("ARBE_TIME_OUT=x", &msg), 0);
    assert_int_equal(check_environment("ARBE_URL=x", &msg), 0);
    assert_int_equal(check_environment("ARBE_=x", &msg), 0);
    assert_int_equal(check_environment("ARBE_COUNT", &msg), 0);
    assert_int_equal(check_environment("ARBEITEN=x", &msg), 0);
}

/* What is printed is what would be read. */
static void formats_values(void **state)
{
    const char *wanted[] = {"./data", "", "4MiB", "30s", "bc", "true"};
    struct settings s;
    struct errmsg msg;

    (void)state;
    assert_int_equal(parse(&s, no_env, &msg, "--mode=bc", "--loud"), 0);
    for (size_t i = 0; i < ARRAY_COUNT(wanted); i++) {
        char memory[64];
        struct buf out;

        buf_init_fixed(&out, memory, sizeof(memory));
        flags_format(&flags[i], &s, &out);
        assert_true(slice_equal(buf_slice(&out), slice_of(wanted[i])));
    }
}

/* ------------------------------------------------------------------ lists */

struct several {
    struct flag_list hosts;
    uint64_t count;
};

static const struct flag several_flags[] = {
    {"host", "HOST=URL", NULL, "which", NULL, FLAG_LIST, offsetof(struct several, hosts), 0, 0},
    {"count", "N", NULL, "how many", NULL, FLAG_COUNT, offsetof(struct several, count), 1, 9},
};

#define SEVERAL(settings, origins)                                   \
    (struct flag_table)                                              \
    {                                                                \
        several_flags, ARRAY_COUNT(several_flags), settings, origins \
    }

static char *hosts_env(const char *name)
{
    static char words[] = "  e1=http://a \te2=http://b ";

    return strcmp(name, "ARBE_HOST") == 0 ? words : NULL;
}

static void assert_items(const struct flag_list *list, const char *const *wanted, size_t count)
{
    assert_int_equal(list->count, count);
    for (size_t i = 0; i < count; i++) {
        assert_true(slice_equal(list->items[i], slice_of(wanted[i])));
    }
}

/* On the command line each value is one item, whatever it holds, in both spellings. */
static void lists_arguments(void **state)
{
    char words[][24] = {"--host", "a=http://x y", "--count=2", "--host=b=c=d", "--host", " c "};
    char *argv[] = {words[0], words[1], words[2], words[3], words[4], words[5]};
    const char *const wanted[] = {"a=http://x y", "b=c=d", " c "};
    struct several s = {.count = 0};
    struct errmsg msg = {{0}};

    (void)state;
    assert_int_equal(flags_parse(&SEVERAL(&s, NULL), 6, argv, no_env, &msg), 0);
    assert_items(&s.hosts, wanted, 3);
    assert_int_equal(s.hosts.origin.source, FLAG_FROM_ARGUMENT);
    assert_int_equal(s.count, 2);
}

/* Nothing given is an empty list. */
static void lists_nothing(void **state)
{
    struct several s = {.count = 0};
    struct flag_origin origins[ARRAY_COUNT(several_flags)];
    struct errmsg msg = {{0}};
    struct buf out;
    char memory[8];

    (void)state;
    assert_int_equal(flags_parse(&SEVERAL(&s, origins), 0, NULL, no_env, &msg), 0);
    assert_int_equal(s.hosts.count, 0);
    assert_int_equal(origins[0].source, FLAG_FROM_DEFAULT);
    buf_init_fixed(&out, memory, sizeof(memory));
    flags_format(&several_flags[0], &s, &out);
    assert_int_equal(out.len, 0);
}

/* A variable holds words; what the command line says replaces all of them. */
static void lists_environment(void **state)
{
    char word[] = "--host=x=http://c";
    char *argv[] = {word};
    const char *const words[] = {"e1=http://a", "e2=http://b"};
    const char *const argument[] = {"x=http://c"};
    struct several s = {.count = 0};
    struct flag_origin origins[ARRAY_COUNT(several_flags)];
    struct errmsg msg = {{0}};

    (void)state;
    assert_int_equal(flags_parse(&SEVERAL(&s, origins), 0, NULL, hosts_env, &msg), 0);
    assert_items(&s.hosts, words, 2);
    assert_int_equal(origins[0].source, FLAG_FROM_ENVIRONMENT);
    assert_int_equal(flags_parse(&SEVERAL(&s, origins), 1, argv, hosts_env, &msg), 0);
    assert_items(&s.hosts, argument, 1);
    assert_int_equal(origins[0].source, FLAG_FROM_ARGUMENT);
}

/* So does a line of a file, which the environment replaces; read again it does not grow. */
static void lists_lines(void **state)
{
    const struct flag_origin origin = {FLAG_FROM_FILE, 3};
    const char *const lines[] = {"f1=http://a", "f2"};
    const char *const words[] = {"e1=http://a", "e2=http://b"};
    struct several s = {.count = 0};
    struct flag_origin origins[ARRAY_COUNT(several_flags)];
    const struct flag_table table = SEVERAL(&s, origins);
    struct errmsg msg = {{0}};

    (void)state;
    assert_int_equal(
        flags_set_named(&table, SLICE("host"), "f1=http://a f2", origin, "conf:3", &msg), 0);
    assert_items(&s.hosts, lines, 2);
    assert_int_equal(origins[0].line, 3);
    assert_int_equal(flags_set_environment(&table, hosts_env, &msg), 0);
    assert_items(&s.hosts, words, 2);
    assert_true(flags_is_setting(&several_flags[0]));
}

/* 64 values are taken, one more is refused with the flag's name; so are empty ones. */
static void lists_are_capped(void **state)
{
    char word[] = "--host=h";
    char none[] = "--host=";
    char *argv[FLAG_LIST_MAX + 1];
    char *empty[] = {none};
    struct several s = {.count = 0};
    struct errmsg msg = {{0}};

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(argv); i++) {
        argv[i] = word;
    }
    assert_int_equal(flags_parse(&SEVERAL(&s, NULL), FLAG_LIST_MAX, argv, no_env, &msg), 0);
    assert_int_equal(s.hosts.count, FLAG_LIST_MAX);
    s = (struct several){.count = 0};
    assert_int_equal(flags_parse(&SEVERAL(&s, NULL), FLAG_LIST_MAX + 1, argv, no_env, &msg),
                     ERR_INVALID);
    assert_non_null(strstr(msg.text, "--host: there are more than 64 values"));
    s = (struct several){.count = 0};
    assert_int_equal(flags_parse(&SEVERAL(&s, NULL), 1, empty, no_env, &msg), ERR_INVALID);
    assert_non_null(strstr(msg.text, "--host: an empty value is not good: it takes HOST=URL"));
    assert_int_equal(flags_set_named(&SEVERAL(&s, NULL), SLICE("host"), " \t ",
                                     (struct flag_origin){FLAG_FROM_FILE, 1}, "conf:1", &msg),
                     ERR_INVALID);
}

/* Printed as a line of a file takes it. */
static void lists_are_printed(void **state)
{
    char words[][24] = {"--host=a=http://x", "--host=b"};
    char *argv[] = {words[0], words[1]};
    const char *const wanted[] = {"a=http://x", "b"};
    struct several s = {.count = 0};
    struct several again = {.count = 0};
    struct errmsg msg = {{0}};
    struct buf out;
    char memory[64];

    (void)state;
    assert_int_equal(flags_parse(&SEVERAL(&s, NULL), 2, argv, no_env, &msg), 0);
    buf_init_fixed(&out, memory, sizeof(memory));
    flags_format(&several_flags[0], &s, &out);
    assert_true(slice_equal(buf_slice(&out), SLICE("a=http://x b")));
    memory[out.len] = '\0';
    assert_int_equal(flags_set_named(&SEVERAL(&again, NULL), SLICE("host"), memory,
                                     (struct flag_origin){FLAG_FROM_FILE, 1}, "conf:1", &msg),
                     0);
    assert_items(&again.hosts, wanted, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uses_defaults),     cmocka_unit_test(takes_values),
        cmocka_unit_test(reads_environment), cmocka_unit_test(refuses_values),
        cmocka_unit_test(suggests),          cmocka_unit_test(wants_value),
        cmocka_unit_test(tells_origins),     cmocka_unit_test(knows_misspelt_variables),
        cmocka_unit_test(formats_values),    cmocka_unit_test(lists_arguments),
        cmocka_unit_test(lists_nothing),     cmocka_unit_test(lists_environment),
        cmocka_unit_test(lists_lines),       cmocka_unit_test(lists_are_capped),
        cmocka_unit_test(lists_are_printed),
    };

    return UNIT_RUN(tests);
}
