/* Readers over a transport that plays a script: what they ask, what they hand out, and what they
 * make of answers that break off, lie, or do not come. */
#include "client/reader.h"

#include <stdint.h>

static uint64_t silence_limit_ms = 60000; /* only the test that waits for it shortens it */

#undef READER_SILENCE_MS
#define READER_SILENCE_MS silence_limit_ms
#undef READER_QUICK_PAUSE_MS
#define READER_QUICK_PAUSE_MS 1

#include <stdlib.h>
#include <string.h>

/* Memory that runs out: the n-th allocation of reader.c from now on fails. */
static int allocations_left = -1;

static void *try_calloc(size_t count, size_t size);
static char *try_strdup(const char *text);
#define calloc try_calloc
#undef strdup
#define strdup try_strdup
#include "client/reader.c"
#undef calloc
#undef strdup

#include "unit/base/unit.h"

#include <poll.h>

static bool fails(void)
{
    return allocations_left >= 0 && allocations_left-- == 0;
}

static void *try_calloc(size_t count, size_t size)
{
    return fails() ? NULL : calloc(count, size);
}

static char *try_strdup(const char *text)
{
    return fails() ? NULL : strdup(text);
}

enum how {
    WHOLE,   /* the answer ends well */
    BREAKS,  /* the connection breaks behind the body */
    HANGS,   /* nothing comes behind the body */
    REFUSED, /* `code` instead of a body; no use trying again */
};

/* One call and its answer. */
struct reply {
    enum call_verb verb; /* that must be asked */
    const char *offset;  /* likewise */
    const char *cursor;  /* likewise; NULL: none */
    const char *type;    /* of the answer */
    const char *next;    /* Stream-Next-Offset */
    const char *new_cursor;
    const char *body;
    bool up_to_date;
    bool closed;
    bool base64;
    enum how how;
    enum stream_error_code code;
    bool waits; /* the one behind it may be asked for several times */
};

struct play {
    struct transport base;
    const struct reply *replies;
    size_t count;
    size_t at;         /* replies that were asked for */
    size_t step;       /* bytes of a piece */
    struct call *call; /* under way; NULL: none */
    size_t sent;       /* bytes of its body */
    bool paused;
    size_t large;     /* bodies are so many bytes 'x'; 0: as the script says */
    bool stopped;     /* on_data wanted no more */
    atomic_int calls; /* for the other thread */
};

static struct play *play_of(struct transport *t)
{
    return container_of(t, struct play, base);
}

static void play_start(struct transport *t, struct call *call)
{
    struct play *p = play_of(t);

    assert_null(p->call);
    p->call = call;
    p->sent = 0;
    p->paused = false;
    /* An answer that hangs may be waited for in vain more than once. */
    p->at += p->at < p->count || p->at < 2 || !p->replies[p->at - 2].waits ? 1 : 0;
    atomic_fetch_add(&p->calls, 1);
}

static void play_cancel(struct transport *t, struct call *call)
{
    assert_ptr_equal(play_of(t)->call, call);
    play_of(t)->call = NULL;
}

static void play_resume(struct transport *t, struct call *call)
{
    assert_ptr_equal(play_of(t)->call, call);
    play_of(t)->paused = false;
}

static void copy(char *out, const char *text)
{
    (void)snprintf(out, 64, "%s", text != NULL ? text : "");
}

static void assert_asked(const struct call *call, const struct reply *r)
{
    if (call->verb != r->verb || strcmp(call->offset, r->offset) != 0 ||
        strcmp(call->cursor != NULL ? call->cursor : "", r->cursor != NULL ? r->cursor : "") != 0) {
        fprintf(stderr, "asked %d %s %s, not %d %s %s\n", (int)call->verb, call->offset,
                call->cursor, (int)r->verb, r->offset, r->cursor);
        abort(); /* not on cmocka's thread */
    }
}

/* Hands out a piece; true when there is no more. */
static bool play_body(struct play *p, const struct reply *r)
{
    static char many[32768];
    size_t len = p->large > 0 ? p->large : strlen(r->body != NULL ? r->body : "");
    size_t left = len - p->sent;
    size_t step = left < p->step ? left : p->step;
    struct slice piece = {p->large > 0 ? many : r->body + p->sent, step};

    if (left == 0) {
        return true;
    }
    switch (p->call->on_data(p->call, piece)) {
    case CALL_PAUSE:
        p->paused = true;
        break;
    case CALL_STOP:
        p->stopped = true;
        return true;
    case CALL_TAKEN:
        p->sent += step;
        break;
    }
    return false;
}

static void play_turn(struct play *p)
{
    struct call *call = p->call;

    if (p->at > p->count) {
        fprintf(stderr, "the script is over, and %d is asked from %s\n", (int)call->verb,
                call->offset);
        abort(); /* not on cmocka's thread */
    }
    const struct reply *r = &p->replies[p->at - 1];
    struct call_result *result = &call->result;

    assert_asked(call, r);
    result->info.status = r->code == STREAM_OK ? 200 : 400;
    copy(result->info.content_type, r->type != NULL ? r->type : "application/json");
    copy(result->info.next_offset, r->next);
    copy(result->info.cursor, r->new_cursor);
    result->info.closed = r->closed;
    result->up_to_date = r->up_to_date;
    result->base64 = r->base64;
    if (r->code == STREAM_OK && !play_body(p, r)) {
        return;
    }
    if (r->how == HANGS && !p->stopped) {
        return;
    }
    p->call = NULL;
    result->body_whole = r->how == WHOLE;
    if (r->how != WHOLE && !p->stopped) {
        call_fail(call, r->code != STREAM_OK ? r->code : STREAM_ERROR_NETWORK, "it broke");
        result->transient = r->how == BREAKS;
    }
    call->on_done(call);
}

static void play_wait(struct transport *t, int wake_fd, int timeout_ms)
{
    struct play *p = play_of(t);
    struct pollfd fd = {.fd = wake_fd, .events = POLLIN};
    bool idle = p->call == NULL || p->paused ||
                (p->replies[p->at - 1].how == HANGS && p->large == 0 &&
                 p->sent == strlen(p->replies[p->at - 1].body));

    (void)poll(&fd, 1, idle ? timeout_ms : 0);
    if (p->call != NULL && !p->paused) {
        play_turn(p);
    }
}

static void play_destroy(struct transport *t)
{
    (void)t;
}

static const struct transport_ops play_ops = {
    .start = play_start,
    .cancel = play_cancel,
    .resume = play_resume,
    .wait = play_wait,
    .destroy = play_destroy,
};

/* A reader and what it told, as a text: pieces with "(offset)" behind them, "^" for up to date, "."
 * for closed, and at the end the code. */
struct scene {
    struct play play;
    struct stream_client *client;
    struct stream_reader *reader;
    struct stream_error error;
    struct buf told;
};

static void open_scene(struct scene *s, const struct reply *replies, size_t count,
                       const struct stream_read_options *options, int pause_ms)
{
    struct stream_client_options client_options;

    *s = (struct scene){.play = {.base = {.ops = &play_ops, .has_sse = true},
                                 .replies = replies,
                                 .count = count,
                                 .step = 3}};
    stream_client_options_init(&client_options);
    client_options.retry = (struct stream_retry){.max_retries = 3,
                                                 .initial_delay_ms = pause_ms,
                                                 .max_delay_ms = pause_ms * 2,
                                                 .multiplier = 2,
                                                 .retry_after_max_ms = 5};
    assert_int_equal(client_new(&s->play.base, &client_options, &s->client, NULL), 0);
    assert_int_equal(stream_client_read(s->client, "a/b", options, &s->reader, NULL), 0);
    buf_init(&s->told, 1 << 20);
}

static void tell_piece(struct buf *out, const struct stream_piece_view *piece)
{
    buf_append(out, (struct slice){piece->data, piece->len});
    if (piece->next_offset != NULL) {
        buf_append_format(out, "(%s)", piece->next_offset);
    }
    buf_append(out, piece->up_to_date ? SLICE("^") : SLICE(""));
    buf_append(out, piece->closed ? SLICE(".") : SLICE(""));
    buf_append_char(out, ' ');
}

static void play_out(struct scene *s)
{
    struct stream_piece_view piece;
    int rc;

    while ((rc = stream_reader_next(s->reader, &piece, &s->error)) == STREAM_OK) {
        tell_piece(&s->told, &piece);
    }
    buf_append_format(&s->told, "%s",
                      rc == STREAM_END ? "END" : stream_error_name((enum stream_error_code)rc));
    /* And so it stays. */
    assert_int_equal(stream_reader_next(s->reader, &piece, NULL), rc);
    assert_int_equal(stream_reader_step(s->reader, &piece, NULL), rc);
}

static void close_scene(struct scene *s)
{
    stream_reader_free(s->reader);
    stream_client_free(s->client);
    buf_finish(&s->told);
}

/* Plays to the end, with pieces of several sizes, and compares. */
static void assert_told(const struct reply *replies, size_t count,
                        const struct stream_read_options *options, const char *wanted)
{
    static const size_t steps[] = {1, 2, 7, 10000};

    for (size_t i = 0; i < ARRAY_COUNT(steps); i++) {
        struct scene s;

        open_scene(&s, replies, count, options, 1);
        s.play.step = steps[i];
        play_out(&s);
        if (!slice_equal(buf_slice(&s.told), slice_of(wanted))) {
            fail_msg("pieces of %zu: %.*s, not %s (%s)", steps[i], (int)s.told.len, s.told.ptr,
                     wanted, s.error.message);
        }
        assert_int_equal(s.play.at, count);
        close_scene(&s);
    }
}

#define TOLD(replies, wanted, ...)                                                               \
    assert_told(replies, ARRAY_COUNT(replies), &(const struct stream_read_options){__VA_ARGS__}, \
                wanted)

/* Pages, and the offset at the last message of each. */
static void test_catch_up(void **state)
{
    static const struct reply pages[] = {
        {.offset = "-1", .verb = CALL_READ, .body = "[1,{\"a\":2}]", .next = "5"},
        {.offset = "5", .verb = CALL_READ, .body = "[]", .next = "6"},
        {.offset = "6", .verb = CALL_READ, .body = "[3]", .next = "7", .up_to_date = true},
    };

    (void)state;
    TOLD(pages, "1 {\"a\":2}(5) (6) 3(7)^ END", .unit = STREAM_MESSAGES);
    TOLD(pages, "[1,{\"a\":2}](5) [](6) [3](7)^ END", .unit = STREAM_BYTES);
}

/* The tail at once: one empty piece says so; also where the server does not. */
static void test_at_tail(void **state)
{
    static const struct reply said[] = {
        {.offset = "now", .verb = CALL_READ, .body = "", .next = "9", .up_to_date = true}};
    static const struct reply unsaid[] = {
        {.offset = "9", .verb = CALL_READ, .body = "[]", .next = "9"}};
    static const struct reply closed[] = {
        {.offset = "9", .verb = CALL_READ, .body = "[]", .next = "9", .closed = true}};

    (void)state;
    TOLD(said, "(9)^ END", .offset = "now");
    TOLD(unsaid, "(9)^ END", .offset = "9", .unit = STREAM_MESSAGES);
    TOLD(closed, "(9)^. END", .offset = "9", .live = STREAM_AUTO, .unit = STREAM_MESSAGES);
}

/* A body that breaks off is asked for again, and what was handed out is passed over, whatever the
 * size of the page is then. */
static void test_resumes(void **state)
{
    static const struct reply same[] = {
        {.offset = "-1", .verb = CALL_READ, .body = "[1,2,3", .next = "3", .how = BREAKS},
        {.offset = "-1", .verb = CALL_READ, .body = "[1,2,3,4", .next = "4", .how = BREAKS},
        {.offset = "-1", .verb = CALL_READ, .body = "[1,2,3,4]", .next = "4", .up_to_date = true},
    };
    static const struct reply shorter[] = {
        {.offset = "-1", .verb = CALL_READ, .body = "[1,2,3,4", .next = "4", .how = BREAKS},
        {.offset = "-1", .verb = CALL_READ, .body = "[1]", .next = "1"},
        {.offset = "1", .verb = CALL_READ, .body = "[2,3", .next = "3", .how = BREAKS},
        {.offset = "1", .verb = CALL_READ, .body = "[2,3]", .next = "3"},
        {.offset = "3", .verb = CALL_READ, .body = "[4,5]", .next = "5", .up_to_date = true},
    };
    static const struct reply whole_array[] = {
        {.offset = "-1", .verb = CALL_READ, .body = "[1,2]", .next = "2", .how = BREAKS},
        {.offset = "-1", .verb = CALL_READ, .body = "[1,2,3]", .next = "3", .up_to_date = true},
    };

    (void)state;
    TOLD(same, "1 2 3 4(4)^ END", .unit = STREAM_MESSAGES);
    TOLD(shorter, "1 2 3 (1) (3) 4 5(5)^ END", .unit = STREAM_MESSAGES);
    TOLD(whole_array, "1 2 3(3)^ END", .unit = STREAM_MESSAGES);
    TOLD(whole_array, "[1,2,3](3)^ END", .unit = STREAM_BYTES);
}

/* Arrays that end well and are none, and answers whose offsets cannot be true, end the reader. */
static void test_page_lies(void **state)
{
    static const struct reply lies[][2] = {
        {{.offset = "-1", .verb = CALL_READ, .body = "[1,{\"a\"", .next = "3"}},
        {{.offset = "-1", .verb = CALL_READ, .body = "{\"a\":1}", .next = "3"}},
        {{.offset = "-1", .verb = CALL_READ, .body = "[1,]", .next = "3"}},
        {{.offset = "-1", .verb = CALL_READ, .body = "[1]", .next = "-1"}},
        {{.offset = "-1", .verb = CALL_READ, .body = "[1]", .next = "now"}},
    };
    static const struct reply back[] = {
        {.offset = "-1", .verb = CALL_READ, .body = "[1]", .next = "5"},
        {.offset = "5", .verb = CALL_READ, .body = "[2]", .next = "3"},
    };
    static const struct reply lost[] = {
        {.offset = "-1", .verb = CALL_READ, .body = "[1,2,3", .next = "3", .how = BREAKS},
        {.offset = "-1", .verb = CALL_READ, .body = "[1]", .next = "1", .up_to_date = true},
    };
    static const struct reply text[] = {
        {.offset = "-1", .verb = CALL_READ, .body = "hello", .type = "text/plain", .next = "1"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(lies); i++) {
        assert_told(lies[i], 1, &(const struct stream_read_options){.unit = STREAM_MESSAGES},
                    i == 0 || i == 2 ? "1 FORMAT" : "FORMAT");
    }
    TOLD(back, "1(5) FORMAT", .unit = STREAM_MESSAGES);
    TOLD(lost, "1 2 FORMAT", .unit = STREAM_MESSAGES);
    TOLD(text, "FORMAT", .unit = STREAM_MESSAGES);
}

/* Long-polls go on from each answer's offset and echo its cursor; waiting in vain is not told. */
static void test_long_poll(void **state)
{
    static const struct reply polls[] = {
        {.offset = "-1", .verb = CALL_READ, .body = "[1]", .next = "1", .up_to_date = true},
        {.offset = "1",
         .verb = CALL_LONG_POLL,
         .body = "",
         .next = "1",
         .new_cursor = "c",
         .up_to_date = true},
        {.offset = "1",
         .verb = CALL_LONG_POLL,
         .cursor = "c",
         .body = "[2,3]",
         .next = "3",
         .new_cursor = "d"},
        {.offset = "3",
         .verb = CALL_LONG_POLL,
         .cursor = "d",
         .body = "",
         .next = "3",
         .up_to_date = true},
        {.offset = "3",
         .verb = CALL_LONG_POLL,
         .cursor = "d",
         .body = "[4",
         .next = "4",
         .how = BREAKS},
        {.offset = "3",
         .verb = CALL_LONG_POLL,
         .cursor = "d",
         .body = "[4]",
         .next = "4",
         .closed = true},
    };

    (void)state;
    TOLD(polls, "1(1)^ 2 3(3) (3)^ 4(4)^. END", .live = STREAM_LONG_POLL, .unit = STREAM_MESSAGES);
}

#define TAIL                                                                             \
    {                                                                                    \
        .offset = "-1", .verb = CALL_READ, .body = "[]", .next = "0", .up_to_date = true \
    }
#define DATA(text)    "event: data\ndata: " text "\n\n"
#define CONTROL(text) "event: control\ndata: {" text "}\n\n"

/* Events: each control event is an offset; the next stream begins at the last one. */
static void test_events(void **state)
{
    static const struct reply events[] = {
        TAIL,
        {.offset = "0",
         .verb = CALL_SSE,
         .body = CONTROL("\"streamNextOffset\":\"0\",\"streamCursor\":\"c\",\"upToDate\":true")
             DATA("[1,2]") DATA("[3]") CONTROL(
                 "\"streamNextOffset\":\"3\",\"streamCursor\":\"d\"") "event: data\ndata: [4,5"},
        {.offset = "3",
         .verb = CALL_SSE,
         .cursor = "d",
         .how = BREAKS,
         .body = DATA("[4,5]") ": heartbeat\n\n" CONTROL(
             "\"streamNextOffset\":\"5\"") "event: future\ndata: ?\n\nevent: data\ndata: [6,\n"},
        {.offset = "5",
         .verb = CALL_SSE,
         .cursor = "d",
         .how = HANGS,
         .body = DATA("[6,7]") CONTROL("\"streamNextOffset\":\"7\",\"streamClosed\":true")
             DATA("[8]")},
    };

    (void)state;
    TOLD(events, "(0)^ 1 2 3(3) 4 5(5) 6 7(7)^. END", .live = STREAM_SSE, .unit = STREAM_MESSAGES);
}

/* Base64 and text events give bytes, once and in order. */
static void test_event_bytes(void **state)
{
    static const struct reply base64[] = {
        TAIL,
        {.offset = "0",
         .verb = CALL_SSE,
         .base64 = true,
         .how = HANGS,
         .body = DATA("Zm9v\ndata: YmE=") DATA("") DATA("cg==")
             CONTROL("\"streamNextOffset\":\"6\",\"streamClosed\":true")},
    };
    static const struct reply text[] = {
        TAIL,
        {.offset = "0",
         .verb = CALL_SSE,
         .how = HANGS,
         .body = DATA("a\ndata:\ndata:  b")
             CONTROL("\"streamNextOffset\":\"5\",\"streamClosed\":true")},
    };
    static const struct reply bad[] = {
        TAIL, {.offset = "0", .verb = CALL_SSE, .base64 = true, .body = DATA("Zm9")}};

    (void)state;
    TOLD(base64, "[](0)^ foobar(6)^. END", .live = STREAM_SSE);
    TOLD(text, "[](0)^ a\n\n b(5)^. END", .live = STREAM_SSE);
    TOLD(bad, "[](0)^ FORMAT", .live = STREAM_SSE);
    TOLD(base64, "(0)^ FORMAT", .live = STREAM_SSE, .unit = STREAM_MESSAGES);
}

/* Control events that lie, and garbage. */
static void test_event_lies(void **state)
{
    static const char *const bodies[] = {
        "<html>",
        CONTROL(""),
        "event: control\ndata:\n\n",
        CONTROL("invalid"),
        "event: control\ndata: []\n\n",
        CONTROL("\"streamNextOffset\":5"),
        CONTROL("\"streamNextOffset\":\"\""),
        CONTROL("\"streamNextOffset\":\"a\\u0000b\""),
        CONTROL("\"streamNextOffset\":\"5\",\"upToDate\":\"yes\""),
        CONTROL("\"streamNextOffset\":\"5\",\"streamClosed\":1"),
        CONTROL("\"streamNextOffset\":\"5\",\"streamCursor\":7"),
        CONTROL("\"streamNextOffset\":\"5\",\"streamNextOffset\":\"6\""),
        CONTROL("\"streamNextOffset\":\"4444444444444444444444444444444444444444444444444444444444"
                "4444444444444444444444444444444444444444444444444444444444444444444444444444444444"
                "\""),
        CONTROL("\"streamNextOffset\":\"-5\""),
        CONTROL("\"streamNextOffset\":\"now\""),
        DATA("[1]") CONTROL("\"streamNextOffset\":\"0\""),
        DATA("[1"),
        DATA("[1] 2"),
        DATA("{\"a\":1}"),
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(bodies); i++) {
        const struct reply replies[] = {
            TAIL, {.offset = "0", .verb = CALL_SSE, .body = bodies[i], .how = HANGS}};
        struct scene s;

        open_scene(&s, replies, 2,
                   &(const struct stream_read_options){.live = STREAM_SSE, .unit = STREAM_MESSAGES},
                   1);
        play_out(&s);
        if (!slice_equal(buf_slice(&s.told), SLICE("(0)^ FORMAT"))) {
            fail_msg("%s: %.*s", bodies[i], (int)s.told.len, s.told.ptr);
        }
        assert_true(slice_starts_with(slice_of(s.error.message), SLICE("cannot follow \"a/b\": ")));
        close_scene(&s);
    }
}

/* A poll that tells of a closing and brings nothing is not believed: a server may have left out
 * what came with it, whatever offset it gives. */
static void test_closing_poll(void **state)
{
    static const struct reply last_data[] = {
        TAIL,
        {.offset = "0", .verb = CALL_LONG_POLL, .body = "", .next = "0", .closed = true},
        {.offset = "0", .verb = CALL_READ, .body = "[1]", .next = "1", .closed = true},
    };
    static const struct reply nothing[] = {
        TAIL,
        {.offset = "0", .verb = CALL_LONG_POLL, .body = "", .next = "0", .closed = true},
        {.offset = "0", .verb = CALL_READ, .body = "[]", .next = "0", .closed = true},
    };
    static const struct reply behind_data[] = {
        TAIL,
        {.offset = "0", .verb = CALL_LONG_POLL, .body = "", .next = "1", .closed = true},
        {.offset = "0", .verb = CALL_READ, .body = "[1]", .next = "1", .closed = true},
    };
    static const struct reply behind_cut[] = {
        TAIL,
        {.offset = "0", .verb = CALL_LONG_POLL, .body = "[1,2", .next = "2", .how = BREAKS},
        {.offset = "0", .verb = CALL_LONG_POLL, .body = "", .next = "2", .closed = true},
        {.offset = "0", .verb = CALL_READ, .body = "[1,2]", .next = "2", .closed = true},
    };
    static const struct reply back[] = {
        {.offset = "-1", .verb = CALL_READ, .body = "[1]", .next = "5", .up_to_date = true},
        {.offset = "5", .verb = CALL_LONG_POLL, .body = "", .next = "3", .closed = true},
    };

    (void)state;
    TOLD(last_data, "(0)^ 1(1)^. END", .live = STREAM_LONG_POLL, .unit = STREAM_MESSAGES);
    TOLD(nothing, "(0)^ (0)^. END", .live = STREAM_LONG_POLL, .unit = STREAM_MESSAGES);
    TOLD(behind_data, "(0)^ 1(1)^. END", .live = STREAM_LONG_POLL, .unit = STREAM_MESSAGES);
    TOLD(behind_cut, "(0)^ 1 2(2)^. END", .live = STREAM_LONG_POLL, .unit = STREAM_MESSAGES);
    TOLD(back, "1(5)^ FORMAT", .live = STREAM_LONG_POLL, .unit = STREAM_MESSAGES);
}

/* AUTO goes over to long-polls where there are no events, where they are swallowed, where they end
 * at once, and for bytes of text, which events would change. */
static void test_auto(void **state)
{
    static const struct reply refused[] = {
        TAIL,
        {.offset = "0", .verb = CALL_SSE, .how = REFUSED, .code = STREAM_ERROR_REJECTED},
        {.offset = "0", .verb = CALL_LONG_POLL, .body = "[1]", .next = "1", .closed = true},
    };
    static const struct reply silent[] = {
        TAIL,
        {.offset = "0", .verb = CALL_SSE, .body = "", .how = HANGS},
        {.offset = "0", .verb = CALL_LONG_POLL, .body = "[1]", .next = "1", .closed = true},
    };
    static const struct reply brief[] = {
        TAIL,
        {.offset = "0", .verb = CALL_SSE, .body = CONTROL("\"streamNextOffset\":\"0\"")},
        {.offset = "0", .verb = CALL_SSE, .body = "event: da"},
        {.offset = "0", .verb = CALL_SSE, .body = ""},
        {.offset = "0", .verb = CALL_LONG_POLL, .body = "[1]", .next = "1", .closed = true},
    };
    static const struct reply text[] = {
        {.offset = "-1",
         .verb = CALL_READ,
         .body = "a\r\n",
         .type = "text/plain",
         .next = "3",
         .up_to_date = true},
        {.offset = "3", .verb = CALL_LONG_POLL, .body = "\r\n", .next = "5", .closed = true},
    };
    static const struct reply good[] = {
        TAIL,
        {.offset = "0",
         .verb = CALL_SSE,
         .how = HANGS,
         .body = DATA("[1]") CONTROL("\"streamNextOffset\":\"1\",\"streamClosed\":true")},
    };

    (void)state;
    TOLD(refused, "(0)^ 1(1)^. END", .live = STREAM_AUTO, .unit = STREAM_MESSAGES);
    silence_limit_ms = 10;
    TOLD(silent, "(0)^ 1(1)^. END", .live = STREAM_AUTO, .unit = STREAM_MESSAGES);
    silence_limit_ms = 60000;
    TOLD(brief, "(0)^ 1(1)^. END", .live = STREAM_AUTO, .unit = STREAM_MESSAGES);
    TOLD(text, "a\r\n(3)^ \r\n(5)^. END", .live = STREAM_AUTO);
    TOLD(good, "(0)^ 1(1)^. END", .live = STREAM_AUTO, .unit = STREAM_MESSAGES);
}

/* What is asked for explicitly stays: events that end too soon are asked for again, with pauses. */
static void test_brief_events(void **state)
{
    static const struct reply events[] = {
        TAIL,
        {.offset = "0", .verb = CALL_SSE, .body = CONTROL("\"streamNextOffset\":\"0\"")},
        {.offset = "0", .verb = CALL_SSE, .body = CONTROL("\"streamNextOffset\":\"0\"")},
        {.offset = "0", .verb = CALL_SSE, .body = CONTROL("\"streamNextOffset\":\"0\"")},
        {.offset = "0", .verb = CALL_SSE, .body = ""},
        {.offset = "0",
         .verb = CALL_SSE,
         .how = HANGS,
         .body = CONTROL("\"streamNextOffset\":\"0\",\"streamClosed\":true")},
    };

    (void)state;
    TOLD(events, "(0)^ (0)^. END", .live = STREAM_SSE, .unit = STREAM_MESSAGES);
}

/* Failures that pass are tried again, counted anew after each success; others end the reader. */
static void test_failures(void **state)
{
    static const struct reply enough[] = {
        {.offset = "-1", .verb = CALL_READ, .how = BREAKS, .code = STREAM_ERROR_BUSY},
        {.offset = "-1", .verb = CALL_READ, .how = BREAKS, .code = STREAM_ERROR_BUSY},
        {.offset = "-1", .verb = CALL_READ, .how = BREAKS, .code = STREAM_ERROR_SERVER},
        {.offset = "-1", .verb = CALL_READ, .body = "[1]", .next = "1"},
        {.offset = "1", .verb = CALL_READ, .how = BREAKS, .code = STREAM_ERROR_BUSY},
        {.offset = "1", .verb = CALL_READ, .how = BREAKS, .code = STREAM_ERROR_BUSY},
        {.offset = "1", .verb = CALL_READ, .how = BREAKS, .code = STREAM_ERROR_BUSY},
        {.offset = "1", .verb = CALL_READ, .how = BREAKS, .code = STREAM_ERROR_SERVER},
    };
    static const struct reply gone[] = {
        {.offset = "-1", .verb = CALL_READ, .body = "[1]", .next = "1", .up_to_date = true},
        {.offset = "1", .verb = CALL_LONG_POLL, .how = REFUSED, .code = STREAM_ERROR_GONE},
    };

    (void)state;
    TOLD(enough, "1(1) SERVER", .unit = STREAM_MESSAGES);
    TOLD(gone, "1(1)^ GONE", .live = STREAM_LONG_POLL, .unit = STREAM_MESSAGES);
}

/* A long-poll that is to end after a while begins anew. */
static void test_poll_timeout(void **state)
{
    static const struct reply polls[] = {
        TAIL,
        {.offset = "0", .verb = CALL_LONG_POLL, .body = "", .how = HANGS, .waits = true},
        {.offset = "0", .verb = CALL_LONG_POLL, .body = "[1]", .next = "1", .closed = true},
    };

    (void)state;
    TOLD(polls, "(0)^ 1(1)^. END", .live = STREAM_LONG_POLL, .unit = STREAM_MESSAGES,
         .poll_timeout_ms = 10);
}

/* A look at the transport from the client's thread. */
struct look {
    struct task task;
    const struct play *play;
    bool paused;
    size_t sent;
};

static void run_look(struct task *task)
{
    struct look *look = container_of(task, struct look, task);

    look->paused = look->play->paused;
    look->sent = look->play->sent;
}

/* A reader that is not asked makes the server wait, and holds little. */
static void test_back_pressure(void **state)
{
    static const struct reply page[] = {
        {.offset = "-1", .verb = CALL_READ, .next = "9", .up_to_date = true}};
    struct stream_piece_view piece;
    struct scene s;
    struct look look = {.task.run = run_look, .play = &s.play};
    size_t total;

    (void)state;
    open_scene(&s, page, 1, &(const struct stream_read_options){.unit = STREAM_BYTES}, 1);
    s.play.large = 10000000;
    s.play.step = 32768;
    assert_int_equal(stream_reader_next(s.reader, &piece, NULL), STREAM_OK);
    total = piece.len;
    while (!look.paused) {
        client_run(s.client, &look.task);
    }
    assert_true(look.sent <= 3 * 256 * 1024);
    while (stream_reader_next(s.reader, &piece, NULL) == STREAM_OK) {
        total += piece.len;
    }
    assert_int_equal(total, 10000000);
    assert_true(s.reader->feed.fill.cap <= 256 * 1024 && s.reader->feed.work.cap <= 256 * 1024);
    close_scene(&s);
}

struct aborter {
    struct scene *scene;
    bool client; /* abort all of it */
};

static void *abort_soon(void *context)
{
    const struct aborter *a = context;

    while (atomic_load(&a->scene->play.calls) < 2) {
        (void)poll(NULL, 0, 1);
    }
    if (a->client) {
        stream_client_abort(a->scene->client);
    } else {
        stream_reader_abort(a->scene->reader);
    }
    return NULL;
}

/* An abort ends a reader that waits for an answer, for the rest of a body, or in a pause. */
static void test_abort(void **state)
{
    static const struct reply scripts[][2] = {
        {TAIL, {.offset = "0", .verb = CALL_LONG_POLL, .body = "", .how = HANGS}},
        {TAIL, {.offset = "0", .verb = CALL_LONG_POLL, .body = "[1", .how = HANGS}},
        {TAIL, {.offset = "0", .verb = CALL_LONG_POLL, .how = BREAKS, .code = STREAM_ERROR_BUSY}},
    };

    (void)state;
    for (size_t i = 0; i < 2 * ARRAY_COUNT(scripts); i++) {
        struct scene s;
        struct aborter a = {.scene = &s, .client = i % 2 == 0};
        pthread_t thread;

        open_scene(
            &s, scripts[i / 2], 2,
            &(const struct stream_read_options){.live = STREAM_LONG_POLL, .unit = STREAM_MESSAGES},
            60000);
        assert_int_equal(pthread_create(&thread, NULL, abort_soon, &a), 0);
        play_out(&s);
        assert_true(slice_equal(buf_slice(&s.told), SLICE("(0)^ ABORTED")));
        (void)pthread_join(thread, NULL);
        close_scene(&s);
    }
}

/* An abort before the first question, and one between pieces. */
static void test_abort_idle(void **state)
{
    static const struct reply page[] = {
        {.offset = "-1", .verb = CALL_READ, .body = "[1,2,3]", .next = "3", .up_to_date = true}};
    struct stream_piece_view piece;
    struct scene s;

    (void)state;
    open_scene(&s, page, 0, NULL, 1);
    stream_reader_abort(s.reader);
    assert_int_equal(stream_reader_next(s.reader, &piece, NULL), STREAM_ERROR_ABORTED);
    close_scene(&s);
    open_scene(&s, page, 1, &(const struct stream_read_options){.unit = STREAM_MESSAGES}, 1);
    assert_int_equal(stream_reader_next(s.reader, &piece, NULL), STREAM_OK);
    stream_reader_abort(s.reader);
    assert_int_equal(stream_reader_next(s.reader, &piece, &s.error), STREAM_ERROR_ABORTED);
    assert_string_equal(s.error.message, "cannot read \"a/b\": aborted");
    close_scene(&s);
}

/* The step form never blocks, and the descriptor tells when there is something. */
static void test_step(void **state)
{
    static const struct reply replies[] = {
        TAIL,
        {.offset = "0",
         .verb = CALL_SSE,
         .how = HANGS,
         .body = DATA("[1,2]") CONTROL("\"streamNextOffset\":\"2\"") DATA("[3]")
             CONTROL("\"streamNextOffset\":\"3\",\"streamClosed\":true")},
    };
    struct stream_piece_view piece;
    struct scene s;
    int rc = STREAM_WAIT;

    (void)state;
    open_scene(&s, replies, 2,
               &(const struct stream_read_options){.live = STREAM_SSE, .unit = STREAM_MESSAGES}, 1);
    struct pollfd fd = {.fd = stream_client_fd(s.client), .events = POLLIN};

    assert_int_equal(poll(&fd, 1, 0), 1); /* it is to be asked for the first time */
    while (rc == STREAM_WAIT || rc == STREAM_OK) {
        rc = stream_reader_step(s.reader, &piece, NULL);
        if (rc == STREAM_OK) {
            tell_piece(&s.told, &piece);
            assert_int_equal(poll(&fd, 1, 0), 1); /* there may be more */
        } else if (rc == STREAM_WAIT) {
            assert_int_equal(poll(&fd, 1, 10000), 1);
        }
    }
    assert_int_equal(rc, STREAM_END);
    assert_int_equal(poll(&fd, 1, 0), 0); /* there will never be anything */
    assert_true(slice_equal(buf_slice(&s.told), SLICE("(0)^ 1 2(2) 3(3)^. ")));
    close_scene(&s);
}

/* Arguments that make no sense are refused with a sentence. */
static void test_arguments(void **state)
{
    static const struct stream_read_options bad[] = {
        {.offset = ""},
        {.offset = "a b"},
        {.live = (enum stream_live)9},
        {.unit = (enum stream_unit)9},
        {.poll_timeout_ms = -1},
    };
    struct stream_reader *reader;
    struct stream_error error;
    struct scene s;

    (void)state;
    open_scene(&s, NULL, 0, NULL, 1);
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        assert_int_equal(stream_client_read(s.client, "a", &bad[i], &reader, &error),
                         STREAM_ERROR_ARGUMENT);
        assert_true(error.message[0] != '\0');
    }
    assert_int_equal(stream_client_read(s.client, "", NULL, &reader, &error),
                     STREAM_ERROR_ARGUMENT);
    close_scene(&s);
}

/* All of a stream in memory: one array, or the bytes; more than allowed is refused. */
static void test_read_all(void **state)
{
    static const struct reply json[] = {
        {.offset = "-1", .verb = CALL_READ, .body = "[1,2]", .next = "2"},
        {.offset = "2", .verb = CALL_READ, .body = "[3]", .next = "3", .up_to_date = true},
    };
    static const struct reply text[] = {
        {.offset = "-1", .verb = CALL_READ, .body = "ab", .type = "text/plain", .next = "2"},
        {.offset = "2",
         .verb = CALL_READ,
         .body = "c",
         .type = "text/plain",
         .next = "3",
         .up_to_date = true},
    };
    static const struct reply nothing[] = {
        {.offset = "-1",
         .verb = CALL_READ,
         .body = "",
         .type = "text/plain",
         .next = "0",
         .up_to_date = true},
    };
    static const struct {
        const struct reply *replies;
        size_t count;
        size_t max;
        const char *wanted; /* NULL: refused */
    } cases[] = {
        {json, 2, 7, "[1,2,3]"}, {json, 2, 6, NULL},  {text, 2, 3, "abc"},
        {text, 2, 2, NULL},      {nothing, 1, 0, ""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct scene s;
        struct stream_info info;
        char *data = NULL;
        size_t len = 0;
        int rc;

        open_scene(&s, cases[i].replies, cases[i].count, NULL, 1);
        rc = stream_client_read_all(s.client, "a", NULL, cases[i].max, &data, &len, &info,
                                    &s.error);
        if (cases[i].wanted == NULL) {
            assert_int_equal(rc, STREAM_ERROR_REJECTED);
        } else {
            assert_int_equal(rc, STREAM_OK);
            assert_int_equal(len, strlen(cases[i].wanted));
            assert_string_equal(data, cases[i].wanted);
            assert_string_equal(info.next_offset, i == 4 ? "0" : "3");
        }
        free(data);
        close_scene(&s);
    }
}

/* Each allocation of a reader that fails is MEMORY, and nothing is left behind. */
static void test_out_of_memory(void **state)
{
    /* A message that spans two lines, and so two pieces. */
    static const struct reply replies[] = {
        TAIL,
        {.offset = "0",
         .verb = CALL_SSE,
         .how = HANGS,
         .body = DATA("[{\ndata: },2]") CONTROL("\"streamNextOffset\":\"2\"")},
    };
    const struct stream_read_options options = {.live = STREAM_SSE, .unit = STREAM_MESSAGES};
    struct stream_reader *reader;
    struct scene s;

    (void)state;
    for (int i = 0; i < 2; i++) {
        open_scene(&s, replies, 0, NULL, 1);
        allocations_left = i;
        assert_int_equal(stream_client_read(s.client, "a", NULL, &reader, &s.error),
                         STREAM_ERROR_MEMORY);
        allocations_left = -1;
        close_scene(&s);
    }
    for (int i = 0; i < 3; i++) {
        open_scene(&s, replies, 2, &options, 1);
        struct buf *const buffers[] = {&s.reader->feed.fill, &s.reader->answer.held,
                                       &s.reader->answer.messages.part};
        size_t max = buffers[i]->max;

        buffers[i]->max = 0;
        play_out(&s);
        assert_int_equal(s.reader->error.code, STREAM_ERROR_MEMORY);
        buffers[i]->max = max;
        close_scene(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_catch_up),     cmocka_unit_test(test_at_tail),
        cmocka_unit_test(test_resumes),      cmocka_unit_test(test_page_lies),
        cmocka_unit_test(test_long_poll),    cmocka_unit_test(test_events),
        cmocka_unit_test(test_event_bytes),  cmocka_unit_test(test_event_lies),
        cmocka_unit_test(test_closing_poll), cmocka_unit_test(test_auto),
        cmocka_unit_test(test_brief_events), cmocka_unit_test(test_failures),
        cmocka_unit_test(test_poll_timeout), cmocka_unit_test(test_back_pressure),
        cmocka_unit_test(test_abort),        cmocka_unit_test(test_abort_idle),
        cmocka_unit_test(test_step),         cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_read_all),     cmocka_unit_test(test_out_of_memory),
    };

    return UNIT_RUN(tests);
}
