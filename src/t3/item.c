/* An item is read member by member into an operation, which is told once it is whole. Broken is
 * what lacks an id, or is of a kind that nothing can be read from: it is skipped and counted. Kinds
 * that are not named here are ignored: servers grow. */
#include "t3/item_parts.h"

#include "base/json_value.h"
#include "base/limits.h"
#include "t3/fields.h"

static const char v1_sentence[] =
    "the server speaks the first version of T3's orchestration protocol (%.*s); "
    "the board needs the second, which newer servers of T3 Code have";

int t3_item_refuse_v1(struct errmsg *msg, struct slice what)
{
    return err_set(msg, ERR_MISMATCH, v1_sentence, (int)what.len, what.ptr);
}

bool t3_item_begin(struct t3_item_reader *r, enum t3_op_kind kind, enum t3_scope scope,
                   struct slice id)
{
    r->at_hand = (struct t3_op){.kind = kind, .scope = scope};
    if (kind == T3_OP_SNAPSHOT_BEGINS || kind == T3_OP_SNAPSHOT_ENDS) {
        return true;
    }
    buf_clear(&r->id);
    return t3_field_id(id) && json_string_decode(id, &r->id) == 0;
}

int t3_item_tell(struct t3_item_reader *r)
{
    r->at_hand.thread_id = buf_slice(&r->id);
    return r->op(r->context, &r->at_hand);
}

int t3_item_skip(struct t3_item_reader *r)
{
    r->skipped++;
    return 0;
}

bool t3_item_is_deletion(struct t3_op *op, struct slice deleted_at)
{
    if (!t3_field_given(deleted_at)) {
        return false;
    }
    op->kind = T3_OP_DELETE;
    return true;
}

enum item_member {
    ITEM_KIND,
    ITEM_SNAPSHOT,
    ITEM_PROJECTION,
    ITEM_ROOTS,
    ITEM_EVENT,
    ITEM_THREAD,
    ITEM_THREAD_ID,
    ITEM_LOCATION,
    ITEM_MEMBER_COUNT,
};

static int read_snapshot(struct t3_item_reader *r, const struct slice *item, struct errmsg *msg)
{
    /* Enriches projects, and lists no threads. */
    if (t3_field_given(item[ITEM_ROOTS])) {
        return 0;
    }
    if (t3_field_given(item[ITEM_PROJECTION])) {
        return t3_item_read_projection(r, item[ITEM_PROJECTION]);
    }
    return t3_item_read_shell(r, item[ITEM_SNAPSHOT], msg);
}

static int read_removed(struct t3_item_reader *r, const struct slice *item)
{
    if (!t3_item_begin(r, T3_OP_DELETE, T3_SCOPE_WHOLE, item[ITEM_THREAD_ID])) {
        return t3_item_skip(r);
    }
    r->applied++;
    return t3_item_tell(r);
}

static bool is_v1_kind(struct slice kind)
{
    static const struct slice names[] = {
        SLICE("thread-upserted"),
        SLICE("thread-removed"),
        SLICE("project-upserted"),
        SLICE("project-removed"),
    };

    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        if (json_string_equal(kind, names[i])) {
            return true;
        }
    }
    return false;
}

static const struct slice item_names[ITEM_MEMBER_COUNT] = {
    [ITEM_KIND] = SLICE("kind"),
    [ITEM_SNAPSHOT] = SLICE("snapshot"),
    [ITEM_PROJECTION] = SLICE("projection"),
    [ITEM_ROOTS] = SLICE("resolvedRepositoryIdentityRoots"),
    [ITEM_EVENT] = SLICE("event"),
    [ITEM_THREAD] = SLICE("thread"),
    [ITEM_THREAD_ID] = SLICE("threadId"),
    [ITEM_LOCATION] = SLICE("location"),
};

/* An item by its members; one without a kind is a projection, or nothing. */
static int read_item(struct t3_item_reader *r, struct slice value, const struct slice *v,
                     struct errmsg *msg)
{
    if (v[ITEM_KIND].ptr == NULL) {
        return t3_item_read_projection(r, value);
    }
    if (!t3_field_string(v[ITEM_KIND])) {
        return t3_item_skip(r);
    }
    if (json_string_equal(v[ITEM_KIND], SLICE("event"))) {
        return t3_item_read_event(r, v[ITEM_EVENT], msg);
    }
    if (json_string_equal(v[ITEM_KIND], SLICE("thread.updated"))) {
        return t3_item_read_updated(r, v[ITEM_THREAD], v[ITEM_LOCATION]);
    }
    if (json_string_equal(v[ITEM_KIND], SLICE("thread.removed"))) {
        return read_removed(r, v);
    }
    if (json_string_equal(v[ITEM_KIND], SLICE("snapshot"))) {
        return read_snapshot(r, v, msg);
    }
    return is_v1_kind(v[ITEM_KIND]) ? t3_item_refuse_v1(msg, v[ITEM_KIND]) : 0;
}

void t3_item_reader_init(struct t3_item_reader *r, t3_op_fn op, void *context)
{
    *r = (struct t3_item_reader){.op = op, .context = context};
    buf_init_fixed(&r->id, r->id_bytes, sizeof(r->id_bytes));
}

static int read_chunk(struct t3_item_reader *r, struct slice chunk, struct errmsg *msg)
{
    struct t3_elements e;
    struct slice v[ITEM_MEMBER_COUNT];
    struct slice value;
    int good;
    int code = 0;

    t3_elements_begin(&e, chunk);
    while (code == 0 && (good = t3_elements_read(&e, T3_WANTED(item_names), v, &value)) != 0) {
        code = good > 0 ? read_item(r, value, v, msg) : t3_item_skip(r);
    }
    return code;
}

int t3_item_read(struct t3_item_reader *r, struct slice text, struct errmsg *msg)
{
    struct slice v[ITEM_MEMBER_COUNT];
    struct slice value;
    int code = json_text_read(text, &value, msg);

    if (code != 0) {
        return code;
    }
    switch (json_kind(value)) {
    case JSON_ARRAY:
        return read_chunk(r, value, msg);
    case JSON_OBJECT:
        return t3_fields_read(value, T3_WANTED(item_names), v) ? read_item(r, value, v, msg)
                                                               : t3_item_skip(r);
    default:
        return err_set(msg, ERR_INVALID,
                       "%s is neither a chunk (an array of stream items) nor a projection",
                       json_kind_text(json_kind(value)));
    }
}
