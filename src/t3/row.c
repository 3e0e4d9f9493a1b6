/* A merge is decided first, then the new texts are made, which may fail, then everything is put in
 * its place at once. */
#include "t3/row.h"

#include "base/json_value.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "t3/fields.h"
#include "t3/snippet.h"

#include <stdlib.h>

/* What becomes of the run or the message that the row knows. */
enum fate {
    FATE_KEEP,    /* nothing was told, or something of an older one */
    FATE_CLEAR,   /* there is none */
    FATE_MERGE,   /* it is the same */
    FATE_REPLACE, /* it is another one */
};

struct plan {
    enum fate run;
    enum fate message;
    bool set[T3_TEXT_COUNT];
    struct t3_board_text texts[T3_TEXT_COUNT]; /* of those that are set; data NULL: none */
    bool failed;                               /* out of memory */
};

void t3_row_finish(struct t3_row *row)
{
    for (size_t i = 0; i < T3_TEXT_COUNT; i++) {
        free((char *)row->texts[i].data);
    }
    *row = (struct t3_row){.archived = false};
}

static bool is_text(const struct t3_row *row, enum t3_text which, struct slice value)
{
    const struct t3_board_text *text = &row->texts[which];

    return value.ptr != NULL && text->data != NULL &&
           json_string_equal(value, (struct slice){text->data, text->len});
}

/* ------------------------------------------------------------------ deciding */

static struct t3_run_facts known_run(const struct t3_row *row)
{
    struct t3_run_facts run = {.ordinal = row->run_ordinal};

    memcpy(run.times, row->run_times, sizeof(run.times));
    return run;
}

static enum fate run_fate(const struct t3_row *row, const struct t3_op *op)
{
    const struct t3_run_facts *told = &op->run;
    const struct t3_run_facts known = known_run(row);

    if (op->run_told != T3_TOLD_FACTS) {
        return op->run_told == T3_TOLD_NONE ? FATE_CLEAR : FATE_KEEP;
    }
    if (told->id.ptr == NULL || is_text(row, T3_TEXT_RUN_ID, told->id)) {
        return FATE_MERGE;
    }
    if (op->scope == T3_SCOPE_LISTED || op->scope == T3_SCOPE_CATCH_UP) {
        return FATE_REPLACE;
    }
    /* A shell that did not say which run it is about means this one, unless this one is older. */
    if (row->texts[T3_TEXT_RUN_ID].data == NULL) {
        bool older = told->times[T3_RUN_REQUESTED].len > 0 && t3_run_is_newer(&known, told);

        return older ? FATE_KEEP : FATE_MERGE;
    }
    /* Early servers do not tell when a run was asked for; their shell is right all the same. */
    if (op->scope == T3_SCOPE_WHOLE && told->times[T3_RUN_REQUESTED].len == 0) {
        return FATE_REPLACE;
    }
    return t3_run_is_newer(told, &known) ? FATE_REPLACE : FATE_KEEP;
}

static enum fate message_fate(const struct t3_row *row, const struct t3_op *op)
{
    const struct t3_message_facts known = {.created = row->message_created,
                                           .updated = row->message_updated};

    if (op->message_told != T3_TOLD_FACTS) {
        return op->message_told == T3_TOLD_NONE ? FATE_CLEAR : FATE_KEEP;
    }
    if (is_text(row, T3_TEXT_MESSAGE_ID, op->message.id)) {
        return FATE_MERGE;
    }
    if (row->texts[T3_TEXT_MESSAGE_ID].data == NULL || op->scope == T3_SCOPE_LISTED ||
        op->scope == T3_SCOPE_CATCH_UP) {
        return FATE_REPLACE;
    }
    return t3_instant_compare(t3_message_order(&op->message), t3_message_order(&known)) > 0
               ? FATE_REPLACE
               : FATE_KEEP;
}

/* Whether the turn of an event is one of the row's run, as that is now. */
static bool is_of_run(const struct t3_row *row, const struct t3_turn_facts *turn)
{
    const struct t3_board_text *state = &row->texts[T3_TEXT_STATE];

    if (turn->tied || row->texts[T3_TEXT_RUN_ID].data == NULL) {
        return true;
    }
    if (turn->run.ptr != NULL) {
        return is_text(row, T3_TEXT_RUN_ID, turn->run);
    }
    return is_text(row, T3_TEXT_ATTEMPT, turn->attempt) ||
           t3_turn_may_be_of(
               turn, row->run_times,
               state->data != NULL &&
                   slice_equal((struct slice){state->data, state->len}, SLICE("queued")));
}

/* ------------------------------------------------------------------ making texts */

/* The longest prefix of at most `max` bytes that ends with a whole character. */
static struct slice cut(struct slice text, size_t max)
{
    if (text.len > max) {
        text.len = max;
        text.len = utf8_valid_prefix(text);
    }
    return text;
}

static void plan_bytes(struct plan *p, enum t3_text which, struct slice text)
{
    char *copy = malloc(text.len + 1);

    if (copy == NULL) {
        p->failed = true;
        return;
    }
    memcpy(copy, text.ptr == NULL ? "" : text.ptr, text.len);
    copy[text.len] = '\0';
    p->set[which] = true;
    p->texts[which] = (struct t3_board_text){copy, text.len};
}

/* The bytes of a JSON string, in the room for them. U+FFFD is half as long as the escape that it
 * stands for. */
static bool decode(struct slice value, struct buf *scratch)
{
    buf_clear(scratch);
    scratch->max = value.len;
    json_string_decode_lossy(value, scratch);
    return !scratch->failed;
}

/* Plans what is told: a string of at most `max` bytes, or null for none. */
static void plan_text(struct plan *p, const struct t3_row *row, enum t3_text which,
                      struct slice value, size_t max, struct buf *scratch)
{
    if (value.ptr == NULL) {
        return;
    }
    if (is_text(row, which, value)) {
        p->set[which] = false; /* as it was, whatever was planned */
        return;
    }
    if (!t3_field_string(value)) {
        p->set[which] = row->texts[which].data != NULL;
    } else if (decode(value, scratch)) {
        plan_bytes(p, which, cut(buf_slice(scratch), max));
    } else {
        p->failed = true;
    }
}

static void plan_none(struct plan *p, enum t3_text which)
{
    p->set[which] = true;
    p->texts[which] = (struct t3_board_text){NULL, 0};
}

static void plan_snippet(struct plan *p, struct slice value, size_t graphemes, struct buf *scratch)
{
    struct buf snippet;

    if (!t3_field_string(value)) {
        plan_none(p, T3_TEXT_SNIPPET);
        return;
    }
    buf_init(&snippet, graphemes * T3_GRAPHEME_BYTES_MAX);
    if (decode(value, scratch)) {
        t3_snippet_append(buf_slice(scratch), graphemes, &snippet);
        plan_bytes(p, T3_TEXT_SNIPPET, buf_slice(&snippet));
    }
    p->failed = p->failed || scratch->failed || snippet.failed;
    buf_finish(&snippet);
}

static void plan_run(struct plan *p, const struct t3_row *row, const struct t3_op *op,
                     struct buf *scratch)
{
    if (p->run == FATE_CLEAR || p->run == FATE_REPLACE) {
        plan_none(p, T3_TEXT_RUN_ID);
        plan_none(p, T3_TEXT_ATTEMPT);
    }
    if (p->run == FATE_MERGE || p->run == FATE_REPLACE) {
        plan_text(p, row, T3_TEXT_RUN_ID, op->run.id, T3_ID_BYTES_MAX, scratch);
        plan_text(p, row, T3_TEXT_ATTEMPT, op->run.attempt, T3_ID_BYTES_MAX, scratch);
    }
    if (p->run != FATE_KEEP || op->run_told == T3_TOLD_NOTHING) {
        plan_text(p, row, T3_TEXT_STATE, op->state, T3_STATE_BYTES_MAX, scratch);
    }
    /* A thread that is there without a run has not begun. */
    if (op->scope == T3_SCOPE_CATCH_UP && op->run_told != T3_TOLD_FACTS && op->state.ptr == NULL &&
        row->texts[T3_TEXT_STATE].data == NULL) {
        plan_bytes(p, T3_TEXT_STATE, SLICE("idle"));
    }
}

/* A run that is over asks nothing any more, whoever tells of it; of its plan that says nothing. */
static void plan_request(struct plan *p, const struct t3_row *row, const struct t3_op *op,
                         struct buf *scratch)
{
    bool over = row->texts[T3_TEXT_REQUEST].data != NULL && op->run_told == T3_TOLD_FACTS &&
                p->run != FATE_KEEP && t3_run_is_over(op->state);

    if (over || is_text(row, T3_TEXT_REQUEST, op->answered)) {
        plan_none(p, T3_TEXT_REQUEST);
    }
    plan_text(p, row, T3_TEXT_REQUEST, op->request, T3_ID_BYTES_MAX, scratch);
}

static void plan_message(struct plan *p, const struct t3_row *row, const struct t3_op *op,
                         size_t graphemes, struct buf *scratch)
{
    bool whole = op->scope != T3_SCOPE_SPARSE;

    if (p->message == FATE_CLEAR) {
        plan_none(p, T3_TEXT_MESSAGE_ID);
        plan_none(p, T3_TEXT_SNIPPET);
    }
    if (p->message != FATE_MERGE && p->message != FATE_REPLACE) {
        return;
    }
    plan_text(p, row, T3_TEXT_MESSAGE_ID, op->message.id, T3_ID_BYTES_MAX, scratch);
    if (op->message.text.ptr != NULL || (p->message == FATE_REPLACE && whole)) {
        plan_snippet(p, op->message.text, graphemes, scratch);
    }
}

/* ------------------------------------------------------------------ putting in place */

static void commit_texts(struct t3_row *row, const struct plan *p)
{
    for (size_t i = 0; i < T3_TEXT_COUNT; i++) {
        if (p->set[i]) {
            free((char *)row->texts[i].data);
            row->texts[i] = p->texts[i];
        }
    }
}

static void commit_run(struct t3_row *row, const struct plan *p, const struct t3_run_facts *run)
{
    static const struct t3_instant none = {.len = 0};

    if (p->run == FATE_CLEAR || p->run == FATE_REPLACE) {
        row->run_ordinal = 0;
        row->turn_activity = none;
        memset(row->run_times, 0, sizeof(row->run_times));
    }
    if (p->run != FATE_MERGE && p->run != FATE_REPLACE) {
        return;
    }
    row->run_ordinal = run->ordinal > 0 ? run->ordinal : row->run_ordinal;
    for (size_t i = 0; i < T3_RUN_TIME_COUNT; i++) {
        if (run->times[i].len > 0) {
            row->run_times[i] = run->times[i];
        } else if (run->cleared[i]) {
            row->run_times[i] = none;
        }
    }
}

static void commit_message(struct t3_row *row, const struct plan *p,
                           const struct t3_message_facts *message)
{
    static const struct t3_instant none = {.len = 0};

    if (p->message == FATE_CLEAR || p->message == FATE_REPLACE) {
        row->message_created = none;
        row->message_updated = none;
    }
    if (p->message != FATE_MERGE && p->message != FATE_REPLACE) {
        return;
    }
    if (message->created.len > 0) {
        row->message_created = message->created;
    }
    if (message->updated.len > 0) {
        row->message_updated = message->updated;
    }
}

int t3_row_merge(struct t3_row *row, const struct t3_op *op, size_t snippet_graphemes,
                 struct buf *scratch)
{
    struct plan p = {.run = run_fate(row, op), .message = message_fate(row, op)};

    plan_text(&p, row, T3_TEXT_TITLE, op->title, T3_TITLE_BYTES_MAX, scratch);
    plan_run(&p, row, op, scratch);
    plan_request(&p, row, op, scratch);
    plan_message(&p, row, op, snippet_graphemes, scratch);
    if (p.failed) {
        for (size_t i = 0; i < T3_TEXT_COUNT; i++) {
            free((char *)p.texts[i].data);
        }
        return ERR_NOMEM;
    }
    commit_texts(row, &p);
    commit_run(row, &p, &op->run);
    commit_message(row, &p, &op->message);
    if (op->archived != T3_ARCHIVED_NOT_TOLD) {
        row->archived = op->archived == T3_ARCHIVED_YES;
    }
    if (op->plan != T3_TOLD_NOTHING) {
        row->plan = op->plan == T3_TOLD_FACTS;
    }
    if (op->turn_told == T3_TOLD_FACTS && is_of_run(row, &op->turn)) {
        t3_instant_advance(&row->turn_activity, &op->turn.activity);
    }
    return 0;
}

struct t3_board_row t3_row_shown(const struct t3_row *row)
{
    const struct t3_instant *latest = &row->run_times[0];
    struct t3_board_row shown = {
        .title = row->texts[T3_TEXT_TITLE],
        .state = row->texts[T3_TEXT_STATE],
        .last_message_snippet = row->texts[T3_TEXT_SNIPPET],
    };

    for (size_t i = 1; i < T3_RUN_TIME_COUNT; i++) {
        latest = t3_instant_compare(&row->run_times[i], latest) > 0 ? &row->run_times[i] : latest;
    }
    if (t3_instant_compare(&row->turn_activity, latest) > 0) {
        latest = &row->turn_activity;
    }
    if (latest->len > 0) {
        shown.last_turn_at = (struct t3_board_text){latest->text, latest->len};
    }
    shown.asks = !row->archived && (row->plan || row->texts[T3_TEXT_REQUEST].data != NULL);
    if (row->archived) {
        shown.state = (struct t3_board_text){"archived", strlen("archived")};
    }
    return shown;
}
