/* Rows are in a map by host and thread id, and on a list of their host's. A row that an apply
 * touches goes onto a list once, with what was shown of it before; when all is folded, those that
 * look otherwise are told. A deleted thread leaves its row behind, empty, so that late events of it
 * find that it is gone: T3_DELETED_MAX of them, the oldest go first. */
#include "arbe/t3_board.h"

#include "base/limits.h"
#include "base/list.h"
#include "base/map.h"
#include "t3/item.h"
#include "t3/row.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

struct host {
    struct list in_board; /* of board.hosts */
    struct list rows;     /* of board_row.in_host */
    uint64_t seed;        /* of the hashes of its thread ids */
    size_t len;           /* of the name */
    char name[];          /* NUL-terminated */
};

struct board_row {
    struct map_node node;
    struct host *host;
    struct list in_host; /* of host.rows */
    struct list touched; /* of board.touched; alone: not touched by this apply */
    struct list deleted; /* of board.deleted; alone: not remembered as deleted */
    bool present;        /* on the board; else deleted, or about to be freed */
    bool was_present;    /* before this apply */
    uint64_t shown;      /* hash of what is shown, as of the last apply that touched it */
    uint64_t listed;     /* number of the last snapshot that it was in */
    struct t3_row row;
    size_t id_len;
    char id[]; /* NUL-terminated */
};

struct t3_board {
    struct t3_board_options options;
    struct map map;
    struct list hosts;
    size_t host_count;
    struct list touched; /* in the order of the first touch */
    struct list deleted; /* oldest first */
    size_t deleted_count;
    size_t count;       /* of rows that are present */
    uint64_t snapshots; /* taken so far */
    struct buf scratch;
};

/* An apply under way. */
struct folding {
    struct t3_board *board;
    struct host *host;
    bool listing;    /* within a snapshot */
    size_t unlisted; /* rows of the host that it has not listed yet: they go when it ends */
    bool full;       /* a thread found no room */
};

const char *t3_board_code_name(enum t3_board_code code)
{
    static const char *const names[] = {
        [T3_BOARD_OK] = "OK",
        [T3_BOARD_ERROR_ARGUMENT] = "ARGUMENT",
        [T3_BOARD_ERROR_MEMORY] = "MEMORY",
        [T3_BOARD_ERROR_FORMAT] = "FORMAT",
        [T3_BOARD_ERROR_VERSION] = "VERSION",
        [T3_BOARD_ERROR_LIMIT] = "LIMIT",
    };

    return (size_t)code < ARRAY_COUNT(names) ? names[code] : "UNKNOWN";
}

static int refuse(struct t3_board_error *error, enum t3_board_code code, const char *sentence)
{
    if (error != NULL) {
        error->code = code;
        (void)snprintf(error->message, sizeof(error->message), "%s", sentence);
    }
    return (int)code;
}

/* What the reader of items returned. */
static int refuse_reading(struct t3_board_error *error, int code, const struct errmsg *msg)
{
    switch (code) {
    case 0:
        return T3_BOARD_OK;
    case ERR_NOMEM:
        return refuse(error, T3_BOARD_ERROR_MEMORY, err_text(ERR_NOMEM));
    case ERR_MISMATCH:
        return refuse(error, T3_BOARD_ERROR_VERSION, msg->text);
    default:
        assert(code == ERR_INVALID);
        return refuse(error, T3_BOARD_ERROR_FORMAT, msg->text);
    }
}

void t3_board_options_init(struct t3_board_options *options)
{
    *options = (struct t3_board_options){
        .snippet_graphemes = T3_BOARD_SNIPPET_GRAPHEMES,
        .max_rows = T3_ROWS_MAX,
    };
}

static int check_options(const struct t3_board_options *options, struct t3_board_error *error)
{
    if (options->snippet_graphemes < 1 ||
        options->snippet_graphemes > T3_BOARD_SNIPPET_GRAPHEMES_MAX) {
        return refuse(error, T3_BOARD_ERROR_ARGUMENT,
                      "snippet_graphemes must be a number from 1 to 1000");
    }
    if (options->max_rows == 0) {
        return refuse(error, T3_BOARD_ERROR_ARGUMENT, "max_rows must be above 0");
    }
    return T3_BOARD_OK;
}

int t3_board_new(const struct t3_board_options *options, struct t3_board **ret_board,
                 struct t3_board_error *ret_error)
{
    struct t3_board *b = calloc(1, sizeof(*b));
    int code;

    if (b == NULL) {
        return refuse(ret_error, T3_BOARD_ERROR_MEMORY, err_text(ERR_NOMEM));
    }
    t3_board_options_init(&b->options);
    b->options = options != NULL ? *options : b->options;
    code = check_options(&b->options, ret_error);
    if (code != T3_BOARD_OK) {
        free(b);
        return code;
    }
    map_init(&b->map);
    list_init(&b->hosts);
    list_init(&b->touched);
    list_init(&b->deleted);
    buf_init(&b->scratch, 0);
    *ret_board = b;
    return T3_BOARD_OK;
}

/* ------------------------------------------------------------------ hosts and rows */

static struct host *find_host(const struct t3_board *b, struct slice name)
{
    LIST_FOR_EACH(node, &b->hosts)
    {
        struct host *h = container_of(node, struct host, in_board);

        if (slice_equal((struct slice){h->name, h->len}, name)) {
            return h;
        }
    }
    return NULL;
}

/* The hashes must not be foreseen by who sends ids, or a server could make the map a list; a board
 * has no randomness but that of where it lies in memory. */
static struct host *make_host(struct t3_board *b, struct slice name)
{
    struct host *h = malloc(sizeof(*h) + name.len + 1);

    if (h == NULL) {
        return NULL;
    }
    h->seed = slice_hash(name, (uint64_t)(uintptr_t)b ^ (uint64_t)(uintptr_t)h << 20);
    h->len = name.len;
    memcpy(h->name, name.ptr, name.len);
    h->name[name.len] = '\0';
    list_init(&h->in_board);
    list_init(&h->rows);
    list_append(&b->hosts, &h->in_board);
    b->host_count++;
    return h;
}

static struct board_row *find_row(const struct t3_board *b, const struct host *h, struct slice id)
{
    for (struct map_node *node = map_find(&b->map, slice_hash(id, h->seed)); node != NULL;
         node = map_find_next(node)) {
        struct board_row *r = container_of(node, struct board_row, node);

        if (r->host == h && slice_equal((struct slice){r->id, r->id_len}, id)) {
            return r;
        }
    }
    return NULL;
}

/* A row that is not present yet. */
static struct board_row *make_row(struct t3_board *b, struct host *h, struct slice id)
{
    struct board_row *r = calloc(1, sizeof(*r) + id.len + 1);

    if (r == NULL) {
        return NULL;
    }
    r->host = h;
    r->id_len = id.len;
    memcpy(r->id, id.ptr, id.len);
    list_init(&r->in_host);
    list_init(&r->touched);
    list_init(&r->deleted);
    if (map_insert(&b->map, &r->node, slice_hash(id, h->seed)) != 0) {
        free(r);
        return NULL;
    }
    list_append(&h->rows, &r->in_host);
    return r;
}

static void free_row(struct t3_board *b, struct board_row *r)
{
    map_remove(&b->map, &r->node);
    list_remove(&r->in_host);
    list_remove(&r->touched);
    list_remove(&r->deleted);
    t3_row_finish(&r->row);
    free(r);
}

void t3_board_free(struct t3_board *board)
{
    if (board == NULL) {
        return;
    }
    LIST_FOR_EACH(at, &board->hosts)
    {
        struct host *h = container_of(at, struct host, in_board);

        LIST_FOR_EACH(node, &h->rows)
        {
            free_row(board, container_of(node, struct board_row, in_host));
        }
        free(h);
    }
    map_finish(&board->map);
    buf_finish(&board->scratch);
    free(board);
}

/* ------------------------------------------------------------------ folding */

static void touch(struct t3_board *b, struct board_row *r)
{
    if (list_empty(&r->touched)) {
        r->was_present = r->present;
        list_append(&b->touched, &r->touched);
    }
}

static void set_present(struct t3_board *b, struct board_row *r, bool present)
{
    b->count += present && !r->present;
    b->count -= !present && r->present;
    r->present = present;
}

/* What the row says stays until it is told that it went. */
static void remember_deleted(struct t3_board *b, struct board_row *r)
{
    touch(b, r);
    set_present(b, r, false);
    b->deleted_count += list_empty(&r->deleted);
    list_remove(&r->deleted);
    list_append(&b->deleted, &r->deleted);
}

static void forget_deleted(struct t3_board *b, struct board_row *r)
{
    b->deleted_count -= !list_empty(&r->deleted);
    list_remove(&r->deleted);
}

/* Whether the row is one that goes when the snapshot that is being folded ends. */
static bool is_unlisted(const struct folding *f, const struct board_row *r)
{
    return f->listing && r->present && r->listed != f->board->snapshots;
}

static int fold_delete(struct folding *f, const struct t3_op *op)
{
    struct board_row *r = find_row(f->board, f->host, op->thread_id);

    if (r == NULL) {
        r = make_row(f->board, f->host, op->thread_id);
    }
    if (r == NULL) {
        return ERR_NOMEM;
    }
    f->unlisted -= is_unlisted(f, r);
    remember_deleted(f->board, r);
    return 0;
}

/* Whether a row more would be one too many; those that a snapshot has not listed are about to go,
 * so one that it does list stands for nothing yet. */
static bool is_full(const struct folding *f, const struct board_row *r)
{
    bool counts = r != NULL && r->present && !is_unlisted(f, r);

    return !counts && f->board->count - f->unlisted >= f->board->options.max_rows;
}

static int fold_upsert(struct folding *f, const struct t3_op *op)
{
    struct t3_board *b = f->board;
    struct board_row *r = find_row(b, f->host, op->thread_id);
    bool was_present = r != NULL && r->present;

    if (r != NULL && !list_empty(&r->deleted) && !op->creates) {
        return 0;
    }
    if (is_full(f, r)) {
        f->full = true;
        return 0;
    }
    r = r != NULL ? r : make_row(b, f->host, op->thread_id);
    if (r == NULL) {
        return ERR_NOMEM;
    }
    touch(b, r);
    if (!was_present) {
        t3_row_finish(&r->row);
    }
    int code = t3_row_merge(&r->row, op, (size_t)b->options.snippet_graphemes, &b->scratch);

    if (code == 0) {
        f->unlisted -= is_unlisted(f, r);
        forget_deleted(b, r);
        set_present(b, r, true);
        r->listed = f->listing ? b->snapshots : r->listed;
    }
    return code;
}

static void begin_snapshot(struct folding *f)
{
    f->board->snapshots++;
    f->listing = true;
    f->unlisted = 0;
    LIST_FOR_EACH(node, &f->host->rows)
    {
        f->unlisted += container_of(node, struct board_row, in_host)->present;
    }
}

/* Threads that the snapshot did not list are there no more; nobody said that they were deleted. */
static void end_snapshot(struct folding *f)
{
    LIST_FOR_EACH(node, &f->host->rows)
    {
        struct board_row *r = container_of(node, struct board_row, in_host);

        if (r->present && r->listed != f->board->snapshots) {
            touch(f->board, r);
            set_present(f->board, r, false);
        }
    }
    f->listing = false;
    f->unlisted = 0;
}

static int fold(void *context, const struct t3_op *op)
{
    struct folding *f = context;

    switch (op->kind) {
    case T3_OP_UPSERT:
        return fold_upsert(f, op);
    case T3_OP_DELETE:
        return fold_delete(f, op);
    case T3_OP_SNAPSHOT_BEGINS:
        begin_snapshot(f);
        return 0;
    case T3_OP_SNAPSHOT_ENDS:
        end_snapshot(f);
        return 0;
    }
    return 0;
}

/* ------------------------------------------------------------------ telling */

static struct t3_board_row shown(const struct board_row *r)
{
    struct t3_board_row row = t3_row_shown(&r->row);

    row.host = (struct t3_board_text){r->host->name, r->host->len};
    row.thread_id = (struct t3_board_text){r->id, r->id_len};
    return row;
}

static uint64_t hash_text(struct t3_board_text text, uint64_t seed)
{
    return text.data == NULL ? slice_hash(SLICE(""), seed + 1)
                             : slice_hash((struct slice){text.data, text.len}, seed);
}

static uint64_t hash_shown(const struct board_row *r)
{
    struct t3_board_row row = t3_row_shown(&r->row);
    uint64_t hash = hash_text(row.title, r->host->seed);

    hash = hash_text(row.state, hash);
    hash = hash_text(row.last_turn_at, hash);
    hash = hash_text(row.last_message_snippet, hash);
    return row.asks ? slice_hash(SLICE("asks"), hash) : hash;
}

static void settle_row(struct t3_board *b, struct board_row *r, t3_board_change_fn changed,
                       void *context)
{
    uint64_t hash = hash_shown(r);
    bool told = r->present ? !r->was_present || hash != r->shown : r->was_present;

    if (told && changed != NULL) {
        struct t3_board_row row = shown(r);

        changed(context, &row, !r->present);
    }
    r->shown = hash;
    if (r->present) {
        return;
    }
    t3_row_finish(&r->row);
    if (list_empty(&r->deleted)) {
        free_row(b, r);
    }
}

static void settle(struct t3_board *b, t3_board_change_fn changed, void *context)
{
    struct list *node;

    while ((node = list_first(&b->touched)) != NULL) {
        list_remove(node);
        settle_row(b, container_of(node, struct board_row, touched), changed, context);
    }
    while (b->deleted_count > T3_DELETED_MAX) {
        struct board_row *r = container_of(list_first(&b->deleted), struct board_row, deleted);

        forget_deleted(b, r);
        free_row(b, r);
    }
    buf_finish(&b->scratch);
}

static int find_or_make_host(struct t3_board *b, struct slice name, struct host **ret_host,
                             struct t3_board_error *error)
{
    if (name.len == 0 || name.len > T3_HOST_BYTES_MAX) {
        return refuse(error, T3_BOARD_ERROR_ARGUMENT,
                      "the label of a host has 1 to 255 bytes, and none is like another's");
    }
    *ret_host = find_host(b, name);
    if (*ret_host == NULL && b->host_count >= T3_HOSTS_MAX) {
        return refuse(error, T3_BOARD_ERROR_LIMIT, "a board holds at most 1024 hosts");
    }
    *ret_host = *ret_host != NULL ? *ret_host : make_host(b, name);
    return *ret_host != NULL ? T3_BOARD_OK
                             : refuse(error, T3_BOARD_ERROR_MEMORY, err_text(ERR_NOMEM));
}

/* Reads the text with the reader. */
static int read_all(struct t3_item_reader *reader, const char *json, size_t len,
                    struct t3_board_counts *ret_counts, struct t3_board_error *ret_error)
{
    struct errmsg msg = {{0}};
    int code = t3_item_read(reader, len == 0 ? SLICE("") : (struct slice){json, len}, &msg);

    if (ret_counts != NULL) {
        *ret_counts = (struct t3_board_counts){reader->applied, reader->skipped};
    }
    return refuse_reading(ret_error, code, &msg);
}

int t3_board_apply(struct t3_board *board, const char *host, const char *json, size_t len,
                   t3_board_change_fn changed, void *context, struct t3_board_counts *ret_counts,
                   struct t3_board_error *ret_error)
{
    struct folding f = {.board = board};
    struct t3_item_reader reader;
    int code;

    if (ret_counts != NULL) {
        *ret_counts = (struct t3_board_counts){.applied = 0};
    }
    code = find_or_make_host(board, slice_of(host), &f.host, ret_error);
    if (code != T3_BOARD_OK) {
        return code;
    }
    t3_item_reader_init(&reader, fold, &f);
    code = read_all(&reader, json, len, ret_counts, ret_error);
    settle(board, changed, context);
    if (code == T3_BOARD_OK && f.full) {
        return refuse(ret_error, T3_BOARD_ERROR_LIMIT,
                      "the board holds as many threads as it may: further ones are left out");
    }
    return code;
}

/* ------------------------------------------------------------------ operations alone */

struct normalizing {
    size_t graphemes;
    t3_board_operation_fn operation;
    void *context;
    struct buf scratch;
};

static int normalize(void *context, const struct t3_op *op)
{
    struct normalizing *n = context;
    struct t3_row row = {.archived = false};
    int code = 0;

    if (op->kind == T3_OP_SNAPSHOT_BEGINS || op->kind == T3_OP_SNAPSHOT_ENDS) {
        return 0;
    }
    if (op->kind == T3_OP_UPSERT) {
        code = t3_row_merge(&row, op, n->graphemes, &n->scratch);
    }
    if (code == 0) {
        struct t3_board_row told = t3_row_shown(&row);
        char id[T3_ID_BYTES_MAX + 1];

        memcpy(id, op->thread_id.ptr, op->thread_id.len);
        id[op->thread_id.len] = '\0';
        told.thread_id = (struct t3_board_text){id, op->thread_id.len};
        n->operation(n->context, &told, op->kind == T3_OP_DELETE);
    }
    t3_row_finish(&row);
    return code;
}

int t3_board_normalize(const struct t3_board_options *options, const char *json, size_t len,
                       t3_board_operation_fn operation, void *context,
                       struct t3_board_counts *ret_counts, struct t3_board_error *ret_error)
{
    struct t3_board_options defaults;
    struct normalizing n = {.operation = operation, .context = context};
    struct t3_item_reader reader;
    int code;

    t3_board_options_init(&defaults);
    options = options != NULL ? options : &defaults;
    if (ret_counts != NULL) {
        *ret_counts = (struct t3_board_counts){.applied = 0};
    }
    code = check_options(options, ret_error);
    if (code != T3_BOARD_OK) {
        return code;
    }
    n.graphemes = (size_t)options->snippet_graphemes;
    buf_init(&n.scratch, 0);
    t3_item_reader_init(&reader, normalize, &n);
    code = read_all(&reader, json, len, ret_counts, ret_error);
    buf_finish(&n.scratch);
    return code;
}

/* ------------------------------------------------------------------ looking */

size_t t3_board_count(const struct t3_board *board)
{
    return board->count;
}

int t3_board_find(const struct t3_board *board, const char *host, const char *thread_id,
                  struct t3_board_row *ret_row)
{
    const struct host *h = find_host(board, slice_of(host));
    const struct board_row *r = h != NULL ? find_row(board, h, slice_of(thread_id)) : NULL;

    if (r == NULL || !r->present) {
        return 0;
    }
    *ret_row = shown(r);
    return 1;
}

static int compare_rows(const void *a, const void *b)
{
    const struct board_row *one = *(struct board_row *const *)a;
    const struct board_row *other = *(struct board_row *const *)b;
    int order = slice_compare((struct slice){one->host->name, one->host->len},
                              (struct slice){other->host->name, other->host->len});

    return order != 0 ? order
                      : slice_compare((struct slice){one->id, one->id_len},
                                      (struct slice){other->id, other->id_len});
}

int t3_board_each(const struct t3_board *board, t3_board_row_fn each, void *context)
{
    const struct board_row **sorted = calloc(board->count + 1, sizeof(struct board_row *));
    size_t count = 0;
    int code = 0;

    if (sorted == NULL) {
        return T3_BOARD_ERROR_MEMORY;
    }
    for (struct map_node *node = map_next(&board->map, NULL); node != NULL;
         node = map_next(&board->map, node)) {
        const struct board_row *r = container_of(node, struct board_row, node);

        if (r->present) {
            sorted[count++] = r;
        }
    }
    assert(count == board->count);
    qsort(sorted, count, sizeof(*sorted), compare_rows);
    for (size_t i = 0; code == 0 && i < count; i++) {
        struct t3_board_row row = shown(sorted[i]);

        code = each(context, &row);
    }
    free(sorted);
    return code;
}
