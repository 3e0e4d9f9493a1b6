/* The payload's bytes go through untouched, but for a bad trace field (payload.h). */
#include "app/drafts.h"

#define ENVELOPE_BYTES_MAX 512u /* around a payload: ids, time, names */

/* Memory for `size` bytes in the call's arena; refuses when there is none. */
static char *room(struct api_call *c, size_t size)
{
    char *memory = arena_try_alloc(&c->memory, size);

    if (memory == NULL) {
        (void)api_refuse(c, API_TOO_LARGE, "the entries are too large to be taken at once");
    }
    return memory;
}

static int judge_payload(struct api_call *c, struct slice posted, struct draft *draft)
{
    char *memory = room(c, posted.len + 1);
    struct buf out;

    if (memory == NULL) {
        return API_FAILED;
    }
    buf_init_fixed(&out, memory, posted.len + 1);
    if (payload_check(posted, &draft->type, &out, &c->error) != 0) {
        return API_FAILED;
    }
    draft->payload = buf_slice(&out);
    return API_DONE;
}

int draft_compose(struct api_call *c, const struct draft *draft, bool fresh,
                  struct post_entry *ret_entry)
{
    size_t size = draft->payload.len + ENVELOPE_BYTES_MAX;
    char *memory = room(c, size);
    const struct entry entry = {
        .id = draft->id, .ts = c->now_ms, .author_id = draft->author_id, .payload = draft->payload};
    struct buf out;

    if (memory == NULL) {
        return API_FAILED;
    }
    buf_init_fixed(&out, memory, size);
    entry_format(&out, &entry);
    if (out.failed) {
        return api_refuse(c, API_INTERNAL, "the entry cannot be composed");
    }
    *ret_entry = (struct post_entry){.id = draft->id, .json = buf_slice(&out), .fresh = fresh};
    return API_DONE;
}

int draft_make(struct api_call *c, struct slice value, struct authorship_question *who,
               struct draft *ret_draft, struct post_entry *ret_entry)
{
    struct entry_posted posted;
    struct draft draft = {.type = PAYLOAD_UNKNOWN};

    if (entry_read_posted(value, &c->memory, &posted, &c->error) != 0 ||
        judge_payload(c, posted.payload, &draft) != API_DONE) {
        return API_FAILED;
    }
    who->type = draft.type;
    who->author_given = posted.author_id;
    if (authorship_decide(who, &draft.author_id, &c->error) != 0) {
        return API_FAILED;
    }
    bool fresh = posted.id.len == 0;

    draft.id = fresh ? api_new_id(c) : posted.id;
    if (draft.id.ptr == NULL || draft_compose(c, &draft, fresh, ret_entry) != API_DONE) {
        return API_FAILED;
    }
    *ret_draft = draft;
    return API_DONE;
}
