/* Log lines as a reader of the other end of a pipe sees them. */
#include "base/logger.c"

#include "base/utf8.h"
#include "unit/base/unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>

struct fixture {
    int reading;          /* the other end of the logger's descriptor */
    struct logger logger; /* what the test writes with */
    char text[65536];     /* what was read last, NUL-terminated */
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    int ends[2];

    assert_non_null(f);
    assert_int_equal(pipe(ends), 0);
    f->reading = ends[0];
    f->logger.fd = ends[1];
    assert_int_equal(fcntl(f->reading, F_SETFL, O_NONBLOCK), 0);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    close(f->reading);
    close(f->logger.fd);
    free(f);
    return 0;
}

/* Everything that was written up to now. */
static const char *written(struct fixture *f)
{
    ssize_t len = read(f->reading, f->text, sizeof(f->text) - 1);

    f->text[len < 0 ? 0 : len] = '\0';
    return f->text;
}

/* A text line is time, level and sentence. */
static void test_text_line(void **state)
{
    struct fixture *f = *state;
    int64_t ms;

    logger_line(&f->logger, LOGGER_WARN, "disk %d%% full", 93);
    written(f);
    assert_true(date_parse_rfc3339((struct slice){f->text, 24}, &ms));
    assert_in_range(now_ms() - ms, 0, 600000);
    assert_string_equal(f->text + 24, " warn  disk 93% full\n");
}

/* A JSON line is one object on one line, whatever the sentence contains. */
static void test_json_line(void **state)
{
    struct fixture *f = *state;
    struct slice value;
    const char *said;

    f->logger.format = LOGGER_JSON;
    logger_line(&f->logger, LOGGER_ERROR, "name \"%s\" \\ \xff", "gr\xc3\xbcn");
    written(f);
    assert_int_equal(json_scan_value(slice_of(f->text), &value, NULL), strlen(f->text) - 1);
    assert_memory_equal(f->text, "{\"time\":\"", 9);
    said = strstr(f->text, "\",\"level\":\"error\",\"message\":");
    assert_non_null(said);
    assert_string_equal(strchr(said, ':') + 18,
                        ":\"name \\\"gr\xc3\xbcn\\\" \\\\ \xef\xbf\xbd\"}\n");
}

/* Lines below the level are dropped, those at it are not. */
static void test_level_is_respected(void **state)
{
    struct fixture *f = *state;

    f->logger.level = LOGGER_WARN;
    logger_line(&f->logger, LOGGER_DEBUG, "one");
    logger_line(&f->logger, LOGGER_INFO, "two");
    assert_string_equal(written(f), "");
    logger_line(&f->logger, LOGGER_WARN, "three");
    logger_line(&f->logger, LOGGER_ERROR, "four");
    written(f);
    assert_non_null(strstr(f->text, " warn  three\n"));
    assert_non_null(strstr(f->text, " error four\n"));
}

/* Text that a client chose cannot begin a new line or move the cursor of a terminal. */
static void test_control_characters_are_replaced(void **state)
{
    struct fixture *f = *state;

    logger_line(&f->logger, LOGGER_INFO, "a\nb\rc\x1b[2Jd\x7f\t");
    assert_string_equal(written(f) + 24, " info  a?b?c?[2Jd??\n");
    /* Nor by those that stand above ASCII, of which U+009B begins a sequence as ESC [ does. */
    for (unsigned format = 0; format < 2; format++) {
        f->logger.format = format == 0 ? LOGGER_TEXT : LOGGER_JSON;
        logger_line(&f->logger, LOGGER_INFO, "%s",
                    "a\xc2\x9b[\xc2\x80\xc2\x9f\xc2\xa0\xc3\x9f\xc2");
        assert_non_null(strstr(written(f), "a?[??\xc2\xa0\xc3\x9f"));
        /* Nor make a reader see another order than that of the bytes. */
        logger_line(&f->logger, LOGGER_INFO, "%s",
                    "a\xe2\x80\xae"
                    "b\xd8\x9c\xe2\x81\xa6.");
        assert_non_null(strstr(written(f), "a?b??."));
    }
}

/* Sentences of any length leave one whole line within the bound, cut between characters. */
static void test_long_sentences_are_cut(void **state)
{
    static const char *const units[] = {"x", "\xc3\xa4", "\"", "\xff", "\xf0\x9f\x98\x80"};
    struct fixture *f = *state;
    char sentence[3000];

    for (unsigned unit = 0; unit < ARRAY_COUNT(units); unit++) {
        size_t step = strlen(units[unit]);

        for (unsigned format = 0; format < 2; format++) {
            size_t len = 0;

            f->logger.format = format == 0 ? LOGGER_TEXT : LOGGER_JSON;
            while (len + step < sizeof(sentence)) {
                memcpy(sentence + len, units[unit], step);
                len += step;
            }
            logger_line(&f->logger, LOGGER_INFO, "%.*s", (int)len, sentence);
            len = strlen(written(f));
            assert_in_range(len, 900, LINE_BYTES_MAX - 1);
            assert_int_equal(f->text[len - 1], '\n');
            assert_ptr_equal(strchr(f->text, '\n'), f->text + len - 1);
            assert_int_equal(utf8_valid((struct slice){f->text, len}), unit != 3 || format == 1);
        }
    }
}

static void put(struct fixture *f, enum logger_format format, const struct logger_field *fields,
                size_t count)
{
    f->logger.format = format;
    logger_fields(&f->logger, LOGGER_INFO, "did", fields, count);
    written(f);
}

/* Fields are members of the JSON object, and key=value in text; numbers keep their decimals. */
static void test_fields(void **state)
{
    static const struct logger_field fields[] = {
        {.key = "path", .text = {"/a?%20", 6}},
        {.key = "odd", .text = {"a \"b\" \\", 7}},
        {.key = "none", .text = {"", 0}},
        {.key = "count", .number = UINT64_MAX},
        {.key = "ms", .number = 1007, .decimals = 3},
        {.key = "s", .number = 7, .decimals = 6},
    };
    struct fixture *f = *state;

    put(f, LOGGER_TEXT, fields, ARRAY_COUNT(fields));
    assert_string_equal(f->text + 24, " info  did path=/a?%20 odd=\"a \\\"b\\\" \\\\\" none=\"\" "
                                      "count=18446744073709551615 ms=1.007 s=0.000007\n");
    put(f, LOGGER_JSON, fields, ARRAY_COUNT(fields));
    assert_string_equal(strstr(f->text, "\"message\""),
                        "\"message\":\"did\",\"path\":\"/a?%20\",\"odd\":\"a \\\"b\\\" \\\\\","
                        "\"none\":\"\",\"count\":18446744073709551615,\"ms\":1.007,"
                        "\"s\":0.000007}\n");
}

/* What a client sent can neither end the line nor speak to the terminal; letters stay readable. */
static void test_fields_are_escaped(void **state)
{
    static const struct {
        const char *sent;
        const char *shown;
    } cases[] = {
        {"a\nb", " k=\"a\\x0ab\"\n"},
        {"\x1b[2J\x7f", " k=\"\\x1b[2J\\x7f\"\n"},
        {"gr\xc3\xbcn", " k=\"gr\xc3\xbcn\"\n"},
        {"\xc2\x9b", " k=\"\\xc2\\x9b\"\n"},
        {"\xff", " k=\"\\xff\"\n"},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        const struct logger_field field = {.key = "k", .text = slice_of(cases[i].sent)};

        put(f, LOGGER_TEXT, &field, 1);
        assert_string_equal(strstr(f->text, "did") + 3, cases[i].shown);
        put(f, LOGGER_JSON, &field, 1);
        assert_ptr_equal(strchr(f->text, '\n'), f->text + strlen(f->text) - 1);
        assert_true(utf8_valid(slice_of(f->text)));
    }
}

/* Texts of any length and number leave one whole line: they are cut, all more the more there is. */
static void test_long_fields_are_cut(void **state)
{
    static const char units[] = {'x', '\n', '\xff', '"'};
    struct fixture *f = *state;
    struct logger_field fields[40];
    char text[3000];

    for (size_t unit = 0; unit < sizeof(units); unit++) {
        memset(text, units[unit], sizeof(text));
        for (size_t count = 1; count <= ARRAY_COUNT(fields); count++) {
            fields[count - 1] = (struct logger_field){.key = "k", .text = {text, sizeof(text)}};
            for (unsigned format = 0; format < 2; format++) {
                put(f, format == 0 ? LOGGER_TEXT : LOGGER_JSON, fields, count);
                size_t len = strlen(f->text);

                assert_in_range(len, 200, LINE_BYTES_MAX - 1);
                assert_ptr_equal(strchr(f->text, '\n'), f->text + len - 1);
                assert_non_null(strstr(f->text, "..."));
            }
        }
    }
}

/* The level can change while a server runs, and says what is worth putting together. */
static void test_level_changes(void **state)
{
    struct fixture *f = *state;
    const struct logger_field field = {.key = "k", .number = 1};

    logger_set_level(&f->logger, LOGGER_ERROR);
    assert_false(logger_wants(&f->logger, LOGGER_INFO));
    logger_fields(&f->logger, LOGGER_INFO, "one", &field, 1);
    assert_string_equal(written(f), "");
    logger_set_level(&f->logger, LOGGER_DEBUG);
    assert_true(logger_wants(&f->logger, LOGGER_DEBUG));
    logger_fields(&f->logger, LOGGER_DEBUG, "two", &field, 1);
    assert_string_equal(written(f) + 24, " debug two k=1\n");
}

static void *write_lines(void *context)
{
    const struct logger *l = context;

    for (int i = 0; i < 100; i++) {
        logger_line(l, LOGGER_INFO, "%064d", 7);
    }
    return NULL;
}

/* Lines of several threads do not mix. */
static void test_threads_do_not_mix_lines(void **state)
{
    struct fixture *f = *state;
    pthread_t threads[3];
    struct slice rest;
    struct slice line;
    int lines = 0;

    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, write_lines, &f->logger), 0);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    rest = slice_of(written(f));
    while (slice_split(&rest, '\n', &line) && line.len > 0) {
        assert_int_equal(line.len, 24 + 7 + 64);
        lines++;
    }
    assert_int_equal(lines, 300);
}

/* A pipe that nobody empties costs lines, not the server: the call returns. */
static void test_full_pipe_drops_lines(void **state)
{
    struct fixture *f = *state;
    char page[4096];

    memset(page, '-', sizeof(page));
    assert_int_equal(fcntl(f->logger.fd, F_SETFL, O_NONBLOCK), 0);
    while (write(f->logger.fd, page, sizeof(page)) > 0) {
    }
    assert_int_equal(fcntl(f->logger.fd, F_SETFL, 0), 0);
    logger_line(&f->logger, LOGGER_INFO, "lost");
    while (written(f)[0] == '-') {
    }
    assert_string_equal(f->text, "");
    logger_line(&f->logger, LOGGER_INFO, "kept");
    assert_non_null(strstr(written(f), "kept\n"));
}

/* A descriptor that is not open is no reason to fail. */
static void test_closed_descriptor_is_ignored(void **state)
{
    const struct logger l = {.fd = -1};

    (void)state;
    logger_line(&l, LOGGER_ERROR, "nobody reads this");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_text_line, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_json_line, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_level_is_respected, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_fields, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_fields_are_escaped, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_long_fields_are_cut, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_level_changes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_control_characters_are_replaced, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_long_sentences_are_cut, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_threads_do_not_mix_lines, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_full_pipe_drops_lines, set_up, tear_down),
        cmocka_unit_test(test_closed_descriptor_is_ignored),
    };

    return UNIT_RUN(tests);
}
