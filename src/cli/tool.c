/* Operands come in the order of the row, flags anywhere; "--" ends the flags. */
#include "cli/tool.h"

#include "base/attr.h"
#include "cli/command.h"

#include <stdio.h>
#include <string.h>

struct tool {
    const char *name;
    const char *operands; /* as the help shows them */
    unsigned operand_count;
    int (*run)(const struct tool_call *call);
    const char *line; /* of the list of all */
    const char *text; /* of its own help */
};

static const struct tool tools[] = {
    {"verify", "DIR", 1, tool_verify, "check every byte of a data directory, and change none",
     "Checks every checksum, extent, count and catalog entry of a data directory or of a\n"
     "backup, and prints one line for each thing that is wrong: where, what, and what it\n"
     "means. Nothing is written. A server may be running on the directory.\n"
     "Exit code 0: all is well; 1: damage was found, or it could not be read.\n"},
    {"backup", "DIR OUT", 2, tool_backup, "copy a data directory, while it is served",
     "Copies a data directory to OUT, which must be new or empty. A running server goes on;\n"
     "the copy holds all that was acknowledged before the backup began. It also holds the\n"
     "keys: keep it as safe as the directory itself.\n"},
    {"restore", "OUT DIR", 2, tool_restore, "bring a backup back into a new directory",
     "Proves the backup in OUT and copies it to DIR, which must be new or empty.\n"},
    {"stats", "DIR", 1, tool_stats, "tell what a data directory holds",
     "Counts streams, bytes, packs, log and catalog, and names the largest streams.\n"
     "Nothing is written. A server may be running on the directory.\n"},
    {"rotate-key", "DIR", 1, tool_rotate_key, "let a new key sign webhooks",
     "Adds a signing key to those of a data directory. It is published at once, signs after\n"
     "six minutes, when every receiver can know it, and the old one stays published until\n"
     "nothing that it signed is accepted any more. A server that runs notices by itself.\n"},
    {"replace-keys", "DIR", 1, tool_replace_keys, "make new keys where they were lost",
     "Makes new secrets for a data directory whose keys/keys.pem is missing or damaged, and\n"
     "sets the damaged file aside. Callback tokens made before are void; subscriptions are\n"
     "woken again when their leases end. The server must not be running.\n"},
};

bool tool_is_named(const char *word)
{
    return word[0] != '-' && word[0] != '\0';
}

static int end_output(void)
{
    return fflush(stdout) == 0 && !ferror(stdout) ? COMMAND_GOOD : COMMAND_FAILED;
}

int tool_end_output(void)
{
    if (end_output() != COMMAND_GOOD) {
        (void)fprintf(stderr, "arbe streams: the answer could not be written\n");
        return COMMAND_FAILED;
    }
    return COMMAND_GOOD;
}

void tool_print_all(void)
{
    for (size_t i = 0; i < ARRAY_COUNT(tools); i++) {
        char left[40];

        (void)snprintf(left, sizeof(left), "%s %s", tools[i].name, tools[i].operands);
        (void)printf("  arbe streams %-18s %s\n", left, tools[i].line);
    }
}

static int print_help(const struct tool *t)
{
    (void)printf("Usage: arbe streams %s [--json] %s\n\n%s", t->name, t->operands, t->text);
    (void)printf("\n  --json                          one JSON object a line on stdout\n");
    return end_output();
}

static int usage(const struct tool *t, const char *what, const char *word)
{
    (void)fprintf(stderr, "arbe streams %s: %s%s%s%s; usage: arbe streams %s [--json] %s\n",
                  t->name, what, word ? " \"" : "", word ? word : "", word ? "\"" : "", t->name,
                  t->operands);
    return COMMAND_USAGE;
}

/* Takes what follows the tool's name. */
static int parse(const struct tool *t, int argc, char **argv, struct tool_call *call)
{
    unsigned count = 0;
    bool flags = true;

    for (int i = 0; i < argc; i++) {
        const char *word = argv[i];

        if (flags && strcmp(word, "--") == 0) {
            flags = false;
        } else if (flags && strcmp(word, "--json") == 0) {
            call->json = true;
        } else if (flags && word[0] == '-') {
            return usage(t, "there is no flag", word);
        } else if (word[0] == '\0') {
            return usage(t, "an empty path is not good", NULL);
        } else if (count == t->operand_count) {
            return usage(t, "one word too many:", word);
        } else {
            call->operands[count++] = word;
        }
    }
    return count == t->operand_count ? COMMAND_GOOD : usage(t, "a path is missing", NULL);
}

static bool wants_help(int argc, char **argv)
{
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            return true;
        }
    }
    return false;
}

int tool_run(int argc, char **argv)
{
    for (size_t i = 0; i < ARRAY_COUNT(tools); i++) {
        const struct tool *t = &tools[i];

        if (strcmp(argv[0], t->name) == 0) {
            struct tool_call call = {.name = t->name};

            if (wants_help(argc - 1, argv + 1)) {
                return print_help(t);
            }
            int code = parse(t, argc - 1, argv + 1, &call);

            return code == COMMAND_GOOD ? t->run(&call) : code;
        }
    }
    (void)fprintf(stderr, "arbe streams: \"%.40s\" is not expected here: it is neither a flag nor",
                  argv[0]);
    for (size_t i = 0; i < ARRAY_COUNT(tools); i++) {
        bool last = i + 1 == ARRAY_COUNT(tools);

        (void)fprintf(stderr, "%s %s", i == 0 ? " one of" : last ? " or" : ",", tools[i].name);
    }
    (void)fprintf(stderr, "\n");
    return COMMAND_USAGE;
}

int tool_fail(const struct tool_call *call, const char *sentence)
{
    (void)fprintf(stderr, "arbe streams %s: %s\n", call->name, sentence);
    return COMMAND_FAILED;
}
