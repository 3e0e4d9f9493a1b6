/* One small builder: an object or array is opened with its bracket, each member brings the comma
 * that it needs, which the last byte written tells. */
#include "stream/subscription_view.h"

#include <assert.h>

#include "base/attr.h"
#include "base/date.h"
#include "base/json.h"
#include "stream/offset.h"

/* What of a link is shown. */
enum link_detail {
    LINK_CURSOR, /* where the cursor stands */
    LINK_WAKE,   /* and where the stream ends */
};

static void comma(struct buf *out)
{
    char last = out->len > 0 ? out->ptr[out->len - 1] : '{';
    if (last != '{' && last != '[' && last != ':') {
        buf_append_char(out, ',');
    }
}

/* The name of a member, which needs no escapes, and its colon. */
static void name(struct buf *out, const char *text)
{
    comma(out);
    buf_append_format(out, "\"%s\":", text);
}

static void string_member(struct buf *out, const char *text, struct slice value)
{
    name(out, text);
    json_append_string(out, value);
}

static void number_member(struct buf *out, const char *text, uint64_t value)
{
    name(out, text);
    buf_append_u64(out, value);
}

static void bool_member(struct buf *out, const char *text, bool value)
{
    name(out, text);
    buf_append(out, value ? SLICE("true") : SLICE("false"));
}

static void offset_member(struct buf *out, const char *text, uint64_t position)
{
    char token[OFFSET_TOKEN_BYTES];
    if (position == SUBSCRIPTION_START) {
        string_member(out, text, SLICE("-1"));
        return;
    }
    offset_format(token, position);
    string_member(out, text, (struct slice){token, sizeof(token)});
}

/* A URL that begins with `base`; the rest and the closing quote are the caller's. */
static void open_url(struct buf *out, const char *text, struct slice base)
{
    string_member(out, text, base);
    if (!out->failed) {
        out->len--; /* its closing quote */
    }
}

static void append_link(struct buf *out, const struct subscription_link *l, enum link_detail detail)
{
    comma(out);
    buf_append_char(out, '{');
    string_member(out, "path", (struct slice){l->path, l->path_len});
    string_member(out, "link_type", l->is_explicit ? SLICE("explicit") : SLICE("glob"));
    offset_member(out, "acked_offset", l->acked);
    if (detail == LINK_WAKE) {
        offset_member(out, "tail_offset", l->tail);
        bool_member(out, "has_pending", subscription_link_pending(l));
    }
    buf_append_char(out, '}');
}

static void links_member(struct buf *out, const struct subscription *s, enum link_detail detail)
{
    name(out, "streams");
    buf_append_char(out, '[');
    LIST_FOR_EACH(node, &s->links)
    {
        const struct subscription_link *l = container_of(node, struct subscription_link, link);
        if (!l->dropped) {
            append_link(out, l, detail);
        }
    }
    buf_append_char(out, ']');
}

static void webhook_member(struct buf *out, struct slice url, struct slice base_url,
                           struct slice kid)
{
    name(out, "webhook");
    buf_append_char(out, '{');
    string_member(out, "url", url);
    name(out, "signing");
    buf_append_char(out, '{');
    string_member(out, "alg", SLICE("ed25519"));
    string_member(out, "kid", kid);
    open_url(out, "jwks_url", base_url);
    buf_append(out, SLICE("/jwks.json\"}}"));
}

void subscription_view_append(struct buf *out, const struct subscription *s, struct slice base_url,
                              struct slice kid)
{
    const struct subscription_definition *def = &s->def;
    bool webhook = def->type == SUBSCRIPTION_WEBHOOK;
    char created[DATE_RFC3339_BYTES];
    date_format_rfc3339(created, s->created_ms);
    buf_append_char(out, '{');
    string_member(out, "id", s->id);
    string_member(out, "subscription_id", s->id);
    string_member(out, "type", webhook ? SLICE("webhook") : SLICE("pull-wake"));
    if (def->pattern.len > 0) {
        string_member(out, "pattern", def->pattern);
    }
    links_member(out, s, LINK_CURSOR);
    if (webhook) {
        webhook_member(out, def->target, base_url, kid);
    } else {
        string_member(out, "wake_stream", def->target);
    }
    number_member(out, "lease_ttl_ms", def->lease_ttl_ms);
    string_member(out, "created_at", slice_of(created));
    string_member(out, "status", s->state.failed ? SLICE("failed") : SLICE("active"));
    if (def->has_description) {
        string_member(out, "description", def->description);
    }
    buf_append_char(out, '}');
}

/* An id as one segment of a URL: a slash of its own must not divide it. */
static void append_id(struct buf *out, struct slice id)
{
    for (size_t i = 0; i < id.len; i++) {
        unsigned char c = (unsigned char)id.ptr[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     c == '-' || c == '.' || c == '_' || c == '~';
        if (plain) {
            buf_append_char(out, (char)c);
        } else {
            buf_append_format(out, "%%%02X", c);
        }
    }
}

void subscription_view_webhook(struct buf *out, const struct subscription *s,
                               const struct subscription_state *state, struct slice base_url,
                               struct slice token)
{
    buf_append_char(out, '{');
    string_member(out, "subscription_id", s->id);
    string_member(out, "wake_id", (struct slice){state->wake_id, SUBSCRIPTION_WAKE_ID_BYTES});
    number_member(out, "generation", state->generation);
    links_member(out, s, LINK_WAKE);
    open_url(out, "callback_url", base_url);
    buf_append(out, SLICE("/subscriptions/"));
    append_id(out, s->id);
    buf_append(out, SLICE("/callback\""));
    string_member(out, "callback_token", token);
    buf_append_char(out, '}');
}

void subscription_view_claim(struct buf *out, const struct subscription *s,
                             const struct subscription_state *state, struct slice token)
{
    buf_append_char(out, '{');
    string_member(out, "wake_id", (struct slice){state->wake_id, SUBSCRIPTION_WAKE_ID_BYTES});
    number_member(out, "generation", state->generation);
    string_member(out, "token", token);
    links_member(out, s, LINK_WAKE);
    number_member(out, "lease_ttl_ms", s->def.lease_ttl_ms);
    buf_append_char(out, '}');
}

void subscription_view_event(struct buf *out, struct slice id, struct slice stream,
                             uint64_t generation, int64_t now_ms)
{
    assert(now_ms >= 0);
    buf_append_char(out, '{');
    string_member(out, "type", SLICE("wake"));
    string_member(out, "subscription_id", id);
    string_member(out, "stream", stream);
    number_member(out, "generation", generation);
    number_member(out, "ts", (uint64_t)now_ms);
    buf_append_char(out, '}');
}

void subscription_view_ok(struct buf *out, bool next_wake)
{
    buf_append_char(out, '{');
    bool_member(out, "ok", true);
    bool_member(out, "next_wake", next_wake);
    buf_append_char(out, '}');
}

static int open_error(struct buf *out, enum subscription_error error, struct slice message)
{
    static const struct {
        const char *code;
        int status;
    } errors[] = {
#define X(name, status) {#name, status},
        SUBSCRIPTION_ERROR_LIST(X)
#undef X
    };
    assert((size_t)error < ARRAY_COUNT(errors));
    buf_append(out, SLICE("{\"error\":{"));
    string_member(out, "code", slice_of(errors[error].code));
    string_member(out, "message", message);
    return errors[error].status;
}

int subscription_view_error(struct buf *out, enum subscription_error error, struct slice message)
{
    int status = open_error(out, error, message);
    buf_append(out, SLICE("}}"));
    return status;
}

int subscription_view_claimed(struct buf *out, struct slice holder, uint64_t generation)
{
    int status = open_error(out, SUBSCRIPTION_ERROR_ALREADY_CLAIMED,
                            SLICE("another worker holds the lease: try again when it has ended"));
    string_member(out, "current_holder", holder);
    number_member(out, "generation", generation);
    buf_append(out, SLICE("}}"));
    return status;
}
