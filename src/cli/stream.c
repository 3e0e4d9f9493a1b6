/* arbe stream: the table of its commands, and how each is called. */
#include "cli/command.h"
#include "cli/group.h"
#include "cli/interrupt.h"
#include "cli/stream_call.h"

#include "base/limits.h"

#define OPERANDS_MAX 1024 /* of delete */

#define AT(field) offsetof(struct stream_settings, field)

static const struct flag shared_flags[] = {
    {"url", "URL", NULL, "server, or what comes before the names of its streams", NULL, FLAG_TEXT,
     AT(url), 0, 0},
    {"profile", "NAME", NULL, "server of that name in the file of profiles", NULL, FLAG_TEXT,
     AT(profile), 0, 0},
    {"secret-file", "FILE", NULL, "file with the server's bearer secret", NULL, FLAG_TEXT,
     AT(secret_file), 0, 0},
    {"ca-file", "FILE", NULL, "certificates to trust instead of the system's", NULL, FLAG_TEXT,
     AT(ca_file), 0, 0},
    {"retries", "N", NULL, "times to try again (default: 3, long work 8, live reads no end)", NULL,
     FLAG_COUNT, AT(retries), 0, 1000000},
    {"timeout", "TIME", "30s", "for an answer that is not live", NULL, FLAG_DURATION,
     AT(timeout_ms), 1, 24ull * 3600 * 1000},
    {"json", NULL, NULL, "JSON objects on stdout, one a line; errors likewise on stderr", NULL,
     FLAG_SWITCH, AT(json), 0, 0},
};

#define TYPE                                                                                 \
    {                                                                                        \
        "type", "json|text|bytes|TYPE", NULL, "content type of the stream", NULL, FLAG_TEXT, \
            AT(type), 0, 0                                                                   \
    }
#define TTL                                                                                    \
    {                                                                                          \
        "ttl", "TIME", NULL, "the stream goes after so long without use", NULL, FLAG_DURATION, \
            AT(ttl_ms), 1000, STREAM_TTL_SECONDS_MAX * 1000                                    \
    }
#define EXPIRES                                                                                 \
    {                                                                                           \
        "expires-at", "DATE", NULL, "the stream goes then, such as 2027-01-31T12:00:00Z", NULL, \
            FLAG_TEXT, AT(expires_at), 0, 0                                                     \
    }
#define FROM(usual)                                                                            \
    {                                                                                          \
        "from", "OFFSET", NULL, "where to begin: an offset, -1 or now" usual, NULL, FLAG_TEXT, \
            AT(from), 0, 0                                                                     \
    }
#define COUNT                                                                              \
    {                                                                                      \
        "count", "N", NULL, "end after so many messages; lines where it is no JSON", NULL, \
            FLAG_COUNT, AT(count), 1, INT64_MAX                                            \
    }
#define SSE                                                                               \
    {                                                                                     \
        "sse", NULL, NULL, "only by server-sent events", NULL, FLAG_SWITCH, AT(sse), 0, 0 \
    }
#define LONG_POLL                                                                            \
    {                                                                                        \
        "long-poll", NULL, NULL, "only by long-poll", NULL, FLAG_SWITCH, AT(long_poll), 0, 0 \
    }

static const struct flag create_flags[] = {
    TYPE,
    TTL,
    EXPIRES,
    {"closed", NULL, NULL, "it never takes anything", NULL, FLAG_SWITCH, AT(closed), 0, 0},
};

static const struct flag append_flags[] = {
    {"lines", NULL, NULL, "each line of stdin is a message, stored exactly once", NULL, FLAG_SWITCH,
     AT(lines), 0, 0},
    {"text", NULL, NULL, "messages are text: JSON streams get them as strings", NULL, FLAG_SWITCH,
     AT(text), 0, 0},
    {"close", NULL, NULL, "close the stream with this", NULL, FLAG_SWITCH, AT(close), 0, 0},
    {"seq", "TEXT", NULL, "Stream-Seq: must be greater than the last one", NULL, FLAG_TEXT, AT(seq),
     0, 0},
    {"producer", "NAME", NULL, "be this producer, and fence out earlier ones", NULL, FLAG_TEXT,
     AT(producer), 0, 0},
    {"type", "json|text|bytes|TYPE", NULL, "content type, to save asking the server", NULL,
     FLAG_TEXT, AT(type), 0, 0},
};

static const struct flag read_flags[] = {FROM(" (default -1)"), COUNT};
static const struct flag tail_flags[] = {FROM(" (default now)"), COUNT, SSE, LONG_POLL};
static const struct flag follow_flags[] = {FROM(" (default -1)"), COUNT, SSE, LONG_POLL};

static const struct flag fork_flags[] = {
    {"at", "OFFSET", NULL, "where it leaves the source (default: the tail)", NULL, FLAG_TEXT,
     AT(at), 0, 0},
    {"skip", "N", NULL, "so many messages, or bytes, behind that", NULL, FLAG_COUNT, AT(skip), 0,
     INT64_MAX},
    TYPE,
    TTL,
    EXPIRES,
};

static const struct flag list_flags[] = {
    {"details", NULL, NULL, "also tail, state and content type", NULL, FLAG_SWITCH, AT(details), 0,
     0},
};

static const struct flag copy_flags[] = {
    {"follow", NULL, NULL, "go on with what comes, until the source is closed", NULL, FLAG_SWITCH,
     AT(keep_following), 0, 0},
    {"trust", NULL, NULL, "count what the destination has instead of comparing it", NULL,
     FLAG_SWITCH, AT(trust), 0, 0},
    {"to-url", "URL", NULL, "server of the destination", NULL, FLAG_TEXT, AT(to_url), 0, 0},
    {"to-profile", "NAME", NULL, "profile of the destination", NULL, FLAG_TEXT, AT(to_profile), 0,
     0},
    {"to-secret-file", "FILE", NULL, "file with the secret of the destination", NULL, FLAG_TEXT,
     AT(to_secret_file), 0, 0},
    {"to-ca-file", "FILE", NULL, "certificates to trust for the destination", NULL, FLAG_TEXT,
     AT(to_ca_file), 0, 0},
};

static const struct flag bench_flags[] = {
    {"time", "TIME", "5s", "how long each part takes", NULL, FLAG_DURATION, AT(time_ms), 10,
     3600 * 1000},
    {"size", "SIZE", "100", "bytes of a message", NULL, FLAG_SIZE, AT(size), 8, 16 * MIB},
    {"connections", "N", "8", "appends at a time", NULL, FLAG_COUNT, AT(connections), 1, 256},
    {"keep", NULL, NULL, "leave the streams there, for an hour", NULL, FLAG_SWITCH, AT(keep), 0, 0},
};

#define FLAGS(table) table, ARRAY_COUNT(table)
#define RUN(function)      \
    {                      \
        .stream = function \
    }

static const struct group_row rows[] = {
    {"create", "STREAM", 1, 1, "which stream?", RUN(stream_call_create), FLAGS(create_flags),
     "make a stream",
     "Makes a stream. One that is there with the same configuration is left as it is.\n"},
    {"append", "STREAM [DATA]", 1, 2, "which stream?", RUN(stream_call_append), FLAGS(append_flags),
     "add to a stream: a word, stdin, or each line of it",
     "Appends DATA, or all of stdin, as one message. To a JSON stream an array is as many\n"
     "messages as it has elements. Lines go in batches, and each is stored exactly once although\n"
     "the server goes away meanwhile; streams that are not JSON keep the line ends.\n"},
    {"read", "STREAM", 1, 1, "which stream?", RUN(stream_call_read), FLAGS(read_flags),
     "print what a stream holds",
     "Prints what there is, to the tail. JSON streams give one message a line.\n"},
    {"tail", "STREAM", 1, 1, "which stream?", RUN(stream_call_tail), FLAGS(tail_flags),
     "print what comes from now on",
     "Prints what is appended from now on, as it comes, through all breaks of the connection,\n"
     "until the stream is closed or Ctrl-C.\n"},
    {"follow", "STREAM", 1, 1, "which stream?", RUN(stream_call_follow), FLAGS(follow_flags),
     "print what there is, and then what comes",
     "Prints what there is and then what is appended, as it comes, through all breaks of the\n"
     "connection, until the stream is closed or Ctrl-C.\n"},
    {"head", "STREAM", 1, 1, "which stream?", RUN(stream_call_head), NULL, 0,
     "tell type, tail and state of a stream",
     "Tells what is known of a stream without reading it.\n"},
    {"close", "STREAM", 1, 1, "which stream?", RUN(stream_call_finish), NULL, 0,
     "end a stream: it takes no more",
     "Ends a stream: it takes no more, and its readers are told. Closing again is fine.\n"},
    {"delete", "STREAM...", 1, OPERANDS_MAX, "which stream?", RUN(stream_call_delete), NULL, 0,
     "remove streams",
     "Removes streams with all they hold. Goes on after one that cannot be removed.\n"},
    {"fork", "SOURCE STREAM", 2, 2, "two streams are needed", RUN(stream_call_fork),
     FLAGS(fork_flags), "make a stream that begins as another one",
     "Makes a stream that has what SOURCE has up to an offset, and then goes its own way.\n"},
    {"list", "[PREFIX]", 0, 1, NULL, RUN(stream_call_list), FLAGS(list_flags), "list streams",
     "Lists the streams whose names begin with PREFIX, in order, where the server offers that.\n"},
    {"copy", "SOURCE STREAM", 2, 2, "two streams are needed", RUN(stream_call_copy),
     FLAGS(copy_flags), "bring a stream to another place or server",
     "Copies a stream, each byte or message exactly once, and closes the copy when the source is\n"
     "closed. Repeat a copy that was interrupted: it compares, and goes on where it ended.\n"
     "Expiry is not copied.\n"},
    {"bench", "[PREFIX]", 0, 1, NULL, RUN(stream_call_bench), FLAGS(bench_flags),
     "measure what the server can do from here",
     "Measures appends, a producer, and the way to a reader, on streams of its own below PREFIX\n"
     "(arbe-bench), which it deletes.\n"},
};

static const struct group group = {
    .name = "stream",
    .operands = "STREAM...",
    .about = "Works with the streams of a server. A STREAM is a name, such as events/2026, or a "
             "whole URL.\n",
    .end = "The server is that of --url, --profile, ARBE_URL, ARBE_PROFILE, the profile "
           "\"default\",\n"
           "or " SITE_URL_DEFAULT ". ~/.config/arbe/profiles has a section for each:\n"
           "[NAME], then lines of url = URL, secret-file = FILE, ca-file = FILE.\n\n"
           "Exit codes: 0 good, 1 it could not be done, 2 wrong usage, 3 no such stream, 4 "
           "conflict,\n"
           "5 the stream is closed, 6 not allowed, 7 no answer: later perhaps, 130 Ctrl-C.\n",
    .shared = shared_flags,
    .shared_count = ARRAY_COUNT(shared_flags),
    .rows = rows,
    .row_count = ARRAY_COUNT(rows),
};

int command_stream(int argc, char **argv)
{
    struct stream_call call = {.set.retries = UINT64_MAX};
    struct group_choice choice;
    struct errmsg msg = {{0}};
    int code = group_choose(&group, argc, argv, &call.set, &choice, &msg);

    if (choice.row == NULL) {
        if (msg.text[0] != '\0') {
            (void)fprintf(stderr, "arbe stream: %s\n", msg.text);
        }
        return code;
    }
    call.name = choice.row->name;
    call.operands = choice.operands;
    call.operand_count = choice.operand_count;
    if (code != 0) {
        return stream_call_usage(&call, "%s", msg.text);
    }
    interrupt_begin();
    out_init(&call.out);
    code = choice.row->run.stream(&call);
    return out_finish(&call.out) || code != 0 ? code : COMMAND_FAILED;
}
