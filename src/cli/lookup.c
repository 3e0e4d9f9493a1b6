/* Lists are read to their end: the second record that is meant may be the last one. */
#include "cli/lookup.h"

#include "cli/command.h"
#include "cli/record.h"

static void copy_id(char out[static LOOKUP_ID_BYTES], struct slice id)
{
    (void)snprintf(out, LOOKUP_ID_BYTES, "%.*s", (int)id.len, id.ptr);
}

/* A list that is searched. */
struct searching {
    struct app_call *call;
    struct ref_search search;
    const char *kind;
};

static int offer(void *context, struct slice record)
{
    struct searching *s = context;
    struct arena *memory = &s->call->memory;

    ref_offer(&s->search, &(struct ref_candidate){
                              .kind = s->kind,
                              .id = record_text(record, "id", memory),
                              .name = record_text(record, "name", memory),
                              .handle = record_text(record, "handle", memory),
                          });
    return 0;
}

static int search_list(struct searching *s, const char *kind, const char *path,
                       const char *const *query, const char *member)
{
    uint64_t limit = s->call->set.limit;

    s->kind = kind;
    s->call->set.limit = 0; /* which is for what is shown */
    int code = app_call_each(s->call, path, query, member, offer, s);

    s->call->set.limit = limit;
    return code;
}

static int search_agents(struct searching *s, const char *ref)
{
    /* The API finds agents by the beginning of a name or handle, not of an id. */
    const char *prefix = ref_is_prefix(slice_of(ref)) ? NULL : ref + (ref[0] == '@');
    const char *const query[] = {"q", prefix, NULL};

    return search_list(s, "agent", "/api/agents", query, "agents");
}

static int search_threads(struct searching *s)
{
    char house[LOOKUP_ID_BYTES];
    const char *const query[] = {"house_id", house, NULL};
    int code = lookup_house(s->call, house);

    return code == 0 ? search_list(s, "thread", "/api/threads", query, "threads") : code;
}

static int refuse_unknown(const struct app_call *call, const char *ref, unsigned kinds)
{
    const char *what = kinds == LOOKUP_HOUSE    ? "house"
                       : kinds == LOOKUP_AGENT  ? "agent"
                       : kinds == LOOKUP_THREAD ? "thread"
                                                : "record";
    const char *hint = kinds == LOOKUP_HOUSE   ? "arbe house list tells them"
                       : kinds == LOOKUP_AGENT ? "arbe agent list tells them"
                                               : "arbe thread list tells those of a house";

    return app_call_refuse(call, COMMAND_NOT_FOUND, "client.ref_unknown", hint,
                           "there is no %s \"%.80s\"; a reference is an id, 8 or more characters "
                           "of its beginning, a name, or an agent's @handle",
                           what, ref);
}

static unsigned kind_of(const struct ref_candidate *candidate)
{
    return strcmp(candidate->kind, "house") == 0   ? LOOKUP_HOUSE
           : strcmp(candidate->kind, "agent") == 0 ? LOOKUP_AGENT
                                                   : LOOKUP_THREAD;
}

int lookup_ref(struct app_call *call, const char *ref, unsigned kinds, struct lookup *ret_found)
{
    struct searching s = {.call = call};
    int code = 0;

    if ((kinds & LOOKUP_HOUSE) != 0 && strcmp(ref, "house") == 0) {
        ret_found->kind = LOOKUP_HOUSE;
        return lookup_house(call, ret_found->id);
    }
    if ((kinds & LOOKUP_AGENT) != 0 && strcmp(ref, "me") == 0) {
        ret_found->kind = LOOKUP_AGENT;
        return lookup_me(call, ret_found->id);
    }
    if (ref_is_id(slice_of(ref))) {
        ret_found->kind = kinds;
        copy_id(ret_found->id, slice_of(ref));
        return 0;
    }
    ref_begin(&s.search, slice_of(ref), &call->memory);
    if ((kinds & LOOKUP_HOUSE) != 0 && ref[0] != '@') {
        code = search_list(&s, "house", "/api/houses", NULL, "houses");
    }
    if (code == 0 && (kinds & LOOKUP_AGENT) != 0) {
        code = search_agents(&s, ref);
    }
    if (code == 0 && (kinds & LOOKUP_THREAD) != 0 && ref[0] != '@') {
        code = search_threads(&s);
    }
    if (code != 0) {
        return code;
    }
    if (s.search.failed) {
        return app_call_refuse(call, COMMAND_FAILED, "client.memory", NULL, "%s",
                               err_text(ERR_NOMEM));
    }
    if (s.search.count != 1) {
        return s.search.count == 0 ? refuse_unknown(call, ref, kinds)
                                   : app_call_ambiguous(call, &s.search);
    }
    ret_found->kind = kind_of(&s.search.found[0]);
    copy_id(ret_found->id, s.search.found[0].id);
    return 0;
}

/* What is known of the caller's houses. */
struct houses {
    struct slice first;
    size_t count;
    struct arena *memory;
};

static int count_house(void *context, struct slice record)
{
    struct houses *houses = context;

    if (houses->count++ == 0) {
        houses->first = record_text(record, "id", houses->memory);
    }
    return 0;
}

int lookup_house(struct app_call *call, char ret_id[static LOOKUP_ID_BYTES])
{
    struct houses houses = {.count = 0, .memory = &call->memory};
    const char *ref = call->set.house;
    uint64_t limit = call->set.limit;
    struct lookup found;

    if (ref != NULL && strcmp(ref, "house") != 0) {
        int code = lookup_ref(call, ref, LOOKUP_HOUSE, &found);

        if (code == 0) {
            memcpy(ret_id, found.id, sizeof(found.id));
        }
        return code;
    }
    if (call->login.house[0] != '\0' && strcmp(call->url, call->login.url) == 0 &&
        strcmp(call->key, call->login.key) == 0) {
        copy_id(ret_id, slice_of(call->login.house));
        return 0;
    }
    call->set.limit = 2; /* more need not be known */
    int code = app_call_each(call, "/api/houses", NULL, "houses", count_house, &houses);

    call->set.limit = limit;
    if (code == 0 && houses.count != 1) {
        return app_call_refuse(call, COMMAND_USAGE, "client.no_house",
                               houses.count == 0 ? "arbe house create NAME"
                                                 : "arbe house select HOUSE, or --house HOUSE",
                               houses.count == 0 ? "you are in no house"
                                                 : "which house? None is selected");
    }
    if (code == 0) {
        copy_id(ret_id, houses.first);
    }
    return code;
}

int lookup_me(struct app_call *call, char ret_id[static LOOKUP_ID_BYTES])
{
    struct slice me;
    int code = app_call_send(call, "GET", "/api/me", NULL, NULL, &me);

    if (code == 0) {
        copy_id(ret_id, record_text(record_value(me, "agent"), "id", &call->memory));
    }
    return code;
}
