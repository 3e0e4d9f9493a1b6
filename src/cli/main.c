/* The program: a table of commands. */
#include "cli/command.h"
#include "base/version.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help; /* one line */
};

static const struct command commands[] = {
    {"agent", command_agent, "people and bots, and their API keys"},
    {"auth", command_auth, "say who one is to which server"},
    {"board", command_board, "what threads of T3 Code are doing"},
    {"config", command_config, "what houses and threads set"},
    {"house", command_house, "houses, and who is in them"},
    {"serve", command_serve, "serve threads for people and agents, with their streams"},
    {"stream", command_stream, "create, append to, read and follow the streams of a server"},
    {"streams", command_streams, "serve durable streams from a data directory"},
    {"t3", command_t3, "servers of T3 Code: tokens to read them, and what they tell"},
    {"thread", command_thread, "threads, and what is written in them"},
};

#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

static void print_help(FILE *out)
{
    (void)fprintf(out, "arbe keeps the threads that people and agents share, as durable streams "
                       "over plain HTTP.\n\n"
                       "Usage: arbe COMMAND [FLAG...]\n\nCommands:\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        (void)fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].help);
    }
    (void)fprintf(out,
                  "\narbe COMMAND --help tells a command's flags; arbe --version its version.\n"
                  "Exit codes: 0 good, 1 it could not be done, 2 wrong usage.\n");
}

/* Standard output may be a full disk or a closed pipe: then the answer was not given. */
static int end_output(void)
{
    return fflush(stdout) == 0 && !ferror(stdout) ? COMMAND_GOOD : COMMAND_FAILED;
}

/* Where the caller closed a standard descriptor, the next file that is opened takes its number, and
 * what is said to the operator is written into the catalog. Each is opened for the direction in
 * which nobody uses it: an answer that goes nowhere is none, and its writing fails as it should. */
static bool hold_standard_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0 &&
            open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd) {
            return false;
        }
    }
    return true;
}

/* What is to be helped with goes before the asking; returns its first word. */
static const char *move_help(int argc, char **argv)
{
    static char flag[] = "--help";

    memmove(argv + 1, argv + 2, (size_t)(argc - 2) * sizeof(argv[0]));
    argv[argc - 1] = flag;
    return argv[1];
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";

    if (!hold_standard_descriptors()) {
        (void)fprintf(stderr, "arbe: cannot open /dev/null\n");
        return COMMAND_FAILED;
    }
    if (strcmp(name, "help") == 0 && argc > 2) {
        name = move_help(argc, argv);
    }
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(name, commands[i].name) == 0) {
            return commands[i].run(argc - 2, argv + 2);
        }
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
        print_help(stdout);
        return end_output();
    }
    if (strcmp(name, "--version") == 0) {
        (void)printf("arbe %s\n", ARBE_VERSION);
        return end_output();
    }
    if (name[0] != '\0') {
        (void)fprintf(stderr, "arbe: there is no command \"%s\"\n\n", name);
    }
    print_help(stderr);
    return COMMAND_USAGE;
}
