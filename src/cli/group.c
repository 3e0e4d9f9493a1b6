/* A command's name may be two words; the longer one that fits is meant. */
#include "cli/group.h"

#include "cli/command.h"

#include <assert.h>

#define LEFT_BYTES 80

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static bool wants_help(int argc, char **argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (is_help(argv[i])) {
            return true;
        }
    }
    return false;
}

static int end_help(void)
{
    return fflush(stdout) == 0 && !ferror(stdout) ? COMMAND_GOOD : COMMAND_FAILED;
}

/* Whether the name of `row` is two words of which `word` is the first. */
static bool begins_with(const struct group_row *row, const char *word)
{
    size_t len = strlen(word);

    return len > 0 && strncmp(row->name, word, len) == 0 && row->name[len] == ' ';
}

static size_t format_left(const struct group *group, const struct group_row *row,
                          char out[static LEFT_BYTES])
{
    int len = snprintf(out, LEFT_BYTES, "  arbe %s %s%s%s", group->name, row->name,
                       row->operands[0] == '\0' ? "" : " ", row->operands);

    assert(len > 0 && len < LEFT_BYTES);
    return (size_t)len;
}

/* A line for each command; with `word` of those only whose names begin with it. */
static void print_rows(const struct group *group, const char *word)
{
    char left[LEFT_BYTES];
    size_t width = 0;

    for (size_t i = 0; i < group->row_count; i++) {
        size_t len = format_left(group, &group->rows[i], left);

        width = len > width ? len : width;
    }
    for (size_t i = 0; i < group->row_count; i++) {
        if (word == NULL || begins_with(&group->rows[i], word)) {
            (void)format_left(group, &group->rows[i], left);
            (void)printf("%-*s %s\n", (int)width, left, group->rows[i].line);
        }
    }
}

/* Of a group that does something by itself. */
static int print_bare_help(const struct group *group)
{
    (void)printf("Usage: arbe %s [FLAG...]\n       arbe %s COMMAND [FLAG...]\n\n%s%s\n",
                 group->name, group->name, group->about, group->bare->text);
    flags_print_help(group->bare->flags, group->bare->flag_count, stdout);
    flags_print_help(group->shared, group->shared_count, stdout);
    (void)printf("\nCommands:\n");
    print_rows(group, NULL);
    (void)printf("\n%s", group->end);
    return end_help();
}

static int print_help(const struct group *group, const char *word)
{
    if (group->bare != NULL && word == NULL) {
        return print_bare_help(group);
    }
    (void)printf("Usage: arbe %s %s%sCOMMAND [FLAG...]%s%s\n\n%s\nCommands:\n", group->name,
                 word == NULL ? "" : word, word == NULL ? "" : " ",
                 group->operands[0] == '\0' ? "" : " ", group->operands, group->about);
    print_rows(group, word);
    if (group->shared_count > 0) {
        (void)printf("\nOf every command:\n");
        flags_print_help(group->shared, group->shared_count, stdout);
    }
    (void)printf("\n%s", group->end);
    return end_help();
}

static int print_row_help(const struct group *group, const struct group_row *row)
{
    (void)printf("Usage: arbe %s %s [FLAG...]%s%s\n\n%s\n", group->name, row->name,
                 row->operands[0] == '\0' ? "" : " ", row->operands, row->text);
    flags_print_help(row->flags, row->flag_count, stdout);
    flags_print_help(group->shared, group->shared_count, stdout);
    return end_help();
}

/* The command that the words begin with, and how many of them are its name. */
static const struct group_row *find(const struct group *group, int argc, char **argv, int *ret_used)
{
    if (group->bare != NULL && (argc == 0 || (argv[0][0] == '-' && !is_help(argv[0])))) {
        *ret_used = 0;
        return group->bare;
    }
    for (size_t i = 0; argc > 0 && i < group->row_count; i++) {
        const struct group_row *row = &group->rows[i];
        const char *space = strchr(row->name, ' ');

        if (space == NULL
                ? strcmp(argv[0], row->name) == 0
                : argc > 1 && begins_with(row, argv[0]) && strcmp(argv[1], space + 1) == 0) {
            *ret_used = space == NULL ? 1 : 2;
            return row;
        }
    }
    return NULL;
}

/* A word with a dash that is no flag: "-" and numbers are data. */
static bool is_short_flag(const char *word)
{
    return word[0] == '-' && word[1] != '\0' && strchr("0123456789.", word[1]) == NULL;
}

static int take_operand(struct group_choice *choice, char *word, struct errmsg *msg)
{
    if (choice->operand_count == choice->row->operands_max) {
        return err_set(msg, ERR_INVALID, "one word too many: \"%.40s\"", word);
    }
    choice->operands[choice->operand_count++] = word;
    return 0;
}

/* Takes what follows the command's name. */
static int parse(const struct group *group, int argc, char **argv, void *settings,
                 struct group_choice *choice, struct errmsg *msg)
{
    const struct group_row *row = choice->row;
    struct flag flags[GROUP_FLAGS_MAX];
    struct flag_table table = {flags, row->flag_count + group->shared_count, settings, NULL};
    bool only_operands = false;

    assert(table.count <= GROUP_FLAGS_MAX);
    if (row->flag_count > 0) {
        memcpy(flags, row->flags, row->flag_count * sizeof(flags[0]));
    }
    if (group->shared_count > 0) {
        memcpy(flags + row->flag_count, group->shared, group->shared_count * sizeof(flags[0]));
    }
    choice->operands = argv;
    int code = flags_set_defaults(&table, msg);

    for (int i = 0; code == 0 && i < argc;) {
        int used = 1;

        if (only_operands) {
            code = take_operand(choice, argv[i], msg);
        } else if (strcmp(argv[i], "--") == 0) {
            only_operands = true;
        } else if (strncmp(argv[i], "--", 2) == 0) {
            code = flags_take_argument(&table, argc - i, argv + i, &used, msg);
        } else if (is_short_flag(argv[i])) {
            code = err_set(msg, ERR_INVALID,
                           "there is no flag %.40s; words after -- are taken as they are", argv[i]);
        } else {
            code = take_operand(choice, argv[i], msg);
        }
        i += used;
    }
    if (code == 0 && choice->operand_count < row->operands_min) {
        code = err_set(msg, ERR_INVALID, "%s usage: arbe %s %s [FLAG...] %s", row->ask, group->name,
                       row->name, row->operands);
    }
    return code == 0 ? COMMAND_GOOD : COMMAND_USAGE;
}

/* No command: help that was asked for, or a sentence. */
static int miss(const struct group *group, int argc, char **argv, struct errmsg *msg)
{
    const char *word = argc > 0 ? argv[0] : "";
    bool half = false;

    for (size_t i = 0; i < group->row_count; i++) {
        half = half || begins_with(&group->rows[i], word);
    }
    if (is_help(word) || strcmp(word, "help") == 0) {
        return print_help(group, NULL);
    }
    if (half && wants_help(argc, argv)) {
        return print_help(group, word);
    }
    if (word[0] == '\0' || (half && argc == 1)) {
        (void)err_set(msg, ERR_INVALID, "which command? arbe %s%s%s --help tells them", group->name,
                      half ? " " : "", word);
    } else {
        (void)err_set(msg, ERR_INVALID,
                      "there is no command \"%.40s%s%.40s\"; arbe %s --help tells them%s", word,
                      half ? " " : "", half ? argv[1] : "", group->name,
                      group->miss == NULL ? "" : group->miss);
    }
    return COMMAND_USAGE;
}

int group_choose(const struct group *group, int argc, char **argv, void *settings,
                 struct group_choice *ret_choice, struct errmsg *msg)
{
    struct group_choice choice = {.row = NULL};
    int used = 0;

    *ret_choice = choice;
    choice.row = find(group, argc, argv, &used);
    if (choice.row == NULL) {
        return miss(group, argc, argv, msg);
    }
    if (wants_help(argc - used, argv + used)) {
        return choice.row == group->bare ? print_help(group, NULL)
                                         : print_row_help(group, choice.row);
    }
    int code = parse(group, argc - used, argv + used, settings, &choice, msg);

    *ret_choice = choice;
    return code;
}
