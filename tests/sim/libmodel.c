/* See model.h. All of it is as plain as can be: lists that are walked, states that are copied. */
#include "sim/model.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/limits.h"
#include "log/marks.h"
#include "sim/fakefile.h"
#include "sim/alloc.h"

static char lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
}

/* Media types, without parameters and case. */
static bool same_type(const char *a, const char *b)
{
    while (*a && *a != ';' && *b && *b != ';' && lower(*a) == lower(*b)) {
        a++;
        b++;
    }
    return (*a == '\0' || *a == ';') && (*b == '\0' || *b == ';');
}

void model_init(struct model *m)
{
    *m = (struct model){0};
}

static void stream_free(struct model_stream *s)
{
    free(s->bytes);
    free(s->marks);
    free(s->versions);
    free((void *)(uintptr_t)s->type);
    free(s);
}

void model_finish(struct model *m)
{
    for (size_t i = 0; i < m->count; i++) {
        stream_free(m->streams[i]);
    }
    model_finish_notes(m);
    free(m->streams);
    free(m->ends);
}

const struct model_version *model_at(const struct model_stream *s, size_t moment)
{
    for (size_t i = s->version_count; i > 0; i--) {
        if (s->versions[i - 1].moment <= moment) {
            return &s->versions[i - 1];
        }
    }
    return NULL;
}

struct model_stream *model_find(const struct model *m, const char *name, size_t moment)
{
    for (size_t i = m->count; i > 0; i--) {
        struct model_stream *s = m->streams[i - 1];
        const struct model_version *v = strcmp(s->name, name) == 0 ? model_at(s, moment) : NULL;
        if (v) {
            return v->life == MODEL_GONE ? NULL : s;
        }
    }
    return NULL;
}

struct model_stream *model_by_id(const struct model *m, stream_id id)
{
    for (size_t i = m->count; i > 0; i--) {
        if (m->streams[i - 1]->id == id) {
            return m->streams[i - 1];
        }
    }
    return NULL;
}

size_t model_moment(const struct model *m, log_pos durable)
{
    size_t moment = m->moment;
    while (moment > 0 && m->ends[moment - 1] > durable) {
        moment--;
    }
    return moment;
}

size_t model_stream_count(const struct model *m, size_t moment)
{
    size_t count = 0;
    for (size_t i = 0; i < m->count; i++) {
        const struct model_version *v = model_at(m->streams[i], moment);
        count += v && v->life == MODEL_ALIVE;
    }
    return count;
}

struct model_usage model_usage(const struct model *m, size_t moment)
{
    struct model_usage usage = {0};
    for (size_t i = 0; i < m->count; i++) {
        const struct model_version *v = model_at(m->streams[i], moment);
        if (v && v->life != MODEL_GONE) {
            usage.streams++;
            usage.bytes += v->tail - m->streams[i]->fork_offset;
        }
    }
    return usage;
}

/* Judging. */

static struct model_verdict refuse(int code, const struct model_stream *s,
                                   const struct model_version *v)
{
    return (struct model_verdict){.code = code, .stream = s, .version = v};
}

static struct model_verdict judge_producer(const struct model_request *r,
                                           const struct model_stream *s,
                                           const struct model_version *v)
{
    struct model_verdict verdict = {.stream = s, .version = v, .accepted = true};
    struct model_verdict no = {.stream = s, .version = v};
    if (r->producer < 0) {
        return verdict;
    }
    const struct model_producer *p = &v->producers[r->producer];
    if (p->known && r->epoch < p->epoch) {
        no.code = ERR_PERM;
        no.stale_epoch = true;
        return no;
    }
    if (p->known && r->epoch == p->epoch) {
        if (r->seq <= p->seq) {
            no.duplicate = true;
            return no;
        }
        no.seq_gap = r->seq != p->seq + 1;
        no.code = no.seq_gap ? ERR_CONFLICT : 0;
        return no.seq_gap ? no : verdict;
    }
    if (r->seq != 0 && p->known) {
        no.code = ERR_INVALID;
        return no;
    }
    no.seq_gap = r->seq != 0;
    no.code = no.seq_gap ? ERR_CONFLICT : 0;
    return no.seq_gap ? no : verdict;
}

static bool seq_rises(const struct model_version *v, const char *seq)
{
    struct slice last = {v->seq, v->seq_len};
    return !v->has_seq || slice_compare(slice_of(seq), last) > 0;
}

static struct model_verdict judge_closed(const struct model_request *r,
                                         const struct model_stream *s,
                                         const struct model_version *v)
{
    const struct model_producer *c = &v->closer_state;
    if (r->producer >= 0 && v->closer == (unsigned)r->producer + 1 && c->epoch == r->epoch &&
        c->seq == r->seq) {
        struct model_verdict duplicate = refuse(0, s, v);
        duplicate.duplicate = true;
        return duplicate;
    }
    bool again = r->close && r->body_empty && r->producer < 0;
    return refuse(again ? 0 : ERR_CLOSED, s, v);
}

static struct model_verdict judge_append(const struct model_request *r,
                                         const struct model_stream *s,
                                         const struct model_version *v)
{
    if (r->body_empty ? !r->close : !r->type) {
        return refuse(ERR_INVALID, s, v);
    }
    if (v->closed) {
        return judge_closed(r, s, v);
    }
    if (!r->body_empty && !same_type(r->type, s->type)) {
        return refuse(ERR_CONFLICT, s, v);
    }
    if (!r->body_empty && s->json && r->malformed) {
        return refuse(ERR_INVALID, s, v);
    }
    struct model_verdict verdict = judge_producer(r, s, v);
    if (verdict.accepted && r->stream_seq && !seq_rises(v, r->stream_seq)) {
        verdict = refuse(ERR_CONFLICT, s, v);
        verdict.seq_conflict = true;
    }
    return verdict;
}

static void resolve_expiry(const struct model_request *r, const struct model_stream *source,
                           uint64_t *ret_ttl, int64_t *ret_at)
{
    *ret_ttl = r->expiry.has_ttl ? r->expiry.ttl_seconds : UINT64_MAX;
    *ret_at = r->expiry.has_expires_at ? r->expiry.expires_at_ms : INT64_MAX;
    if (source && !r->expiry.has_ttl && !r->expiry.has_expires_at) {
        *ret_ttl = source->ttl_seconds;
        *ret_at = source->expires_at_ms;
    }
}

bool model_boundary(const struct model_stream *s, uint64_t position)
{
    if (position == 0) {
        return true;
    }
    for (size_t i = 0; i < s->mark_count; i++) {
        if (s->marks[i].end == position) {
            return true;
        }
    }
    return false;
}

static size_t mark_behind(const struct model_stream *s, uint64_t position)
{
    size_t i = 0;
    while (i < s->mark_count && s->marks[i].end <= position) {
        i++;
    }
    return i;
}

int model_locate(const struct model_stream *s, uint64_t anchor, uint64_t sub, uint64_t tail,
                 uint64_t *ret_offset)
{
    if (anchor > tail || (s->json && !model_boundary(s, anchor))) {
        return ERR_INVALID;
    }
    size_t at = mark_behind(s, anchor);
    uint64_t offset = anchor;
    if (sub > 0 && anchor >= tail) {
        return ERR_INVALID;
    }
    if (!s->json) {
        offset += sub;
        if (sub > 0 && offset > s->marks[at].end) {
            return ERR_INVALID;
        }
    }
    for (uint64_t n = 0; s->json && n < sub; n++) {
        bool ended = n > 0 && s->marks[at - 1].append_end;
        if (ended || offset >= tail) {
            return ERR_INVALID;
        }
        offset = s->marks[at++].end;
    }
    *ret_offset = offset;
    return 0;
}

bool model_fork_invalid(const struct model *m, const struct model_request *r, size_t moment,
                        uint64_t source_tail)
{
    const struct model_stream *source = model_find(m, r->source, moment);
    if (!source) {
        return false;
    }
    uint64_t anchor = source_tail;
    if (r->has_fork_offset && r->fork_offset.kind != OFFSET_NOW) {
        anchor = r->fork_offset.kind == OFFSET_START ? 0 : r->fork_offset.position;
    }
    uint64_t offset;
    uint64_t sub = r->has_sub_offset ? r->sub_offset : 0;
    return model_locate(source, anchor, sub, source_tail, &offset) != 0;
}

static struct model_verdict judge_fork(const struct model *m, const struct model_request *r,
                                       size_t moment, uint64_t source_tail)
{
    const struct model_stream *source = model_find(m, r->source, moment);
    if (!source) {
        return refuse(ERR_NOTFOUND, NULL, NULL);
    }
    const struct model_version *v = model_at(source, moment);
    if (v->life == MODEL_SOFT) {
        return refuse(ERR_CONFLICT, NULL, NULL);
    }
    if (r->type && !same_type(r->type, source->type)) {
        return refuse(ERR_CONFLICT, NULL, NULL);
    }
    if (source->depth >= FORK_DEPTH_MAX) {
        return refuse(ERR_INVALID, NULL, NULL);
    }
    if (model_fork_invalid(m, r, moment, source_tail)) {
        return refuse(ERR_INVALID, NULL, NULL);
    }
    return (struct model_verdict){.accepted = true};
}

static struct model_verdict judge_existing(const struct model_request *r,
                                           const struct model_stream *s,
                                           const struct model_version *v)
{
    uint64_t ttl;
    int64_t at;
    resolve_expiry(r, s->source, &ttl, &at);
    const char *type = r->type ? r->type : s->source ? s->source->type : "application/octet-stream";
    bool same = same_type(type, s->type) && ttl == s->ttl_seconds && at == s->expires_at_ms &&
                r->close == v->closed && !r->source == !s->source;
    return refuse(same ? 0 : ERR_EXISTS, s, v);
}

static struct model_verdict judge_create(const struct model *m, const struct model_request *r,
                                         size_t moment, uint64_t source_tail)
{
    struct model_stream *s = model_find(m, r->name, moment);
    if (s) {
        const struct model_version *v = model_at(s, moment);
        return v->life == MODEL_SOFT ? refuse(ERR_CONFLICT, s, v) : judge_existing(r, s, v);
    }
    return r->source ? judge_fork(m, r, moment, source_tail)
                     : (struct model_verdict){.accepted = true};
}

struct model_verdict model_judge(const struct model *m, const struct model_request *r,
                                 size_t moment, uint64_t source_tail)
{
    if (r->verb == STREAM_CREATE) {
        return judge_create(m, r, moment, source_tail);
    }
    struct model_stream *s = model_find(m, r->name, moment);
    if (!s) {
        return refuse(ERR_NOTFOUND, NULL, NULL);
    }
    const struct model_version *v = model_at(s, moment);
    if (v->life == MODEL_SOFT) {
        return refuse(ERR_GONE, s, v);
    }
    switch (r->verb) {
    case STREAM_APPEND:
        return judge_append(r, s, v);
    case STREAM_DELETE:
        return (struct model_verdict){.accepted = true, .stream = s, .version = v};
    default:
        return refuse(0, s, v);
    }
}

uint64_t model_page_end(const struct model_stream *s, uint64_t from, uint64_t tail,
                        uint64_t bytes_max)
{
    if (tail - from <= bytes_max) {
        return tail;
    }
    if (!s->json) {
        return from + bytes_max;
    }
    uint64_t end = from;
    for (size_t i = mark_behind(s, from); i < s->mark_count; i++) {
        if (end > from && s->marks[i].end > from + bytes_max) {
            break;
        }
        end = s->marks[i].end;
    }
    return end < tail ? end : tail;
}

/* Applying. */

/* A new version of `s` for the event at hand, to be changed. */
static struct model_version *next_version(struct model *m, struct model_stream *s)
{
    s->versions = fakefile_grow(s->versions, s->version_count, &s->version_cap,
                                sizeof(s->versions[0]));
    struct model_version *v = &s->versions[s->version_count];
    if (s->version_count > 0) {
        *v = v[-1];
    } else {
        *v = (struct model_version){0};
    }
    s->version_count++;
    v->moment = m->moment;
    v->end = m->ends[m->moment - 1];
    return v;
}

static void add_mark(struct model_stream *s, uint64_t end, bool append_end)
{
    s->marks = fakefile_grow(s->marks, s->mark_count, &s->mark_cap, sizeof(s->marks[0]));
    s->marks[s->mark_count++] = (struct model_mark){end, append_end};
}

static void add_bytes(struct model_stream *s, uint64_t at, struct slice body, struct slice marks)
{
    if (at + body.len > s->cap) {
        s->cap = (at + body.len) * 2;
        s->bytes = realloc(s->bytes, s->cap);
        assert(s->bytes);
    }
    if (body.len > 0) {
        memcpy(s->bytes + at, body.ptr, body.len);
    }
    const uint8_t *from = (const uint8_t *)marks.ptr;
    struct bytes_reader in = {.at = from, .end = from + marks.len};
    uint64_t len;
    bool append_end;
    uint64_t end = at;
    while (marks_next(&in, &len, &append_end)) {
        end += len;
        add_mark(s, end, append_end);
        CHECK(s->json || append_end, "a message of a byte stream that is not an append");
    }
    CHECK(end == at + body.len, "marks do not cover the body");
    CHECK(body.len == 0 || append_end, "an append without an end");
}

static void inherit(struct model_stream *s, const struct model_stream *source)
{
    add_bytes(s, 0, (struct slice){0}, (struct slice){0});
    s->cap = s->fork_offset + 1;
    s->bytes = malloc(s->cap);
    assert(s->bytes);
    if (s->fork_offset > 0) {
        memcpy(s->bytes, source->bytes, s->fork_offset);
    }
    for (size_t i = 0; i < source->mark_count && source->marks[i].end <= s->fork_offset; i++) {
        add_mark(s, source->marks[i].end, source->marks[i].append_end);
    }
    uint64_t last = s->mark_count > 0 ? s->marks[s->mark_count - 1].end : 0;
    if (last < s->fork_offset) {
        add_mark(s, s->fork_offset, true);
    } else if (s->mark_count > 0) {
        s->marks[s->mark_count - 1].append_end = true;
    }
}

static void apply_create(struct model *m, const struct record *r, int64_t now_ms)
{
    const struct record_create *c = &r->create;
    struct model_stream *s = calloc(1, sizeof(*s));
    assert(s);
    CHECK(c->name.len < sizeof(s->name), "long name");
    memcpy(s->name, c->name.ptr, c->name.len);
    CHECK(!model_find(m, s->name, m->moment - 1), "%s is created twice", s->name);
    CHECK(!model_by_id(m, r->id), "id %llu is used twice", (unsigned long long)r->id);
    s->id = r->id;
    s->type = strndup(c->content_type.ptr, c->content_type.len);
    assert(s->type);
    s->json = same_type(s->type, "application/json");
    s->ttl_seconds = c->ttl_seconds;
    s->expires_at_ms = c->expires_at_ms;
    s->accessed_min_ms = now_ms;
    s->accessed_max_ms = now_ms;
    if (c->source_id != 0) {
        s->source = model_by_id(m, c->source_id);
        CHECK(s->source, "a fork of nothing");
        s->fork_offset = c->fork_offset;
        s->fork_anchor = c->fork_anchor;
        s->fork_sub = c->fork_sub_offset;
        s->fork_explicit = c->fork_explicit;
        s->depth = s->source->depth + 1;
        struct model_version *v = next_version(m, s->source);
        CHECK(v->life == MODEL_ALIVE, "a fork of a deleted stream");
        CHECK(c->fork_offset <= v->tail, "a fork beyond the end");
        v->fork_refs++;
        inherit(s, s->source);
    }
    add_bytes(s, s->fork_offset, c->body, c->marks);
    m->streams = fakefile_grow(m->streams, m->count, &m->cap, sizeof(m->streams[0]));
    m->streams[m->count++] = s;
    struct model_version *v = next_version(m, s);
    v->tail = s->fork_offset + c->body.len;
    v->closed = c->closed;
    v->accessed_ms = c->created_ms;
}

static unsigned producer_number(struct slice id)
{
    CHECK(id.len == 2 && id.ptr[0] == 'p' && id.ptr[1] >= '0' &&
              id.ptr[1] < (char)('0' + MODEL_PRODUCERS),
          "a producer nobody sent");
    return (unsigned)(id.ptr[1] - '0');
}

static void apply_append(struct model *m, const struct record *r)
{
    const struct record_append *a = &r->append;
    struct model_stream *s = model_by_id(m, r->id);
    CHECK(s, "an append to nothing");
    struct model_version *v = next_version(m, s);
    CHECK(v->life == MODEL_ALIVE && !v->closed, "an append to %s, which is closed or deleted",
          s->name);
    CHECK(a->offset == v->tail, "%s: an append at %llu, the tail is %llu", s->name,
          (unsigned long long)a->offset, (unsigned long long)v->tail);
    add_bytes(s, v->tail, a->body, a->marks);
    v->tail += a->body.len;
    v->closed = a->close;
    v->accessed_ms = a->now_ms;
    s->accessed_min_ms = a->now_ms > s->accessed_min_ms ? a->now_ms : s->accessed_min_ms;
    s->accessed_max_ms = a->now_ms > s->accessed_max_ms ? a->now_ms : s->accessed_max_ms;
    if (a->producer.id.len > 0) {
        unsigned p = producer_number(a->producer.id);
        v->producers[p] = (struct model_producer){true, a->producer.epoch, a->producer.seq};
        if (a->close) {
            v->closer = p + 1;
            v->closer_state = v->producers[p];
        }
    }
    if (a->has_seq) {
        CHECK(a->seq.len <= sizeof(v->seq), "a Stream-Seq nobody sent");
        v->has_seq = true;
        v->seq_len = a->seq.len;
        memcpy(v->seq, a->seq.ptr, a->seq.len);
    }
}

static void apply_delete(struct model *m, const struct record *r, int64_t now_ms)
{
    const struct record_delete *d = &r->del;
    struct model_stream *s = model_by_id(m, r->id);
    CHECK(s, "a deletion of nothing");
    if (d->expired) {
        CHECK(now_ms >= model_deadline_min(s), "%s expired %lld ms early", s->name,
              (long long)(model_deadline_min(s) - now_ms));
    }
    struct model_version *v = next_version(m, s);
    CHECK(v->life == MODEL_ALIVE, "%s is deleted twice", s->name);
    CHECK(d->soft == (v->fork_refs > 0), "%s has %u forks, and soft is %d", s->name, v->fork_refs,
          d->soft);
    v->life = d->soft ? MODEL_SOFT : MODEL_GONE;
    v->expired = d->expired;
    uint32_t cascade = 0;
    stream_id released = 0;
    while (v->life == MODEL_GONE && s->source) {
        s = s->source;
        v = next_version(m, s);
        CHECK(v->fork_refs > 0, "%s has less than no forks", s->name);
        v->fork_refs--;
        if (v->life == MODEL_ALIVE || v->fork_refs > 0) {
            released = s->id;
            break;
        }
        v->life = MODEL_GONE;
        CHECK(cascade < d->cascade_count &&
                  bytes_get_u64(d->cascade.ptr + (size_t)cascade * 8) == s->id,
              "%s is missing in the cascade", s->name);
        cascade++;
    }
    CHECK(cascade == d->cascade_count, "the cascade is too long");
    CHECK(released == d->released, "the wrong stream is released");
}

void model_apply(struct model *m, const struct record *r, log_pos end, int64_t now_ms)
{
    m->ends = fakefile_grow(m->ends, m->moment, &m->end_cap, sizeof(m->ends[0]));
    CHECK(m->moment == 0 || end > m->ends[m->moment - 1], "the log goes back");
    m->ends[m->moment++] = end;
    struct model_stream *s;
    switch (r->type) {
    case RECORD_CREATE:
        apply_create(m, r, now_ms);
        break;
    case RECORD_APPEND:
        apply_append(m, r);
        break;
    case RECORD_DELETE:
        apply_delete(m, r, now_ms);
        break;
    case RECORD_TOUCH:
        s = model_by_id(m, r->id);
        CHECK(s && s->ttl_seconds != UINT64_MAX, "a renewal of what does not expire");
        next_version(m, s)->accessed_ms = r->touch.now_ms;
        break;
    case RECORD_NOTE:
        model_apply_notes(m, &r->note);
        break;
    }
}

/* Back to the last version at or before the moment; false when there is none. */
static bool rewind_stream(struct model_stream *s, size_t moment)
{
    while (s->version_count > 0 && s->versions[s->version_count - 1].moment > moment) {
        s->version_count--;
    }
    if (s->version_count == 0) {
        return false;
    }
    const struct model_version *v = &s->versions[s->version_count - 1];
    while (s->mark_count > 0 && s->marks[s->mark_count - 1].end > v->tail) {
        s->mark_count--;
    }
    s->accessed_min_ms = v->accessed_ms;
    return true;
}

void model_rewind(struct model *m, size_t moment)
{
    assert(moment <= m->moment);
    m->moment = moment;
    model_rewind_notes(m, moment);
    size_t kept = 0;
    for (size_t i = 0; i < m->count; i++) {
        if (rewind_stream(m->streams[i], moment)) {
            m->streams[kept++] = m->streams[i];
        } else {
            stream_free(m->streams[i]);
        }
    }
    m->count = kept;
}

static int64_t deadline(const struct model_stream *s, int64_t accessed_ms)
{
    if (s->expires_at_ms != INT64_MAX) {
        return s->expires_at_ms;
    }
    return s->ttl_seconds == UINT64_MAX ? INT64_MAX : accessed_ms + (int64_t)s->ttl_seconds * 1000;
}

int64_t model_deadline_min(const struct model_stream *s)
{
    bool sliding = s->expires_at_ms == INT64_MAX;
    return sliding && s->waiters > 0 ? INT64_MAX : deadline(s, s->accessed_min_ms);
}

/* Whoever reloads the stream adds an eighth of the TTL, at least a second. */
int64_t model_deadline_max(const struct model_stream *s)
{
    if (s->expires_at_ms != INT64_MAX) {
        return s->expires_at_ms;
    }
    if (s->ttl_seconds == UINT64_MAX || s->waiters > 0) {
        return INT64_MAX;
    }
    int64_t slack = (int64_t)s->ttl_seconds * 125;
    return deadline(s, s->accessed_max_ms) + (slack > 1000 ? slack : 1000);
}
