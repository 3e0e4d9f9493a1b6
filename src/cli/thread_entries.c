/* arbe thread entries: posting into a thread, and reading it.
 *
 * Reading, the happy path: the thread's roster is asked for, which fails soon where there is no
 * server or no such thread; an observer brings entries; each is shown; what is shown is written out
 * whenever nothing more is there yet. For people those of the past are held back until all are
 * known, lest what was deleted be read. It ends when the thread has settled, at the tail with
 * --once, at a signal, or when nobody reads stdout any more. */
#include "cli/thread.h"

#include "base/json.h"
#include "base/limits.h"
#include "cli/backlog.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/record.h"
#include "cli/transcript.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define PATH_BYTES 200u

/* --------------------------------------------------------------------------------------- create */

/* Looks for the direct talk of the caller with an agent: the newest one that the caller began. */
struct dm_search {
    struct app_call *call;
    char me[LOOKUP_ID_BYTES];
    char thread[LOOKUP_ID_BYTES]; /* empty: none so far */
};

static int take_dm(void *context, struct slice thread)
{
    struct dm_search *s = context;
    struct slice by = record_text(thread, "createdBy", &s->call->memory);

    if (s->thread[0] == '\0' && slice_equal(by, slice_of(s->me))) {
        (void)snprintf(s->thread, sizeof(s->thread), "%s",
                       record_text(thread, "id", &s->call->memory).ptr);
    }
    return 0;
}

static int make_dm(struct app_call *call, const char *agent_id, const char *house_id,
                   char ret_thread[static LOOKUP_ID_BYTES])
{
    struct slice answer;
    struct buf body;

    app_body_begin(&body);
    app_body_text(&body, "parentId", agent_id);
    app_body_text(&body, "houseId", house_id);
    app_body_end(&body);
    int code = app_call_send(call, "POST", "/api/threads", NULL, &body, &answer);

    buf_finish(&body);
    if (code == 0) {
        (void)snprintf(ret_thread, LOOKUP_ID_BYTES, "%s",
                       record_text(answer, "threadId", &call->memory).ptr);
    }
    return code;
}

static int find_dm(struct app_call *call, const char *agent_id,
                   char ret_thread[static LOOKUP_ID_BYTES])
{
    struct dm_search s = {.call = call};
    char house[LOOKUP_ID_BYTES];
    const char *const query[] = {"house_id", house, "parent_id", agent_id, NULL};
    int code = lookup_me(call, s.me);

    code = code == 0 ? lookup_house(call, house) : code;
    code = code == 0 ? app_call_each(call, "/api/threads", query, "threads", take_dm, &s) : code;
    if (code == 0 && s.thread[0] == '\0') {
        return make_dm(call, agent_id, house, ret_thread);
    }
    if (code == 0) {
        memcpy(ret_thread, s.thread, sizeof(s.thread));
    }
    return code;
}

/* The thread that is posted to. A whole id may be that of a thread or of an agent. */
static int find_target(struct app_call *call, char ret_thread[static LOOKUP_ID_BYTES])
{
    struct lookup found;
    int code = lookup_ref(call, call->operands[0], LOOKUP_AGENT | LOOKUP_THREAD, &found);

    if (code == 0 && found.kind == (LOOKUP_AGENT | LOOKUP_THREAD)) {
        char path[PATH_BYTES];
        struct slice agent;
        struct scoped_error error;

        (void)snprintf(path, sizeof(path), "/api/agents/%s", found.id);
        found.kind = app_call_probe(call, path, &agent, &error) == STREAM_OK ? LOOKUP_AGENT
                                                                             : LOOKUP_THREAD;
    }
    if (code == 0 && found.kind == LOOKUP_AGENT) {
        return find_dm(call, found.id, ret_thread);
    }
    if (code == 0) {
        memcpy(ret_thread, found.id, sizeof(found.id));
    }
    return code;
}

/* What is to be said: the second operand, or stdin without the line ends behind it. */
static int read_text(struct app_call *call, struct slice *ret_text)
{
    int code = 0;

    if (call->operand_count > 1) {
        *ret_text = slice_of(call->operands[1]);
    } else {
        code = app_call_read_stdin(call, ret_text);
        while (ret_text->len > 0 && ret_text->ptr[ret_text->len - 1] == '\n') {
            ret_text->len--;
        }
    }
    if (code == 0 && ret_text->len == 0) {
        return app_call_refuse(call, COMMAND_USAGE, "client.usage", NULL,
                               "there is nothing to say");
    }
    return code;
}

/* Prints what the server has under the entry's id now. That may be what was there before. */
static void print_posted(struct app_call *call, const char *thread_id,
                         const struct scoped_answer *answer, struct slice payload)
{
    struct scoped_entry stored;

    if (call->set.json) {
        app_call_print_json(call, (struct slice){answer->body, answer->len});
    } else if (scoped_entry_read(answer->body, answer->len, &stored) == STREAM_OK) {
        app_call_print_field(call, "thread", slice_of(thread_id));
        app_call_print_field(call, "entry", slice_of(stored.id));
        if (answer->status == 200 &&
            !slice_equal((struct slice){stored.payload, stored.payload_len}, payload)) {
            app_call_warn(call,
                          "an entry %s with another text was there before; nothing was stored",
                          stored.id);
        }
    }
}

static int post(struct app_call *call, const char *thread_id, struct slice text)
{
    struct scoped_post entry = {.id = call->set.id};
    struct scoped_answer answer = {.status = 0};
    struct scoped_error error = {.code = ""};
    struct buf payload;

    app_body_begin(&payload);
    app_body_text(&payload, "type", "chat");
    app_body_json(&payload, "text", SLICE(""));
    json_append_string(&payload, text);
    app_body_text(&payload, "replyTo", call->set.reply_to);
    app_body_end(&payload);
    entry.payload = payload.ptr;
    entry.payload_len = payload.failed ? 0 : payload.len;
    int code = scoped_client_post(call->client, thread_id, &entry, &answer, &error);

    if (code == STREAM_OK) {
        print_posted(call, thread_id, &answer, buf_slice(&payload));
    }
    buf_finish(&payload);
    scoped_answer_finish(&answer);
    return code == STREAM_OK ? 0 : app_call_fail(call, &error);
}

int thread_entries_create(struct app_call *call)
{
    char thread[LOOKUP_ID_BYTES];
    struct slice text = {"", 0};
    int code = app_call_open(call);

    code = code == 0 ? read_text(call, &text) : code;
    code = code == 0 ? find_target(call, thread) : code;
    return code == 0 ? post(call, thread, text) : code;
}

/* ----------------------------------------------------------------------------------------- read */

struct reading {
    struct app_call *call;
    struct lookup thread;
    struct roster roster;
    struct transcript transcript;
    struct scoped_observer *observer; /* of what goes on */
    struct scoped_tail *tail;         /* with --once instead */
    bool readable;                    /* lines for people */
    bool holds;                       /* the past is not over: entries go into the backlog */
    struct backlog backlog;
    char told[256]; /* the offset that was printed last */
    bool settled;
    enum scoped_outcome outcome;
};

static void show_held(void *context, const struct scoped_entry *entry, bool deleted)
{
    struct reading *r = context;

    transcript_add(&r->transcript, entry, deleted);
}

static void show_entry(struct reading *r, const struct scoped_entry *entry)
{
    if (!r->readable) {
        app_call_print_json(r->call, (struct slice){entry->json, entry->json_len});
        return;
    }
    if (r->holds && !backlog_add(&r->backlog, entry)) {
        backlog_release(&r->backlog, show_held, r);
        r->holds = false;
    }
    if (!r->holds) {
        transcript_add(&r->transcript, entry, false);
    }
}

/* The past is over, or will not be known. */
static void stop_holding(struct reading *r)
{
    if (r->holds) {
        r->holds = false;
        backlog_release(&r->backlog, show_held, r);
    }
}

/* With --offsets: where to go on, once that is another place. */
static void show_offset(struct reading *r, const char *offset, bool up_to_date)
{
    struct out *o = &r->call->out;

    if (!r->call->set.offsets || r->readable || offset == NULL || strcmp(offset, r->told) == 0) {
        return;
    }
    (void)snprintf(r->told, sizeof(r->told), "%s", offset);
    out_add(o, SLICE("{\"nextOffset\":"));
    out_add_string(o, slice_of(offset));
    out_add(o, up_to_date ? SLICE(",\"upToDate\":true}\n") : SLICE("}\n"));
    out_end_message(o);
}

static void take_event(struct reading *r, const struct scoped_event *event)
{
    switch (event->kind) {
    case SCOPED_ENTRY:
        show_entry(r, &event->entry);
        break;
    case SCOPED_BACKFILLED:
        stop_holding(r);
        break;
    case SCOPED_SETTLED:
        r->settled = true;
        r->outcome = event->outcome;
        break;
    }
    show_offset(r, scoped_observer_offset(r->observer), event->kind == SCOPED_BACKFILLED);
}

/* One step of what is read: as scoped_observer_step. */
static int step(struct reading *r, struct scoped_error *error)
{
    struct scoped_event event;
    struct scoped_tail_view view;
    int rc;

    if (r->tail == NULL) {
        rc = scoped_observer_step(r->observer, &event, error);
        if (rc == STREAM_OK) {
            take_event(r, &event);
        }
        return rc;
    }
    rc = scoped_tail_step(r->tail, &view, error);
    if (rc == STREAM_OK) {
        if (view.has_entry) {
            show_entry(r, &view.entry);
        }
        show_offset(r, view.next_offset, view.up_to_date != 0);
    }
    return rc;
}

/* Waits until there is something to do, a signal has come, or nobody reads stdout any more. */
static void wait_for_news(const struct reading *r)
{
    struct pollfd fds[] = {
        {.fd = scoped_client_fd(r->call->client), .events = POLLIN},
        {.fd = STDOUT_FILENO}, /* errors are always told */
    };

    if (interrupt_poll(fds, 2, -1) > 0 && (fds[1].revents & POLLERR) != 0) {
        r->call->out.error = EPIPE;
    }
}

static int pump(struct reading *r)
{
    struct out *o = &r->call->out;
    struct scoped_error error = {.code = ""};

    while (!out_is_over(o)) {
        int rc = step(r, &error);

        if (rc == STREAM_WAIT) {
            out_flush(o);
            wait_for_news(r);
        } else if (rc == STREAM_END) {
            stop_holding(r);
            return r->settled && r->outcome == SCOPED_FAILED ? COMMAND_FAILED : COMMAND_GOOD;
        } else if (rc != STREAM_OK) {
            stop_holding(r);
            out_flush(o);
            return app_call_fail(r->call, &error);
        }
    }
    return interrupt_signal() == 0 ? COMMAND_GOOD : COMMAND_INTERRUPTED + interrupt_signal();
}

static int begin(struct reading *r)
{
    struct app_call *call = r->call;
    const struct scoped_tail_options once = {.from_offset = call->set.from, .catch_up = 1};
    const struct scoped_observe_options live = {
        .from_offset = call->set.from, .settle_at_rest = 1, .go_on = call->set.follow != 0};
    struct scoped_error error = {.code = ""};
    int rc = call->set.once
                 ? scoped_client_tail(call->client, r->thread.id, &once, &r->tail, &error)
                 : scoped_client_observe(call->client, r->thread.id, &live, &r->observer, &error);

    return rc == STREAM_OK ? 0 : app_call_fail(call, &error);
}

int thread_entries_read(struct app_call *call)
{
    bool readable = call->out.terminal && !call->set.json;
    struct reading r = {.call = call, .readable = readable, .holds = readable};

    if (call->set.once && call->set.follow) {
        return app_call_refuse(call, COMMAND_USAGE, "client.usage", NULL,
                               "--once and --follow exclude each other");
    }
    int code = thread_open(call, &r.thread);

    code = code == 0 ? roster_load(&r.roster, call, r.thread.id) : code;
    transcript_begin(&r.transcript, &call->out, &r.roster);
    call->out.lines = true;
    code = code == 0 ? begin(&r) : code;
    code = code == 0 ? pump(&r) : code;
    scoped_observer_free(r.observer);
    scoped_tail_free(r.tail);
    backlog_finish(&r.backlog);
    roster_finish(&r.roster);
    return code;
}
