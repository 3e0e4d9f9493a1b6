/* Random requests, such that most make sense: names and producers are few, so they meet. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/world.h"
#include "sim/alloc.h"

static const char *const types[] = {"application/octet-stream", "text/plain", "application/json",
                                    "application/json"};

void world_name(char out[static 24], unsigned number)
{
    (void)snprintf(out, 24, "s/%u", number);
}

static void random_name(struct world *w, char out[static 24])
{
    world_name(out, (unsigned)world_below(w, WORLD_NAMES));
}

static size_t random_len(struct world *w)
{
    switch (world_below(w, 24)) {
    case 0:
        return 1;
    case 1:
        return 16000 + world_below(w, 4000);
    case 2:
        return world_chance(w, 4) ? 70000 : 5000;
    default:
        return 1 + world_below(w, 300);
    }
}

/* Bytes that are different in each request and at each place. */
static void fill(char *out, size_t len, unsigned number, bool text)
{
    for (size_t i = 0; i < len; i++) {
        unsigned byte = number * 37 + (unsigned)i * 11 + (unsigned)(i >> 6) * 5;
        out[i] = (char)(text ? 'a' + byte % 26 : byte & 0xff);
    }
}

static void make_byte_body(struct request *r, size_t len)
{
    r->raw = malloc(len);
    r->stored = malloc(len);
    r->lens = malloc(sizeof(r->lens[0]));
    assert(r->raw && r->stored && r->lens);
    fill(r->raw, len, r->number, false);
    int head = snprintf(r->raw, len, "%u:", r->number);
    if (head > 0 && (size_t)head < len) {
        r->raw[head] = ' '; /* in the place of the NUL */
    } else {
        fill(r->raw, len, r->number, true);
    }
    memcpy(r->stored, r->raw, len);
    r->lens[0] = (uint32_t)len;
    r->said.stored_len = len;
    r->said.message_count = 1;
    r->said.malformed = true;
}

static size_t put_message(char *out, unsigned number, unsigned index, size_t pad)
{
    int n = snprintf(out, 64, "{\"n\": %u, \"i\":%u, \"x\":\"", number, index);
    assert(n > 0);
    fill(out + n, pad, number + index, true);
    memcpy(out + n + pad, "\"}", 2);
    return (size_t)n + pad + 2;
}

/* One value, or an array of a few, with white space here and there. */
static void make_json_body(struct request *r, size_t len)
{
    struct world *w = r->world;
    unsigned count = 1 + (unsigned)world_below(w, 4);
    size_t pad = len / count;
    r->raw = malloc(count * (pad + 80) + 8);
    r->stored = malloc(count * (pad + 80));
    r->lens = malloc(count * sizeof(r->lens[0]));
    assert(r->raw && r->stored && r->lens);
    bool array = count > 1 || world_chance(w, 2);
    size_t raw = 0;
    if (array) {
        r->raw[raw++] = '[';
    }
    for (unsigned i = 0; i < count; i++) {
        if (i > 0) {
            r->raw[raw++] = ',';
        }
        if (world_chance(w, 3)) {
            r->raw[raw++] = ' ';
        }
        size_t n = put_message(r->raw + raw, r->number, i, pad);
        memcpy(r->stored + r->said.stored_len, r->raw + raw, n);
        raw += n;
        r->stored[r->said.stored_len + n] = ',';
        r->lens[i] = (uint32_t)n + 1;
        r->said.stored_len += n + 1;
        if (world_chance(w, 5)) {
            r->raw[raw++] = '\n';
        }
    }
    if (array) {
        r->raw[raw++] = ']';
    }
    r->said.message_count = count;
    struct slice *body = r->op.verb == STREAM_CREATE ? &r->op.create.body : &r->op.append.body;
    body->len = raw;
}

/* The body for a stream of that type. */
static void set_body(struct request *r, const char *type)
{
    struct slice *body = r->op.verb == STREAM_CREATE ? &r->op.create.body : &r->op.append.body;
    size_t len = random_len(r->world);
    if (strcmp(type, "application/json") == 0) {
        make_json_body(r, len);
    } else {
        make_byte_body(r, len);
        body->len = len;
    }
    body->ptr = r->raw;
    r->said.stored = r->stored;
    r->said.message_lens = r->lens;
    r->said.body_empty = false;
    if (world_chance(r->world, 2)) {
        alloc_pause();
        r->block = block_try_create(body->len);
        alloc_resume();
        assert(r->block);
        memcpy(r->block->data, body->ptr, body->len);
        r->block->len = (uint32_t)body->len;
        body->ptr = r->block->data;
        *(r->op.verb == STREAM_CREATE ? &r->op.create.body_block
                                      : &r->op.append.body_block) = r->block;
    }
}

static void set_expiry(struct request *r)
{
    struct world *w = r->world;
    struct stream_expiry *x = &r->said.expiry;
    if (!w->with_expiry || !world_chance(w, 3)) {
        return;
    }
    if (world_chance(w, 3)) {
        x->has_expires_at = true;
        x->expires_at_ms = world_now(w) + (int64_t)world_below(w, 200000);
    } else {
        x->has_ttl = true;
        x->ttl_seconds = 1 + world_below(w, 100);
    }
    r->op.create.expiry = *x;
}

static void set_type(struct request *r, const char *type)
{
    struct slice *to = r->op.verb == STREAM_CREATE ? &r->op.create.content_type
                                                   : &r->op.append.content_type;
    r->said.type = type;
    *to = type ? slice_of(type) : (struct slice){0};
}

static void start_create(struct world *w)
{
    char name[24];
    random_name(w, name);
    struct request *r = request_create(w, STREAM_CREATE, name);
    const char *type = types[world_below(w, ARRAY_COUNT(types))];
    set_type(r, type);
    r->op.create.closed = r->said.close = world_chance(w, 12);
    set_expiry(r);
    if (world_chance(w, 3)) {
        set_body(r, type);
    }
    request_start(r);
}

static struct model_stream *newest(struct world *w, const char *name)
{
    return model_find(&w->model, name, w->model.moment);
}

static uint64_t random_position(struct world *w, const struct model_stream *s)
{
    const struct model_version *v = model_at(s, w->model.moment);
    switch (world_below(w, 5)) {
    case 0:
        return v->tail;
    case 1:
        return world_below(w, v->tail + 2);
    case 2:
        return v->tail + 1 + world_below(w, 100);
    default:
        return s->mark_count > 0 ? s->marks[world_below(w, s->mark_count)].end : 0;
    }
}

static struct offset random_offset(struct world *w, const struct model_stream *s)
{
    switch (world_below(w, 6)) {
    case 0:
        return (struct offset){.kind = OFFSET_START};
    case 1:
        return (struct offset){.kind = OFFSET_NOW};
    default:
        return (struct offset){.kind = OFFSET_AT, .position = s ? random_position(w, s) : 0};
    }
}

static void start_fork(struct world *w)
{
    char name[24];
    static char sources[WORLD_NAMES][24];
    random_name(w, name);
    unsigned number = (unsigned)world_below(w, WORLD_NAMES);
    world_name(sources[number], number);
    const struct model_stream *source = newest(w, sources[number]);
    struct request *r = request_create(w, STREAM_CREATE, name);
    r->said.source = sources[number];
    r->op.create.forked_from = slice_of(sources[number]);
    const char *type = source ? source->type : types[0];
    for (size_t i = 0; i < ARRAY_COUNT(types); i++) {
        type = strcmp(types[i], type) == 0 ? types[i] : type; /* one that outlives the stream */
    }
    if (world_chance(w, 3)) {
        set_type(r, world_chance(w, 8) ? types[world_below(w, 3)] : type);
    }
    if (!world_chance(w, 3)) {
        r->op.create.has_fork_offset = r->said.has_fork_offset = true;
        r->op.create.fork_offset = r->said.fork_offset = random_offset(w, source);
        if (world_chance(w, 2)) {
            r->op.create.has_sub_offset = r->said.has_sub_offset = true;
            r->op.create.sub_offset = r->said.sub_offset = world_below(w, 6);
        }
    }
    set_expiry(r);
    if (world_chance(w, 6)) {
        set_body(r, r->said.type ? r->said.type : type);
    }
    request_start(r);
}

static void set_producer(struct request *r, const struct model_version *v)
{
    struct world *w = r->world;
    r->said.producer = (int)world_below(w, MODEL_PRODUCERS);
    const struct model_producer *p = v ? &v->producers[r->said.producer] : NULL;
    r->said.epoch = p && p->known ? p->epoch : world_below(w, 2);
    r->said.seq = p && p->known ? p->seq + 1 : 0;
    switch (world_below(w, 12)) {
    case 0:
        r->said.epoch++;
        r->said.seq = 0;
        break;
    case 1:
        r->said.seq++;
        break;
    case 2:
    case 3:
        r->said.seq -= r->said.seq > 0;
        break;
    case 4:
        r->said.epoch -= r->said.epoch > 0;
        break;
    default:
        break;
    }
    (void)snprintf(r->producer_id, sizeof(r->producer_id), "p%d", r->said.producer);
    r->op.append.producer = (struct record_producer){
        .id = slice_of(r->producer_id), .epoch = r->said.epoch, .seq = r->said.seq};
}

static void set_stream_seq(struct request *r, const struct model_version *v)
{
    unsigned last = v && v->has_seq ? (unsigned)strtoul(v->seq, NULL, 10) : 0;
    unsigned next = last + (unsigned)world_below(r->world, 3);
    (void)snprintf(r->stream_seq, sizeof(r->stream_seq), "%05u", next % 100000);
    r->said.stream_seq = r->stream_seq;
    r->op.append.has_seq = true;
    r->op.append.seq = slice_of(r->stream_seq);
}

static void start_append(struct world *w)
{
    char name[24];
    random_name(w, name);
    const struct model_stream *s = newest(w, name);
    const struct model_version *v = s ? model_at(s, w->model.moment) : NULL;
    struct request *r = request_create(w, STREAM_APPEND, name);
    bool json = s && s->json;
    const char *type = json                     ? "application/json"
                       : s && s->type[0] == 't' ? "text/plain"
                                                : "application/octet-stream";
    r->op.append.close = r->said.close = world_chance(w, 25);
    if (!r->said.close || world_chance(w, 2)) {
        set_type(r, world_chance(w, 30) ? types[world_below(w, 3)] : type);
        set_body(r, world_chance(w, 40) ? types[world_below(w, 3)] : type);
    } else if (world_chance(w, 40)) {
        r->op.append.close = r->said.close = false;
    }
    if (world_chance(w, 3)) {
        set_producer(r, v);
    }
    if (world_chance(w, 8)) {
        set_stream_seq(r, v);
    }
    request_start(r);
}

static void start_read(struct world *w)
{
    char name[24];
    random_name(w, name);
    const struct model_stream *s = newest(w, name);
    struct request *r = request_create(w, STREAM_READ, name);
    r->op.read.from = random_offset(w, s);
    r->op.read.touch = world_chance(w, 2);
    r->op.read.in_memory = world_chance(w, 2);
    r->op.read.bytes_max = world_chance(w, 2) ? 0 : 1 + (uint32_t)world_below(w, 2000);
    r->will_wait = world_chance(w, 2);
    r->read_on = world_chance(w, 2);
    request_start(r);
}

void world_start_head(struct world *w, const char *name)
{
    request_start(request_create(w, STREAM_HEAD, name));
}

void world_start_read(struct world *w, const char *name)
{
    struct request *r = request_create(w, STREAM_READ, name);
    r->op.read.from = (struct offset){.kind = OFFSET_START};
    r->op.read.in_memory = world_chance(w, 2);
    r->read_on = true;
    request_start(r);
}

void world_start_delete(struct world *w, const char *name)
{
    request_start(request_create(w, STREAM_DELETE, name));
}

void world_start_random(struct world *w)
{
    char name[24];
    random_name(w, name);
    switch (world_below(w, 20)) {
    case 0:
    case 1:
        start_create(w);
        break;
    case 2:
    case 3:
        start_fork(w);
        break;
    case 4:
        if (world_chance(w, 2)) {
            world_start_delete(w, name);
        } else {
            start_append(w);
        }
        break;
    case 5:
        world_start_head(w, name);
        break;
    case 6:
        world_start_note(w);
        break;
    case 7:
    case 8:
    case 9:
        start_read(w);
        break;
    default:
        start_append(w);
        break;
    }
}

void world_act(struct world *w)
{
    switch (world_below(w, 24)) {
    case 0:
        world_checkpoint(w);
        break;
    case 1:
    case 2:
    case 3:
        world_commit(w);
        break;
    case 4:
        world_settle(w);
        world_advance(w, world_chance(w, 4) ? world_below(w, 40000) : world_below(w, 2000));
        break;
    case 5:
        engine_housekeep(w->engine);
        break;
    case 6:
    case 7:
    case 8:
    case 9:
        for (uint64_t n = world_below(w, 10); n > 0; n--) {
            (void)world_run_task(w);
        }
        break;
    case 10:
        world_settle(w);
        break;
    case 11:
        world_retry(w);
        break;
    case 12:
        world_survey(w);
        break;
    default:
        world_start_random(w);
        break;
    }
}
