/* The terminal as a screen of one's own, with keys: the alternate screen, no echo, no cursor. What
 * was there before comes back on every way out, also while the program is stopped (Ctrl-Z).
 *
 * Signals that concern the terminal (SIGWINCH, SIGTSTP, SIGCONT, SIGQUIT) are read, not caught:
 * begin before any thread is started, which would else be given them. One thread. */
#ifndef ARBE_CLI_TERMINAL_H
#define ARBE_CLI_TERMINAL_H

#include "base/attr.h"
#include "base/buf.h"

#include <stdbool.h>
#include <termios.h>

struct terminal {
    int signals;           /* a descriptor to be polled: then terminal_take_signal */
    bool colour;           /* colours are wanted */
    bool ascii;            /* it shows no other characters */
    struct termios before; /* private: as it was found */
    bool active;           /* private: it is ours */
};

enum terminal_event {
    TERMINAL_NOTHING,
    TERMINAL_REPAINT, /* the size may be another one, or what is shown may be lost */
    TERMINAL_QUIT,    /* SIGQUIT: the program is to end */
};

/* Whether a screen can be had: both stdin and stdout are a terminal, and TERM is not dumb. */
bool terminal_can_begin(void);

/* Takes it over. ERR_IO. */
int terminal_begin(struct terminal *t) MUST_USE;

/* Gives it back. Does not wait for a terminal that takes nothing. */
void terminal_end(struct terminal *t);

/* How large it is; what it does not say is 80 by 24. */
void terminal_size(int *ret_columns, int *ret_rows);

/* Reads one of those signals. In SIGTSTP it stops, and returns when the program goes on. */
enum terminal_event terminal_take_signal(struct terminal *t);

/* Writes all of it; blocks until the terminal has taken it, or a signal comes: ERR_AGAIN, and a
 * part may have been written. ERR_IO: the terminal is gone. */
int terminal_write(struct slice bytes) MUST_USE;

/* Reads what was typed into `buf`: ERR_IO: the terminal is gone. Only when there is some. */
int terminal_read(struct buf *buf) MUST_USE;

#endif
