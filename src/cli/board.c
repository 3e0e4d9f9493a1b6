/* arbe board: what threads of T3 Code are doing. */
#include "base/json.h"
#include "base/limits.h"
#include "cli/board_call.h"
#include "cli/cells.h"
#include "cli/command.h"
#include "cli/group.h"
#include "cli/host_words.h"
#include "cli/interrupt.h"
#include "cli/terminal.h"

#include <stdio.h>

#define HOST_DEFAULT "local"
#define DAY_MS       (24u * 3600 * 1000)

int board_fail(const char *sentence)
{
    (void)fprintf(stderr, "arbe board: %s\n", sentence);
    return COMMAND_FAILED;
}

void board_tell_host(const struct board_call *call, const struct t3_watch_host *host)
{
    char text[HOST_WORDS_BYTES];
    char memory[2 * HOST_WORDS_BYTES];
    struct buf line;

    host_words(text, host, &(struct host_place){.hosts = &call->hosts});
    buf_init_fixed(&line, memory, sizeof(memory));
    cells_clean(&line, slice_of(host->label));
    buf_append(&line, SLICE(": "));
    cells_clean(&line, slice_of(text));
    (void)fprintf(stderr, "arbe board: %.*s\n", (int)line.len, line.ptr);
}

size_t board_count_hosts(const struct t3_watch *watch, enum t3_reader_state state)
{
    size_t count = 0;

    for (size_t i = 0; i < t3_watch_host_count(watch); i++) {
        count += t3_watch_host_at(watch, i)->state == state ? 1 : 0;
    }
    return count;
}

/* The same of what keeps the command from beginning, by a code of err.h: with --json as an object,
 * as other commands do. */
static int board_refuse(const struct board_call *call, int code, const char *sentence)
{
    const char *word = code == ERR_INVALID    ? "client.usage"
                       : code == ERR_NOTFOUND ? "t3.no_host"
                       : code == ERR_IO       ? "client.file"
                       : code == ERR_PERM     ? "t3.refused"
                                              : "t3.failed";
    char memory[8u * KIB];
    struct buf line;

    if (call->set.json == 0) {
        (void)board_fail(sentence);
    } else {
        buf_init_fixed(&line, memory, sizeof(memory));
        buf_append_format(&line, "{\"error\":{\"code\":\"%s\",\"message\":", word);
        json_append_string(&line, slice_of(sentence));
        buf_append(&line, SLICE("}}\n"));
        (void)fwrite(line.ptr, 1, line.len, stderr); /* nobody can be told otherwise */
    }
    return code == ERR_INVALID ? COMMAND_USAGE : COMMAND_FAILED;
}

int board_open(struct board_call *call, struct t3_watch_options *options)
{
    struct errmsg msg = {{0}};

    t3_board_options_init(&options->board);
    options->board.snippet_graphemes = (int)call->set.snippet_length;
    if (t3_watch_create(options, &call->watch, &msg) != 0 ||
        t3_hosts_watch(&call->hosts, call->watch, &msg) != 0) {
        return board_refuse(call, ERR_FAILED, msg.text);
    }
    return 0;
}

/* The board of the hosts that are meant, in the form that is wanted. */
static int run_watch(struct board_call *call)
{
    struct errmsg msg = {{0}};

    call->set.hosts.file = t3_hosts_choose(call->set.hosts.file);
    if (call->set.timeout_ms != 0 && call->set.once == 0) {
        return board_refuse(call, ERR_INVALID, "--timeout goes with --once");
    }
    int code = t3_hosts_load(&call->set.hosts, &call->hosts, &msg);

    if (code != 0) {
        return board_refuse(call, code, msg.text);
    }
    if (call->hosts.count == 0) {
        return board_refuse(call, ERR_NOTFOUND,
                            "no T3 Code server is known yet; sign in to one with arbe t3 login "
                            "URL, or name one with --t3 HOST=URL");
    }
    if (call->set.once != 0) {
        return board_print(call);
    }
    return call->set.json == 0 && terminal_can_begin() ? board_live(call) : board_follow(call);
}

/* ------------------------------------------------------------------ the table */

#define AT(member) offsetof(struct board_settings, member)
#define SNIPPET_LENGTH                                                                           \
    {                                                                                            \
        "snippet-length", "N", "160", "graphemes of a message that are shown", NULL, FLAG_COUNT, \
            AT(snippet_length), 1, T3_BOARD_SNIPPET_GRAPHEMES_MAX                                \
    }

static const struct flag fold_flags[] = {
    {"host", "HOST", HOST_DEFAULT, "label of the T3 installation", NULL, FLAG_TEXT, AT(host), 0, 0},
    SNIPPET_LENGTH,
};

static const struct flag watch_flags[] = {
    {"t3", "HOST=URL", NULL,
     "a server to watch, or HOST of the hosts' file; may be given again (default: all of the file)",
     NULL, FLAG_LIST, AT(hosts.t3), 0, 0},
    {"t3-hosts", "FILE", NULL,
     "the hosts' file (default: that of ARBE_T3_HOSTS_FILE, else ~/.config/arbe/t3)", NULL,
     FLAG_TEXT, AT(hosts.file), 0, 0},
    {"allow-http", NULL, NULL, "send tokens over plain http, where others could read them", NULL,
     FLAG_SWITCH, AT(hosts.allow_http), 0, 0},
    SNIPPET_LENGTH,
    {"json", NULL, NULL, "print changes as JSON, one a line", NULL, FLAG_SWITCH, AT(json), 0, 0},
    {"once", NULL, NULL,
     "print all rows, newest activity first, once every host has told its own, and end", NULL,
     FLAG_SWITCH, AT(once), 0, 0},
    {"timeout", "TIME", NULL,
     "with --once: hosts that have told nothing by then are left out (default 30s)", NULL,
     FLAG_DURATION, AT(timeout_ms), 1, DAY_MS},
};

static const struct group_row watch_row = {
    "",
    "",
    0,
    0,
    NULL,
    {.board = run_watch},
    watch_flags,
    ARRAY_COUNT(watch_flags),
    "",
    "Without a command it watches T3 Code servers. On a terminal it is a live board; ? tells its\n"
    "keys. Elsewhere it prints a line for each row that changes, with host, state, title and the\n"
    "beginning of the newest message, and says on stderr how the hosts stand.\n",
};

static const struct group_row rows[] = {
    {"fold",
     "",
     0,
     1, /* for a sentence of its own */
     NULL,
     {.board = board_fold},
     fold_flags,
     ARRAY_COUNT(fold_flags),
     "fold recorded chunks from stdin, and print the rows",
     "Reads what T3 Code's streams told from stdin: a line each for a chunk (a JSON array of\n"
     "stream items) or a bare projection, in the order in which they came. Prints the rows that\n"
     "come of them, as JSON, one a line, sorted by host and thread id. Items and lines that are\n"
     "broken are skipped, and counted on stderr; if no line at all is good the exit code is 1.\n"},
};

int command_board(int argc, char **argv)
{
    const struct group group = {
        .name = "board",
        .operands = "",
        .about = "Shows what threads of T3 Code are doing: a row for each thread of each host.\n",
        .end = "The environment says where the hosts' file is (ARBE_T3_HOSTS_FILE), and the token "
               "of one "
               "host\n"
               "(ARBE_T3_TOKEN). Exit codes: 0 good, 1 it could not be done, 2 wrong usage, 130 by "
               "Ctrl-C.\n",
        .rows = rows,
        .row_count = ARRAY_COUNT(rows),
        .miss = "; a host is named with --t3",
        .bare = &watch_row,
    };
    struct board_call call = {.watch = NULL};
    struct group_choice choice;
    struct errmsg msg = {{0}};
    int code = group_choose(&group, argc, argv, &call.set, &choice, &msg);

    if (choice.row == NULL || code != 0) {
        if (msg.text[0] != '\0' && call.set.json != 0) {
            (void)board_refuse(&call, ERR_INVALID, msg.text);
        } else if (msg.text[0] != '\0') {
            bool named = choice.row != NULL && choice.row != &watch_row;

            (void)fprintf(stderr, "arbe board%s%s: %s\n", named ? " " : "",
                          named ? choice.row->name : "", msg.text);
        }
        return code;
    }
    call.word = choice.operand_count > 0 ? choice.operands[0] : NULL;
    interrupt_begin();
    out_init(&call.out);
    code = choice.row->run.board(&call);
    t3_watch_destroy(call.watch);
    t3_hosts_finish(&call.hosts);
    return out_finish(&call.out) || code != 0 ? code : COMMAND_FAILED;
}
