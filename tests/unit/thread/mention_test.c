/* Handles of names, and the mentions in texts. */
#include "thread/mention.c"

#include "base/buf.h"

#include "unit/base/unit.h"
#include "unit/thread/json_gen.h"

/* A name's handle is lower case, with hyphens for what is no letter, and none at the ends. */
static void test_handle(void **state)
{
    static const struct {
        const char *name;
        const char *handle;
    } cases[] = {
        {"Archive Bot", "archive-bot"},
        {"archive-bot", "archive-bot"},
        {"  R2-D2!! (beta_3) ", "r2-d2-beta-3"},
        {"my.bot@home", "my-bot-home"},
        {"", ""},
        {" - ", ""},
        {"Zo\xc3\xab", "zo\xc3\xab"},
        {"\xe5\x8a\xa9\xe6\x89\x8b", "\xe5\x8a\xa9\xe6\x89\x8b"},
        {"Bot \xf0\x9f\xa4\x96", "bot"},
        {"a\xe2\x80\x94"
         "b",
         "a-b"},
        {"a\xff"
         "b",
         "a-b"},
        {"a\xc3", "a"},
    };
    char handle[MENTION_HANDLE_BYTES];
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        size_t len = mention_handle(slice_of(cases[i].name), handle);
        assert_string_equal(handle, cases[i].handle);
        assert_int_equal(len, strlen(cases[i].handle));
    }
    assert_int_equal(mention_handle((struct slice){NULL, 0}, handle), 0);
}

/* A handle of a handle is itself, whatever the name, and fits; a longer name is cut between
 * characters. */
static void test_handle_fits(void **state)
{
    struct gen g;
    char name[300];
    char handle[MENTION_HANDLE_BYTES];
    char again[MENTION_HANDLE_BYTES];
    (void)state;
    gen_init(&g);
    for (int round = 0; round < 5000; round++) {
        size_t len = gen_below(&g, sizeof(name));
        for (size_t i = 0; i < len; i++) {
            name[i] = (char)gen_below(&g, gen_below(&g, 2) ? 256 : 128);
        }
        size_t handle_len = mention_handle((struct slice){name, len}, handle);
        assert_true(handle_len <= RECORD_NAME_BYTES_MAX);
        assert_true(utf8_valid((struct slice){handle, handle_len}));
        assert_int_equal(mention_handle((struct slice){handle, handle_len}, again), handle_len);
        assert_string_equal(handle, again);
    }
    memset(name, 'a', sizeof(name));
    memcpy(name + 199, "\xc3\xa9", 2);
    assert_int_equal(mention_handle((struct slice){name, 300}, handle), 199);
}

static int on_mention(void *context, struct slice handle)
{
    struct buf *out = context;
    buf_append(out, handle);
    buf_append_char(out, ' ');
    return slice_equal(handle, SLICE("stop")) ? 7 : 0;
}

static void assert_mentions(const char *text, const char *want)
{
    char memory[400];
    struct buf out;
    buf_init_fixed(&out, memory, sizeof(memory));
    assert_int_equal(mention_each(slice_of(text), on_mention, &out), 0);
    memory[out.len] = '\0';
    if (strcmp(memory, want) != 0) {
        fail_msg("%s mentions %s, not %s", text, memory, want);
    }
}

/* Mentions begin at an @ that is not within a word, and end with the word. */
static void test_mentions(void **state)
{
    (void)state;
    assert_mentions("", "");
    assert_mentions("@archive-bot hello", "archive-bot ");
    assert_mentions("hello @Archive-Bot, and @other.", "archive-bot other ");
    assert_mentions("(@a)/@b:@c\n@d", "a b c d ");
    assert_mentions("me@example.org", "");
    assert_mentions("x_@bot 7@bot \xc3\xa9@bot", "");
    assert_mentions("-@bot", "bot ");
    assert_mentions("@@bot @", "bot ");
    assert_mentions("@a@b", "a ");
    assert_mentions("@my_bot @-bot- @--", "my-bot bot ");
    assert_mentions("@bot's @bot\xe2\x80\xa6 \xe2\x80\x9c@bot\xe2\x80\x9d", "bot bot bot ");
    assert_mentions("@\xe5\x8a\xa9\xe6\x89\x8b\xe3\x80\x82", "\xe5\x8a\xa9\xe6\x89\x8b ");
    assert_mentions("@bot\xf0\x9f\x91\x8b", "bot ");
    assert_mentions("@a\xff@b", "a b ");
}

/* The walk ends when it is told to. */
static void test_stop(void **state)
{
    char memory[100];
    struct buf out;
    (void)state;
    buf_init_fixed(&out, memory, sizeof(memory));
    assert_int_equal(mention_each(SLICE("@a @stop @b"), on_mention, &out), 7);
    assert_int_equal(out.len, strlen("a stop "));
}

/* A whole handle is asked for. */
static void test_has(void **state)
{
    (void)state;
    assert_true(mention_has(SLICE("so, @Archive-Bot?"), SLICE("archive-bot")));
    assert_false(mention_has(SLICE("@archive"), SLICE("archive-bot")));
    assert_false(mention_has(SLICE("@archive-bot-2"), SLICE("archive-bot")));
    assert_false(mention_has(SLICE("archive-bot"), SLICE("archive-bot")));
}

/* What is longer than any handle mentions nobody. */
static void test_long(void **state)
{
    char text[RECORD_NAME_BYTES_MAX + 3];
    (void)state;
    memset(text, 'a', sizeof(text));
    text[0] = '@';
    assert_true(mention_has((struct slice){text, RECORD_NAME_BYTES_MAX + 1},
                            (struct slice){text + 1, RECORD_NAME_BYTES_MAX}));
    assert_false(mention_has((struct slice){text, RECORD_NAME_BYTES_MAX + 2},
                             (struct slice){text + 1, RECORD_NAME_BYTES_MAX}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_handle),   cmocka_unit_test(test_handle_fits),
        cmocka_unit_test(test_mentions), cmocka_unit_test(test_stop),
        cmocka_unit_test(test_has),      cmocka_unit_test(test_long),
    };
    return UNIT_RUN(tests);
}
