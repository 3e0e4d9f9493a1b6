/* Standard output: what is written when, and what is left out after a signal. Each test has a file
 * as its stdout. */
#include "cli/out.c"

#include "unit/base/unit.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#define FILE_BYTES_MAX (8u * MIB)

static char path[] = "/tmp/arbe-out-XXXXXX";

/* Runs `run` in a process of its own whose stdout is `target`, or a file that is then read. Returns
 * its exit code. */
static int run_with(const char *target, void (*run)(struct out *o), char **ret_text,
                    size_t *ret_len)
{
    int fd = target != NULL ? open(target, O_WRONLY) : mkstemp(path);
    int status = 0;
    pid_t child;

    assert_true(fd >= 0);
    child = fork();
    if (child == 0) {
        struct out o;

        (void)dup2(fd, STDOUT_FILENO); /* the parent sees what is missing */
        interrupt_begin();
        out_init(&o);
        run(&o);
        _exit(out_finish(&o) ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (target == NULL) {
        *ret_text = malloc(FILE_BYTES_MAX);
        assert_non_null(*ret_text);
        *ret_len = (size_t)pread(fd, *ret_text, FILE_BYTES_MAX, 0);
        assert_int_equal(unlink(path), 0);
        memcpy(path + sizeof(path) - 7, "XXXXXX", 6);
    }
    assert_int_equal(close(fd), 0);
    return WEXITSTATUS(status);
}

static void assert_written(void (*run)(struct out *o), const char *wanted)
{
    char *text = NULL;
    size_t len = 0;

    assert_int_equal(run_with(NULL, run, &text, &len), 0);
    assert_int_equal(len, strlen(wanted));
    assert_memory_equal(text, wanted, len);
    free(text);
}

static void write_two(struct out *o)
{
    out_add(o, SLICE("one\n"));
    out_end_message(o);
    out_format(o, "%d", 2);
    out_add_shown(o, SLICE(" \x1b[31m\a\n\xc2\x9bK\xc3\x9f\xe2\x80\xaex"));
    out_add(o, SLICE("\n"));
    out_end_message(o);
    out_add(o, SLICE("not whole"));
}

/* Only whole messages are written, and names neither move the cursor nor turn what follows. */
static void whole_messages(void **state)
{
    (void)state;
    assert_written(write_two, "one\n2 ?[31m???K\xc3\x9f?x\n");
}

static void write_after_signal(struct out *o)
{
    o->lines = true;
    out_add(o, SLICE("one\n"));
    out_end_message(o);
    out_flush(o);
    (void)raise(SIGINT);
    out_add(o, SLICE("two\n"));
    out_end_message(o);
}

/* After a signal no message is begun. */
static void nothing_after_signal(void **state)
{
    (void)state;
    assert_written(write_after_signal, "one\n");
}

static char flood[3 * MIB];

static void write_half(struct out *o)
{
    o->lines = true;
    memset(flood, 'x', sizeof(flood));
    out_add(o, (struct slice){flood, sizeof(flood)}); /* written at once */
    (void)raise(SIGINT);
    out_add(o, (struct slice){flood, sizeof(flood) / 2});
    out_add(o, SLICE("\n"));
    out_end_message(o);
    out_add(o, SLICE("two\n"));
    out_end_message(o);
}

/* One that is half written is finished. */
static void half_is_finished(void **state)
{
    char *text = NULL;
    size_t len = 0;

    (void)state;
    assert_int_equal(run_with(NULL, write_half, &text, &len), 0);
    assert_int_equal(len, sizeof(flood) + sizeof(flood) / 2 + 1);
    assert_int_equal(text[len - 1], '\n');
    free(text);
}

static void write_pieces(struct out *o)
{
    for (int i = 0; i < 100000; i++) {
        out_add(o, SLICE("0123456789"));
    }
    out_end_message(o);
}

/* A message of many small pieces leaves in parts, in order. */
static void many_pieces(void **state)
{
    char *text = NULL;
    size_t len = 0;

    (void)state;
    assert_int_equal(run_with(NULL, write_pieces, &text, &len), 0);
    assert_int_equal(len, 1000000);
    for (size_t i = 0; i < len; i++) {
        assert_int_equal(text[i], '0' + i % 10);
    }
    free(text);
}

static void write_string(struct out *o)
{
    memset(flood, 1, MIB); /* six characters each */
    out_add_string(o, (struct slice){flood, MIB});
    for (size_t i = 0; i < MIB; i += 2) {
        memcpy(flood + i, "\xc3\xa4", 2);
    }
    for (size_t skip = 0; skip < 4; skip++) {
        out_add_string(o, (struct slice){flood, 10000 + 2 * skip});
        out_add(o, SLICE("\n"));
    }
    out_end_message(o);
}

/* A text of any size is escaped, and no character is cut in two. */
static void strings(void **state)
{
    char *text = NULL;
    size_t len = 0;

    (void)state;
    assert_int_equal(run_with(NULL, write_string, &text, &len), 0);
    assert_int_equal(len, 6 * MIB + 2 + 4 * 10003 + 12);
    assert_memory_equal(text, "\"\\u0001\\u0001", 13);
    for (const char *at = text + 6 * MIB + 2; at < text + len; at++) {
        assert_true(*at == '"' || *at == '\n' || memcmp(at, "\xc3\xa4", 2) == 0);
        at += *at == '\xc3' ? 1 : 0;
    }
    free(text);
}

#define HOSTILE_TEXT "\xe2\x80\xae\xe2\x81\xa6\xd8\x9c\xe2\x80\xa8\xc2\x85"
#define HOSTILE_JSON "{\r\n\t\"a\": \"\xc2\x9b\x7f\xc3\x9f\xc2\xa0" HOSTILE_TEXT "\"}"

static void write_json(struct out *o)
{
    out_add_json(o, SLICE(HOSTILE_JSON));
    o->terminal = true;
    out_add_json(o, SLICE("\n" HOSTILE_JSON "\n"));
    out_add(o, SLICE("\n"));
    out_end_message(o);
}

/* JSON stays on its line and as it is; for a terminal what that would obey is escaped, and
 * what would show it in another order. */
static void json_on_one_line(void **state)
{
    (void)state;
    assert_written(write_json, "{  \t\"a\": \"\xc2\x9b\x7f\xc3\x9f\xc2\xa0" HOSTILE_TEXT "\"}"
                               " {   \"a\": \"\\u009b\\u007f\xc3\x9f\xc2\xa0\\u202e\\u2066"
                               "\\u061c\\u2028\\u0085\"} \n");
}

static void write_one(struct out *o)
{
    out_add(o, SLICE("x\n"));
    out_end_message(o);
}

/* A disk that is full is told. */
static void failures(void **state)
{
    (void)state;
    assert_int_equal(run_with("/dev/full", write_one, NULL, NULL), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_messages),   cmocka_unit_test(nothing_after_signal),
        cmocka_unit_test(half_is_finished), cmocka_unit_test(many_pieces),
        cmocka_unit_test(strings),          cmocka_unit_test(json_on_one_line),
        cmocka_unit_test(failures),
    };

    return UNIT_RUN(tests);
}
