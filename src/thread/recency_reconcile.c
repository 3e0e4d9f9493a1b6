/* What the records know is put beside where the streams end: first all threads, then one listing of
 * streams, or HEADs of each thread, many at once, where the server lists none, then a read of each
 * stream that goes further, and a new stream for each thread that has none. Rows are written in
 * batches, so that a long way is not gone twice. */
#include "thread/recency.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/map.h"
#include "client/operation.h"

#define BATCH     256u /* threads of one transaction */
#define HEADS_MAX 64u  /* asked at once */

/* A thread as the records have it, and then as its stream is. */
struct known {
    struct map_node node; /* on threads, by its id */
    char thread_id[STORE_ID_BYTES];
    char offset[STREAM_OFFSET_BYTES]; /* empty: none was written */
    int64_t ts;
    bool has_stream;
    bool behind;                 /* it goes further */
    struct reconcile *reconcile; /* while its stream is asked for */
};

struct reconcile {
    const struct recency_config *config;
    struct stream_client *client;
    struct map threads; /* struct known; owned */
    struct recency_row rows[BATCH];
    size_t count;       /* of rows that are not written */
    int code;           /* the first thing that went wrong, and its sentence */
    struct errmsg *msg; /* the caller's; may be NULL */

    pthread_mutex_t lock; /* guards what follows, and code and msg, while heads are under way */
    pthread_cond_t ended; /* one of them has */
    unsigned heads;       /* under way */
};

static struct known *known_of(struct map_node *node)
{
    return container_of(node, struct known, node);
}

static int keep_known(void *context, const struct recency_row *row)
{
    struct reconcile *c = context;
    struct known *k = calloc(1, sizeof(*k));
    if (!k || row->thread_id.len >= sizeof(k->thread_id) || row->offset.len >= sizeof(k->offset) ||
        map_insert(&c->threads, &k->node, slice_hash(row->thread_id, 0)) != 0) {
        bool memory = !k || row->thread_id.len < sizeof(k->thread_id);
        free(k);
        return memory ? ERR_NOMEM : ERR_CORRUPT;
    }
    memcpy(k->thread_id, row->thread_id.ptr, row->thread_id.len);
    if (row->offset.len > 0) {
        memcpy(k->offset, row->offset.ptr, row->offset.len);
    }
    k->ts = row->ts;
    return 0;
}

static struct known *find(struct reconcile *c, struct slice thread_id)
{
    struct map_node *node = map_find(&c->threads, slice_hash(thread_id, 0));
    while (node && !slice_equal(slice_of(known_of(node)->thread_id), thread_id)) {
        node = map_find_next(node);
    }
    return node ? known_of(node) : NULL;
}

/* Keeps the first error of a stream, in whose words the reconciliation will have failed. */
static void fail(struct reconcile *c, const struct stream_error *error)
{
    if (c->code == 0) {
        c->code = error->code == STREAM_ERROR_MEMORY ? ERR_NOMEM : ERR_IO;
        (void)err_set(c->msg, c->code, "%s", error->message);
    }
}

static int look_at_listed(void *context, const char *name, const struct stream_info *info)
{
    struct reconcile *c = context;
    struct slice thread_id;
    struct known *k = thread_stream_parse(slice_of(name), &thread_id) ? find(c, thread_id) : NULL;
    if (k) {
        k->has_stream = true;
        k->behind = strcmp(info->next_offset, k->offset) > 0;
    }
    return 0;
}

/* On the client's thread. A stream that is only there for its forks cannot be made anew. */
static void on_head(void *context, int code, const struct stream_info *info,
                    const struct stream_error *error)
{
    struct known *k = context;
    struct reconcile *c = k->reconcile;
    (void)pthread_mutex_lock(&c->lock);
    k->has_stream = code != STREAM_ERROR_NOT_FOUND;
    if (code == STREAM_OK) {
        k->behind = strcmp(info->next_offset, k->offset) > 0;
    } else if (code != STREAM_ERROR_NOT_FOUND && code != STREAM_ERROR_GONE) {
        fail(c, error);
    }
    c->heads--;
    (void)pthread_cond_signal(&c->ended);
    (void)pthread_mutex_unlock(&c->lock);
}

/* Waits until less than `count` heads are under way: false when one has failed. */
static bool wait_for_heads(struct reconcile *c, unsigned count)
{
    (void)pthread_mutex_lock(&c->lock);
    while (c->heads >= count) {
        (void)pthread_cond_wait(&c->ended, &c->lock);
    }
    bool good = c->code == 0;
    (void)pthread_mutex_unlock(&c->lock);
    return good;
}

static void ask(struct reconcile *c, struct known *k)
{
    char name[THREAD_STREAM_BYTES];
    struct stream_error error;
    thread_stream_name(slice_of(k->thread_id), name);
    const struct call call = {.verb = CALL_HEAD, .name = slice_of(name)};
    k->reconcile = c;
    (void)pthread_mutex_lock(&c->lock);
    c->heads++;
    (void)pthread_mutex_unlock(&c->lock);
    int code = operation_start_inside(c->client, &call, on_head, k, &error);
    if (code != STREAM_OK) {
        on_head(k, code, NULL, &error);
    }
}

static void ask_each(struct reconcile *c)
{
    struct map_node *node = NULL;
    while ((node = map_next(&c->threads, node)) && wait_for_heads(c, HEADS_MAX)) {
        ask(c, known_of(node));
    }
    (void)wait_for_heads(c, 1);
}

static void write_rows(struct reconcile *c)
{
    struct errmsg msg = {.text = ""};
    int code = c->count > 0 ? store_recency_write(c->config->store, c->rows, c->count, &msg) : 0;
    c->count = 0;
    if (code != 0 && c->code == 0) {
        c->code = err_set(c->msg, code, "%s", msg.text);
    }
}

/* Takes a piece of a thread's stream. */
static void take(struct reconcile *c, struct known *k, const struct stream_piece_view *piece)
{
    struct slice json = {piece->data, piece->len};
    struct entry entry;
    if (json.len > 0 && entry_parse(json, &entry, NULL) == 0) {
        k->ts = entry.ts > k->ts ? entry.ts : k->ts;
        if (c->config->seen) {
            c->config->seen(c->config->context, slice_of(k->thread_id), &entry, json);
        }
    }
    if (piece->next_offset && strcmp(piece->next_offset, k->offset) > 0) {
        memcpy(k->offset, piece->next_offset, strlen(piece->next_offset) + 1);
    }
}

/* Reads what lies behind the offset that is known. */
static int read_on(struct reconcile *c, struct known *k, struct stream_error *error)
{
    const struct stream_read_options options = {
        .offset = k->offset[0] ? k->offset : NULL,
        .live = STREAM_CATCH_UP,
        .unit = STREAM_MESSAGES,
    };
    struct stream_reader *reader;
    struct stream_piece_view piece;
    char name[THREAD_STREAM_BYTES];
    thread_stream_name(slice_of(k->thread_id), name);
    int code = stream_client_read(c->client, name, &options, &reader, error);
    if (code != STREAM_OK) {
        return code;
    }
    while ((code = stream_reader_next(reader, &piece, error)) == STREAM_OK) {
        take(c, k, &piece);
    }
    stream_reader_free(reader);
    return code == STREAM_END ? STREAM_OK : code;
}

/* Whatever was read of a stream before it failed is as good as the rest. One that is gone by now
 * has nothing more to tell. */
static void catch_up(struct reconcile *c, struct known *k)
{
    struct stream_error error;
    int code = read_on(c, k, &error);
    if (code != STREAM_OK && code != STREAM_ERROR_NOT_FOUND && code != STREAM_ERROR_GONE) {
        fail(c, &error);
    }
    if (k->ts > 0 && k->offset[0]) {
        c->rows[c->count++] = (struct recency_row){
            .thread_id = slice_of(k->thread_id), .ts = k->ts, .offset = slice_of(k->offset)};
    }
    if (c->count == BATCH) {
        write_rows(c);
    }
}

/* The outbox still owes its creation, or it was deleted after the records were copied for a backup:
 * the thread lives, and can be read and written to. */
static void make_stream(struct reconcile *c, const struct known *k)
{
    const struct stream_create_options options = {.content_type = "application/json"};
    struct stream_error error;
    char name[THREAD_STREAM_BYTES];
    thread_stream_name(slice_of(k->thread_id), name);
    int code = stream_client_create(c->client, name, &options, NULL, &error);
    if (code != STREAM_OK && code != STREAM_ERROR_GONE) {
        fail(c, &error);
    }
}

static void reconcile(struct reconcile *c)
{
    struct stream_error error;
    struct map_node *node = NULL;
    int code = stream_client_list(c->client, THREAD_STREAM, look_at_listed, c, &error);
    if (code == STREAM_ERROR_NOT_FOUND) {
        ask_each(c);
    } else if (code != STREAM_OK) {
        fail(c, &error);
    }
    while (c->code == 0 && (node = map_next(&c->threads, node))) {
        if (known_of(node)->behind) {
            catch_up(c, known_of(node));
        } else if (!known_of(node)->has_stream) {
            make_stream(c, known_of(node));
        }
    }
    write_rows(c);
}

static void free_threads(struct map *threads)
{
    struct map_node *node = map_next(threads, NULL);
    while (node) {
        struct known *k = known_of(node);
        node = map_next(threads, node);
        free(k);
    }
    map_finish(threads);
}

int recency_reconcile(struct recency *r, struct stream_client *client, struct errmsg *msg)
{
    const struct recency_config *config = recency_get_config(r);
    struct reconcile *c = calloc(1, sizeof(*c));
    if (!c) {
        return err_set(msg, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
    }
    c->config = config;
    c->client = client;
    c->msg = msg;
    map_init(&c->threads);
    (void)pthread_mutex_init(&c->lock, NULL); /* neither can fail on Linux */
    (void)pthread_cond_init(&c->ended, NULL);
    c->code = store_recency_each(config->store, keep_known, c, msg);
    if (c->code == 0) {
        reconcile(c);
    }
    int code = c->code;
    free_threads(&c->threads);
    (void)pthread_cond_destroy(&c->ended);
    (void)pthread_mutex_destroy(&c->lock);
    free(c);
    return code;
}
