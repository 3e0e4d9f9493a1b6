/* Notes over the real store: what is shown, what is saved and when, and what is refused. */
#include "unit/base/fault.h"

#include "stream/note.c"

#undef malloc
#undef calloc
#undef realloc

#include <pthread.h>

#include "unit/stream/rig.h"

static struct rig rig;
static void (*meanwhile)(void); /* called when a checkpoint has taken all and is about to commit */
static int commit_code;         /* of the next commit of the catalog */

static int on_catalog_commit(void *context)
{
    (void)context;
    void (*now)(void) = meanwhile;
    int code = commit_code;
    meanwhile = NULL;
    commit_code = 0;
    if (now) {
        now();
    }
    return code;
}

static int open_rig(void **state)
{
    (void)state;
    rig_open(&rig);
    rig.sys.catalog_commit = on_catalog_commit;
    return 0;
}

static int close_rig(void **state)
{
    (void)state;
    if (fault_countdown != -1) { /* only tests without threads have set it */
        fault_countdown = -1;
    }
    rig_close(&rig);
    return 0;
}

/* A batch as text, "a=1 b" being a put and a deletion. The caller finishes the buffer. */
static void make_batch(struct buf *b, const char *text)
{
    struct slice rest = slice_of(text);
    struct slice word;
    buf_init(b, NOTE_BATCH_BYTES_MAX);
    while (slice_split(&rest, ' ', &word)) {
        struct slice value = word;
        struct slice key;
        (void)slice_split(&value, '=', &key); /* a word has a first part */
        if (value.ptr) {
            note_put(b, key, value);
        } else {
            note_delete(b, key);
        }
    }
    assert_false(b->failed);
}

/* Runs a batch to its end; returns its code. */
static int change(const char *text)
{
    struct buf b;
    make_batch(&b, text);
    struct stream_op op = {.verb = STREAM_NOTE, .note = {.changes = buf_slice(&b)}};
    int code = rig_op(&rig, &op);
    assert_true(code == 0 || op.result.msg.text[0] != '\0');
    buf_finish(&b);
    return code;
}

static void ignore(struct stream_op *op)
{
    ++*(int *)op->context;
}

static int answered; /* operations that were started by `stage_only` */

/* Stages a batch that is not to become durable yet. */
static void stage_only(struct stream_op *op, const char *text)
{
    struct buf b;
    make_batch(&b, text);
    *op = (struct stream_op){.verb = STREAM_NOTE,
                             .note = {.changes = buf_slice(&b)},
                             .done = ignore,
                             .context = &answered};
    assert_int_equal(stream_start(rig.worker, op), STREAM_PENDING);
    buf_finish(&b); /* nothing of it is needed any more */
}

static int add_text(void *context, struct slice key, struct slice value)
{
    struct buf *out = context;
    buf_append_format(out, "%.*s=%.*s ", (int)key.len, key.ptr, (int)value.len, value.ptr);
    return 0;
}

static void expect_of(const char *prefix, const char *want)
{
    struct buf out;
    struct errmsg msg = {{0}};
    buf_init(&out, MIB);
    int code = engine_each_note(rig.engine, slice_of(prefix), add_text, &out, &msg);
    if (code != 0) {
        fail_msg("%s: %s", err_name(code), msg.text);
    }
    buf_append_char(&out, '\0');
    assert_string_equal(out.ptr, want);
    buf_finish(&out);
}

static void expect(const char *want)
{
    expect_of("", want);
}

/* What the catalog has, whatever memory knows. */
static void expect_saved(const char *want)
{
    struct buf out;
    struct errmsg msg;
    struct store *store = rig.engine->store;
    buf_init(&out, MIB);
    assert_int_equal(store->ops->each_note(store, SLICE(""), add_text, &out, &msg), 0);
    buf_append_char(&out, '\0');
    assert_string_equal(out.ptr, want);
    buf_finish(&out);
}

static int checkpoint(void)
{
    struct store *store = rig.engine->store;
    return store->ops->checkpoint(store);
}

static uint64_t bytes(void)
{
    struct engine_stats stats;
    engine_get_stats(rig.engine, &stats);
    return stats.note_bytes;
}

/* What is put is there: before and after a checkpoint, a restart, and both. */
static void notes_stay(void **state)
{
    (void)state;
    assert_int_equal(change("a=1"), 0);
    assert_int_equal(change("b/x=2"), 0);
    expect("a=1 b/x=2 ");
    rig_reopen(&rig, false);
    expect("a=1 b/x=2 ");
    assert_int_equal(checkpoint(), 0);
    assert_int_equal(bytes(), 0);
    expect("a=1 b/x=2 ");
    assert_int_equal(change("b/w=3 a=4 b/x c=5 c"), 0);
    expect("a=4 b/w=3 ");
    expect_of("b/", "b/w=3 ");
    expect_of("c", "");
    rig_reopen(&rig, true);
    expect("a=4 b/w=3 ");
    assert_int_equal(change("a a=6"), 0);
    expect("a=6 b/w=3 ");
}

/* What is staged and not durable is neither shown nor saved, and does not hide what is. */
static void only_what_is_durable(void **state)
{
    (void)state;
    struct stream_op ops[3];
    answered = 0;
    assert_int_equal(change("a=1 b=1"), 0);
    stage_only(&ops[0], "a=2 c=2");
    stage_only(&ops[1], "b d=2");
    expect("a=1 b=1 ");
    assert_int_equal(checkpoint(), 0);
    expect_saved("a=1 b=1 ");
    expect("a=1 b=1 ");
    stage_only(&ops[2], "a=3");
    assert_int_equal(answered, 0);
    rig_commit(&rig);
    assert_int_equal(answered, 3);
    expect("a=3 c=2 d=2 ");
    expect_saved("a=1 b=1 ");
    assert_int_equal(checkpoint(), 0);
    expect_saved("a=3 c=2 d=2 ");
    assert_int_equal(bytes(), 0);
}

static struct stream_op late[2];

static void change_while_saving(void)
{
    stage_only(&late[0], "a=2 b e=2");
    struct store *store = rig.engine->store;
    assert_int_equal(store->ops->commit(store), 0);
    stage_only(&late[1], "a=3 d=3");
}

/* A checkpoint that fails, while notes change again, loses nothing of either. */
static void a_failed_checkpoint(void **state)
{
    (void)state;
    const int codes[] = {ERR_IO, ERR_NOSPC, 0};
    for (size_t i = 0; i < ARRAY_COUNT(codes); i++) {
        assert_int_equal(change("a=1 b=1 c=1 d e"), 0);
        commit_code = codes[i];
        meanwhile = change_while_saving;
        assert_int_equal(checkpoint(), codes[i]);
        expect("a=2 c=1 e=2 ");
        if (codes[i] == 0) {
            expect_saved("a=1 b=1 c=1 ");
        }
        rig_commit(&rig);
        expect("a=3 c=1 d=3 e=2 ");
        assert_int_equal(checkpoint(), 0);
        expect_saved("a=3 c=1 d=3 e=2 ");
        assert_int_equal(bytes(), 0);
        rig_reopen(&rig, false);
        expect("a=3 c=1 d=3 e=2 ");
    }
}

/* The store's answers to staging. */
static const struct store_ops *real_ops;
static int refusal;

static int refuse_stage(struct store *s, const struct record *r, struct block *body_block,
                        log_pos *ret_end)
{
    int code = refusal;
    refusal = code == ERR_AGAIN ? 0 : code;
    return code ? code : real_ops->stage(s, r, body_block, ret_end);
}

/* What the log refuses leaves no trace; where room is being made, the batch waits for it. */
static void refusals(void **state)
{
    (void)state;
    const int codes[] = {ERR_NOSPC, ERR_BUSY, ERR_FAILED, ERR_NOMEM};
    struct store_ops ops = *rig.engine->store->ops;
    real_ops = rig.engine->store->ops;
    ops.stage = refuse_stage;
    assert_int_equal(change("a=1"), 0);
    uint64_t before = bytes();
    rig.engine->store->ops = &ops;
    for (size_t i = 0; i < ARRAY_COUNT(codes); i++) {
        refusal = codes[i];
        assert_int_equal(change("a=2 b=2 b=3 a c"), codes[i]);
        assert_int_equal(bytes(), before);
        expect("a=1 ");
    }
    struct buf b;
    make_batch(&b, "a=2 b=2");
    answered = 0;
    refusal = ERR_AGAIN;
    struct stream_op op = {.verb = STREAM_NOTE,
                           .note = {.changes = buf_slice(&b)},
                           .done = ignore,
                           .context = &answered};
    assert_int_equal(stream_start(rig.worker, &op), STREAM_PENDING);
    rig_commit(&rig);
    assert_int_equal(refusal, 0);
    assert_int_equal(bytes(), before);
    workers_notice(rig.engine); /* room was made */
    rig_run(&rig);
    rig_commit(&rig);
    assert_int_equal(answered, 1);
    expect("a=2 b=2 ");
    buf_finish(&b);
    rig.engine->store->ops = real_ops;
}

static int run(struct slice changes)
{
    struct stream_op op = {.verb = STREAM_NOTE, .note = {.changes = changes}};
    return rig_op(&rig, &op);
}

/* A batch that is not sound is refused before anything is done. */
static void broken_batches(void **state)
{
    (void)state;
    struct buf b;
    assert_int_equal(run((struct slice){0}), ERR_INVALID);
    make_batch(&b, "a=1 b=2");
    assert_int_equal(run((struct slice){b.ptr, b.len - 1}), ERR_INVALID);
    assert_int_equal(run((struct slice){b.ptr + 1, b.len - 1}), ERR_INVALID);
    buf_finish(&b);
    assert_int_equal(bytes(), 0);
    expect("");
}

/* Whichever allocation fails, a batch happens whole or not at all. */
static void memory_runs_out(void **state)
{
    (void)state;
    assert_int_equal(change("a=1 b=1"), 0);
    assert_int_equal(checkpoint(), 0);
    int code = ERR_NOMEM;
    for (long i = 0; code != 0; i++) {
        fault_countdown = i;
        code = change("a=2 c=2 b c=3 b=4");
        fault_countdown = -1;
        assert_true(code == 0 || code == ERR_NOMEM);
        expect(code == 0 ? "a=2 b=4 c=3 " : "a=1 b=1 ");
        assert_int_equal(bytes() == 0, code != 0);
    }
    fault_countdown = 0;
    assert_int_equal(checkpoint(), ERR_NOMEM);
    struct errmsg msg = {{0}};
    assert_int_equal(engine_each_note(rig.engine, SLICE(""), add_text, NULL, &msg), ERR_NOMEM);
    assert_true(msg.text[0] != '\0');
    fault_countdown = -1;
    expect("a=2 b=4 c=3 ");
    assert_int_equal(checkpoint(), 0);
    expect_saved("a=2 b=4 c=3 ");
}

/* The same for what replay brings; a batch that is not sound is none that was staged. */
static void replay_without_memory(void **state)
{
    (void)state;
    struct buf b;
    make_batch(&b, "a=1 b=2 a=3");
    const struct record_note r = {buf_slice(&b)};
    int code = ERR_NOMEM;
    for (long i = 0; code != 0; i++) {
        fault_countdown = i;
        code = notes_replay(rig.engine, &r, 0);
        fault_countdown = -1;
        assert_true(code == 0 || code == ERR_NOMEM);
        expect(code == 0 ? "a=3 b=2 " : "");
    }
    const struct record_note broken = {{b.ptr, b.len - 1}};
    assert_int_equal(notes_replay(rig.engine, &broken, 0), ERR_CORRUPT);
    buf_finish(&b);
}

/* Notes that no checkpoint saves take only so much memory; what gives it back is taken. */
static void memory_is_bounded(void **state)
{
    (void)state;
    static char value[NOTE_VALUE_BYTES_MAX];
    char key[16];
    struct buf b;
    int code = 0;
    unsigned n = 0;
    for (; code == 0; n++) {
        buf_init(&b, NOTE_BATCH_BYTES_MAX);
        for (unsigned i = 0; i < 32; i++) {
            (void)snprintf(key, sizeof(key), "n/%u/%u", n, i);
            note_put(&b, slice_of(key), (struct slice){value, sizeof(value)});
        }
        assert_false(b.failed);
        code = run(buf_slice(&b));
        buf_finish(&b);
    }
    assert_int_equal(code, ERR_BUSY);
    assert_true(bytes() > NOTES_HOT_BYTES_MAX);
    assert_true(bytes() < NOTES_HOT_BYTES_MAX + 2 * NOTE_BATCH_BYTES_MAX);
    assert_int_equal(change("n/0/0 tomb=1"), 0);
    assert_int_equal(change("n/0/0=1"), ERR_BUSY);
    assert_int_equal(checkpoint(), 0);
    assert_int_equal(bytes(), 0);
    assert_int_equal(change("n/0/0=1"), 0);
    expect_of("n/0/0", "n/0/0=1 ");
    expect_of("tomb", "tomb=1 ");
}

static int fail_sync(void *context, int fd)
{
    (void)context;
    (void)fd;
    return ERR_IO;
}

/* After the log failed nothing is taken, what was staged is not known, and what is durable can be
 * read. */
static void the_log_fails(void **state)
{
    (void)state;
    struct stream_op op;
    assert_int_equal(change("a=1"), 0);
    rig.config.store.durability = DURABILITY_SYNC;
    rig_reopen(&rig, false);
    answered = 0;
    stage_only(&op, "a=2");
    rig.sys.fdatasync = fail_sync;
    rig_commit(&rig);
    assert_int_equal(answered, 1);
    assert_int_equal(op.result.code, ERR_UNKNOWN);
    assert_int_equal(change("a=3"), ERR_FAILED);
    expect("a=1 ");
}

/* ------------------------------------------------------------------------------------ threads */

#define BATCHES 300u

static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t queue_filled = PTHREAD_COND_INITIALIZER;
static struct list queue;
static bool writer_done;

static void post_to_queue(void *context, struct task *task)
{
    (void)context;
    pthread_mutex_lock(&queue_lock);
    list_append(&queue, &task->link);
    pthread_cond_signal(&queue_filled);
    pthread_mutex_unlock(&queue_lock);
}

static void mark_done(struct stream_op *op)
{
    *(bool *)op->context = true;
}

/* Changes two keys to the same value in one batch, again and again. */
static void *write_pairs(void *context)
{
    struct engine_worker *w = context;
    for (unsigned i = 1; i <= BATCHES; i++) {
        char text[64];
        bool done = false;
        struct buf b;
        (void)snprintf(text, sizeof(text), "x=%u%s y=%u", i, i % 3 == 0 ? " z" : " z=1", i);
        make_batch(&b, text);
        struct stream_op op = {.verb = STREAM_NOTE,
                               .note = {.changes = buf_slice(&b)},
                               .done = mark_done,
                               .context = &done};
        done = stream_start(w, &op) == 0;
        while (!done) {
            pthread_mutex_lock(&queue_lock);
            while (list_empty(&queue)) {
                pthread_cond_wait(&queue_filled, &queue_lock);
            }
            struct list *first = list_first(&queue);
            list_remove(first);
            pthread_mutex_unlock(&queue_lock);
            struct task *task = container_of(first, struct task, link);
            task->run(task);
        }
        assert_int_equal(op.result.code, 0);
        buf_finish(&b);
    }
    pthread_mutex_lock(&queue_lock);
    writer_done = true;
    pthread_mutex_unlock(&queue_lock);
    return NULL;
}

struct pair {
    unsigned x;
    unsigned y;
};

static int take_pair(void *context, struct slice key, struct slice value)
{
    struct pair *p = context;
    char text[16] = "";
    assert_true(value.len < sizeof(text));
    memcpy(text, value.ptr, value.len);
    if (key.ptr[0] != 'z') {
        *(key.ptr[0] == 'x' ? &p->x : &p->y) = (unsigned)strtoul(text, NULL, 10);
    }
    return 0;
}

/* With all threads: whoever reads meanwhile sees whole batches, never older ones than before. */
static void readers_see_whole_batches(void **state)
{
    (void)state;
    struct errmsg msg;
    struct engine_worker *w;
    pthread_t writer;
    unsigned last = 0;
    bool over = false;
    rig.config.store.threads = true;
    rig.config.store.checkpoint_bytes = 4096;
    rig_reopen(&rig, false);
    list_init(&queue);
    writer_done = false;
    assert_int_equal(engine_attach(rig.engine, post_to_queue, NULL, &w), 0);
    assert_int_equal(pthread_create(&writer, NULL, write_pairs, w), 0);
    while (!over) {
        struct pair p = {0};
        pthread_mutex_lock(&queue_lock);
        over = writer_done;
        pthread_mutex_unlock(&queue_lock);
        assert_int_equal(engine_each_note(rig.engine, SLICE(""), take_pair, &p, &msg), 0);
        assert_int_equal(p.x, p.y);
        assert_true(p.x >= last);
        last = p.x;
        assert_int_equal(checkpoint(), 0);
    }
    assert_int_equal(last, BATCHES);
    assert_int_equal(pthread_join(writer, NULL), 0);
    engine_detach(w);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_rig, close_rig)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(notes_stay),
        TEST(only_what_is_durable),
        TEST(a_failed_checkpoint),
        TEST(refusals),
        TEST(broken_batches),
        TEST(memory_runs_out),
        TEST(replay_without_memory),
        TEST(memory_is_bounded),
        TEST(the_log_fails),
        TEST(readers_see_whole_batches),
    };
    return UNIT_RUN(tests);
}
