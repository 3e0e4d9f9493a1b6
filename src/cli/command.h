/* The commands of the program, one file each. Data goes to stdout, talk to stderr. */
#ifndef ARBE_CLI_COMMAND_H
#define ARBE_CLI_COMMAND_H

/* Exit codes. Those above 2 are for scripts that go on differently: only `arbe stream` has them. */
enum command_exit {
    COMMAND_GOOD = 0,
    COMMAND_FAILED = 1,        /* it could not be done */
    COMMAND_USAGE = 2,         /* it was asked for in a way that makes no sense */
    COMMAND_NOT_FOUND = 3,     /* there is no such stream, or not any more */
    COMMAND_CONFLICT = 4,      /* it is there with another configuration, or others were faster */
    COMMAND_CLOSED = 5,        /* the stream takes no more */
    COMMAND_FORBIDDEN = 6,     /* the server wants another secret, or a trusted certificate */
    COMMAND_LATER = 7,         /* no connection, no answer in time, or the server is busy */
    COMMAND_INTERRUPTED = 128, /* and the number of the signal: 130 is Ctrl-C */
};

/* Serves durable streams until SIGTERM. `argv` begins after the command's name. Returns an exit
 * code. */
int command_streams(int argc, char **argv);

/* Serves threads with their API and their streams, likewise. */
int command_serve(int argc, char **argv);

/* Works with the streams of a server. As above. */
int command_stream(int argc, char **argv);

/* Shows what threads of T3 Code are doing. As above. */
int command_board(int argc, char **argv);

/* Keeps tokens for servers of T3 Code, and shows what these tell. As above. */
int command_t3(int argc, char **argv);

/* Work with the API of `arbe serve`: who one is, houses, agents, configs, threads. As above. */
int command_auth(int argc, char **argv);

/* As above. */
int command_house(int argc, char **argv);

/* As above. */
int command_agent(int argc, char **argv);

/* As above. */
int command_config(int argc, char **argv);

/* As above. */
int command_thread(int argc, char **argv);

#endif
