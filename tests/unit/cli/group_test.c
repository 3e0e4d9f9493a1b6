/* Which command a line asks for, with which operands and flags, and what is said of wrong ones. */
#include "cli/group.c"

#include "unit/base/unit.h"

struct values {
    const char *url;
    const char *name;
    uint64_t json;
};

#define AT(field) offsetof(struct values, field)

static const struct flag shared[] = {
    {"url", "URL", NULL, "where", NULL, FLAG_TEXT, AT(url), 0, 0},
    {"json", NULL, NULL, "for machines", NULL, FLAG_SWITCH, AT(json), 0, 0},
};
static const struct flag make_flags[] = {
    {"name", "NAME", "none", "what it is called", NULL, FLAG_TEXT, AT(name), 0, 0},
};
static const struct group_row rows[] = {
    {"make", "THING [PLACE]", 1, 2, "which thing?", {.app = NULL}, make_flags, 1, "make it", "M\n"},
    {"key list", "", 0, 0, NULL, {.app = NULL}, NULL, 0, "list keys", "L\n"},
    {"key make", "[NAME]", 0, 1, NULL, {.app = NULL}, NULL, 0, "make a key", "K\n"},
};
static const struct group group = {"thing", "THING...", "Things.\n", "End.\n", shared,
                                   2,       rows,       3,           NULL,     NULL};
static const struct flag bare_flags[] = {
    {"name", "NAME", "none", "what it is called", NULL, FLAG_TEXT, AT(name), 0, 0},
};
static const struct group_row bare_row = {"",         "", 0,  0,    NULL, {.app = NULL},
                                          bare_flags, 1,  "", "B\n"};
static const struct group doing = {"thing", "",   "Things.\n", "End.\n",  NULL,
                                   0,       rows, 3,           "; or so", &bare_row};

/* Chooses by the words of `line`, and says what came of it. */
static int choose_of(const struct group *of, const char *line, struct values *values,
                     struct group_choice *choice, struct errmsg *msg)
{
    static char memory[400];
    static char *argv[20];
    int argc = 0;

    (void)snprintf(memory, sizeof(memory), "%s", line);
    for (char *at = memory; *at != '\0';) {
        size_t len = strcspn(at, " ");

        argv[argc++] = at;
        at += len;
        if (*at == ' ') {
            *at++ = '\0';
        }
    }
    *values = (struct values){.url = NULL};
    *msg = (struct errmsg){{0}};
    return group_choose(of, argc, argv, values, choice, msg);
}

static int choose(const char *line, struct values *values, struct group_choice *choice,
                  struct errmsg *msg)
{
    return choose_of(&group, line, values, choice, msg);
}

/* Flags stand anywhere; behind "--" nothing is a flag; numbers and "-" are data. */
static void finds_command_operands_and_flags(void **state)
{
    struct values values;
    struct group_choice choice;
    struct errmsg msg;

    (void)state;
    assert_int_equal(choose("make --url u a --json -1", &values, &choice, &msg), 0);
    assert_ptr_equal(choice.row, &rows[0]);
    assert_int_equal(choice.operand_count, 2);
    assert_string_equal(choice.operands[0], "a");
    assert_string_equal(choice.operands[1], "-1");
    assert_string_equal(values.url, "u");
    assert_string_equal(values.name, "none");
    assert_int_equal(values.json, 1);
    assert_int_equal(choose("make - -- --url", &values, &choice, &msg), 0);
    assert_string_equal(choice.operands[1], "--url");
    assert_null(values.url);
}

/* The two words of a name are one command. */
static void names_may_be_two_words(void **state)
{
    struct values values;
    struct group_choice choice;
    struct errmsg msg;

    (void)state;
    assert_int_equal(choose("key list", &values, &choice, &msg), 0);
    assert_ptr_equal(choice.row, &rows[1]);
    assert_int_equal(choose("key make x", &values, &choice, &msg), 0);
    assert_ptr_equal(choice.row, &rows[2]);
    assert_string_equal(choice.operands[0], "x");
}

/* Wrong usage is told in a sentence, with the flags that stood before it taken. */
static void refuses_what_makes_no_sense(void **state)
{
    static const struct {
        const char *line;
        const char *sentence;
        bool with_row;
    } cases[] = {
        {"", "which command? arbe thing --help tells them", false},
        {"key", "which command? arbe thing key --help tells them", false},
        {"ke list", "there is no command \"ke\"; arbe thing --help tells them", false},
        {"key x", "there is no command \"key x\"; arbe thing --help tells them", false},
        {"--json", "there is no command \"--json\"; arbe thing --help tells them", false},
        {"make --json", "which thing? usage: arbe thing make [FLAG...] THING [PLACE]", true},
        {"make --json a b c", "one word too many: \"c\"", true},
        {"make --json -x", "there is no flag -x; words after -- are taken as they are", true},
        {"make --json --urk u", "there is no flag --urk; did you mean --url?", true},
        {"key list --json --name n", "there is no flag --name; --help lists them all", true},
    };
    struct values values;
    struct group_choice choice;
    struct errmsg msg;

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        assert_int_equal(choose(cases[i].line, &values, &choice, &msg), COMMAND_USAGE);
        assert_string_equal(msg.text, cases[i].sentence);
        assert_int_equal(choice.row != NULL, cases[i].with_row);
        assert_int_equal(values.json, cases[i].with_row);
    }
}

/* A group may do something by itself, with flags of its own; commands are found as ever. */
static void a_name_alone_may_be_enough(void **state)
{
    struct values values;
    struct group_choice choice;
    struct errmsg msg;

    (void)state;
    assert_int_equal(choose_of(&doing, "", &values, &choice, &msg), 0);
    assert_ptr_equal(choice.row, &bare_row);
    assert_string_equal(values.name, "none");
    assert_int_equal(choose_of(&doing, "--name n", &values, &choice, &msg), 0);
    assert_ptr_equal(choice.row, &bare_row);
    assert_string_equal(values.name, "n");
    assert_int_equal(choose_of(&doing, "key list", &values, &choice, &msg), 0);
    assert_ptr_equal(choice.row, &rows[1]);
    assert_int_equal(choose_of(&doing, "--name n word", &values, &choice, &msg), COMMAND_USAGE);
    assert_non_null(strstr(msg.text, "one word too many: \"word\""));
    assert_int_equal(choose_of(&doing, "--url u", &values, &choice, &msg), COMMAND_USAGE);
    assert_int_equal(choose_of(&doing, "nothing", &values, &choice, &msg), COMMAND_USAGE);
    assert_string_equal(msg.text,
                        "there is no command \"nothing\"; arbe thing --help tells them; or so");
    assert_null(choice.row);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_alone_may_be_enough),
        cmocka_unit_test(finds_command_operands_and_flags),
        cmocka_unit_test(names_may_be_two_words),
        cmocka_unit_test(refuses_what_makes_no_sense),
    };

    return UNIT_RUN(tests);
}
