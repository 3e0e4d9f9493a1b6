/* Who is asked for and not told is remembered as well, so that nobody is asked for twice. */
#include "cli/roster.h"

#include "cli/record.h"
#include "cli/ref.h"

#include <stdio.h>
#include <stdlib.h>

#define PATH_BYTES 120u

static void put(struct roster *r, struct slice id, struct slice name)
{
    if (r->count == r->room) {
        size_t room = r->room == 0 ? 64 : 2 * r->room;
        struct roster_name *names = realloc(r->names, room * sizeof(names[0]));

        if (names == NULL) {
            return; /* it is asked for again */
        }
        r->names = names;
        r->room = room;
    }
    r->names[r->count++] = (struct roster_name){id, name};
}

static int take_member(void *context, struct slice member)
{
    struct roster *r = context;
    struct slice id = record_text(member, "agentId", &r->call->memory);

    if (id.len > 0) {
        put(r, id, record_text(member, "name", &r->call->memory));
    }
    return 0;
}

int roster_load(struct roster *r, struct app_call *call, const char *thread_id)
{
    char path[PATH_BYTES];

    *r = (struct roster){.call = call};
    (void)snprintf(path, sizeof(path), "/api/threads/%s/agents", thread_id);
    return app_call_each(call, path, NULL, "agents", take_member, r);
}

/* Asks for one who is no member any more, or not yet. */
static struct slice ask(struct roster *r, struct slice id)
{
    struct slice agent;
    struct slice name = {"", 0};
    struct scoped_error error;
    char path[PATH_BYTES];

    (void)snprintf(path, sizeof(path), "/api/agents/%.*s", (int)id.len, id.ptr);
    if (app_call_probe(r->call, path, &agent, &error) == STREAM_OK) {
        name = record_text(agent, "name", &r->call->memory);
    }
    return name.len > 0 ? name : (struct slice){id.ptr, REF_PREFIX_BYTES_MIN};
}

struct slice roster_name(struct roster *r, struct slice agent_id)
{
    for (size_t i = 0; i < r->count; i++) {
        if (slice_equal(r->names[i].id, agent_id)) {
            return r->names[i].name;
        }
    }
    const char *copy = ref_is_id(agent_id) ? arena_try_copy(&r->call->memory, agent_id) : NULL;

    if (copy == NULL) {
        return agent_id; /* no id that the API would know */
    }
    struct slice id = {copy, agent_id.len};
    struct slice name = ask(r, id);

    put(r, id, name);
    return name;
}

void roster_finish(struct roster *r)
{
    free(r->names);
    *r = (struct roster){.names = NULL};
}
