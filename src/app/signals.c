/* Composed before the change, since they are committed with it. */
#include "app/signals.h"

#include "base/json.h"

#include <assert.h>

#define MEMBERS_BYTES_MAX (8 * KIB)

void signals_add_stream(struct signals *s, enum outbox_kind kind, struct slice thread_id)
{
    assert(s->count < SIGNALS_MAX);
    s->items[s->count++] = (struct outbox_item){.kind = kind, .thread_id = thread_id};
}

/* The inside of the payload, in the call's memory; ptr NULL when that is full. */
static struct slice compose(struct api_call *c, const struct signal_member *members)
{
    char *memory = arena_try_alloc(&c->memory, MEMBERS_BYTES_MAX);
    struct buf out;

    if (memory == NULL) {
        return (struct slice){NULL, 0};
    }
    buf_init_fixed(&out, memory, MEMBERS_BYTES_MAX);
    for (const struct signal_member *m = members; m != NULL && m->name != NULL; m++) {
        if (m->text.ptr == NULL) {
            continue;
        }
        buf_append_format(&out, "%s\"%s\":", out.len > 0 ? "," : "", m->name);
        json_append_string(&out, m->text);
    }
    return out.failed ? (struct slice){NULL, 0} : buf_slice(&out);
}

void signals_add(struct signals *s, struct api_call *c, struct slice thread_id,
                 struct slice author_id, const char *type, const struct signal_member *members)
{
    struct thread_signal signal = {.thread_id = thread_id,
                                   .entry_id = api_new_id(c),
                                   .author_id = author_id,
                                   .ts = c->now_ms,
                                   .type = type,
                                   .members = compose(c, members)};

    assert(s->count < SIGNALS_MAX);
    if (signal.entry_id.ptr == NULL || signal.members.ptr == NULL ||
        !outbox_signal(&signal, &c->memory, &s->items[s->count])) {
        s->failed = true;
        return;
    }
    s->count++;
}

int signals_check(const struct signals *s, struct api_call *c)
{
    return s->failed ? api_refuse(c, API_BUSY, "the server has no memory for this just now") : 0;
}
