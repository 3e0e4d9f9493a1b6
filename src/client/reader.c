/* How a reader goes along its stream:
 *
 *   catch up:  READ from the offset, page by page, until an answer says that the tail is reached
 *   live:      long-polls, each from the offset that the one before gave, or server-sent events,
 *              asked for anew from the last control event's offset whenever they end
 *
 * `offset` moves only when an answer, or a control event, says so and all before it is handed out
 * (answer.h); whatever breaks, the reader asks for the same offset again and passes over what it
 * has handed out behind it. So nothing comes twice and nothing is left out.
 *
 * What can go wrong: the call fails and may do better (retry, by the client's rules, which count
 * anew after each success); it fails for good, or says what no server may say (the reader ends with
 * that error); it ends at once, again and again, without bringing anything (pauses). */
#include "client/reader.h"

#include "base/media_type.h"
#include "client/answer.h"
#include "client/feed.h"
#include "client/operation.h"

#include <stdio.h>
#include <stdlib.h>

#define NOTHING (-3) /* go on: no piece, no end, no error */

struct stream_reader {
    struct stream_client *client;
    char *name;
    struct feed feed;
    struct answer answer;
    enum stream_live live;
    bool by_type;     /* JSON streams give messages, others bytes */
    uint64_t poll_ms; /* of each long-poll; 0: no limit of ours */

    char offset[STREAM_OFFSET_BYTES];
    bool offset_given; /* by the server, so that offsets compare */
    char cursor[READER_CURSOR_BYTES];
    struct stream_info info; /* of the last answer's head */
    bool caught_up;          /* the tail was reached once: live from now on */
    bool polls;              /* AUTO has gone over to long-polls */
    bool at_end;             /* STREAM_END from now on */

    struct feed_request asked; /* the last one */
    bool under_way;            /* its end was not seen yet */
    struct slice rest;         /* of the body, not taken yet; the feed's */
    bool begun;                /* the answer at hand has a body that is being taken */
    bool got_units;            /* it brought something new */
    bool got_mark;             /* it gave an offset */
    bool is_told;              /* the last piece said that the tail is reached */
    bool success;              /* something went well since the last failure */
    unsigned quick;            /* answers in a row that came too soon */
    unsigned brief;            /* event streams in a row that were too brief */
    struct stream_error last;  /* of the last failure that may pass */
    struct stream_error error; /* code STREAM_OK: none; else the reader is at its end */
    bool was_refused; /* `error` is what came of a call: the feed's refusal belongs to it */
};

/* ----------------------------------------------------------------------------------- failures */

/* The reader ends with this error, in the words of the call that was asked for last. */
static int fail(struct stream_reader *r, enum stream_error_code code, const char *sentence)
{
    struct call call = {.verb = r->asked.verb, .name = slice_of(r->name), .what = r->feed.what};

    call_begin(&call);
    call.result.info.status = code == STREAM_ERROR_FORMAT ? r->info.status : 0;
    call_fail(&call, code, "%s", sentence);
    r->error = call.result.error;
    return (int)code;
}

static int fail_format(struct stream_reader *r, int rc, const struct errmsg *msg)
{
    if (rc == ERR_NOMEM) {
        return fail(r, STREAM_ERROR_MEMORY, "out of memory");
    }
    return fail(r, STREAM_ERROR_FORMAT, msg->text);
}

/* -------------------------------------------------------------------------------------- asking */

static enum call_verb next_verb(const struct stream_reader *r)
{
    bool events = r->live == STREAM_SSE || (r->live == STREAM_AUTO && !r->polls);

    if (!r->caught_up || r->live == STREAM_CATCH_UP) {
        return CALL_READ;
    }
    return events && client_transport(r->client)->has_sse ? CALL_SSE : CALL_LONG_POLL;
}

static uint64_t silence_ms(const struct stream_reader *r, enum call_verb verb)
{
    if (verb == CALL_LONG_POLL) {
        return r->poll_ms;
    }
    return verb == CALL_SSE && r->live == STREAM_AUTO ? READER_SILENCE_MS : 0;
}

static void ask(struct stream_reader *r, struct feed_request *request)
{
    request->verb = next_verb(r);
    request->silence_ms = silence_ms(r, request->verb);
    request->fresh = r->success;
    memcpy(request->offset, r->offset, sizeof(r->offset));
    if (request->verb != CALL_READ) {
        memcpy(request->cursor, r->cursor, sizeof(r->cursor));
    }
    r->success = false;
    r->under_way = true;
    r->begun = false;
    r->got_units = false;
    r->got_mark = false;
    r->asked = *request;
    feed_ask(&r->feed, request);
}

/* Asks for what comes next; answers that came too soon and brought nothing make for a pause, the
 * first one aside. */
static void ask_next(struct stream_reader *r)
{
    struct feed_request request = {.retry_after_ms = -1};

    if (r->quick > 1) {
        unsigned doublings = r->quick - 2 < 4 ? r->quick - 2 : 4;
        uint64_t pause = (uint64_t)100 << doublings;

        request.pause_ms = pause < READER_QUICK_PAUSE_MS ? pause : READER_QUICK_PAUSE_MS;
    }
    ask(r, &request);
}

/* Asks for the same once more, after a failure that may pass. */
static void ask_again(struct stream_reader *r, const struct stream_error *error)
{
    struct feed_request request = {.retries = true, .retry_after_ms = error->retry_after_ms};

    r->last = *error;
    ask(r, &request);
}

/* AUTO goes over to long-polls. Not while bytes were handed out of an event that has no end yet:
 * only events are sure to bring the same bytes again. */
static bool go_over(struct stream_reader *r)
{
    if (r->live != STREAM_AUTO || (r->answer.unit == STREAM_BYTES && r->answer.since > 0)) {
        return false;
    }
    r->polls = true;
    return true;
}

/* ------------------------------------------------------------------------------ an answer comes */

/* The head of a page tells the stream's content type, and that decides on a thing or two. */
static void learn_type(struct stream_reader *r, const char *type)
{
    bool is_json = media_type_is_json(slice_of(type));

    client_type_note(r->client, slice_of(r->name), type);
    if (r->by_type) {
        r->by_type = false;
        r->answer.unit = is_json ? STREAM_MESSAGES : STREAM_BYTES;
    }
    /* Text events lose carriage returns, so AUTO does not use them for bytes. */
    r->polls = r->polls || (r->answer.unit == STREAM_BYTES && media_type_is_text(slice_of(type)));
}

/* The first sight of an answer's head. NOTHING, or the error that the reader ends with. */
static int begin(struct stream_reader *r, const struct call_result *result)
{
    const struct stream_info before = r->info;
    bool events = r->asked.verb == CALL_SSE;
    bool no_json = events && result->base64;

    r->info = result->info;
    memcpy(r->info.next_offset, before.next_offset, sizeof(before.next_offset));
    if (events || result->info.status != 200) {
        /* An event stream has a type of its own, and where there is no body there is none. */
        memcpy(r->info.content_type, before.content_type, sizeof(before.content_type));
    } else {
        learn_type(r, r->info.content_type);
        no_json = !media_type_is_json(slice_of(r->info.content_type));
    }
    answer_begin(&r->answer, events, result->base64);
    r->begun = true;
    if (r->answer.unit == STREAM_MESSAGES && no_json) {
        char sentence[sizeof(r->info.content_type) + 100];

        (void)snprintf(sentence, sizeof(sentence),
                       "its content type is \"%s\", and only application/json has messages",
                       r->info.content_type);
        return fail(r, STREAM_ERROR_FORMAT, sentence);
    }
    return NOTHING;
}

/* Whether the next offset can be true: it never goes back, it moves if something came, and it is a
 * place: who asked from "now" again would miss what came meanwhile. */
static const char *offset_lie(const struct stream_reader *r, const char *next)
{
    if (strcmp(next, "now") == 0) {
        return "the answer's next offset is \"now\", which is no place in the stream";
    }
    if (r->answer.units > 0 && strcmp(next, r->offset) == 0) {
        return "the answer has data, but its next offset is the one that was asked for";
    }
    if (r->offset_given && strcmp(next, r->offset) < 0) {
        return "the answer's next offset lies before the one that was asked for";
    }
    return NULL;
}

/* The server says where the stream stands. STREAM_OK and a piece, NOTHING, or an error. */
static int on_mark(struct stream_reader *r, const struct answer_mark *mark,
                   struct stream_piece_view *ret_piece)
{
    const char *lie = offset_lie(r, mark->next_offset);
    bool moved = strcmp(mark->next_offset, r->offset) != 0;
    struct slice piece;

    if (lie != NULL) {
        return fail(r, STREAM_ERROR_FORMAT, lie);
    }
    if ((mark->up_to_date || mark->closed) && r->answer.skip > 0) {
        return fail(r, STREAM_ERROR_FORMAT,
                    "the stream is shorter than what was read of it: the server lost data");
    }
    r->got_units = r->got_units || r->answer.units > 0;
    piece = answer_commit(&r->answer);
    memcpy(r->offset, mark->next_offset, sizeof(r->offset));
    if (mark->cursor[0] != '\0') {
        memcpy(r->cursor, mark->cursor, sizeof(r->cursor));
        memcpy(r->info.cursor, mark->cursor, sizeof(r->info.cursor));
    }
    memcpy(r->info.next_offset, mark->next_offset, sizeof(r->info.next_offset));
    r->info.closed = mark->closed;
    r->offset_given = true;
    r->got_mark = true;
    r->success = true;
    r->caught_up = r->caught_up || mark->up_to_date;
    r->at_end = mark->closed || (mark->up_to_date && r->live == STREAM_CATCH_UP);
    if (piece.len == 0 && !moved && !mark->closed && !(mark->up_to_date && !r->is_told)) {
        return NOTHING;
    }
    r->is_told = mark->up_to_date;
    *ret_piece = (struct stream_piece_view){
        .data = piece.len > 0 ? piece.ptr : NULL,
        .len = piece.len,
        .next_offset = r->offset,
        .up_to_date = mark->up_to_date,
        .closed = mark->closed,
    };
    return STREAM_OK;
}

/* Takes what of the body is at hand, up to a piece; NOTHING: all of it. */
static int take(struct stream_reader *r, struct stream_piece_view *ret_piece)
{
    struct errmsg msg = {.text = ""};
    struct slice piece = {NULL, 0};
    int rc;

    while ((rc = answer_take(&r->answer, &r->rest, &piece, &msg)) == ANSWER_MARK) {
        rc = on_mark(r, &r->answer.mark, ret_piece);
        if (rc != NOTHING || r->at_end) {
            return rc;
        }
    }
    if (rc < 0) {
        return fail_format(r, rc, &msg);
    }
    if (rc == ANSWER_MORE) {
        return NOTHING;
    }
    r->success = true;
    r->got_units = true;
    r->is_told = false;
    *ret_piece = (struct stream_piece_view){.data = piece.ptr, .len = piece.len};
    return STREAM_OK;
}

/* ---------------------------------------------------------------------------- an answer ends */

/* A poll tells of the closing and brings nothing. Some servers leave out the data that came with
 * it, and may give the offset behind those: only what there is to read from where the reader stands
 * tells that this is the end. NOTHING, or an error. */
static int doubt_closing(struct stream_reader *r, struct answer_mark *mark)
{
    const char *lie = offset_lie(r, mark->next_offset);

    if (lie != NULL) {
        return fail(r, STREAM_ERROR_FORMAT, lie);
    }
    memcpy(mark->next_offset, r->offset, sizeof(r->offset));
    mark->closed = false;
    mark->up_to_date = false;
    r->caught_up = false;
    return NOTHING;
}

static int end_page(struct stream_reader *r, struct stream_piece_view *ret_piece)
{
    const struct call_result *result = &r->feed.result;
    struct errmsg msg = {.text = ""};
    struct answer_mark mark = {.up_to_date = result->up_to_date || result->info.closed,
                               .closed = result->info.closed};
    int rc = r->begun ? NOTHING : begin(r, result);

    if (rc != NOTHING) {
        return rc;
    }
    if (answer_end_page(&r->answer, &msg) < 0) {
        return fail(r, STREAM_ERROR_FORMAT, msg.text);
    }
    memcpy(mark.next_offset, result->info.next_offset, sizeof(mark.next_offset));
    memcpy(mark.cursor, result->info.cursor, sizeof(mark.cursor));
    if (r->asked.verb == CALL_READ && r->answer.units == 0 &&
        strcmp(mark.next_offset, r->offset) == 0) {
        /* Nothing behind an offset: that is the tail, also where it is not said (5.6). */
        mark.up_to_date = true;
    }
    if (r->asked.verb == CALL_LONG_POLL && r->answer.units == 0 && mark.closed) {
        rc = doubt_closing(r, &mark);
    }
    if (rc == NOTHING) {
        rc = on_mark(r, &mark, ret_piece);
    }
    bool too_soon = !r->got_units && r->feed.elapsed_ms < READER_QUICK_MS;

    r->quick = too_soon ? r->quick + 1 : 0;
    return rc;
}

static int end_events(struct stream_reader *r)
{
    if (!r->got_mark && !r->got_units) {
        struct call call = {.verb = CALL_SSE, .name = slice_of(r->name), .what = r->feed.what};

        call_begin(&call);
        call_fail(&call, STREAM_ERROR_NETWORK, "the events ended before one of them was whole");
        r->brief++;
        if (r->brief < READER_BRIEF_MAX || !go_over(r)) {
            ask_again(r, &call.result.error);
            return NOTHING;
        }
    } else if (!r->got_units && r->feed.elapsed_ms < READER_BRIEF_MS) {
        r->brief++;
        r->quick++;
        if (r->brief >= READER_BRIEF_MAX && go_over(r)) {
            r->quick = 0;
        }
    } else {
        r->brief = 0;
        r->quick = 0;
    }
    return NOTHING;
}

/* The call did not come out well. */
static int on_failure(struct stream_reader *r)
{
    const struct call_result *result = &r->feed.result;
    enum stream_error_code code = result->error.code;
    bool for_good = code == STREAM_ERROR_FORMAT || code == STREAM_ERROR_REJECTED ||
                    (code == STREAM_ERROR_SERVER && !result->transient);
    bool no_events = r->asked.verb == CALL_SSE && !r->begun && for_good;

    if (no_events && go_over(r)) {
        return NOTHING;
    }
    if (!result->transient) {
        r->error = result->error;
        r->was_refused = true;
        return (int)code;
    }
    ask_again(r, &result->error);
    return NOTHING;
}

static int on_end(struct stream_reader *r, struct stream_piece_view *ret_piece)
{
    switch (r->feed.end) {
    case FEED_DONE:
        break;
    case FEED_SILENT:
        (void)go_over(r); /* a long-poll whose time is over just begins anew */
        return NOTHING;
    case FEED_GAVE_UP:
        r->error = r->last;
        r->was_refused = true;
        return (int)r->error.code;
    case FEED_ABORTED:
        return fail(r, STREAM_ERROR_ABORTED, "aborted");
    }
    if (r->feed.result.error.code != STREAM_OK) {
        return on_failure(r);
    }
    if (r->asked.verb == CALL_SSE) {
        return end_events(r);
    }
    return end_page(r, ret_piece);
}

/* Looks for more of the body, or its end. */
static int fetch(struct stream_reader *r, bool stepping, struct stream_piece_view *ret_piece)
{
    switch (feed_take(&r->feed, stepping, &r->rest)) {
    case FEED_BUSY:
        return STREAM_WAIT;
    case FEED_BYTES:
        return r->begun ? NOTHING : begin(r, &r->feed.head);
    case FEED_END:
    default:
        r->under_way = false;
        return on_end(r, ret_piece);
    }
}

/* As far as it goes without blocking: STREAM_OK and a piece, STREAM_WAIT, STREAM_END, an error. */
static int advance(struct stream_reader *r, bool stepping, struct stream_piece_view *ret_piece)
{
    int rc = NOTHING;

    while (rc == NOTHING) {
        if (r->error.code != STREAM_OK) {
            return (int)r->error.code;
        }
        if (r->at_end) {
            return STREAM_END;
        }
        if (feed_aborted(&r->feed)) {
            return fail(r, STREAM_ERROR_ABORTED, "aborted");
        }
        if (!r->under_way) {
            ask_next(r);
        }
        if (r->begun) {
            rc = take(r, ret_piece);
        }
        if (rc == NOTHING) {
            rc = fetch(r, stepping, ret_piece);
        }
    }
    return rc;
}

/* Nothing more is wanted of the server once the reader is at its end. */
static int settle(struct stream_reader *r, int rc, struct stream_error *ret_error)
{
    if (rc == STREAM_END || rc > STREAM_OK) {
        feed_halt(&r->feed);
    }
    if (rc > STREAM_OK && ret_error != NULL) {
        *ret_error = r->error;
    }
    return rc;
}

int stream_reader_next(struct stream_reader *r, struct stream_piece_view *ret_piece,
                       struct stream_error *ret_error)
{
    int rc;

    while ((rc = advance(r, false, ret_piece)) == STREAM_WAIT) {
        feed_wait(&r->feed);
    }
    return settle(r, rc, ret_error);
}

int stream_reader_step(struct stream_reader *r, struct stream_piece_view *ret_piece,
                       struct stream_error *ret_error)
{
    int rc = advance(r, true, ret_piece);

    if (rc != STREAM_WAIT) {
        feed_set_ready(&r->feed, rc == STREAM_OK);
    }
    return settle(r, rc, ret_error);
}

void stream_reader_info(const struct stream_reader *r, struct stream_info *ret_info)
{
    *ret_info = r->info;
}

void stream_reader_abort(struct stream_reader *r)
{
    feed_abort(&r->feed);
}

/* ---------------------------------------------------------------------------- making one */

const char *reader_check(const char *name, const struct stream_read_options *options)
{
    const char *why = call_name_refusal(slice_of(name));
    const char *offset = options->offset;

    if (why != NULL) {
        return why;
    }
    if (offset != NULL && (offset[0] == '\0' || strlen(offset) >= STREAM_OFFSET_BYTES)) {
        return "the offset must have 1 to 127 bytes";
    }
    for (; offset != NULL && *offset != '\0'; offset++) {
        if ((unsigned char)*offset <= 0x20 || *offset == 0x7f) {
            return "the offset must not hold white space or control characters";
        }
    }
    if (options->live < STREAM_CATCH_UP || options->live > STREAM_AUTO) {
        return "options.live is none of enum stream_live";
    }
    if (options->unit != STREAM_BYTES && options->unit != STREAM_MESSAGES) {
        return "options.unit is none of enum stream_unit";
    }
    return options->poll_timeout_ms < 0 ? "poll_timeout_ms must not be below 0" : NULL;
}

static struct stream_reader *create(struct stream_client *client, const char *name)
{
    struct stream_reader *r = calloc(1, sizeof(*r));

    if (r == NULL) {
        return NULL;
    }
    r->name = strdup(name);
    if (r->name == NULL || feed_init(&r->feed, client, r->name) != STREAM_OK) {
        free(r->name);
        free(r);
        return NULL;
    }
    return r;
}

int stream_client_read(struct stream_client *client, const char *name,
                       const struct stream_read_options *options, struct stream_reader **ret_reader,
                       struct stream_error *ret_error)
{
    static const struct stream_read_options defaults = {.live = STREAM_CATCH_UP};
    const struct call call = {.verb = CALL_READ, .name = slice_of(name)};
    const char *why = reader_check(name, options != NULL ? options : &defaults);
    int code = why != NULL ? operation_refuse(&call, why, ret_error)
                           : operation_check_client(client, &call, ret_error);
    struct stream_reader *r;

    if (code != STREAM_OK) {
        return code;
    }
    options = options != NULL ? options : &defaults;
    r = create(client, name);
    if (r == NULL) {
        return call_error_set(ret_error, STREAM_ERROR_MEMORY, "out of memory");
    }
    r->client = client;
    r->live = options->live;
    r->poll_ms = (uint64_t)options->poll_timeout_ms;
    answer_init(&r->answer, options->unit, client_options(client)->max_message_bytes);
    (void)snprintf(r->offset, sizeof(r->offset), "%s",
                   options->offset != NULL ? options->offset : "-1"); /* its length was checked */
    feed_set_ready(&r->feed, true);
    *ret_reader = r;
    return STREAM_OK;
}

void reader_customise(struct stream_reader *r, const char *what, const struct stream_retry *rules)
{
    r->feed.what = what;
    r->feed.rules = rules;
    retry_reset(&r->feed.retry, rules);
}

const struct refusal *reader_refusal(const struct stream_reader *r)
{
    static const struct refusal none = {.present = false};

    return r->was_refused ? &r->feed.refusal : &none;
}

void reader_set_by_type(struct stream_reader *r)
{
    r->by_type = true;
}

void stream_reader_free(struct stream_reader *r)
{
    if (r == NULL) {
        return;
    }
    feed_finish(&r->feed);
    answer_finish(&r->answer);
    free(r->name);
    free(r);
}
