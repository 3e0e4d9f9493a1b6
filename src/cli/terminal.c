/* Stopping: the terminal is given back, the signal does what it does by default, and when the
 * program goes on the terminal is taken again. SIGSTOP cannot be seen coming; the SIGCONT after it
 * says that the shell may have changed everything. */
#include "cli/terminal.h"

#include "base/err.h"
#include "cli/cells.h"
#include "cli/interrupt.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define READ_BYTES  1024u
#define WRITE_BYTES 512u /* at a time: between two a signal is seen */
/* The alternate screen, no cursor, no wrapping of lines; and back. */
#define ENTER SLICE("\033[?1049h\033[?25l\033[?7l\033[0m\033[2J")
#define LEAVE SLICE("\033[0m\033[?7h\033[?25h\033[?1049l")

static bool is_set(const char *name)
{
    const char *value = getenv(name);

    return value != NULL && value[0] != '\0';
}

bool terminal_can_begin(void)
{
    return isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1 && is_set("TERM") &&
           strcmp(getenv("TERM"), "dumb") != 0;
}

/* Whether the user says that the terminal has another character set than UTF-8. Who says nothing,
 * as over many a link, has a terminal of UTF-8 like all others. */
static bool wants_ascii(void)
{
    const char *set = setlocale(LC_CTYPE, "") == NULL ? "" : nl_langinfo(CODESET);
    bool ascii = set[0] != '\0' && strcmp(set, "UTF-8") != 0 && strcmp(set, "ANSI_X3.4-1968") != 0;

    (void)setlocale(LC_CTYPE, "C");
    return ascii;
}

static void set_of_signals(sigset_t *ret_set)
{
    (void)sigemptyset(ret_set);
    (void)sigaddset(ret_set, SIGWINCH);
    (void)sigaddset(ret_set, SIGTSTP);
    (void)sigaddset(ret_set, SIGCONT);
    (void)sigaddset(ret_set, SIGQUIT);
}

/* Keys come one by one, unchanged and unseen; Ctrl-C, Ctrl-Z and Ctrl-\ stay signals. */
static int take_over(struct terminal *t)
{
    struct termios raw = t->before;

    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO | IEXTEN);
    raw.c_iflag &= ~(tcflag_t)(IXON | ICRNL | INLCR | ISTRIP);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    if (tcsetattr(STDIN_FILENO, TCSANOW, &raw) != 0) {
        return ERR_IO;
    }
    t->active = true;
    int code = terminal_write(ENTER);

    return code == ERR_AGAIN ? 0 : code; /* whoever is interrupted looks at the signal next */
}

int terminal_begin(struct terminal *t)
{
    sigset_t set;
    int code;

    *t = (struct terminal){.signals = -1, .colour = !is_set("NO_COLOR"), .ascii = wants_ascii()};
    if (tcgetattr(STDIN_FILENO, &t->before) != 0) {
        return ERR_IO;
    }
    set_of_signals(&set);
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
    t->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    code = t->signals < 0 ? ERR_IO : take_over(t);
    if (code != 0) {
        terminal_end(t);
    }
    return code;
}

/* Gives the terminal back, the signals stay. */
static void let_go(struct terminal *t)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};

    if (!t->active) {
        return;
    }
    t->active = false;
    if (poll(&out, 1, 0) == 1 && (out.revents & POLLOUT) != 0) {
        /* There is nobody left to tell if it fails. */
        (void)!write(STDOUT_FILENO, LEAVE.ptr, LEAVE.len);
    }
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &t->before);
}

void terminal_end(struct terminal *t)
{
    sigset_t set;

    let_go(t);
    if (t->signals >= 0) {
        (void)close(t->signals);
        t->signals = -1;
    }
    set_of_signals(&set);
    (void)pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

void terminal_size(int *ret_columns, int *ret_rows)
{
    struct winsize size = {.ws_row = 0};

    (void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    *ret_columns = size.ws_col == 0 ? 80 : size.ws_col;
    *ret_rows = size.ws_row == 0 ? 24 : size.ws_row;
}

static void stop(struct terminal *t)
{
    sigset_t set;

    let_go(t);
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTSTP);
    (void)raise(SIGTSTP);
    (void)pthread_sigmask(SIG_UNBLOCK, &set, NULL); /* here the program stops */
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
}

enum terminal_event terminal_take_signal(struct terminal *t)
{
    struct signalfd_siginfo info;

    if (read(t->signals, &info, sizeof(info)) != (ssize_t)sizeof(info)) {
        return TERMINAL_NOTHING;
    }
    if (info.ssi_signo == SIGQUIT) {
        return TERMINAL_QUIT;
    }
    if (info.ssi_signo == SIGTSTP) {
        stop(t);
    }
    if (info.ssi_signo != SIGWINCH && take_over(t) != 0) {
        return TERMINAL_QUIT;
    }
    return TERMINAL_REPAINT;
}

int terminal_write(struct slice bytes)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};

    while (bytes.len > 0) {
        if (interrupt_poll(&out, 1, -1) == 0) {
            return ERR_AGAIN;
        }
        ssize_t len = write(STDOUT_FILENO, bytes.ptr,
                            bytes.len < WRITE_BYTES ? bytes.len : WRITE_BYTES);

        if (len > 0) {
            bytes = (struct slice){bytes.ptr + len, bytes.len - (size_t)len};
        } else if (len < 0 && errno != EINTR) {
            return ERR_IO;
        }
    }
    return 0;
}

int terminal_read(struct buf *buf)
{
    char *room = buf_reserve(buf, READ_BYTES);

    if (room == NULL) {
        buf_clear(buf);
        return 0;
    }
    ssize_t len = read(STDIN_FILENO, room, READ_BYTES);

    if (len <= 0) {
        return len < 0 && errno == EINTR ? 0 : ERR_IO;
    }
    buf_advance(buf, (size_t)len);
    return 0;
}
