/* A command of `arbe board`: what was asked for, and what it works with. */
#ifndef ARBE_CLI_BOARD_CALL_H
#define ARBE_CLI_BOARD_CALL_H

#include "arbe/t3_board.h"
#include "cli/flags.h"
#include "cli/out.h"
#include "cli/t3_hosts.h"
#include "t3/watch.h"

struct board_settings {
    struct t3_hosts_flags hosts;
    const char *host; /* of fold */
    uint64_t snippet_length;
    uint64_t json; /* switches */
    uint64_t once;
    uint64_t timeout_ms; /* of once; 0: as ever */
};

struct board_call {
    struct board_settings set;
    struct out out;
    struct t3_hosts hosts;  /* of those that watch */
    struct t3_watch *watch; /* likewise; owned */
    const char *word;       /* of fold: one that it does not take, or NULL */
};

/* Folds what stdin has, and prints the rows. An exit code, as all below; what is wrong is told on
 * stderr. */
int board_fold(struct board_call *call);

/* Makes the watch of the call's hosts, which tells its changes to `options`. 0, or an exit code,
 * when it has told why. */
int board_open(struct board_call *call, struct t3_watch_options *options) MUST_USE;

/* Shows the board on a terminal until somebody quits. */
int board_live(struct board_call *call);

/* Prints changes as lines until a signal, or until there is nothing left to wait for. */
int board_follow(struct board_call *call);

/* Prints the board, newest activity first, once all hosts are either live or known not to be, or
 * their time is up. COMMAND_FAILED where it is not all that there is, which is told on stderr. */
int board_print(struct board_call *call);

/* Says on stderr how a host stands, and what can be done. */
void board_tell_host(const struct board_call *call, const struct t3_watch_host *host);

/* How many hosts there are in that state. */
size_t board_count_hosts(const struct t3_watch *watch, enum t3_reader_state state);

/* Says `sentence` on stderr, as one of arbe board. COMMAND_FAILED. */
int board_fail(const char *sentence);

#endif
