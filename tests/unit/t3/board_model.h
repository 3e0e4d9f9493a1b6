/* A naive model of the board: it keeps every record that was ever told and, when a row is asked
 * for, goes through all of them again. Threads, runs and messages are small numbers, times seconds;
 * nothing of the board's code is in it, and nothing of its structure. */
#ifndef ARBE_TESTS_UNIT_T3_BOARD_MODEL_H
#define ARBE_TESTS_UNIT_T3_BOARD_MODEL_H

#include "base/dice.h"
#include "unit/t3/board.h"

#define MODEL_HOSTS   2
#define MODEL_THREADS 4
#define MODEL_DEEDS   1500
#define MODEL_ABSENT  (-1) /* of any member below */
#define MODEL_NULL    (-2)
#define MODEL_OVER    9 /* a state: that of a run that is over */

enum deed_kind {
    DEED_LISTED,   /* in a snapshot of the shell */
    DEED_UNLISTED, /* not in one */
    DEED_UPDATED,  /* by the shell */
    DEED_REMOVED,
    DEED_PROJECTED,
    DEED_RUN,
    DEED_MESSAGE,
    DEED_TURN,
    DEED_REQUEST, /* pending, resolved, expired, not told, null: by `word` */
    DEED_META,    /* metadata, archived, unarchived, created, deleted: by `word` */
    DEED_KIND_COUNT,
};

struct deed {
    enum deed_kind kind;
    int host;
    int thread;
    int word;     /* of DEED_META and DEED_REQUEST: 0 to 4, as above */
    int title;    /* a number; ABSENT or NULL */
    int state;    /* likewise */
    int archived; /* 0: not in that place */
    int run;      /* likewise; of a turn the run that it names */
    int ordinal;
    int times[4]; /* requested, work started, started, completed */
    int message;  /* likewise */
    int created;
    int updated;
    int text;
    int request; /* that is pending; of DEED_REQUEST any */
    int plan;    /* 1: one is to be accepted */
};

/* What a row comes to. 0 stands for what is not known. */
struct model_row {
    bool present, deleted, archived;
    int title, state, text; /* and -1 here: none */
    int run, ordinal, times[4], turn;
    int message, created, updated;
    int request, plan;
};

static uint64_t model_random(uint64_t *seed, uint64_t below)
{
    return dice_roll(seed) % below;
}

/* ------------------------------------------------------------------ what deeds come to */

static void model_clear_run(struct model_row *m)
{
    m->run = m->ordinal = m->turn = 0;
    memset(m->times, 0, sizeof(m->times));
}

static bool model_is_later_run(const struct model_row *m, const struct deed *d)
{
    int requested = d->times[0] > 0 ? d->times[0] : 0;

    if (d->ordinal > 0 && m->ordinal > 0) {
        return d->ordinal > m->ordinal;
    }
    return requested > m->times[0];
}

/* Whether the run counts, once the row's has made way for it where it is another one. */
static bool model_admit_run(struct model_row *m, const struct deed *d)
{
    bool all = d->kind == DEED_LISTED || d->kind == DEED_PROJECTED;

    if (m->run == d->run) {
        return true;
    }
    if (m->run == 0 && !all) {
        return !(d->times[0] > 0 && m->times[0] > d->times[0]);
    }
    if (all || (d->kind == DEED_UPDATED && d->times[0] <= 0) || model_is_later_run(m, d)) {
        model_clear_run(m);
        return true;
    }
    return false;
}

static void model_take_run(struct model_row *m, const struct deed *d)
{
    bool sparse = d->kind == DEED_RUN;

    if (d->run == MODEL_NULL) {
        model_clear_run(m);
    } else if (d->run != MODEL_ABSENT) {
        if (!model_admit_run(m, d)) {
            return;
        }
        m->run = d->run;
        m->ordinal = d->ordinal > 0 ? d->ordinal : m->ordinal;
        for (int i = 0; i < 4; i++) {
            if (d->times[i] > 0) {
                m->times[i] = d->times[i];
            } else if (d->times[i] == MODEL_NULL && !sparse) {
                m->times[i] = 0;
            }
        }
    }
    if (d->state > 0) {
        m->state = d->state;
    } else if ((d->state == MODEL_NULL && !sparse) || d->kind == DEED_LISTED) {
        m->state = -1;
    }
    if (d->run > 0 && d->state == MODEL_OVER) {
        m->request = 0;
    }
}

static void model_take_message(struct model_row *m, const struct deed *d)
{
    bool all = d->kind == DEED_LISTED || d->kind == DEED_PROJECTED;
    bool sparse = d->kind == DEED_MESSAGE;
    int created = d->created > 0 ? d->created : 0;
    int updated = d->updated > 0 ? d->updated : 0;

    if (d->message == MODEL_ABSENT) {
        return;
    }
    if (d->message == MODEL_NULL) {
        m->message = m->created = m->updated = 0;
        m->text = -1;
        return;
    }
    if (m->message != d->message) {
        int order = created > 0 ? created : updated;
        int known = m->created > 0 ? m->created : m->updated;

        if (m->message != 0 && !all && order <= known) {
            return;
        }
        m->created = m->updated = 0;
        m->text = sparse ? m->text : -1;
    }
    m->message = d->message;
    m->created = created > 0 ? created : m->created;
    m->updated = updated > 0 ? updated : m->updated;
    if (d->text > 0) {
        m->text = d->text;
    } else if ((d->text == MODEL_NULL && !sparse) || d->kind == DEED_LISTED) {
        m->text = -1;
    }
}

static void model_take_turn(struct model_row *m, const struct deed *d)
{
    int latest = 0;

    for (int i = 0; i < 4; i++) {
        latest = d->times[i] > latest ? d->times[i] : latest;
    }
    if (m->run != 0 && d->run > 0 && d->run != m->run) {
        return;
    }
    if (m->run != 0 && d->run <= 0 && d->times[2] > 0 && d->times[2] < m->times[0]) {
        return;
    }
    m->turn = latest > m->turn ? latest : m->turn;
}

static void model_take_request(struct model_row *m, const struct deed *d)
{
    if (d->kind == DEED_REQUEST && d->word == 0) {
        m->request = d->request;
    } else if (d->kind == DEED_REQUEST) {
        m->request = d->word <= 2 && m->request == d->request ? 0 : m->request;
    } else if (d->kind == DEED_LISTED || d->kind == DEED_UPDATED) {
        m->request = d->request > 0 ? d->request : 0;
        m->plan = d->plan == 1;
    } else if (d->kind == DEED_PROJECTED && d->request != MODEL_ABSENT) {
        m->request = d->request > 0 ? d->request : 0;
    }
}

static void model_take(struct model_row *m, const struct deed *d)
{
    static const struct model_row nothing = {.title = -1, .state = -1, .text = -1};
    bool event = d->kind >= DEED_RUN;
    bool creates = !event || (d->kind == DEED_META && d->word == 3);

    if (d->kind == DEED_REMOVED || (d->kind == DEED_META && d->word == 4)) {
        *m = nothing;
        m->deleted = true;
        return;
    }
    if (d->kind == DEED_UNLISTED) {
        bool deleted = m->deleted;

        *m = nothing;
        m->deleted = deleted;
        return;
    }
    if (m->deleted && !creates) {
        return;
    }
    if (!m->present) {
        *m = nothing;
        m->present = true;
    }
    if (d->kind == DEED_TURN) {
        model_take_turn(m, d);
        return;
    }
    if (d->title > 0) {
        m->title = d->title;
    } else if ((d->title == MODEL_NULL && !event) || d->kind == DEED_LISTED) {
        m->title = -1;
    }
    if (d->kind == DEED_META && (d->word == 1 || d->word == 2)) {
        m->archived = d->word == 1;
    } else if (d->archived != MODEL_ABSENT) {
        m->archived = d->archived > 0;
    }
    model_take_run(m, d);
    model_take_message(m, d);
    model_take_request(m, d);
    if (d->kind == DEED_PROJECTED && d->run == MODEL_NULL) {
        m->state = 0; /* idle */
    }
}

static void model_show_number(struct buf *out, const char *prefix, int number)
{
    if (number < 0) {
        buf_append_char(out, '~');
    } else {
        buf_append_format(out, "%s%d", prefix, number);
    }
}

/* The row of a thread after all deeds, as show_row writes it. */
static void model_show(const struct deed *deeds, size_t count, int host, int thread,
                       struct buf *out)
{
    struct model_row m = {.title = -1, .state = -1, .text = -1};
    int latest = 0;

    for (size_t i = 0; i < count; i++) {
        if (deeds[i].host == host && deeds[i].thread == thread) {
            model_take(&m, &deeds[i]);
        }
    }
    if (!m.present) {
        return;
    }
    for (int i = 0; i < 4; i++) {
        latest = m.times[i] > latest ? m.times[i] : latest;
    }
    latest = m.turn > latest ? m.turn : latest;
    buf_append_format(out, "t%d|", thread);
    model_show_number(out, "title ", m.title);
    buf_append_char(out, '|');
    if (m.archived) {
        buf_append(out, SLICE("archived"));
    } else if (m.state == 0) {
        buf_append(out, SLICE("idle"));
    } else if (m.state == MODEL_OVER) {
        buf_append(out, SLICE("completed"));
    } else {
        model_show_number(out, "state ", m.state);
    }
    if (latest == 0) {
        buf_append(out, SLICE("|~|"));
    } else {
        buf_append_format(out, "|@%02d:%02d|", latest / 60, latest % 60);
    }
    model_show_number(out, "text ", m.text);
    buf_append(out, !m.archived && (m.request > 0 || m.plan == 1) ? SLICE("|asks\n") : SLICE("\n"));
}

/* ------------------------------------------------------------------ deeds as JSON */

static void write_name(struct buf *out, const char *name)
{
    if (out->len > 0 && out->ptr[out->len - 1] != '{') {
        buf_append_char(out, ',');
    }
    buf_append_format(out, "'%s':", name);
}

static void write_text(struct buf *out, const char *name, const char *prefix, int number)
{
    if (number == MODEL_ABSENT) {
        return;
    }
    write_name(out, name);
    if (number == MODEL_NULL) {
        buf_append(out, SLICE("null"));
    } else {
        buf_append_format(out, "'%s%d'", prefix, number);
    }
}

static void write_time(struct buf *out, const char *name, int time)
{
    if (time == MODEL_ABSENT) {
        return;
    }
    write_name(out, name);
    if (time == MODEL_NULL) {
        buf_append(out, SLICE("null"));
    } else {
        buf_append_format(out, "@%02d:%02d", time / 60, time % 60);
    }
}

static void write_state(struct buf *out, const struct deed *d)
{
    if (d->state == MODEL_OVER) {
        write_name(out, "status");
        buf_append(out, SLICE("'completed'"));
    } else {
        write_text(out, "status", "state ", d->state);
    }
}

static void write_message(struct buf *out, const struct deed *d)
{
    buf_append_char(out, '{');
    write_text(out, "id", "m", d->message);
    write_text(out, "text", "text ", d->text);
    write_time(out, "createdAt", d->created);
    write_time(out, "updatedAt", d->updated);
    buf_append_char(out, '}');
}

static void write_run(struct buf *out, const struct deed *d)
{
    buf_append_char(out, '{');
    write_text(out, "id", "r", d->run);
    if (d->ordinal > 0) {
        write_name(out, "ordinal");
        buf_append_format(out, "%d", d->ordinal);
    }
    write_state(out, d);
    write_time(out, "requestedAt", d->times[0]);
    write_time(out, "workStartedAt", d->times[1]);
    write_time(out, "startedAt", d->times[2]);
    write_time(out, "completedAt", d->times[3]);
    buf_append_char(out, '}');
}

static void write_shell(struct buf *out, const struct deed *d)
{
    buf_append_char(out, '{');
    write_text(out, "id", "t", d->thread);
    write_text(out, "title", "title ", d->title);
    write_state(out, d);
    write_text(out, "latestRunId", "r", d->run);
    write_time(out, "latestRunRequestedAt", d->times[0]);
    write_time(out, "latestRunStartedAt", d->times[2]);
    write_time(out, "latestRunCompletedAt", d->times[3]);
    if (d->message == MODEL_NULL) {
        write_text(out, "latestVisibleMessage", "", MODEL_NULL);
    } else if (d->message != MODEL_ABSENT) {
        write_name(out, "latestVisibleMessage");
        write_message(out, d);
    }
    if (d->request > 0) {
        write_name(out, "pendingRuntimeRequest");
        buf_append_format(out, "{'id':'q%d'}", d->request);
    } else {
        write_text(out, "pendingRuntimeRequest", "", d->request);
    }
    if (d->plan != MODEL_ABSENT) {
        write_name(out, "hasActionableProposedPlan");
        buf_append(out, d->plan == 1 ? SLICE("true") : SLICE("false"));
    }
    buf_append_char(out, '}');
}

static void write_projection(struct buf *out, const struct deed *d)
{
    buf_append(out, SLICE("{'thread':{"));
    write_text(out, "id", "t", d->thread);
    write_text(out, "title", "title ", d->title);
    if (d->archived != MODEL_ABSENT) {
        write_time(out, "archivedAt", d->archived > 0 ? 60 : MODEL_NULL);
    }
    buf_append(out, SLICE("},'runs':["));
    if (d->run > 0) {
        write_run(out, d);
    }
    buf_append(out, SLICE("],'messages':["));
    if (d->message > 0) {
        write_message(out, d);
    }
    buf_append(out, d->request == MODEL_ABSENT ? SLICE("]") : SLICE("],'runtimeRequests':["));
    if (d->request > 0) {
        buf_append_format(out, "{'id':'q%d','status':'pending'},{'id':'q9','status':'resolved'}",
                          d->request);
    }
    buf_append(out, d->request == MODEL_ABSENT ? SLICE("}") : SLICE("]}"));
}

static void write_event(struct buf *out, const struct deed *d)
{
    static const char *const metas[] = {"metadata-updated", "archived", "unarchived", "created",
                                        "deleted"};
    static const char *const answers[] = {",'status':'pending'", ",'status':'resolved'",
                                          ",'status':'expired'", "", ",'status':null"};

    buf_append_format(out, "{'kind':'event','event':{'threadId':'t%d','type':", d->thread);
    if (d->kind == DEED_RUN) {
        buf_append(out, SLICE("'run.updated','payload':"));
        write_run(out, d);
    } else if (d->kind == DEED_MESSAGE) {
        buf_append(out, SLICE("'message.updated','payload':"));
        write_message(out, d);
    } else if (d->kind == DEED_TURN) {
        buf_append(out, SLICE("'provider-turn.updated','payload':{"));
        write_text(out, "runId", "r", d->run);
        write_time(out, "startedAt", d->times[2]);
        write_time(out, "completedAt", d->times[3]);
        buf_append_char(out, '}');
    } else if (d->kind == DEED_REQUEST) {
        buf_append_format(out, "'runtime-request.updated','payload':{'id':'q%d'%s}", d->request,
                          answers[d->word]);
    } else {
        buf_append_format(out, "'thread.%s','payload':{", metas[d->word]);
        write_text(out, "title", "title ", d->title);
        buf_append_char(out, '}');
    }
    buf_append(out, SLICE("}}"));
}

static void write_deed(struct buf *out, const struct deed *d)
{
    if (d->kind == DEED_UPDATED) {
        buf_append(out, SLICE("{'kind':'thread.updated','thread':"));
        write_shell(out, d);
        buf_append(out, d->archived == MODEL_ABSENT ? SLICE("}")
                        : d->archived > 0           ? SLICE(",'location':'archive'}")
                                                    : SLICE(",'location':'active'}"));
    } else if (d->kind == DEED_REMOVED) {
        buf_append_format(out, "{'kind':'thread.removed','threadId':'t%d'}", d->thread);
    } else if (d->kind == DEED_PROJECTED) {
        write_projection(out, d);
    } else {
        write_event(out, d);
    }
}

/* ------------------------------------------------------------------ deeds by chance */

static int model_number(uint64_t *seed, uint64_t most, bool may_be_null)
{
    uint64_t dice = model_random(seed, 8);

    return dice == 0                  ? MODEL_ABSENT
           : dice == 1 && may_be_null ? MODEL_NULL
                                      : 1 + (int)model_random(seed, most);
}

static void model_fill(struct deed *d, uint64_t *seed)
{
    bool shell = d->kind <= DEED_UPDATED;

    d->word = (int)model_random(seed, 5);
    d->title = model_number(seed, 9, true);
    d->state = model_number(seed, 9, true);
    d->archived = d->kind >= DEED_RUN ? MODEL_ABSENT : (int)model_random(seed, 3) - 1;
    d->run = shell || d->kind == DEED_TURN ? model_number(seed, 4, shell)
                                           : 1 + (int)model_random(seed, 4);
    d->ordinal = shell || model_random(seed, 4) == 0 ? 0 : d->run;
    for (int i = 0; i < 4; i++) {
        d->times[i] = model_random(seed, 3) == 0 ? model_number(seed, 3000, true) : MODEL_ABSENT;
    }
    if (model_random(seed, 4) != 0 && d->run > 0) {
        d->times[0] = 100 * d->run;
    }
    if (shell) {
        d->times[1] = MODEL_ABSENT;
    }
    d->message = shell ? model_number(seed, 4, true) : 1 + (int)model_random(seed, 4);
    d->created = shell || model_random(seed, 4) == 0 ? MODEL_ABSENT : 100 * d->message;
    d->updated = model_number(seed, 3000, false);
    d->text = model_number(seed, 9, true);
    d->request = d->kind == DEED_REQUEST              ? 1 + (int)model_random(seed, 2)
                 : shell || d->kind == DEED_PROJECTED ? model_number(seed, 2, true)
                                                      : MODEL_ABSENT;
    d->plan = shell ? (int)model_random(seed, 3) - 1 : MODEL_ABSENT;
    if (d->kind == DEED_RUN || d->kind == DEED_TURN || d->kind >= DEED_REQUEST) {
        d->message = MODEL_ABSENT;
    }
    if (d->kind == DEED_MESSAGE || d->kind >= DEED_REQUEST) {
        d->run = d->state = MODEL_ABSENT;
    }
    if (d->kind != DEED_META && d->kind >= DEED_RUN) {
        d->title = MODEL_ABSENT;
    }
    if (d->kind == DEED_TURN) {
        d->state = MODEL_ABSENT;
        d->times[0] = d->times[1] = MODEL_ABSENT;
    }
}

/* What the model makes of members that are not there, where that means something. */
static void model_settle(struct deed *d)
{
    bool times = d->times[0] > 0 || d->times[2] > 0 || d->times[3] > 0;

    if (d->kind == DEED_LISTED) {
        d->run = d->run == MODEL_ABSENT && !times ? MODEL_NULL : d->run;
        d->message = d->message == MODEL_ABSENT ? MODEL_NULL : d->message;
    }
}

struct model {
    uint64_t seed;
    struct deed deeds[MODEL_DEEDS];
    size_t count;
    struct buf text; /* of the apply at hand */
};

static void model_add(struct model *m, const struct deed *d)
{
    assert_true(m->count < MODEL_DEEDS);
    m->deeds[m->count] = *d;
    model_settle(&m->deeds[m->count++]);
}

static void model_write_snapshot(struct model *m, int host)
{
    struct buf lists[2];

    for (int i = 0; i < 2; i++) {
        buf_init(&lists[i], 1u << 16);
    }
    for (int thread = 0; thread < MODEL_THREADS; thread++) {
        struct deed d = {.kind = DEED_LISTED, .host = host, .thread = thread};

        if (model_random(&m->seed, 4) == 0) {
            d.kind = DEED_UNLISTED;
        } else {
            model_fill(&d, &m->seed);
            d.run = d.run == MODEL_ABSENT ? MODEL_NULL : d.run; /* the shell always says */
            d.archived = (int)model_random(&m->seed, 2);
            if (lists[d.archived].len > 0) {
                buf_append_char(&lists[d.archived], ',');
            }
            write_shell(&lists[d.archived], &d);
        }
        model_add(m, &d);
    }
    buf_append_format(&m->text,
                      "{'kind':'snapshot','snapshot':{'schemaVersion':2,'threads':[%.*s],"
                      "'archivedThreads':[%.*s]}}",
                      (int)lists[0].len, lists[0].len > 0 ? lists[0].ptr : "", (int)lists[1].len,
                      lists[1].len > 0 ? lists[1].ptr : "");
    buf_finish(&lists[0]);
    buf_finish(&lists[1]);
}

static void model_write_item(struct model *m, int host)
{
    struct deed d = {.kind = (enum deed_kind)model_random(&m->seed, DEED_KIND_COUNT), .host = host};

    /* Most of what happens are events. */
    if (d.kind <= DEED_REMOVED && model_random(&m->seed, 4) != 0) {
        d.kind = DEED_RUN + (enum deed_kind)model_random(&m->seed, 4);
    }
    if (d.kind <= DEED_UNLISTED) {
        model_write_snapshot(m, host);
        return;
    }
    d.thread = (int)model_random(&m->seed, MODEL_THREADS);
    model_fill(&d, &m->seed);
    d.run = d.kind == DEED_UPDATED && d.run == MODEL_ABSENT ? MODEL_NULL : d.run;
    if (d.kind == DEED_PROJECTED && model_random(&m->seed, 4) == 0) {
        d.run = MODEL_NULL;
        d.state = MODEL_NULL;
    }
    write_deed(&m->text, &d);
    model_add(m, &d);
}

/* ------------------------------------------------------------------ the test */

static void model_show_all(const struct model *m, int host, struct buf *out)
{
    for (int thread = 0; thread < MODEL_THREADS; thread++) {
        model_show(m->deeds, m->count, host, thread, out);
    }
}

#define MODEL_LINE_BYTES 160

/* Counts the rows that are not as they were, and remembers them. */
static size_t model_count_changes(const struct model *m,
                                  char before[MODEL_HOSTS][MODEL_THREADS][MODEL_LINE_BYTES])
{
    size_t count = 0;

    for (int i = 0; i < MODEL_HOSTS * MODEL_THREADS; i++) {
        char *known = before[i / MODEL_THREADS][i % MODEL_THREADS];
        struct buf line;

        buf_init(&line, MODEL_LINE_BYTES);
        model_show(m->deeds, m->count, i / MODEL_THREADS, i % MODEL_THREADS, &line);
        buf_append_char(&line, '\0');
        assert_false(line.failed);
        count += strcmp(known, line.ptr) != 0;
        memcpy(known, line.ptr, line.len);
        buf_finish(&line);
    }
    return count;
}

static size_t count_lines(const struct buf *text)
{
    size_t count = 0;

    for (size_t i = 0; i < text->len; i++) {
        count += text->ptr[i] == '\n';
    }
    return count;
}

static void model_run(uint64_t seed)
{
    char before[MODEL_HOSTS][MODEL_THREADS][MODEL_LINE_BYTES] = {{{0}}};
    static const char *const hosts[MODEL_HOSTS] = {"a", "b"};
    struct model *m = calloc(1, sizeof(*m));
    struct t3_board *board = new_board();

    assert_non_null(m);
    m->seed = seed;
    buf_init(&m->text, 1u << 20);
    for (int step = 0; step < 120; step++) {
        int host = (int)model_random(&m->seed, MODEL_HOSTS);
        struct buf want;
        struct buf changes;

        buf_clear(&m->text);
        buf_append_char(&m->text, '[');
        for (uint64_t i = 0; i <= model_random(&m->seed, 3); i++) {
            buf_append(&m->text, i > 0 ? SLICE(",") : SLICE(""));
            model_write_item(m, host);
        }
        buf_append(&m->text, (struct slice){"]", 2}); /* with its NUL */
        buf_init(&changes, 1u << 16);
        assert_int_equal(fold_host(board, hosts[host], m->text.ptr, &changes), 0);
        assert_int_equal(count_lines(&changes), model_count_changes(m, before));
        buf_finish(&changes);
        buf_init(&want, 1u << 16);
        model_show_all(m, 0, &want);
        model_show_all(m, 1, &want);
        buf_append_char(&want, '\0');
        assert_rows(board, want.ptr);
        buf_finish(&want);
    }
    t3_board_free(board);
    buf_finish(&m->text);
    free(m);
}

/* The board shows what the model does, whatever comes in whatever order, and tells as many changes
 * as there are. */
static void test_model(void **state)
{
    const char *given = getenv("MODEL_SEED");

    (void)state;
    for (uint64_t seed = 1; seed <= 150; seed++) {
        uint64_t used = given != NULL ? strtoull(given, NULL, 10) : seed;

        print_message("MODEL_SEED=%llu\n", (unsigned long long)used);
        model_run(used);
    }
}

#endif
