/* The commands of the program, one file each. Exit codes: 0 good, 1 it could not be done, 2 it
 * was asked for in a way that makes no sense. Data goes to stdout, talk to stderr. */
#ifndef ARBE_CLI_COMMAND_H
#define ARBE_CLI_COMMAND_H

enum command_exit {
    COMMAND_GOOD = 0,
    COMMAND_FAILED = 1,
    COMMAND_USAGE = 2,
};

/* Serves durable streams until SIGTERM. `argv` begins after the command's name. Returns an exit
 * code. */
int command_streams(int argc, char **argv);

#endif
