/* The engine over the real store: a naive model, random operations, checkpoints, evictions and
 * reopenings in between. Checkpoints are fuzzy on purpose: while one takes its streams, operations
 * go on. The seed is printed; ARBE_SEED repeats it. */
#include "base/dice.h"
#include "log/store.h"

static int fuzzy_add(struct checkpoint *c, const struct checkpoint_item *item);

#define checkpoint_add fuzzy_add
#include "stream/checkpoint.c"
#undef checkpoint_add

#include "stream/engine.c"

#include "unit/stream/rig.h"

#define NAMES       8
#define MODEL_BYTES 16384
#define STEPS       3000
#define PRODUCERS   3

/* What a stream is, in the plainest terms. */
struct model {
    bool there;
    bool soft;
    bool closed;
    bool json;
    int source; /* index of the model it was forked from; -1: none */
    unsigned forks;
    size_t len;
    char bytes[MODEL_BYTES];
    char seq[8];
    bool known[PRODUCERS];
    uint64_t epoch[PRODUCERS];
    uint64_t producer_seq[PRODUCERS];
    size_t ends[512]; /* ends of messages of its own appends, in JSON mode */
    size_t end_count;
};

struct world {
    struct rig rig;
    struct model streams[NAMES]; /* whatever has the name now */
    uint64_t seed;
    bool fuzzy;   /* operations go on between the streams of a checkpoint */
    bool failing; /* the next checkpoint fails halfway */
    bool failed;
};

static struct world world;

static uint64_t rnd(struct world *w)
{
    return dice_roll(&w->seed);
}

static size_t below(struct world *w, size_t n)
{
    return (size_t)(rnd(w) % n);
}

static void name_of(size_t index, char out[static 16])
{
    (void)snprintf(out, 16, "stream-%zu", index);
}

static const char *type_of(const struct model *m)
{
    return m->json ? "application/json" : "text/plain";
}

static void add(struct model *m, const char *bytes, size_t len)
{
    assert_true(m->len + len < MODEL_BYTES);
    memcpy(m->bytes + m->len, bytes, len);
    m->len += len;
}

/* A body and what the stream will keep of it. */
static size_t make_body(struct world *w, bool json, char *body, char *kept)
{
    size_t n = 1 + below(w, 3);
    size_t len = 0;
    size_t kept_len = 0;
    if (!json) {
        len = 1 + below(w, below(w, 8) == 0 ? 600 : 40);
        for (size_t i = 0; i < len; i++) {
            body[i] = (char)('a' + below(w, 26));
        }
        memcpy(kept, body, len);
        body[len] = '\0';
        return len;
    }
    body[len++] = '[';
    for (size_t i = 0; i < n; i++) {
        char text[24];
        int digits = snprintf(text, sizeof(text), "{\"n\":%u}", (unsigned)below(w, 100000));
        len += (size_t)snprintf(body + len, 64, "%s%s ", i > 0 ? "," : "", text);
        memcpy(kept + kept_len, text, (size_t)digits);
        kept_len += (size_t)digits;
        kept[kept_len++] = ',';
    }
    body[len++] = ']';
    body[len] = '\0';
    return kept_len;
}

static int absent_code(const struct model *m)
{
    return m->soft ? ERR_GONE : ERR_NOTFOUND;
}

static void step_create(struct world *w, size_t i)
{
    struct model *m = &w->streams[i];
    char name[16];
    char body[1024] = "";
    char kept[1024];
    bool json = below(w, 2);
    size_t kept_len = below(w, 2) ? make_body(w, json, body, kept) : 0;
    struct stream_op op = {0};
    name_of(i, name);
    int code = rig_create(&w->rig, &op, name, json ? "application/json" : "text/plain", body);
    if (m->there) {
        bool same = !m->soft && m->json == json && m->source < 0 && !m->closed;
        assert_int_equal(code, same ? 0 : m->soft ? ERR_CONFLICT : ERR_EXISTS);
        assert_false(op.result.created);
        return;
    }
    assert_int_equal(code, 0);
    assert_true(op.result.created);
    *m = (struct model){.there = true, .json = json, .source = -1};
    add(m, kept, kept_len);
    assert_int_equal(op.result.next, m->len);
}

static void step_fork(struct world *w, size_t i)
{
    size_t from = below(w, NAMES);
    struct model *m = &w->streams[i];
    struct model *source = &w->streams[from];
    char name[16];
    char source_name[16];
    struct stream_op op = {.verb = STREAM_CREATE};
    name_of(i, name);
    name_of(from, source_name);
    op.name = slice_of(name);
    op.create.forked_from = slice_of(source_name);
    size_t at = source->len;
    if (source->there && !source->json && below(w, 2)) {
        at = below(w, source->len + 1);
        op.create.has_fork_offset = true;
        op.create.fork_offset = (struct offset){OFFSET_AT, at};
    }
    bool was_there = m->there;
    int code = rig_op(&w->rig, &op);
    if (was_there) {
        assert_true(code == 0 || code < 0);
        assert_false(op.result.created);
        return;
    }
    if (!source->there || source->soft) {
        assert_int_equal(code, source->soft ? ERR_CONFLICT : ERR_NOTFOUND);
        return;
    }
    assert_int_equal(code, 0);
    static struct model fresh;
    fresh = (struct model){.there = true, .json = source->json, .source = (int)from};
    add(&fresh, source->bytes, at);
    *m = fresh;
    source->forks++;
    assert_int_equal(op.result.next, at);
}

static void step_append(struct world *w, size_t i)
{
    struct model *m = &w->streams[i];
    char name[16];
    char body[1024] = "";
    char kept[1024];
    size_t kept_len = make_body(w, m->json, body, kept);
    struct stream_op op = {.verb = STREAM_APPEND};
    name_of(i, name);
    op.name = slice_of(name);
    op.append.body = slice_of(body);
    op.append.content_type = slice_of(type_of(m));
    op.append.close = below(w, 60) == 0;
    if (m->len + kept_len >= MODEL_BYTES - 1) {
        return;
    }
    int code = rig_op(&w->rig, &op);
    if (!m->there || m->soft) {
        assert_int_equal(code, absent_code(m));
        return;
    }
    if (m->closed) {
        assert_int_equal(code, ERR_CLOSED);
        assert_int_equal(op.result.next, m->len);
        return;
    }
    assert_int_equal(code, 0);
    add(m, kept, kept_len);
    m->closed = op.append.close;
    assert_int_equal(op.result.next, m->len);
    assert_int_equal(op.result.closed, m->closed);
}

static void step_produce(struct world *w, size_t i)
{
    static const char *const ids[PRODUCERS] = {"p", "producer-two", "3"};
    struct model *m = &w->streams[i];
    size_t p = below(w, PRODUCERS);
    char name[16];
    char body[1024] = "";
    char kept[1024];
    size_t kept_len = make_body(w, m->json, body, kept);
    if (!m->there || m->soft || m->closed || m->len + kept_len >= MODEL_BYTES - 1) {
        return;
    }
    struct stream_op op = {.verb = STREAM_APPEND};
    name_of(i, name);
    op.name = slice_of(name);
    op.append.body = slice_of(body);
    op.append.content_type = slice_of(type_of(m));
    op.append.producer.id = slice_of(ids[p]);
    op.append.producer.epoch = m->epoch[p] + (below(w, 10) == 0);
    bool newer = op.append.producer.epoch > m->epoch[p];
    uint64_t next = !m->known[p] || newer ? 0 : m->producer_seq[p] + 1;
    op.append.producer.seq = below(w, 4) == 0 ? below(w, 5) : next;
    uint64_t seq = op.append.producer.seq;
    int code = rig_op(&w->rig, &op);
    if (m->known[p] && !newer && seq <= m->producer_seq[p]) {
        assert_int_equal(code, 0);
        assert_true(op.result.duplicate);
        assert_int_equal(op.result.producer_seq, m->producer_seq[p]);
        return;
    }
    if (seq != next) {
        assert_int_equal(code, m->known[p] && newer ? ERR_INVALID : ERR_CONFLICT);
        return;
    }
    assert_int_equal(code, 0);
    assert_false(op.result.duplicate);
    m->known[p] = true;
    m->epoch[p] = op.append.producer.epoch;
    m->producer_seq[p] = seq;
    add(m, kept, kept_len);
}

static void step_seq(struct world *w, size_t i)
{
    struct model *m = &w->streams[i];
    char name[16];
    char seq[8];
    if (!m->there || m->soft || m->closed || m->json || m->len + 8 >= MODEL_BYTES) {
        return;
    }
    (void)snprintf(seq, sizeof(seq), "%u", (unsigned)below(w, 500));
    struct stream_op op = {.verb = STREAM_APPEND};
    name_of(i, name);
    op.name = slice_of(name);
    op.append.body = SLICE("s");
    op.append.content_type = SLICE("text/plain; charset=utf-8");
    op.append.has_seq = true;
    op.append.seq = slice_of(seq);
    int code = rig_op(&w->rig, &op);
    if (strcmp(seq, m->seq) <= 0) {
        assert_int_equal(code, ERR_CONFLICT);
        assert_true(op.result.seq_conflict);
        return;
    }
    assert_int_equal(code, 0);
    memcpy(m->seq, seq, sizeof(seq));
    add(m, "s", 1);
}

/* A soft-deleted ancestor goes with its last fork. */
static void drop(struct world *w, struct model *m)
{
    m->there = false;
    m->soft = false;
    while (m->source >= 0) {
        struct model *source = &w->streams[m->source];
        assert_true(source->forks > 0);
        source->forks--;
        if (!source->soft || source->forks > 0) {
            return;
        }
        source->there = false;
        source->soft = false;
        m = source;
    }
}

static void step_delete(struct world *w, size_t i)
{
    struct model *m = &w->streams[i];
    char name[16];
    name_of(i, name);
    int code = rig_delete(&w->rig, name);
    if (!m->there || m->soft) {
        assert_int_equal(code, absent_code(m));
        return;
    }
    assert_int_equal(code, 0);
    if (m->forks > 0) {
        m->soft = true;
    } else {
        drop(w, m);
    }
}

static void check(struct world *w, size_t i)
{
    const struct model *m = &w->streams[i];
    char name[16];
    name_of(i, name);
    struct stream_op head = {.verb = STREAM_HEAD, .name = slice_of(name)};
    int code = rig_op(&w->rig, &head);
    if (!m->there || m->soft) {
        assert_int_equal(code, absent_code(m));
        return;
    }
    assert_int_equal(code, 0);
    assert_int_equal(head.result.next, m->len);
    assert_int_equal(head.result.closed, m->closed);
    assert_string_equal(type_of(m),
                        head.result.content_type.len == 16 ? "application/json" : "text/plain");
    size_t from = m->json ? 0 : below(w, m->len + 1);
    char *got = rig_read(&w->rig, name, from);
    assert_non_null(got);
    assert_int_equal(strlen(got), m->len - from);
    assert_memory_equal(got, m->bytes + from, m->len - from);
    free(got);
}

static void step_other(struct world *w)
{
    struct store *store = w->rig.engine->store;
    int code;
    switch (below(w, 12)) {
    case 0:
        rig_reopen(&w->rig, below(w, 2));
        break;
    case 1:
    case 2:
        rig_sleep(2000);
        for (unsigned n = 0; n < TABLE_SHARDS / 16; n++) {
            engine_housekeep(w->rig.engine);
        }
        break;
    case 3:
    case 4:
    case 5:
    case 6:
        w->fuzzy = true;
        w->failing = below(w, 5) == 0;
        w->failed = false;
        code = store->ops->checkpoint(store);
        w->fuzzy = false;
        assert_int_equal(code, w->failed ? ERR_NOMEM : 0);
        if (below(w, 3) == 0) {
            rig_reopen(&w->rig, false);
        }
        break;
    default:
        break;
    }
}

static void step(struct world *w)
{
    size_t i = below(w, NAMES);
    switch (below(w, w->fuzzy ? 8 : 16)) {
    case 0:
    case 1:
        step_create(w, i);
        break;
    case 2:
        step_fork(w, i);
        break;
    case 3:
        step_delete(w, i);
        break;
    case 4:
    case 5:
        step_produce(w, i);
        break;
    case 6:
        step_seq(w, i);
        break;
    case 8:
        step_other(w);
        break;
    case 9:
    case 10:
        check(w, i);
        break;
    default:
        step_append(w, i);
        break;
    }
}

/* Stands between the streams and the store's checkpoint. */
static int fuzzy_add(struct checkpoint *c, const struct checkpoint_item *item)
{
    struct world *w = &world;
    for (size_t n = w->fuzzy ? below(w, 6) : 0; n > 0; n--) {
        step(w);
    }
    if (w->failing && below(w, 3) == 0) {
        w->failing = false;
        w->failed = true;
        return ERR_NOMEM;
    }
    return checkpoint_add(c, item);
}

/* Whatever is done to streams, in whatever order, with checkpoints, evictions and reopenings
 * between, they are as the model says. */
static void test_model(void **state)
{
    (void)state;
    struct world *w = &world;
    const char *seed = getenv("ARBE_SEED");
    memset(w, 0, sizeof(*w));
    w->seed = seed ? strtoull(seed, NULL, 0)
                   : (uint64_t)getpid() * UINT64_C(0x9e3779b97f4a7c15) + 1;
    print_message("seed %llu\n", (unsigned long long)w->seed);
    rig_open(&w->rig);
    w->rig.config.read_page_bytes = 256;
    rig_reopen(&w->rig, false);
    for (int n = 0; n < STEPS; n++) {
        step(w);
    }
    for (size_t i = 0; i < NAMES; i++) {
        check(w, i);
    }
    rig_reopen(&w->rig, true);
    for (size_t i = 0; i < NAMES; i++) {
        check(w, i);
    }
    rig_close(&w->rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model),
    };
    return UNIT_RUN(tests);
}
