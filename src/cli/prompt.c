/* The terminal is given back as it was, also when a signal ends the wait. */
#include "cli/prompt.h"

#include "cli/interrupt.h"

#include <errno.h>
#include <stdio.h>
#include <termios.h>
#include <unistd.h>

/* Switches the echo off; false when stdin is no terminal. */
static bool hide(struct termios *ret_before)
{
    struct termios quiet;

    if (tcgetattr(STDIN_FILENO, ret_before) != 0) {
        return false;
    }
    quiet = *ret_before;
    quiet.c_lflag &= ~(tcflag_t)ECHO;
    quiet.c_lflag |= ECHONL;
    return tcsetattr(STDIN_FILENO, TCSAFLUSH, &quiet) == 0;
}

/* Reads to a line end or the end of stdin, byte by byte: what follows is somebody else's. */
static int read_line(const char *what, char out[static PROMPT_SECRET_BYTES], size_t *ret_len,
                     struct errmsg *msg)
{
    size_t len = 0;

    for (;;) {
        struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};
        int ready = interrupt_poll(&fd, 1, -1);

        if (interrupt_signal() != 0) {
            return err_set(msg, ERR_STOPPING, "interrupted");
        }
        if (ready == 0) {
            continue;
        }
        ssize_t got = read(STDIN_FILENO, out + len, 1);

        if (got < 0 && errno != EINTR) {
            return err_set(msg, ERR_IO, "cannot read stdin: %s", strerror(errno));
        }
        if (got == 0 || (got == 1 && out[len] == '\n')) {
            *ret_len = len;
            return 0;
        }
        if (got == 1 && ++len == PROMPT_SECRET_BYTES - 1) {
            return err_set(msg, ERR_INVALID, "%s of so many bytes is none", what);
        }
    }
}

static int check(const char *what, struct slice secret, struct errmsg *msg)
{
    for (size_t i = 0; i < secret.len; i++) {
        if (secret.ptr[i] < 0x21 || secret.ptr[i] > 0x7e) {
            return err_set(msg, ERR_INVALID, "%s is visible ASCII without spaces", what);
        }
    }
    return secret.len > 0 ? 0 : err_set(msg, ERR_INVALID, "there is no line on stdin for %s", what);
}

int prompt_secret(const char *question, const char *what, char out[static PROMPT_SECRET_BYTES],
                  struct errmsg *msg)
{
    struct termios before;
    bool hidden = isatty(STDIN_FILENO) == 1 && hide(&before);
    size_t len = 0;

    if (hidden) {
        (void)fprintf(stderr, "%s", question);
    }
    int code = read_line(what, out, &len, msg);

    if (hidden) {
        (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &before); /* nothing can be done about it */
        if (code != 0) {
            (void)fputc('\n', stderr);
        }
    }
    while (code == 0 && len > 0 && (out[len - 1] == '\r' || out[len - 1] == ' ')) {
        len--;
    }
    if (code == 0) {
        out[len] = '\0';
        code = check(what, (struct slice){out, len}, msg);
    }
    return code;
}
