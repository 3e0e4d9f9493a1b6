/* The layout of the notes: keys, values and their checksums. docs/format.md tells the same in
 * words. */
#include "stream/subscription_store.h"

#include <assert.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/limits.h"
#include "log/note.h"

#define KEY_BYTES_MAX (8u + 8u + STREAM_NAME_BYTES_MAX)
#define VALUE_BYTES_MAX                                               \
    (256u + STREAM_NAME_BYTES_MAX * 2u + SUBSCRIPTION_URL_BYTES_MAX + \
     SUBSCRIPTION_DESCRIPTION_BYTES_MAX)

#define VERSION 1u

/* The first byte of a value behind its version. */
enum {
    VALUE_DEFINITION = 1,
    VALUE_TOMBSTONE = 2,
    VALUE_STATE = 3,
    VALUE_LINK = 4,
};

enum {
    FLAG_PULL_WAKE = 1,   /* definition: the type */
    FLAG_DESCRIPTION = 2, /* definition: has one */
    FLAG_EXPLICIT = 1,    /* link */
    FLAG_START = 2,       /* link: the cursor is before the first byte */
};

static_assert(sizeof(SUBSCRIPTION_KEY_LINK) - 1 + 8 + STREAM_NAME_BYTES_MAX <= NOTE_KEY_BYTES_MAX,
              "every link has a key");
static_assert(sizeof(SUBSCRIPTION_KEY_SUB) - 1 + SUBSCRIPTION_ID_BYTES_MAX <= NOTE_KEY_BYTES_MAX,
              "every id has a key");

/* A value, or a key, in the making. */
struct note_text {
    struct buf buf;
    char bytes[VALUE_BYTES_MAX];
};

static void text_init(struct note_text *t)
{
    buf_init_fixed(&t->buf, t->bytes, sizeof(t->bytes));
}

static void put_u8(struct note_text *t, unsigned value)
{
    buf_append_char(&t->buf, (char)value);
}

static void put_u64(struct note_text *t, uint64_t value)
{
    char bytes[8];
    bytes_put_u64(bytes, value);
    buf_append(&t->buf, (struct slice){bytes, sizeof(bytes)});
}

static void put_text(struct note_text *t, struct slice text)
{
    char bytes[VARINT_BYTES_MAX];
    buf_append(&t->buf, (struct slice){bytes, bytes_put_varint(bytes, text.len)});
    buf_append(&t->buf, text);
}

static void value_init(struct note_text *t, unsigned kind)
{
    text_init(t);
    put_u8(t, VERSION);
    put_u8(t, kind);
}

static uint32_t checksum(struct slice key, struct slice value)
{
    uint32_t crc = crc32c(0, key.ptr, key.len);
    return crc32c(crc, value.ptr, value.len);
}

static void put_note(struct buf *batch, const struct note_text *key, struct note_text *value)
{
    char crc[4];
    bytes_put_u32(crc, checksum(buf_slice(&key->buf), buf_slice(&value->buf)));
    buf_append(&value->buf, (struct slice){crc, sizeof(crc)});
    assert(!key->buf.failed && !value->buf.failed);
    note_put(batch, buf_slice(&key->buf), buf_slice(&value->buf));
}

static void sub_key(struct note_text *key, struct slice id)
{
    text_init(key);
    buf_append(&key->buf, SLICE(SUBSCRIPTION_KEY_SUB));
    buf_append(&key->buf, id);
}

static void number_key(struct note_text *key, struct slice prefix, uint64_t number)
{
    char bytes[8];
    bytes_put_u64_be(bytes, number);
    text_init(key);
    buf_append(&key->buf, prefix);
    buf_append(&key->buf, (struct slice){bytes, sizeof(bytes)});
}

static void link_key(struct note_text *key, uint64_t number, struct slice path)
{
    number_key(key, SLICE(SUBSCRIPTION_KEY_LINK), number);
    buf_append(&key->buf, path);
}

static void store_definition(struct buf *batch, const struct subscription *sub)
{
    const struct subscription_definition *def = &sub->def;
    struct note_text key;
    struct note_text value;
    sub_key(&key, sub->id);
    value_init(&value, VALUE_DEFINITION);
    put_u8(&value, (def->type == SUBSCRIPTION_PULL_WAKE ? FLAG_PULL_WAKE : 0) |
                       (def->has_description ? FLAG_DESCRIPTION : 0));
    put_u64(&value, sub->number);
    put_u64(&value, (uint64_t)sub->created_ms);
    put_u64(&value, def->lease_ttl_ms);
    buf_append(&value.buf, (struct slice){(const char *)def->hash, sizeof(def->hash)});
    put_text(&value, def->pattern);
    put_text(&value, def->target);
    put_text(&value, def->description);
    put_note(batch, &key, &value);
}

/* Short enough to be taken where the disk is full: see NOTE_TOMB_BYTES_MAX. */
static void store_tombstone(struct buf *batch, const struct subscription_change *c)
{
    struct note_text key;
    struct note_text value;
    sub_key(&key, c->sub->id);
    value_init(&value, VALUE_TOMBSTONE);
    put_u64(&value, c->sub->number);
    put_u64(&value, (uint64_t)c->removed_ms);
    put_u64(&value, c->after.generation);
    assert(value.buf.len + 4 <= NOTE_TOMB_BYTES_MAX);
    put_note(batch, &key, &value);
}

/* There is a generation to keep only if it ever had a wake. */
static void store_removal(struct buf *batch, const struct subscription_change *c)
{
    struct note_text key;
    if (c->after.generation > 0) {
        store_tombstone(batch, c);
    } else {
        subscription_store_forget(batch, c->sub->id);
    }
    number_key(&key, SLICE(SUBSCRIPTION_KEY_WAKE), c->sub->number);
    note_delete(batch, buf_slice(&key.buf));
}

static void store_state(struct buf *batch, uint64_t number, const struct subscription_state *st)
{
    struct note_text key;
    struct note_text value;
    number_key(&key, SLICE(SUBSCRIPTION_KEY_WAKE), number);
    value_init(&value, VALUE_STATE);
    put_u8(&value, (unsigned)st->phase);
    put_u64(&value, st->generation);
    put_u64(&value, (uint64_t)st->lease_until_ms);
    put_u64(&value, (uint64_t)st->retry_at_ms);
    put_u64(&value, st->failures);
    if (st->phase != SUBSCRIPTION_IDLE) {
        buf_append(&value.buf, (struct slice){st->wake_id, sizeof(st->wake_id)});
    }
    put_text(&value, st->holder);
    put_note(batch, &key, &value);
}

static void store_link(struct buf *batch, uint64_t number, const struct subscription_edit *edit)
{
    struct note_text key;
    struct note_text value;
    link_key(&key, number, subscription_link_path(edit->link));
    bool start = edit->acked == SUBSCRIPTION_START;
    value_init(&value, VALUE_LINK);
    put_u8(&value, (edit->is_explicit ? FLAG_EXPLICIT : 0) | (start ? FLAG_START : 0));
    put_u64(&value, edit->stream);
    put_u64(&value, start ? 0 : edit->acked);
    put_u64(&value, edit->link->skip);
    put_note(batch, &key, &value);
}

void subscription_store_change(struct buf *batch, const struct subscription_change *c)
{
    struct subscription *sub = c->sub;
    if (c->remove) {
        store_removal(batch, c);
        return;
    }
    if (c->create) {
        store_definition(batch, sub);
    }
    if (c->create || c->moved) {
        store_state(batch, sub->number, &c->after);
    }
    for (size_t i = 0; i < c->edit_count; i++) {
        const struct subscription_edit *edit = &c->edits[i];
        if (!edit->drop) {
            store_link(batch, sub->number, edit);
        } else if (edit->link->saved) {
            subscription_store_unlink(batch, sub->number, subscription_link_path(edit->link));
        }
    }
}

void subscription_store_unlink(struct buf *batch, uint64_t number, struct slice path)
{
    struct note_text key;
    link_key(&key, number, path);
    note_delete(batch, buf_slice(&key.buf));
}

void subscription_store_forget(struct buf *batch, struct slice id)
{
    struct note_text key;
    sub_key(&key, id);
    note_delete(batch, buf_slice(&key.buf));
}

static struct slice read_text(struct bytes_reader *r)
{
    uint64_t len = bytes_read_varint(r);
    if (len > (size_t)(r->end - r->at)) {
        r->failed = 1;
        return (struct slice){0};
    }
    return bytes_read_slice(r, (size_t)len);
}

static void read_definition(struct bytes_reader *r, struct subscription_note *n)
{
    unsigned flags = bytes_read_u8(r);
    n->kind = SUBSCRIPTION_NOTE_DEFINITION;
    n->number = bytes_read_u64(r);
    n->created_ms = (int64_t)bytes_read_u64(r);
    uint64_t lease = bytes_read_u64(r);
    struct slice hash = bytes_read_slice(r, SUBSCRIPTION_HASH_BYTES);
    n->def = (struct subscription_definition){
        .type = flags & FLAG_PULL_WAKE ? SUBSCRIPTION_PULL_WAKE : SUBSCRIPTION_WEBHOOK,
        .has_description = flags & FLAG_DESCRIPTION,
        .pattern = read_text(r),
    };
    n->def.target = read_text(r);
    n->def.description = read_text(r);
    if (lease < SUBSCRIPTION_LEASE_MS_MIN || lease > SUBSCRIPTION_LEASE_MS_MAX || r->failed) {
        r->failed = 1;
        return;
    }
    n->def.lease_ttl_ms = (uint32_t)lease;
    memcpy(n->def.hash, hash.ptr, hash.len);
}

static void read_tombstone(struct bytes_reader *r, struct subscription_note *n)
{
    n->kind = SUBSCRIPTION_NOTE_TOMBSTONE;
    n->number = bytes_read_u64(r);
    n->created_ms = (int64_t)bytes_read_u64(r);
    n->state.generation = bytes_read_u64(r);
}

static void read_state(struct bytes_reader *r, struct subscription_note *n)
{
    struct subscription_state *st = &n->state;
    unsigned phase = bytes_read_u8(r);
    n->kind = SUBSCRIPTION_NOTE_STATE;
    st->generation = bytes_read_u64(r);
    st->lease_until_ms = (int64_t)bytes_read_u64(r);
    st->retry_at_ms = (int64_t)bytes_read_u64(r);
    uint64_t failures = bytes_read_u64(r);
    struct slice wake_id = {0};
    if (phase != SUBSCRIPTION_IDLE) {
        wake_id = bytes_read_slice(r, SUBSCRIPTION_WAKE_ID_BYTES);
    }
    st->holder = read_text(r);
    if (phase > SUBSCRIPTION_LEASED || failures > UINT32_MAX || r->failed) {
        r->failed = 1;
        return;
    }
    st->phase = (enum subscription_phase)phase;
    st->failures = (uint32_t)failures;
    st->failed = failures > 0;
    if (wake_id.len > 0) {
        memcpy(st->wake_id, wake_id.ptr, wake_id.len);
    }
}

static void read_link(struct bytes_reader *r, struct subscription_note *n)
{
    unsigned flags = bytes_read_u8(r);
    n->kind = SUBSCRIPTION_NOTE_LINK;
    n->is_explicit = flags & FLAG_EXPLICIT;
    n->stream = bytes_read_u64(r);
    n->acked = bytes_read_u64(r);
    n->skip = bytes_read_u64(r);
    if (flags & FLAG_START) {
        n->acked = SUBSCRIPTION_START;
    }
}

/* What the key says; the kind that its value must have, or 0. */
static unsigned read_key(struct slice key, struct subscription_note *n)
{
    struct slice prefix = SLICE(SUBSCRIPTION_KEY_SUB);
    if (slice_starts_with(key, prefix)) {
        n->id = (struct slice){key.ptr + prefix.len, key.len - prefix.len};
        return n->id.len > 0 && n->id.len <= SUBSCRIPTION_ID_BYTES_MAX ? VALUE_DEFINITION : 0;
    }
    prefix = SLICE(SUBSCRIPTION_KEY_WAKE);
    if (slice_starts_with(key, prefix) && key.len == prefix.len + 8) {
        n->number = bytes_get_u64_be(key.ptr + prefix.len);
        return VALUE_STATE;
    }
    prefix = SLICE(SUBSCRIPTION_KEY_LINK);
    if (slice_starts_with(key, prefix) && key.len > prefix.len + 8 &&
        key.len <= prefix.len + 8 + STREAM_NAME_BYTES_MAX) {
        n->number = bytes_get_u64_be(key.ptr + prefix.len);
        n->path = (struct slice){key.ptr + prefix.len + 8, key.len - prefix.len - 8};
        return VALUE_LINK;
    }
    return 0;
}

int subscription_store_read(struct slice key, struct slice value,
                            struct subscription_note *ret_note)
{
    struct subscription_note n = {0};
    unsigned expected = read_key(key, &n);
    if (expected == 0 || value.len < 6) {
        return ERR_CORRUPT;
    }
    struct slice body = {value.ptr, value.len - 4};
    if (checksum(key, body) != bytes_get_u32(value.ptr + body.len)) {
        return ERR_CORRUPT;
    }
    const uint8_t *at = (const uint8_t *)value.ptr;
    struct bytes_reader r = {.at = at, .end = at + body.len};
    unsigned version = bytes_read_u8(&r);
    unsigned kind = bytes_read_u8(&r);
    if (version != VERSION ||
        (kind != expected && !(expected == VALUE_DEFINITION && kind == VALUE_TOMBSTONE))) {
        return ERR_CORRUPT;
    }
    static void (*const read[])(struct bytes_reader *, struct subscription_note *) = {
        [VALUE_DEFINITION] = read_definition,
        [VALUE_TOMBSTONE] = read_tombstone,
        [VALUE_STATE] = read_state,
        [VALUE_LINK] = read_link,
    };
    read[kind](&r, &n);
    if (r.failed || r.at != r.end) {
        return ERR_CORRUPT;
    }
    *ret_note = n;
    return 0;
}
