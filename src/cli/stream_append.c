/* arbe stream append: one message from the command line or stdin, or one for each line of stdin.
 *
 * Lines go through a producer: batched, and each stored once although requests are tried again.
 * When it fails half way, the lines that are stored are the first ones, and their number is
 * told. */
#include "cli/stream_call.h"

#include "base/json.h"
#include "base/json_value.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "cli/command.h"
#include "cli/interrupt.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

struct appending {
    struct stream_call *call;
    struct stream_peer peer;
    struct stream_producer *producer; /* NULL: one plain append */
    const char *content_type;
    struct stream_info info; /* of the stream, then of the append */
    bool json;
    bool told;     /* what failed at the server was said */
    uint64_t line; /* number of the one at hand, from 1 */
    struct buf encoded;
};

static int fail(struct appending *a, const struct stream_error *error)
{
    uint64_t appended = 0;
    uint64_t stored = 0;
    int64_t epoch = 0;
    int code = stream_call_fail(a->call, a->peer.site.name, error);

    a->told = true;
    if (a->producer != NULL && a->call->set.lines) {
        stream_producer_counts(a->producer, &appended, &stored, &epoch);
        if (a->call->set.json) {
            (void)fprintf(stderr, "{\"appended\":%" PRIu64 ",\"stored\":%" PRIu64 "}\n", appended,
                          stored);
        } else {
            (void)fprintf(stderr,
                          "arbe stream append: of %" PRIu64 " messages at least the first %" PRIu64
                          " are stored\n",
                          appended, stored);
        }
    }
    return code;
}

/* Says why a message is not sent, each line by its number. */
static int refuse(const struct appending *a, const char *why)
{
    if (a->call->set.lines) {
        return stream_call_cannot(a->call, "line %" PRIu64 " %s", a->line, why);
    }
    return stream_call_cannot(a->call, "the message %s", why);
}

/* Whether messages are made JSON strings: then nothing at all is a message, too. */
static bool makes_strings(const struct appending *a)
{
    return a->json && a->call->set.text;
}

/* Whether the stream is only closed, since there is no message to close it with. */
static bool only_closes(const struct appending *a, struct slice message)
{
    return a->call->set.close && message.len == 0 && !makes_strings(a);
}

/* Makes of the message what is sent: a JSON string where --text says that it is text. */
static int encode(struct appending *a, struct slice *message)
{
    if (!makes_strings(a)) {
        return 0;
    }
    if (!utf8_valid(*message)) {
        return refuse(a, "is not UTF-8, which a JSON string must be");
    }
    buf_clear(&a->encoded);
    json_append_string(&a->encoded, *message);
    if (a->encoded.failed) {
        return refuse(a, "needs more memory as a JSON string than there is");
    }
    *message = buf_slice(&a->encoded);
    return 0;
}

static int give(struct appending *a, struct slice message)
{
    struct stream_error error = {0};
    struct slice value;
    struct errmsg msg = {{0}};
    char why[sizeof(msg.text) + 64];
    int code = encode(a, &message);

    if (code != 0) {
        return code;
    }
    if (a->json && message.len > 0 && json_text_read(message, &value, &msg) != 0) {
        (void)snprintf(why, sizeof(why), "is not JSON: %s (--text sends text)", msg.text);
        return refuse(a, why);
    }
    if (stream_producer_append(a->producer, message.ptr, message.len, &error) != STREAM_OK) {
        return fail(a, &error);
    }
    return 0;
}

static bool is_blank(struct slice line)
{
    for (size_t i = 0; i < line.len; i++) {
        if (strchr(" \t\r\n", line.ptr[i]) == NULL || line.ptr[i] == '\0') {
            return false;
        }
    }
    return true;
}

/* A line with its line end, which JSON messages go without. */
static int give_line(struct appending *a, struct slice line)
{
    a->line++;
    if (a->json) {
        while (line.len > 0 && (line.ptr[line.len - 1] == '\n' || line.ptr[line.len - 1] == '\r')) {
            line.len--;
        }
        if (!a->call->set.text && is_blank(line)) {
            return 0;
        }
    }
    return give(a, line);
}

/* Gives all whole lines of `text`, and what stands behind them when it is the last. */
static int give_lines(struct appending *a, struct buf *text, size_t seen, bool last)
{
    size_t done = 0;
    int code = 0;

    while (code == 0) {
        size_t from = seen > done ? seen : done;
        const char *end = from < text->len ? memchr(text->ptr + from, '\n', text->len - from)
                                           : NULL;

        if (end == NULL) {
            break;
        }
        size_t next = (size_t)(end + 1 - text->ptr);

        code = give_line(a, (struct slice){text->ptr + done, next - done});
        done = next;
    }
    if (code == 0 && last && done < text->len) {
        code = give_line(a, (struct slice){text->ptr + done, text->len - done});
        done = text->len;
    }
    buf_consume(text, done);
    return code;
}

static int read_lines(struct appending *a)
{
    struct buf text;
    int code = 0;
    bool end = false;

    buf_init(&text, STDIN_BYTES_MAX);
    while (code == 0 && !end) {
        size_t seen = text.len;
        char *place = buf_reserve(&text, 64 * KIB);
        ssize_t got = place == NULL ? 0 : stream_call_read_some(place, text.cap - text.len);

        if (place == NULL) {
            code = stream_call_cannot(a->call, "line %" PRIu64 " is longer than %u MiB",
                                      a->line + 1, STDIN_BYTES_MAX / MIB);
        } else if (interrupt_signal() != 0) {
            code = COMMAND_INTERRUPTED + interrupt_signal();
        } else if (got < 0 && errno != EINTR) {
            code = stream_call_cannot(a->call, "cannot read stdin: %s", strerror(errno));
        } else if (got >= 0) {
            buf_advance(&text, (size_t)got);
            end = got == 0;
            code = give_lines(a, &text, seen, end);
        }
    }
    buf_finish(&text);
    return code;
}

/* What is stored stays stored when a later line is bad: the good ones before it are sent, and when
 * that fails too, both are told. */
static int finish(struct appending *a, int code)
{
    struct stream_error error = {0};
    int rc = STREAM_OK;

    if (code != 0) {
        if (code == COMMAND_FAILED && interrupt_signal() == 0 && !a->told &&
            stream_producer_flush(a->producer, &a->info, &error) != STREAM_OK) {
            (void)fail(a, &error);
        }
        return code;
    }
    if (a->call->set.close) {
        rc = stream_producer_close(a->producer, NULL, 0, &a->info, &error);
    } else {
        rc = stream_producer_flush(a->producer, &a->info, &error);
    }
    return rc == STREAM_OK ? 0 : fail(a, &error);
}

static int make_producer(struct appending *a)
{
    struct stream_producer_options options;
    struct stream_error error = {0};
    uint64_t random[2] = {0};
    char id[64];

    stream_producer_options_init(&options);
    options.content_type = a->content_type;
    options.auto_claim = 1;
    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
        return stream_call_cannot(a->call, "there is no randomness: %s", strerror(errno));
    }
    (void)snprintf(id, sizeof(id), "arbe-append-%016" PRIx64 "%016" PRIx64, random[0], random[1]);
    if (stream_producer_new(a->peer.client, a->peer.site.name,
                            a->call->set.producer != NULL ? a->call->set.producer : id, &options,
                            &a->producer, &error) != STREAM_OK) {
        return fail(a, &error);
    }
    return 0;
}

static int append_lines(struct appending *a)
{
    int code = make_producer(a);

    return code != 0 ? code : finish(a, read_lines(a));
}

static int append_produced(struct appending *a, struct slice message)
{
    int code = make_producer(a);

    if (code != 0) {
        return code;
    }
    return finish(a, only_closes(a, message) ? 0 : give(a, message));
}

static int append_plain(struct appending *a, struct slice message)
{
    const struct stream_append_options options = {
        .content_type = a->content_type,
        .seq = a->call->set.seq,
        .close = (int)a->call->set.close,
    };
    struct stream_error error = {0};
    int code = only_closes(a, message) ? 0 : encode(a, &message);

    if (code != 0) {
        return code;
    }
    if (stream_client_append(a->peer.client, a->peer.site.name, message.ptr, message.len, &options,
                             &a->info, &error) != STREAM_OK) {
        return fail(a, &error);
    }
    return 0;
}

static int append_one(struct appending *a)
{
    const char *word = a->call->operand_count > 1 ? a->call->operands[1] : NULL;
    struct slice message = SLICE("");
    char *memory = NULL;
    int code = 0;

    if (word != NULL) {
        message = slice_of(word);
    } else {
        if (isatty(STDIN_FILENO) == 1) {
            stream_call_tell(a->call, "type the message; Ctrl-D ends it");
        }
        code = stream_call_read_stdin(a->call, &memory, &message.len);
        message.ptr = memory;
    }
    if (code == 0) {
        code = a->call->set.producer != NULL ? append_produced(a, message)
                                             : append_plain(a, message);
    }
    free(memory);
    return code;
}

static int check(const struct stream_call *call)
{
    if (call->set.lines && call->operand_count > 1) {
        return stream_call_usage(call, "--lines reads the messages from stdin: give none here");
    }
    if (call->set.seq != NULL && (call->set.lines || call->set.producer != NULL)) {
        return stream_call_usage(call, "--seq goes with neither --lines nor --producer");
    }
    return 0;
}

static void report(struct appending *a)
{
    if (a->call->set.json) {
        stream_call_print(a->call, a->peer.site.name, &a->info);
    } else if (a->call->set.lines) {
        stream_call_tell(a->call, "appended %" PRIu64 " lines to \"%s\"%s", a->line,
                         a->peer.site.name, a->call->set.close ? ", and closed it" : "");
    }
}

int stream_call_append(struct stream_call *call)
{
    struct appending a = {.call = call};
    struct stream_error error = {0};
    int code = check(call);

    if (code == 0) {
        code = stream_call_open(call, call->operands[0], STREAM_CALL_RETRIES, &a.peer);
    }
    if (code != 0) {
        return code;
    }
    buf_init(&a.encoded, 6ull * STDIN_BYTES_MAX + 2);
    a.content_type = stream_call_type(call->set.type);
    if (a.content_type == NULL) {
        if (stream_client_head(a.peer.client, a.peer.site.name, &a.info, &error) != STREAM_OK) {
            code = fail(&a, &error);
        }
        a.content_type = a.info.content_type;
    }
    char type[sizeof(a.info.content_type)];

    (void)snprintf(type, sizeof(type), "%s", a.content_type);
    a.content_type = type; /* a.info will be that of the append */
    a.json = stream_call_is_json(type);
    if (code == 0 && call->set.lines) {
        code = stream_call_reopen(call, STREAM_CALL_RETRIES_LONG, &a.peer);
    }
    if (code == 0) {
        code = call->set.lines ? append_lines(&a) : append_one(&a);
    }
    if (code == 0) {
        report(&a);
    }
    stream_producer_free(a.producer);
    buf_finish(&a.encoded);
    stream_call_close(&a.peer);
    return code;
}
