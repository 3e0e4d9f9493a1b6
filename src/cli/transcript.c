/* Words that go over several lines are indented below the first one. */
#include "cli/transcript.h"

#include "base/limits.h"
#include "base/utf8.h"
#include "cli/narration.h"

#include <stdio.h>
#include <time.h>

#define MEMORY_BYTES_MAX (16u * MIB)
#define INDENT           "      " /* as wide as a time */

void transcript_begin(struct transcript *t, struct out *out, struct roster *roster)
{
    *t = (struct transcript){.out = out, .roster = roster};
}

/* Says which day it is, if that is another one, and remembers the time. */
static void begin_entry(struct transcript *t, long long ms)
{
    time_t seconds = (time_t)(ms / 1000);
    char day[sizeof(t->day)] = "";
    struct tm local;

    (void)snprintf(t->time, sizeof(t->time), "--:--");
    if (ms <= 0 || localtime_r(&seconds, &local) == NULL ||
        strftime(day, sizeof(day), "%Y-%m-%d", &local) == 0 ||
        strftime(t->time, sizeof(t->time), "%H:%M", &local) == 0) {
        return;
    }
    if (strcmp(day, t->day) != 0) {
        memcpy(t->day, day, sizeof(day));
        out_format(t->out, "%s--- %s ---%s\n", out_dim(t->out), day, out_plain(t->out));
    }
}

static void add_time(struct transcript *t)
{
    out_format(t->out, "%s%s%s ", out_dim(t->out), t->time, out_plain(t->out));
}

static void add_speech(struct transcript *t, struct slice text)
{
    struct out *o = t->out;
    struct slice line;

    while (text.len > 0 && text.ptr[text.len - 1] == '\n') {
        text.len--;
    }
    add_time(t);
    out_add(o, slice_of(out_bold(o)));
    out_add_shown(o, t->author.len == 0 ? SLICE("the server") : t->author);
    out_format(o, ":%s ", out_plain(o));
    for (bool first = true; slice_split(&text, '\n', &line); first = false) {
        line.len -= line.len > 0 && line.ptr[line.len - 1] == '\r' ? 1 : 0;
        if (!first && line.len > 0) {
            out_add(o, SLICE(INDENT));
        }
        out_add_shown(o, line);
        out_add(o, SLICE("\n"));
    }
}

/* One line: line ends within it are spaces. */
static void add_line(struct out *o, struct slice text)
{
    struct slice line;

    for (bool first = true; slice_split(&text, '\n', &line); first = false) {
        out_add(o, first ? SLICE("") : SLICE(" "));
        out_add_shown(o, line);
    }
}

static void add_note(struct transcript *t, const char *mark, struct slice text)
{
    struct out *o = t->out;

    out_format(o, "%s%s %s", out_dim(o), t->time, mark);
    add_line(o, text);
    out_format(o, "%s\n", out_plain(o));
}

static void tell(void *context, enum narration_kind kind, struct slice text)
{
    struct transcript *t = context;

    if (kind == NARRATION_SPEECH) {
        add_speech(t, text);
    } else {
        add_note(t, kind == NARRATION_NOTE ? "* " : "> ", text);
    }
}

/* What was said is not to be read any more, but somebody did say something. */
static void add_deleted(struct transcript *t)
{
    struct out *o = t->out;

    out_format(o, "%s%s ", out_dim(o), t->time);
    out_add_shown(o, t->author);
    out_format(o, ": (deleted)%s\n", out_plain(o));
}

static struct slice name_of(void *context, struct slice agent_id)
{
    struct transcript *t = context;

    return roster_name(t->roster, agent_id);
}

/* Whether anything is told of it, so that no day is said above nothing. */
static void note_that(void *context, enum narration_kind kind, struct slice text)
{
    (void)kind;
    (void)text;
    *(bool *)context = true;
}

static struct slice no_name(void *context, struct slice agent_id)
{
    (void)context;
    return agent_id;
}

void transcript_add(struct transcript *t, const struct scoped_entry *entry, bool deleted)
{
    const struct slice payload = {entry->payload, entry->payload_len};
    const struct slice author = slice_of(entry->author_id);
    const struct narrator narrator = {name_of, tell, t};
    bool says = false;
    const struct narrator looker = {no_name, note_that, &says};

    arena_init(&t->memory, MEMORY_BYTES_MAX);
    narrate(&looker, author, payload, &t->memory);
    if (says) {
        begin_entry(t, entry->ts);
        t->author = author.len == 0 ? author : roster_name(t->roster, author);
        if (deleted) {
            add_deleted(t);
        } else {
            narrate(&narrator, author, payload, &t->memory);
        }
        out_end_message(t->out);
    }
    arena_finish(&t->memory);
}
