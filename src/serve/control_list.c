/* GET /v1/stream/__ds/streams?prefix=&after=&limit=: all streams, a page at a time, in the byte
 * order of their names. The catalog is read on the pool, and the page is composed there.
 *
 * Names that are reserved are passed over in one leap: not told, not counted, and no page ends at
 * one, since where it ends is told too. */
#include "serve/control.h"

#include "base/date.h"
#include "base/json.h"
#include "base/number.h"
#include "base/pool.h"
#include "serve/problem.h"
#include "stream/field.h"

#include <stdlib.h>

#define NAME_BYTES_MAX   8u /* of a parameter, decoded */
#define LIMIT_DIGITS_MAX 8u

/* Names hold no control characters, so escaping at most doubles them; beside name and content type
 * an entry is less than half a KiB. Behind the last one stands its name again. */
#define ENTRY_BYTES_MAX (2u * (STREAM_NAME_BYTES_MAX + STREAM_CONTENT_TYPE_BYTES_MAX) + 512u)
#define PAGE_BYTES_MAX  (LISTING_BYTES_MAX + 2u * ENTRY_BYTES_MAX)

enum parameter {
    PREFIX,
    AFTER,
    LIMIT,
    PARAMETER_COUNT,
};

static const char *const names[PARAMETER_COUNT] = {"prefix", "after", "limit"};

struct control_listing {
    struct exchange *x;
    struct task task; /* on the pool, then on the loop */
    struct engine_list_query wanted;
    struct engine_list_end end;
    struct buf page;
    struct slice reserved; /* how names begin that are left out; empty: none */
    size_t count;          /* of the page's streams */
    int code;
    char prefix[STREAM_NAME_BYTES_MAX];
    char after[STREAM_NAME_BYTES_MAX];
};

void control_listing_destroy(struct control_listing *l)
{
    if (l != NULL) {
        buf_finish(&l->page);
        free(l);
    }
}

/* The parameter called `raw`, or PARAMETER_COUNT. */
static enum parameter parameter_of(struct slice raw)
{
    char decoded[3 * NAME_BYTES_MAX];
    long len = raw.len > sizeof(decoded) ? ERR_INVALID : http_percent_decode(raw, decoded);

    for (int i = 0; len >= 0 && i < PARAMETER_COUNT; i++) {
        if (slice_equal((struct slice){decoded, (size_t)len}, slice_of(names[i]))) {
            return (enum parameter)i;
        }
    }
    return PARAMETER_COUNT;
}

/* Decodes a name, or the beginning of one, to `memory`. */
static int take_text(enum parameter which, struct slice raw, char memory[STREAM_NAME_BYTES_MAX],
                     struct slice *ret_text, struct errmsg *msg)
{
    char decoded[3 * STREAM_NAME_BYTES_MAX];

    if (raw.len > sizeof(decoded)) {
        return field_listed(raw, names[which], msg);
    }
    long len = http_percent_decode(raw, decoded);

    if (len < 0) {
        return err_set(msg, ERR_INVALID, "a '%%' in %s must be followed by two hex digits",
                       names[which]);
    }
    int code = field_listed((struct slice){decoded, (size_t)len}, names[which], msg);

    if (code != 0) {
        return code;
    }
    memcpy(memory, decoded, (size_t)len);
    *ret_text = (struct slice){memory, (size_t)len};
    return 0;
}

static int take_limit(struct slice raw, size_t *ret_limit, struct errmsg *msg)
{
    char decoded[3 * LIMIT_DIGITS_MAX];
    long len = raw.len > sizeof(decoded) ? ERR_INVALID : http_percent_decode(raw, decoded);
    struct slice text = {decoded, len < 0 ? 0 : (size_t)len};
    uint64_t value = 0;

    if (!number_parse_u64(text, LISTING_COUNT_MAX, false, &value) || value == 0) {
        return err_set(msg, ERR_INVALID, "limit must be a number from 1 to %u", LISTING_COUNT_MAX);
    }
    *ret_limit = (size_t)value;
    return 0;
}

/* Fills l->wanted. What is not known is refused: a misspelt filter would otherwise list all. */
static int parse(struct control_listing *l, struct slice query, struct errmsg *msg)
{
    bool seen[PARAMETER_COUNT] = {false};
    struct slice name;
    struct slice value;
    int code = 0;

    l->wanted = (struct engine_list_query){.limit = LISTING_COUNT_MAX};
    while (code == 0 && http_query_next(&query, &name, &value)) {
        enum parameter which = parameter_of(name);

        if (which == PARAMETER_COUNT) {
            return err_set(msg, ERR_INVALID,
                           "the listing takes prefix, after and limit, and no other parameter");
        }
        if (seen[which]) {
            return err_set(msg, ERR_INVALID, "%s may be given once only", names[which]);
        }
        seen[which] = true;
        if (which == PREFIX) {
            code = take_text(which, value, l->prefix, &l->wanted.prefix, msg);
        } else if (which == AFTER) {
            code = take_text(which, value, l->after, &l->wanted.after, msg);
        } else {
            code = take_limit(value, &l->wanted.limit, msg);
        }
    }
    return code;
}

static void put_date(struct buf *out, int64_t ms)
{
    char date[DATE_RFC3339_BYTES];

    date_format_rfc3339(date, ms);
    buf_append_format(out, "\"%s\"", date);
}

static bool is_reserved(const struct control_listing *l, struct slice name)
{
    return l->reserved.len > 0 && slice_starts_with(name, l->reserved);
}

static int put_stream(void *context, const struct stream_listed *listed)
{
    struct control_listing *l = context;
    struct buf *out = &l->page;
    char token[OFFSET_TOKEN_BYTES];

    if (is_reserved(l, listed->name)) {
        return ENGINE_LIST_FULL; /* list_all leaps */
    }
    l->count++;
    if (out->len > 0 && out->ptr[out->len - 1] == '}') {
        buf_append_char(out, ',');
    }
    buf_append(out, SLICE("{\"path\":"));
    json_append_string(out, listed->name);
    buf_append(out, SLICE(",\"content_type\":"));
    json_append_string(out, listed->content_type);
    offset_format(token, listed->next);
    buf_append_format(out,
                      ",\"next_offset\":\"%.*s\",\"closed\":%s,\"created_at\":", (int)sizeof(token),
                      token, listed->closed ? "true" : "false");
    put_date(out, listed->created_ms);
    if (listed->expiry.has_ttl) {
        buf_append(out, SLICE(",\"ttl_seconds\":"));
        buf_append_u64(out, listed->expiry.ttl_seconds);
    }
    if (listed->expiry.has_expires_at) {
        buf_append(out, SLICE(",\"expires_at\":"));
        put_date(out, listed->expiry.expires_at_ms);
    }
    buf_append_char(out, '}');
    if (out->failed) {
        return ERR_NOMEM;
    }
    return out->len < LISTING_BYTES_MAX ? 0 : ENGINE_LIST_FULL;
}

static void back_on_loop(struct task *task)
{
    exchange_resume(container_of(task, struct control_listing, task)->x);
}

/* Goes on behind all names that are reserved: in no name is there a byte 0xff. */
static void leap(struct control_listing *l)
{
    memcpy(l->after, l->reserved.ptr, l->reserved.len);
    l->after[l->reserved.len] = '\xff';
    l->wanted.after = (struct slice){l->after, l->reserved.len + 1};
}

static int list_all(struct control_listing *l)
{
    struct engine *engine = l->x->worker->server->engine;
    const size_t limit = l->wanted.limit;

    if (is_reserved(l, l->wanted.after)) {
        leap(l);
    }
    int code = engine_list(engine, &l->wanted, put_stream, l, &l->end);

    if (code == 0 && l->end.more && is_reserved(l, l->end.last)) {
        leap(l);
        l->wanted.limit = limit - l->count; /* above 0: a full page ends before it looks on */
        code = engine_list(engine, &l->wanted, put_stream, l, &l->end);
    }
    return code;
}

static void list_on_pool(struct task *task)
{
    struct control_listing *l = container_of(task, struct control_listing, task);
    struct worker *w = l->x->worker;

    buf_init(&l->page, PAGE_BYTES_MAX);
    buf_append(&l->page, SLICE("{\"streams\":["));
    l->code = list_all(l);
    buf_append_char(&l->page, ']');
    if (l->code == 0 && l->end.more) {
        buf_append(&l->page, SLICE(",\"next_after\":"));
        json_append_string(&l->page, l->end.last);
    }
    buf_append(&l->page, SLICE("}\n"));
    if (l->code == 0 && l->page.failed) {
        l->code = ERR_NOMEM;
    }
    l->task.run = back_on_loop;
    loop_post(w->loop, &l->task);
}

static void finish(struct exchange *x)
{
    const struct control_listing *l = x->about->listing;

    if (l->code != 0) {
        problem_answer_code(x, l->code, &(struct errmsg){{0}});
        return;
    }
    control_answer(x, 200, SLICE("application/json"), REPLY_NO_STORE, buf_slice(&l->page));
}

void control_list_begin(struct exchange *x, struct slice query)
{
    struct control_listing *l = calloc(1, sizeof(*l));
    struct errmsg msg = {{0}};

    if (l == NULL) {
        session_drop(x->session);
        return;
    }
    x->about->listing = l;
    x->finish = finish;
    l->x = x;
    l->reserved = exchange_reserved(x);
    int code = parse(l, query, &msg);

    if (code != 0) {
        problem_answer_code(x, code, &msg);
        return;
    }
    list_init(&l->task.link);
    l->task.run = list_on_pool;
    exchange_park(x);
    pool_submit(x->worker->server->pool, &l->task);
}
