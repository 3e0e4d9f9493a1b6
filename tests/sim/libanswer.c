/* Whether an answer is one that the model could have given between question and answer. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/limits.h"
#include "sim/world.h"
#include "sim/alloc.h"

static size_t visible_now(struct world *w)
{
    log_pos durable = world_durable(w);
    w->durable = durable > w->durable ? durable : w->durable;
    return model_moment(&w->model, durable);
}

static struct slice sent_body(const struct request *r)
{
    return r->op.verb == STREAM_CREATE ? r->op.create.body : r->op.append.body;
}

/* What a stream keeps of the body. */
static struct slice kept_body(const struct request *r, bool json)
{
    return json && r->stored ? (struct slice){r->stored, r->said.stored_len} : sent_body(r);
}

/* The end of the source as its readers saw it at a durable moment. */
static uint64_t tail_seen(const struct model_stream *source, size_t moment)
{
    const struct model_version *v = source ? model_at(source, moment) : NULL;
    return v ? v->tail : 0;
}

static bool creation_matches(struct request *r, const struct record *record)
{
    const struct record_create *c = &record->create;
    struct world *w = r->world;
    const struct model_stream *source = c->source_id ? model_by_id(&w->model, c->source_id) : NULL;
    bool json = c->content_type.len >= 16 &&
                memcmp(c->content_type.ptr, "application/json", 16) == 0;
    if (!slice_equal(slice_of(r->said.name), c->name) || r->said.close != c->closed ||
        !slice_equal(kept_body(r, json), c->body) || !r->said.source != !source ||
        (source && strcmp(source->name, r->said.source) != 0) ||
        r->said.has_fork_offset != c->fork_explicit) {
        return false;
    }
    const char *type = r->said.type ? r->said.type
                       : source     ? source->type
                                    : "application/octet-stream";
    const struct stream_expiry *x = &r->said.expiry;
    bool inherits = source && !x->has_ttl && !x->has_expires_at;
    uint64_t ttl = inherits ? source->ttl_seconds : x->has_ttl ? x->ttl_seconds : UINT64_MAX;
    int64_t at = inherits            ? source->expires_at_ms
                 : x->has_expires_at ? x->expires_at_ms
                                     : INT64_MAX;
    return slice_equal(slice_of(type), c->content_type) && c->ttl_seconds == ttl &&
           c->expires_at_ms == at;
}

static bool append_matches(const struct request *r, const struct record *record)
{
    const struct record_append *a = &record->append;
    const struct model_stream *s = model_by_id(&r->world->model, record->id);
    const struct record_producer *p = &r->op.append.producer;
    return s && strcmp(s->name, r->said.name) == 0 && r->said.close == a->close &&
           slice_equal(kept_body(r, s->json), a->body) && slice_equal(p->id, a->producer.id) &&
           p->epoch == a->producer.epoch && p->seq == a->producer.seq &&
           !r->said.stream_seq == !a->has_seq && slice_equal(r->op.append.seq, a->seq);
}

bool request_matches(struct request *r, const struct record *record)
{
    if (r->staged) {
        return false;
    }
    const struct model_stream *s;
    switch (record->type) {
    case RECORD_CREATE:
        return r->op.verb == STREAM_CREATE && creation_matches(r, record);
    case RECORD_APPEND:
        return r->op.verb == STREAM_APPEND && append_matches(r, record);
    case RECORD_DELETE:
        s = model_by_id(&r->world->model, record->id);
        return r->op.verb == STREAM_DELETE && s && strcmp(s->name, r->said.name) == 0;
    case RECORD_NOTE:
        return r->op.verb == STREAM_NOTE && !r->said.malformed &&
               slice_equal(r->op.note.changes, record->note.changes);
    case RECORD_TOUCH:
        break;
    }
    return false;
}

/* Whether the record of a fork begins where the request said, at some moment since it was made. */
static bool fork_place_right(struct request *r, const struct record_create *c, uint64_t tail)
{
    struct world *w = r->world;
    const struct model_stream *source = model_by_id(&w->model, c->source_id);
    const struct model_request *q = &r->said;
    uint64_t anchor = tail;
    if (q->has_fork_offset && q->fork_offset.kind != OFFSET_NOW) {
        anchor = q->fork_offset.kind == OFFSET_START ? 0 : q->fork_offset.position;
    }
    uint64_t offset = 0;
    return model_locate(source, anchor, q->sub_offset, tail, &offset) == 0 &&
           offset == c->fork_offset && anchor == c->fork_anchor &&
           q->sub_offset == c->fork_sub_offset;
}

bool request_acceptable(struct request *r, const struct record *record)
{
    struct world *w = r->world;
    size_t now = w->model.moment;
    size_t last = visible_now(w);
    if (r->op.verb == STREAM_NOTE) {
        return true;
    }
    if (r->op.verb != STREAM_CREATE || !r->said.source) {
        return model_judge(&w->model, &r->said, now, 0).accepted;
    }
    const struct model_stream *source = model_find(&w->model, r->said.source, now);
    for (size_t j = r->start_visible; j <= last; j++) {
        uint64_t tail = tail_seen(source, j);
        if (model_judge(&w->model, &r->said, now, tail).accepted &&
            fork_place_right(r, &record->create, tail)) {
            return true;
        }
    }
    return false;
}

/* Answers. */

static bool producer_right(const struct request *r, const struct model_verdict *v)
{
    const struct stream_result *res = &r->op.result;
    const struct model_producer *p = r->said.producer >= 0 && v->version
                                         ? &v->version->producers[r->said.producer]
                                         : NULL;
    if (v->duplicate) {
        bool closer = v->version->closed;
        const struct model_producer *known = closer ? &v->version->closer_state : p;
        return res->producer_epoch == known->epoch && res->producer_seq == known->seq;
    }
    if (v->stale_epoch) {
        return res->producer_epoch == p->epoch;
    }
    if (v->seq_gap) {
        bool same = p->known && p->epoch == r->said.epoch;
        return res->producer_seq_expected == (same ? p->seq + 1 : 0) &&
               res->producer_seq_received == r->said.seq;
    }
    return true;
}

/* Whether the result is the verdict's, in all that it says. */
static bool says(const struct request *r, const struct model_verdict *v)
{
    const struct stream_result *res = &r->op.result;
    if (v->accepted || res->code != v->code || res->created || res->duplicate != v->duplicate ||
        res->seq_gap != v->seq_gap || res->seq_conflict != v->seq_conflict ||
        res->stale_epoch != v->stale_epoch || !producer_right(r, v)) {
        return false;
    }
    bool told = res->code == 0 || res->code == ERR_CLOSED;
    if (told && v->version) {
        return res->has_next && res->next == v->version->tail && res->closed == v->version->closed;
    }
    return true;
}

/* Whether what the verdict rests on cannot be taken back any more. */
static bool settled(const struct world *w, const struct request *r, const struct model_verdict *v,
                    size_t moment)
{
    if (v->code == ERR_INVALID) {
        return true;
    }
    if (v->version) {
        return v->version->expired || v->version->end <= w->durable;
    }
    const char *about = r->said.source ? r->said.source : r->said.name;
    for (size_t i = w->model.count; i > 0; i--) {
        const struct model_stream *s = w->model.streams[i - 1];
        bool named = strcmp(s->name, about) == 0;
        const struct model_version *gone = named ? model_at(s, moment) : NULL;
        if (gone) {
            return gone->expired || gone->end <= w->durable;
        }
    }
    return true;
}

/* Whether a fork of an existing name may be answered so: which offsets count as the same is told by
 * the engine, but the source and the sub-offset must be. */
static bool fork_exists_right(const struct request *r, const struct model_verdict *v)
{
    const struct stream_result *res = &r->op.result;
    if (!v->stream || v->version->life != MODEL_ALIVE || res->created || !res->has_next ||
        res->next != v->version->tail) {
        return false;
    }
    if (res->code == 0) {
        return v->code == 0 && v->stream->source &&
               strcmp(v->stream->source->name, r->said.source) == 0 &&
               v->stream->fork_sub == r->said.sub_offset;
    }
    return res->code == ERR_EXISTS;
}

static bool fork_answer_right(struct request *r, size_t k, size_t visible)
{
    struct world *w = r->world;
    const struct stream_result *res = &r->op.result;
    if (res->code == ERR_INVALID && r->said.malformed) {
        return true;
    }
    /* The source is looked up before the name, and either may change between the two. */
    if (res->code == ERR_NOTFOUND && !model_find(&w->model, r->said.source, k)) {
        return true;
    }
    for (size_t j = r->start_visible; j <= visible; j++) {
        uint64_t tail = tail_seen(model_find(&w->model, r->said.source, k), j);
        if (res->code == ERR_INVALID && model_fork_invalid(&w->model, &r->said, k, tail)) {
            return true;
        }
        struct model_verdict v = model_judge(&w->model, &r->said, k, tail);
        if ((says(r, &v) || fork_exists_right(r, &v)) && settled(w, r, &v, k)) {
            return true;
        }
    }
    return false;
}

static bool is_expired(struct world *w, const char *name)
{
    struct model_stream *s = name ? model_find(&w->model, name, w->model.moment) : NULL;
    return s && world_now(w) >= model_deadline_min(s);
}

/* An expired stream whose deletion could not be staged is still said not to be there. */
static bool expired_unstaged(struct request *r)
{
    int code = r->op.result.code;
    bool create = r->op.verb == STREAM_CREATE;
    bool absent = create ? code == ERR_CONFLICT || code == ERR_NOTFOUND
                         : code == ERR_NOTFOUND || code == ERR_GONE;
    return absent &&
           (is_expired(r->world, create && r->said.source ? r->said.source : r->said.name) ||
            is_expired(r->world, r->said.name));
}

static bool refusal_right(struct request *r)
{
    struct world *w = r->world;
    size_t visible = visible_now(w);
    for (size_t k = r->start_moment; k <= w->model.moment; k++) {
        if (r->said.source) {
            if (fork_answer_right(r, k, visible)) {
                return true;
            }
            continue;
        }
        struct model_verdict v = model_judge(&w->model, &r->said, k, 0);
        if (says(r, &v) && settled(w, r, &v, k)) {
            return true;
        }
    }
    return expired_unstaged(r);
}

static void check_staged(struct request *r)
{
    struct world *w = r->world;
    const struct stream_result *res = &r->op.result;
    log_pos end = w->model.ends[r->staged_moment - 1];
    visible_now(w);
    if (res->code == ERR_UNKNOWN) {
        CHECK(engine_failed(w->engine), "request %u: unknown though the log works", r->number);
        CHECK(end > w->durable, "request %u is durable and said to be unknown", r->number);
        return;
    }
    CHECK(res->code == 0, "request %u was staged and is answered %s", r->number,
          err_name(res->code));
    CHECK(end <= w->durable, "request %u is acknowledged and not durable", r->number);
    CHECK(!res->duplicate, "request %u is no duplicate", r->number);
    if (r->op.verb == STREAM_DELETE || r->op.verb == STREAM_NOTE) {
        return;
    }
    const struct model_version *v = model_at(r->stream, r->staged_moment);
    CHECK(res->created == (r->op.verb == STREAM_CREATE), "request %u: created", r->number);
    CHECK(res->has_next && res->next == v->tail, "request %u: next %llu, not %llu", r->number,
          (unsigned long long)res->next, (unsigned long long)v->tail);
    CHECK(res->closed == v->closed, "request %u: closed", r->number);
    if (r->said.producer >= 0) {
        CHECK(res->producer_epoch == r->said.epoch && res->producer_seq == r->said.seq,
              "request %u: producer", r->number);
    }
}

/* Whether, at some moment since the question, one more stream or so many bytes were too much. */
static bool over_quota(const struct request *r, uint64_t streams, uint64_t bytes)
{
    const struct engine_config *c = &r->world->config;
    for (size_t k = r->start_moment; k <= r->world->model.moment; k++) {
        struct model_usage usage = model_usage(&r->world->model, k);
        if ((streams > 0 && c->streams_max > 0 && usage.streams + streams > c->streams_max) ||
            (bytes > 0 && c->bytes_max > 0 && usage.bytes + bytes > c->bytes_max)) {
            return true;
        }
    }
    return false;
}

static bool quota_right(const struct request *r)
{
    uint64_t streams = r->op.verb == STREAM_CREATE ? 1 : 0;
    return r->op.verb <= STREAM_APPEND && (over_quota(r, streams, kept_body(r, true).len) ||
                                           over_quota(r, streams, kept_body(r, false).len));
}

/* Errors that say nothing of the stream. */
static bool is_trouble(struct request *r)
{
    struct world *w = r->world;
    switch (r->op.result.code) {
    case ERR_UNKNOWN:
    case ERR_FAILED:
        return engine_failed(w->engine);
    case ERR_BUSY:
        return r->op.verb <= STREAM_APPEND && w->config.hot_bytes_max < MIB;
    case ERR_NOSPC:
        return (w->trouble && (r->op.verb <= STREAM_DELETE || r->op.verb == STREAM_NOTE)) ||
               quota_right(r);
    case ERR_IO:
        return w->trouble;
    case ERR_NOMEM:
        return alloc_failures() > 0;
    default:
        return false;
    }
}

static bool type_right(const struct stream_result *res, const struct model_stream *s)
{
    return slice_equal(res->content_type, slice_of(s->type));
}

static bool head_right(const struct request *r, const struct model_verdict *v)
{
    const struct stream_result *res = &r->op.result;
    if (res->code != v->code) {
        return false;
    }
    return res->code != 0 || (res->has_next && res->next == v->version->tail &&
                              res->closed == v->version->closed && type_right(res, v->stream) &&
                              res->expiry.has_ttl == (v->stream->ttl_seconds != UINT64_MAX));
}

/* The bytes of a page, whether in memory or in a pack. */
static void check_bytes(struct world *w, const struct stream_page *page,
                        const struct model_stream *s)
{
    uint64_t at = page->start;
    for (size_t i = 0; i < page->piece_count; i++) {
        const struct stream_piece *p = &page->pieces[i];
        char *copy = NULL;
        const char *bytes = p->ptr;
        if (p->pack) {
            copy = malloc(p->len);
            assert(copy);
            int64_t n = w->sys.pread(w->sys.context, p->pack->fd, copy, p->len, p->at);
            if (n < 0 && w->trouble) {
                free(copy);
                return;
            }
            CHECK(n == (int64_t)p->len, "%s: a piece of a pack is short", s->name);
            bytes = copy;
        }
        for (size_t k = 0; k < p->len; k++) {
            CHECK(bytes[k] == s->bytes[at + k], "%s: byte %llu is wrong (%s)", s->name,
                  (unsigned long long)(at + k), p->pack ? "pack" : "memory");
        }
        at += p->len;
        free(copy);
    }
    CHECK(at == page->next && page->bytes == page->next - page->start, "%s: page sizes", s->name);
}

static uint64_t asked_from(const struct request *r, uint64_t tail)
{
    const struct offset *o = &r->op.read.from;
    return o->kind == OFFSET_START ? 0 : o->kind == OFFSET_NOW ? tail : o->position;
}

/* Whether the page is one of the stream in this version; its bytes are compared apart. */
static bool page_right(const struct request *r, const struct model_stream *s,
                       const struct model_version *v)
{
    const struct stream_result *res = &r->op.result;
    const struct stream_page *page = &res->page;
    uint32_t most = r->op.read.bytes_max;
    most = most ? most : r->world->config.read_page_bytes;
    uint64_t from = asked_from(r, v->tail);
    uint64_t start = from < v->tail ? from : v->tail;
    uint64_t next = model_page_end(s, start, v->tail, most);
    uint64_t wait = from > next ? from : next;
    return page->start == start && page->next == next && page->wait_from == wait &&
           page->up_to_date == (next == v->tail) &&
           page->closed == (next == v->tail && v->closed) && page->json == s->json &&
           page->stream_id == s->id && type_right(res, s);
}

static bool read_right(struct request *r, size_t k)
{
    struct world *w = r->world;
    const struct stream_result *res = &r->op.result;
    struct model_verdict v = model_judge(&w->model, &r->said, k, 0);
    const struct model_stream *s = r->further ? r->stream : v.stream;
    const struct model_version *version = s ? model_at(s, k) : NULL;
    if (r->further) {
        bool gone = version->life != MODEL_ALIVE;
        if (res->code || gone != res->page.gone) {
            return false;
        }
        return gone || page_right(r, s, version);
    }
    if (v.code) {
        return res->code == v.code;
    }
    uint64_t from = asked_from(r, version->tail);
    if (s->json && from < version->tail && !model_boundary(s, from)) {
        return res->code == ERR_INVALID;
    }
    return res->code == 0 && !res->page.gone && page_right(r, s, version);
}

static const struct model_stream *seen_stream(struct request *r)
{
    struct world *w = r->world;
    if (r->further) {
        return r->stream;
    }
    return r->op.verb == STREAM_READ ? model_by_id(&w->model, r->op.result.page.stream_id)
                                     : model_find(&w->model, r->said.name, visible_now(w));
}

static void check_seen(struct request *r)
{
    struct world *w = r->world;
    size_t last = visible_now(w);
    bool good = false;
    for (size_t k = r->start_visible; k <= last && !good; k++) {
        struct model_verdict v = model_judge(&w->model, &r->said, k, 0);
        good = r->op.verb == STREAM_HEAD ? head_right(r, &v) : read_right(r, k);
    }
    const struct stream_result *res = &r->op.result;
    CHECK(good || expired_unstaged(r),
          "request %u of %s: a reader is told what never was: %s, next %llu, closed %d, page "
          "%llu..%llu, gone %d",
          r->number, r->said.name, err_name(res->code), (unsigned long long)res->next, res->closed,
          (unsigned long long)res->page.start, (unsigned long long)res->page.next, res->page.gone);
    if (r->op.verb == STREAM_READ && res->code == 0 && !res->page.gone) {
        check_bytes(w, &res->page, seen_stream(r));
    }
}

static void check_not_expired(struct request *r)
{
    struct model_stream *s = model_find(&r->world->model, r->said.name, r->world->model.moment);
    if (s && r->op.result.code == 0 && !r->further && r->start_visible == r->world->model.moment) {
        CHECK(r->start_ms < model_deadline_max(s), "%s should have expired %lld ms ago", s->name,
              (long long)(r->start_ms - model_deadline_max(s)));
    }
}

static void note_access(struct request *r)
{
    struct world *w = r->world;
    struct model_stream *s = r->further ? r->stream
                                        : model_find(&w->model, r->said.name, w->model.moment);
    if (!s || r->op.verb == STREAM_HEAD || r->op.result.code) {
        return;
    }
    int64_t now = world_now(w);
    if (r->op.verb == STREAM_READ && r->op.read.touch && !r->op.result.page.gone &&
        r->op.result.page.stream_id == s->id) {
        s->accessed_min_ms = r->start_ms > s->accessed_min_ms ? r->start_ms : s->accessed_min_ms;
    }
    s->accessed_max_ms = now > s->accessed_max_ms ? now : s->accessed_max_ms;
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* Whether a record of the one could be taken for a record of the other. */
static bool twins(const struct request *a, const struct request *b)
{
    const struct model_request *x = &a->said;
    const struct model_request *y = &b->said;
    return x->verb == y->verb && same_text(x->name, y->name) && x->close == y->close &&
           x->verb != STREAM_APPEND && same_text(x->source, y->source) &&
           (x->verb != STREAM_CREATE || slice_equal(sent_body(a), sent_body(b)));
}

/* Of two requests that are alike the record was given to the first; the answer tells whose it
 * was. */
static void settle_twins(struct request *r)
{
    int code = r->op.result.code;
    if (r->op.verb == STREAM_NOTE) {
        return; /* no two are alike */
    }
    bool accepted = code == 0 && (r->op.verb == STREAM_DELETE || r->op.result.created);
    bool refused = code != ERR_UNKNOWN && !accepted && r->op.verb != STREAM_APPEND;
    if (r->staged ? !refused : !accepted) {
        return;
    }
    LIST_FOR_EACH(node, &r->world->requests)
    {
        struct request *other = container_of(node, struct request, link);
        if (other != r && other->staged != r->staged && twins(r, other)) {
            struct request *from = r->staged ? r : other;
            struct request *to = r->staged ? other : r;
            to->staged = true;
            to->staged_moment = from->staged_moment;
            to->stream = from->stream;
            from->staged = false;
            from->stream = NULL;
            return;
        }
    }
}

static void check_answer(struct request *r)
{
    struct world *w = r->world;
    const struct stream_result *res = &r->op.result;
    w->answers++;
    CHECK(res->code == 0 || res->msg.text[0] != '\0', "request %u: an error without a sentence",
          r->number);
    if (r->staged) {
        check_staged(r);
    } else if (is_trouble(r)) {
        return;
    } else if (r->op.verb == STREAM_NOTE) {
        CHECK(res->code == ERR_INVALID && r->said.malformed, "notes of request %u: %s: %s",
              r->number, err_name(res->code), res->msg.text);
    } else if (r->op.verb == STREAM_HEAD || r->op.verb == STREAM_READ) {
        check_seen(r);
    } else {
        CHECK(refusal_right(r),
              "request %u of %s (verb %d): the answer %s (next %llu, closed %d, "
              "duplicate %d: %s) was right at no moment",
              r->number, r->said.name, (int)r->op.verb, err_name(res->code),
              (unsigned long long)res->next, res->closed, res->duplicate, res->msg.text);
    }
    if (r->op.verb != STREAM_NOTE) {
        check_not_expired(r);
        note_access(r);
    }
}

/* Live readers that have it all go to sleep, those that do not read on. */
static void go_on(struct request *r)
{
    struct stream_page *page = &r->op.result.page;
    if (r->op.verb != STREAM_READ || r->op.result.code || page->gone) {
        return;
    }
    if (!page->up_to_date && r->read_on) {
        world_read_on(r, page->next);
    } else if (page->up_to_date && !page->closed && r->will_wait) {
        world_sleep(r);
    }
}

void request_answered(struct request *r)
{
    struct world *w = r->world;
    world_trace(w, "  answer %u: %s next %llu%s%s%s", r->number, err_name(r->op.result.code),
                (unsigned long long)r->op.result.next, r->op.result.closed ? " closed" : "",
                r->op.result.duplicate ? " duplicate" : "", r->op.result.created ? " created" : "");
    settle_twins(r);
    world_check_usage(w);
    if (!w->dying) {
        check_answer(r);
        go_on(r);
    } else if (r->staged && r->op.result.code == 0) {
        check_staged(r);
    }
    list_remove(&r->link);
    w->request_count--;
    bool unheard = w->dying || r->op.result.code == ERR_UNKNOWN;
    if (unheard && r->op.verb == STREAM_APPEND && r->said.producer >= 0) {
        list_append(&w->retries, &r->link);
    } else {
        request_free(r);
    }
}
