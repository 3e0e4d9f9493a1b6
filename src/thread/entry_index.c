/* A part is what memory holds of one thread: up to which offset the stream was read, and the rows
 * that are not in the store yet. Whoever works on a part makes it busy; others wait for it. Parts
 * that nobody works on stand on the list `idle`, the one that was left alone longest first.
 *
 * A look: take the part; load its mark from the store if it is new; read the stream from there to
 * its end, each entry a row; find the ids, in the rows and then in the store; give the part back;
 * read the entries that were found where they stand.
 *
 * Writing: a part whose rows are many is written by who reads; all others by the thread, once they
 * are idle for a while. Part and rows then leave memory. A thread that was deleted takes no rows
 * any more (homeless): its stream is read anew each time, and only what is asked for is kept.
 *
 * A stream may have lost its end with the power, when it is not kept durably; then it is read from
 * the beginning, and a row that leads nowhere counts for nothing. */
#include "thread/entry_index.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "base/limits.h"
#include "base/list.h"
#include "base/map.h"
#include "client/client.h"
#include "thread/entry.h"
#include "thread/failure.h"
#include "thread/recency.h"

#define PUT_ROWS     1024u /* of a part, then its reader writes them */
#define IDLE_MS      5000u /* then a part is written and goes */
#define START_OFFSET "-1"

struct row {
    struct map_node node; /* on the part's rows, by the id */
    size_t id_len;
    size_t at_len;
    char text[]; /* id, offset where a read finds it */
};

struct part {
    struct map_node node; /* on parts, by the thread's id */
    struct list link;     /* on idle, unless busy */
    char thread_id[STORE_ID_BYTES];
    bool busy;        /* somebody works on it, who alone touches what follows */
    unsigned waiting; /* looks that want it next; guarded by the lock as busy is */
    uint64_t idle_ms; /* since when; likewise */
    bool loaded;      /* next_offset is what the store has, or further */
    bool homeless;    /* the store takes no rows of this thread */
    struct map rows;  /* struct row */
    char next_offset[STREAM_OFFSET_BYTES]; /* read so far; empty: nothing */
    char put_offset[STREAM_OFFSET_BYTES];  /* and what of that the store knows */
};

struct entry_index {
    struct thread_store *store;
    struct stream_client *client;
    struct failure_teller teller;
    pthread_t thread;
    pthread_mutex_t lock;    /* guards what follows */
    pthread_cond_t released; /* a part is not busy any more */
    pthread_cond_t news;     /* for the thread: too much waits, or the end */
    struct map parts;        /* struct part */
    struct list idle;
    size_t row_count; /* of all parts, as of when they were released */
    bool stopping;
};

/* A look under way. */
struct look {
    struct entry_index *index;
    struct part *part;
    struct entry_query *queries;
    size_t count;
};

static struct part *part_of(struct map_node *node)
{
    return container_of(node, struct part, node);
}

static struct row *row_of(struct map_node *node)
{
    return container_of(node, struct row, node);
}

static struct slice row_id(const struct row *row)
{
    return (struct slice){row->text, row->id_len};
}

static struct slice row_at(const struct row *row)
{
    return (struct slice){row->text + row->id_len, row->at_len};
}

/* ----------------------------------------------------------------------------------------- rows */

static struct row *find_row(const struct part *part, struct slice id, uint64_t hash)
{
    struct map_node *node = map_find(&part->rows, hash);
    while (node && !slice_equal(row_id(row_of(node)), id)) {
        node = map_find_next(node);
    }
    return node ? row_of(node) : NULL;
}

/* Of equal ids the first stays. */
static int add_row(struct part *part, struct slice id, struct slice at)
{
    uint64_t hash = slice_hash(id, 0);
    if (find_row(part, id, hash)) {
        return 0;
    }
    struct row *row = malloc(sizeof(*row) + id.len + at.len);
    if (!row || map_insert(&part->rows, &row->node, hash) != 0) {
        free(row);
        return ERR_NOMEM;
    }
    row->id_len = id.len;
    row->at_len = at.len;
    memcpy(row->text, id.ptr, id.len);
    memcpy(row->text + id.len, at.ptr, at.len);
    return 0;
}

static void drop_rows(struct part *part)
{
    struct map_node *node = map_next(&part->rows, NULL);
    while (node) {
        struct row *row = row_of(node);
        node = map_next(&part->rows, node);
        free(row);
    }
    map_finish(&part->rows);
    map_init(&part->rows);
}

/* Writes the rows of a part that is the caller's. */
static int put_rows(struct entry_index *x, struct part *part, struct errmsg *msg)
{
    size_t count = part->rows.count;
    struct index_row *rows = count > 0 ? malloc(count * sizeof(*rows)) : NULL;
    struct map_node *node = NULL;
    if (count > 0 && !rows) {
        return err_set(msg, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
    }
    for (size_t i = 0; (node = map_next(&part->rows, node)); i++) {
        rows[i] = (struct index_row){row_id(row_of(node)), row_at(row_of(node))};
    }
    int code = store_index_put(x->store, slice_of(part->thread_id), slice_of(part->next_offset),
                               rows, count, msg);
    free(rows);
    if (code == 0) {
        drop_rows(part);
        memcpy(part->put_offset, part->next_offset, sizeof(part->put_offset));
    }
    return code;
}

static bool has_news(const struct part *part)
{
    return part->loaded && !part->homeless && strcmp(part->put_offset, part->next_offset) != 0;
}

/* ---------------------------------------------------------------------------------------- parts */

static struct part *find_part(const struct entry_index *x, struct slice thread_id, uint64_t hash)
{
    struct map_node *node = map_find(&x->parts, hash);
    while (node && !slice_equal(slice_of(part_of(node)->thread_id), thread_id)) {
        node = map_find_next(node);
    }
    return node ? part_of(node) : NULL;
}

/* Under the lock, as what follows; the part is nobody's. */
static void free_part(struct entry_index *x, struct part *part)
{
    assert(!part->busy && part->waiting == 0);
    x->row_count -= part->rows.count;
    list_remove(&part->link);
    map_remove(&x->parts, &part->node);
    drop_rows(part);
    free(part);
}

static struct part *add_part(struct entry_index *x, struct slice thread_id, uint64_t hash)
{
    struct part *part = calloc(1, sizeof(*part));
    if (!part || map_insert(&x->parts, &part->node, hash) != 0) {
        free(part);
        return NULL;
    }
    list_init(&part->link);
    map_init(&part->rows);
    memcpy(part->thread_id, thread_id.ptr, thread_id.len);
    return part;
}

static bool is_full(const struct entry_index *x)
{
    return x->row_count >= INDEX_ROWS_MAX || x->parts.count >= INDEX_THREADS_MAX;
}

/* Then the thread writes what is idle. */
static bool is_filling(const struct entry_index *x)
{
    return x->row_count >= INDEX_ROWS_MAX / 2 || x->parts.count >= INDEX_THREADS_MAX / 2;
}

static void hold(struct entry_index *x, struct part *part)
{
    part->busy = true;
    x->row_count -= part->rows.count; /* which the holder changes */
    list_remove(&part->link);
}

static void let_go(struct entry_index *x, struct part *part)
{
    part->busy = false;
    part->idle_ms = client_now_ms();
    x->row_count += part->rows.count;
    list_append(&x->idle, &part->link);
    (void)pthread_cond_broadcast(&x->released);
    if (is_filling(x)) {
        (void)pthread_cond_signal(&x->news);
    }
}

/* Writes an idle part and forgets it, unless somebody wants it. Lets go of the lock meanwhile. One
 * that cannot be written stays. */
static int retire(struct entry_index *x, struct part *part, struct errmsg *msg)
{
    int code = 0;
    if (has_news(part)) {
        hold(x, part);
        (void)pthread_mutex_unlock(&x->lock);
        code = put_rows(x, part, msg);
        (void)pthread_mutex_lock(&x->lock);
        let_go(x, part);
    }
    if (code == ERR_NOTFOUND) {
        code = 0; /* deleted: nobody will ask for it */
    }
    if (code == 0 && part->waiting == 0 && !part->busy) {
        free_part(x, part);
    }
    return code;
}

/* The idlest part that nobody waits for; NULL: there is none. */
static struct part *idlest(const struct entry_index *x)
{
    LIST_FOR_EACH(link, &x->idle)
    {
        struct part *part = container_of(link, struct part, link);
        if (part->waiting == 0) {
            return part;
        }
    }
    return NULL;
}

/* Makes room for another part, in the place of the idlest, or waits until one is idle. False: the
 * store takes nothing. */
static bool make_room(struct entry_index *x)
{
    int code = 0;
    while (code == 0 && is_full(x)) {
        struct part *part = idlest(x);
        if (part) {
            code = retire(x, part, NULL);
        } else {
            (void)pthread_cond_wait(&x->released, &x->lock);
        }
    }
    return code == 0;
}

/* Makes the part of a thread the caller's; NULL when there is no memory for it. */
static struct part *take_part(struct entry_index *x, struct slice thread_id)
{
    uint64_t hash = slice_hash(thread_id, 0);
    (void)pthread_mutex_lock(&x->lock);
    bool is_there = find_part(x, thread_id, hash) != NULL && x->row_count < INDEX_ROWS_MAX;
    bool room = is_there || make_room(x);
    struct part *part = room ? find_part(x, thread_id, hash) : NULL;
    if (room && !part) {
        part = add_part(x, thread_id, hash);
    }
    if (part) {
        part->waiting++;
        while (part->busy) {
            (void)pthread_cond_wait(&x->released, &x->lock);
        }
        part->waiting--;
        hold(x, part);
    }
    (void)pthread_mutex_unlock(&x->lock);
    return part;
}

static void give_back(struct entry_index *x, struct part *part)
{
    (void)pthread_mutex_lock(&x->lock);
    let_go(x, part);
    (void)pthread_mutex_unlock(&x->lock);
}

/* -------------------------------------------------------------------------------------- reading */

static bool is_asked_for(const struct look *look, struct slice id)
{
    for (size_t i = 0; i < look->count; i++) {
        if (slice_equal(look->queries[i].id, id)) {
            return true;
        }
    }
    return false;
}

/* The thread was deleted: keeps of the rows what is asked for. */
static void make_homeless(struct look *look)
{
    struct part *part = look->part;
    struct map_node *node = map_next(&part->rows, NULL);
    part->homeless = true;
    while (node) {
        struct row *row = row_of(node);
        node = map_next(&part->rows, node);
        if (!is_asked_for(look, row_id(row))) {
            map_remove(&part->rows, &row->node);
            free(row);
        }
    }
}

/* Writes the rows when they are many. */
static int put_some(struct look *look, struct errmsg *msg)
{
    struct part *part = look->part;
    if (part->homeless || part->rows.count < PUT_ROWS) {
        return 0;
    }
    int code = put_rows(look->index, part, msg);
    if (code == ERR_NOTFOUND) {
        make_homeless(look);
        return 0;
    }
    return code;
}

/* Takes a piece of the stream, which is found again where its page begins. ERR_GONE: the stream
 * does not go as far as it once did; else errors of the store. */
static int take_piece(struct look *look, const struct stream_piece_view *piece, struct errmsg *msg)
{
    struct part *part = look->part;
    struct slice at = slice_of(part->next_offset[0] ? part->next_offset : START_OFFSET);
    struct entry entry;
    int code = 0;
    if (piece->len > 0 && entry_parse((struct slice){piece->data, piece->len}, &entry, NULL) == 0 &&
        (!part->homeless || is_asked_for(look, entry.id))) {
        code = add_row(part, entry.id, at);
    }
    if (code != 0) {
        return err_set(msg, code, "%s", err_text(code));
    }
    if (piece->next_offset && strcmp(piece->next_offset, part->next_offset) < 0) {
        return ERR_GONE; /* servers answer what lies behind their end with that end */
    }
    if (piece->next_offset) {
        memcpy(part->next_offset, piece->next_offset, strlen(piece->next_offset) + 1);
        code = put_some(look, msg);
    }
    return code;
}

static int begin_reading(const struct entry_index *x, struct slice thread_id, const char *offset,
                         struct stream_reader **ret_reader, struct stream_error *error)
{
    const struct stream_read_options options = {
        .offset = offset, .live = STREAM_CATCH_UP, .unit = STREAM_MESSAGES};
    char name[THREAD_STREAM_BYTES];
    thread_stream_name(thread_id, name);
    return stream_client_read(x->client, name, &options, ret_reader, error);
}

/* Reads to the end of the stream. Of the two codes one is 0. */
static int read_on(struct look *look, struct stream_error *error, int *ret_store_code,
                   struct errmsg *msg)
{
    struct part *part = look->part;
    struct stream_reader *reader;
    struct stream_piece_view piece;
    int stored = 0;
    int code = begin_reading(look->index, slice_of(part->thread_id),
                             part->next_offset[0] ? part->next_offset : NULL, &reader, error);
    if (code != STREAM_OK) {
        return code;
    }
    while (stored == 0 && (code = stream_reader_next(reader, &piece, error)) == STREAM_OK) {
        stored = take_piece(look, &piece, msg);
    }
    stream_reader_free(reader);
    *ret_store_code = stored;
    return code == STREAM_END ? STREAM_OK : code;
}

/* Whether that is how a stream ends a read which does not go as far as it once did. */
static bool has_lost(const struct part *part, int code, int stored)
{
    return part->next_offset[0] &&
           (stored == ERR_GONE ||
            (stored == 0 && (code == STREAM_ERROR_REJECTED || code == STREAM_ERROR_GONE ||
                             code == STREAM_ERROR_FORMAT)));
}

static int catch_up(struct look *look, struct api_error *e)
{
    struct part *part = look->part;
    struct errmsg msg = {.text = ""};
    struct stream_error error;
    int stored = 0;
    int code = read_on(look, &error, &stored, &msg);
    if (has_lost(part, code, stored)) {
        drop_rows(part);
        part->next_offset[0] = '\0';
        stored = 0;
        code = read_on(look, &error, &stored, &msg);
    }
    if (stored != 0) {
        return failure_of_store(e, stored, &msg, &look->index->teller);
    }
    return code == STREAM_OK ? 0 : failure_of_stream(e, &error, &look->index->teller);
}

static int load(struct look *look, struct api_error *e)
{
    struct part *part = look->part;
    struct errmsg msg = {.text = ""};
    struct slice next = {NULL, 0};
    struct arena arena;
    arena_init(&arena, 4u * KIB);
    int code = store_index_get(look->index->store, slice_of(part->thread_id), &arena, &next, &msg);
    if (code == 0 && next.ptr && next.len < sizeof(part->next_offset)) {
        memcpy(part->next_offset, next.ptr, next.len);
        part->next_offset[next.len] = '\0';
    }
    arena_finish(&arena);
    if (code != 0) {
        return failure_of_store(e, code, &msg, &look->index->teller);
    }
    memcpy(part->put_offset, part->next_offset, sizeof(part->put_offset));
    part->loaded = true;
    return 0;
}

/* ---------------------------------------------------------------------------------------- looks */

/* Finds where an entry stands: its offset in the arena, or ptr NULL. */
static int find_offset(struct look *look, struct slice id, struct arena *arena,
                       struct slice *ret_at, struct api_error *e)
{
    const struct row *row = find_row(look->part, id, slice_hash(id, 0));
    struct errmsg msg = {.text = ""};
    struct slice at = {NULL, 0};
    if (row) {
        struct slice text = row_at(row);
        at = (struct slice){arena_try_copy(arena, text), text.len};
        if (!at.ptr) {
            return failure_of_store(e, ERR_NOMEM, NULL, &look->index->teller);
        }
    } else {
        int code = store_index_find(look->index->store, slice_of(look->part->thread_id), id, arena,
                                    &at, &msg);
        if (code != 0 && code != ERR_NOTFOUND) {
            return failure_of_store(e, code, &msg, &look->index->teller);
        }
    }
    *ret_at = at;
    return 0;
}

/* All that needs the part. Offsets go where the JSON will be. */
static int search(struct look *look, struct arena *arena, struct api_error *e)
{
    int rc = look->part->loaded ? 0 : load(look, e);
    rc = rc == 0 ? catch_up(look, e) : rc;
    for (size_t i = 0; rc == 0 && i < look->count; i++) {
        rc = find_offset(look, look->queries[i].id, arena, &look->queries[i].json, e);
    }
    if (look->part->homeless) {
        drop_rows(look->part);
        look->part->next_offset[0] = '\0';
        look->part->loaded = false;
        look->part->homeless = false;
    }
    return rc;
}

/* Reads from `offset` on until the entry comes: 1, or 0 when it does not, or -1. */
static int fetch_from(const struct entry_index *x, struct slice thread_id, const char *offset,
                      struct entry_query *query, struct arena *arena, struct api_error *e)
{
    struct stream_reader *reader;
    struct stream_piece_view piece;
    struct stream_error error;
    struct entry entry;
    char *copy = NULL;
    bool found = false;
    int code = begin_reading(x, thread_id, offset, &reader, &error);
    if (code != STREAM_OK) {
        return failure_of_stream(e, &error, &x->teller);
    }
    while (!found && (code = stream_reader_next(reader, &piece, &error)) == STREAM_OK) {
        struct slice json = {piece.data, piece.len};
        found = json.len > 0 && entry_parse(json, &entry, NULL) == 0 &&
                slice_equal(entry.id, query->id);
        if (found) {
            copy = arena_try_copy(arena, json);
            query->json = (struct slice){copy, json.len};
        }
    }
    stream_reader_free(reader);
    if (found) {
        query->found = true;
        return copy ? 1 : failure_of_store(e, ERR_NOMEM, NULL, &x->teller);
    }
    bool ended = code == STREAM_END || code == STREAM_ERROR_REJECTED || code == STREAM_ERROR_FORMAT;
    return ended ? 0 : failure_of_stream(e, &error, &x->teller);
}

/* The entry itself, first where it should stand; a stream that had lost its end may have it
 * elsewhere by now. */
static int fetch(const struct entry_index *x, struct slice thread_id, struct entry_query *query,
                 struct arena *arena, struct api_error *e)
{
    char at[STREAM_OFFSET_BYTES];
    size_t len = query->json.len;
    if (!query->json.ptr || len >= sizeof(at)) {
        query->json = (struct slice){NULL, 0};
        return 0;
    }
    memcpy(at, query->json.ptr, len);
    at[len] = '\0';
    query->json = (struct slice){NULL, 0};
    int rc = fetch_from(x, thread_id, at, query, arena, e);
    if (rc == 0 && strcmp(at, START_OFFSET) != 0) {
        rc = fetch_from(x, thread_id, START_OFFSET, query, arena, e);
    }
    return rc < 0 ? -1 : 0;
}

int entry_index_look(struct entry_index *x, struct slice thread_id, struct entry_query *queries,
                     size_t count, struct arena *arena, struct api_error *ret_error)
{
    struct look look = {.index = x, .queries = queries, .count = count};
    assert(thread_id.len > 0 && thread_id.len < STORE_ID_BYTES);
    for (size_t i = 0; i < count; i++) {
        queries[i].found = false;
        queries[i].json = (struct slice){NULL, 0};
    }
    look.part = take_part(x, thread_id);
    if (!look.part) {
        return failure_of_store(ret_error, ERR_NOMEM, NULL, &x->teller);
    }
    int rc = search(&look, arena, ret_error);
    give_back(x, look.part);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        rc = fetch(x, thread_id, &queries[i], arena, ret_error);
    }
    return rc;
}

/* -------------------------------------------------------------------------------------- writing */

/* The first idle part that should be written now, or NULL. */
static struct part *next_due(const struct entry_index *x, uint64_t now_ms)
{
    struct list *first = list_first(&x->idle);
    struct part *part = first ? container_of(first, struct part, link) : NULL;
    return part && (is_filling(x) || now_ms - part->idle_ms >= IDLE_MS) ? part : NULL;
}

/* An error leaves the parts where they are; they are tried again after a while, and whatever is
 * lost is read again. */
static void retire_due(struct entry_index *x)
{
    struct part *part;
    int code = 0;
    /* Once each: a part that is wanted by then stays. */
    for (size_t left = x->parts.count; left > 0 && code == 0 && !x->stopping; left--) {
        part = next_due(x, client_now_ms());
        code = part ? retire(x, part, NULL) : 0;
    }
}

static void *run(void *context)
{
    struct entry_index *x = context;
    (void)pthread_mutex_lock(&x->lock);
    while (!x->stopping) {
        uint64_t at_ms = client_now_ms() + IDLE_MS / 5;
        struct timespec at = {.tv_sec = (time_t)(at_ms / 1000),
                              .tv_nsec = (long)(at_ms % 1000) * 1000000};
        (void)pthread_cond_timedwait(&x->news, &x->lock, &at);
        retire_due(x);
    }
    (void)pthread_mutex_unlock(&x->lock);
    return NULL;
}

int entry_index_flush(struct entry_index *x, struct errmsg *msg)
{
    struct errmsg why = {.text = ""};
    int code = 0;
    (void)pthread_mutex_lock(&x->lock);
    /* Each part that is idle now comes by once: one that is written goes, or stands last. */
    for (size_t left = x->parts.count; left > 0 && code == 0 && list_first(&x->idle); left--) {
        code = retire(x, container_of(list_first(&x->idle), struct part, link), &why);
    }
    (void)pthread_mutex_unlock(&x->lock);
    return code == 0 ? 0 : err_set(msg, code, "%s", why.text);
}

/* The thread takes no signals: they are the program's. */
static int start_thread(struct entry_index *x)
{
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&x->thread, NULL, run, x);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc == 0 ? 0 : ERR_AGAIN;
}

static void destroy(struct entry_index *x)
{
    for (struct list *link; (link = list_first(&x->idle));) {
        free_part(x, container_of(link, struct part, link));
    }
    assert(x->parts.count == 0);
    map_finish(&x->parts);
    (void)pthread_cond_destroy(&x->news);
    (void)pthread_cond_destroy(&x->released);
    (void)pthread_mutex_destroy(&x->lock);
    free(x);
}

int entry_index_open(struct thread_store *store, struct stream_client *client,
                     const struct failure_teller *teller, struct entry_index **ret_index)
{
    struct entry_index *x = calloc(1, sizeof(*x));
    pthread_condattr_t monotonic;
    if (!x) {
        return ERR_NOMEM;
    }
    x->store = store;
    x->client = client;
    x->teller = teller ? *teller : (struct failure_teller){.tell = NULL};
    map_init(&x->parts);
    list_init(&x->idle);
    (void)pthread_mutex_init(&x->lock, NULL); /* none of these can fail on Linux */
    (void)pthread_cond_init(&x->released, NULL);
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&x->news, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    int code = start_thread(x);
    if (code != 0) {
        destroy(x);
        return code;
    }
    *ret_index = x;
    return 0;
}

void entry_index_close(struct entry_index *x)
{
    if (!x) {
        return;
    }
    (void)pthread_mutex_lock(&x->lock);
    x->stopping = true;
    (void)pthread_cond_signal(&x->news);
    (void)pthread_mutex_unlock(&x->lock);
    (void)pthread_join(x->thread, NULL);
    (void)entry_index_flush(x, NULL); /* what is lost is read again */
    destroy(x);
}
