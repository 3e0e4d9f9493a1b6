/* Runs a program on a terminal of its own, as a job of a shell, so that it can be stopped:
 *
 *   pty COLUMNS ROWS PROGRAM [ARG...]
 *
 * What the terminal shows comes out of stdout. Lines on stdin say what happens to it:
 *
 *   type HEX             somebody types those bytes
 *   size COLUMNS ROWS    the window gets another size
 *   signal NUMBER        the program is sent it
 *   hold, go             nobody reads the terminal; somebody does again
 *
 * and its end closes the terminal. What becomes of the program is told on descriptor 3, in lines:
 * "pid N", "stopped", "continued", "exit CODE" or "signal N" at its end, with "same" or "changed"
 * for the settings of the terminal. */
#include <errno.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#define TELL 3

static void die(const char *what)
{
    perror(what);
    _exit(99);
}

/* Makes the caller's own process group the one that the terminal belongs to. */
static void take_terminal(void)
{
    signal(SIGTTOU, SIG_IGN);
    if (setpgid(0, 0) != 0 || tcsetpgrp(STDIN_FILENO, getpgrp()) != 0) {
        die("tcsetpgrp");
    }
    signal(SIGTTOU, SIG_DFL);
}

static int same_settings(const struct termios *before)
{
    struct termios after;

    return tcgetattr(STDIN_FILENO, &after) == 0 && after.c_lflag == before->c_lflag &&
           after.c_iflag == before->c_iflag && after.c_oflag == before->c_oflag;
}

/* The shell: its job is the program. Outlives the terminal, to tell how that ended. */
static void be_shell(char **argv)
{
    struct termios before;
    int status;
    int wanted = WUNTRACED | WCONTINUED;

    signal(SIGHUP, SIG_IGN);
    tcgetattr(STDIN_FILENO, &before);
    pid_t pid = fork();

    if (pid == 0) {
        close(TELL);
        signal(SIGHUP, SIG_DFL);
        take_terminal();
        execv(argv[0], argv);
        die(argv[0]);
    }
    dprintf(TELL, "pid %d\n", (int)pid);
    while (waitpid(pid, &status, wanted) == pid) {
        if (WIFSTOPPED(status)) {
            dprintf(TELL, "stopped %s\n", same_settings(&before) ? "same" : "changed");
        } else if (WIFCONTINUED(status)) {
            dprintf(TELL, "continued\n");
        } else {
            dprintf(TELL, "%s %d %s\n", WIFEXITED(status) ? "exit" : "signal",
                    WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status),
                    same_settings(&before) ? "same" : "changed");
            break;
        }
    }
    _exit(0);
}

static void type(int master, const char *hex)
{
    unsigned byte;

    while (sscanf(hex, "%2x", &byte) == 1) {
        char c = (char)byte;

        if (write(master, &c, 1) != 1) {
            die("write");
        }
        hex += 2;
    }
}

/* Sends to the job that has the terminal. */
static void send_signal(int master, int number)
{
    pid_t group = tcgetpgrp(master);

    if (group > 0) {
        kill(-group, number);
    }
}

static void obey(int master, const char *line, int *hold)
{
    struct winsize size = {.ws_row = 0};

    if (strncmp(line, "type ", 5) == 0) {
        type(master, line + 5);
    } else if (sscanf(line, "size %hu %hu", &size.ws_col, &size.ws_row) == 2) {
        ioctl(master, TIOCSWINSZ, &size);
    } else if (strncmp(line, "signal ", 7) == 0) {
        send_signal(master, (int)strtol(line + 7, NULL, 10));
    } else {
        *hold = strncmp(line, "hold", 4) == 0;
    }
}

/* Hands on what the terminal shows. False at its end. */
static int show(int master)
{
    char bytes[65536];
    ssize_t len = read(master, bytes, sizeof(bytes));

    for (ssize_t done = 0; done < len;) {
        ssize_t wrote = write(STDOUT_FILENO, bytes + done, (size_t)(len - done));

        if (wrote < 0) {
            return 0;
        }
        done += wrote;
    }
    return len > 0;
}

static void be_terminal(int master)
{
    static char lines[1 << 20];
    size_t len = 0;
    int hold = 0;

    for (;;) {
        struct pollfd fds[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                               {.fd = hold ? -1 : master, .events = POLLIN}};

        if (poll(fds, 2, -1) < 0 && errno != EINTR) {
            die("poll");
        }
        if (fds[1].revents != 0 && !show(master)) {
            return;
        }
        if (fds[0].revents != 0) {
            ssize_t more = read(STDIN_FILENO, lines + len, sizeof(lines) - 1 - len);
            char *end;

            if (more <= 0) {
                return;
            }
            len += (size_t)more;
            lines[len] = '\0';
            while ((end = strchr(lines, '\n')) != NULL) {
                *end = '\0';
                obey(master, lines, &hold);
                len -= (size_t)(end + 1 - lines);
                memmove(lines, end + 1, len + 1);
            }
        }
    }
}

int main(int argc, char **argv)
{
    struct winsize size = {.ws_row = 0};
    int master;

    if (argc < 4) {
        return 98;
    }
    size.ws_col = (unsigned short)strtol(argv[1], NULL, 10);
    size.ws_row = (unsigned short)strtol(argv[2], NULL, 10);
    pid_t pid = forkpty(&master, NULL, NULL, &size);

    if (pid < 0) {
        die("forkpty");
    }
    if (pid == 0) {
        be_shell(argv + 3);
    }
    be_terminal(master);
    close(master);
    waitpid(pid, NULL, 0);
    return 0;
}
