/* The board of T3 Code threads: what the streams of one or more T3 servers tell, folded into a row
 * for each thread.
 *
 * A board is fed the chunks of `orchestration.subscribeShell` and `.subscribeThread`, in the order
 * in which they came, and the answers of `.getThreadProjection`. It does no I/O and looks at no
 * clock. An event costs what its size does, whatever came before; memory goes with rows.
 *
 * Threads: a board is used by one thread at a time. */
#ifndef ARBE_T3_BOARD_H
#define ARBE_T3_BOARD_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Errors: calls return T3_BOARD_OK (0) or a code, and then fill `ret_error`, which may be NULL. */
enum t3_board_code {
    T3_BOARD_OK = 0,
    T3_BOARD_ERROR_ARGUMENT, /* the call itself makes no sense */
    T3_BOARD_ERROR_MEMORY,   /* out of memory */
    T3_BOARD_ERROR_FORMAT,   /* the text is no JSON, or neither chunk, item nor projection */
    T3_BOARD_ERROR_VERSION, /* the server speaks the first orchestration protocol, not the second */
    T3_BOARD_ERROR_LIMIT,   /* more hosts or threads than a board holds */
};

#define T3_BOARD_MESSAGE_BYTES 256

/* Filled by a call that fails; as it was otherwise. The caller's; plain memory. */
struct t3_board_error {
    enum t3_board_code code;
    char message[T3_BOARD_MESSAGE_BYTES]; /* one line that says what was wrong */
};

/* The name of a code, such as "VERSION". Static storage. */
const char *t3_board_code_name(enum t3_board_code code);

/* UTF-8, with a NUL behind it and perhaps some inside, which T3 allows. */
struct t3_board_text {
    const char *data; /* NULL: there is no such value */
    size_t len;       /* bytes, without the NUL at the end */
};

/* A thread as the board shows it. Times are those of the wire, as they came. */
struct t3_board_row {
    struct t3_board_text host;                 /* the label given to t3_board_apply */
    struct t3_board_text thread_id;            /* together with the host the key of the row */
    struct t3_board_text title;                /* as it came; at most 4 KiB of it */
    struct t3_board_text state;                /* of its newest run, "idle", or "archived" */
    struct t3_board_text last_turn_at;         /* newest sign of activity of that run */
    struct t3_board_text last_message_snippet; /* of the newest message; on one line */
    int asks; /* 1: a person is asked for something, and it is not archived; else 0 */
};

#define T3_BOARD_SNIPPET_GRAPHEMES     160
#define T3_BOARD_SNIPPET_GRAPHEMES_MAX 1000

struct t3_board_options {
    int snippet_graphemes; /* what people call characters, at most; 1 to the maximum above */
    size_t max_rows;       /* of all hosts together; above 0 */
};

/* Fills in the defaults: 160 graphemes, 100,000 rows. */
void t3_board_options_init(struct t3_board_options *options);

struct t3_board;

/* Makes an empty board. `options` (NULL: the defaults) are copied. ARGUMENT with a sentence,
 * MEMORY. */
int t3_board_new(const struct t3_board_options *options, struct t3_board **ret_board,
                 struct t3_board_error *ret_error);

/* Frees it; rows that were given out go with it. Accepts NULL. */
void t3_board_free(struct t3_board *board);

/* What became of the items of a call. Items that a board has no use for are in neither. */
struct t3_board_counts {
    size_t applied; /* taken; a snapshot is one */
    size_t skipped; /* hostile, broken or cut off; so is a record inside a snapshot */
};

/* Called for each row that changed, with `gone` 0, and for each that is there no more, with 1 and
 * what it was last. The row lives until the callback returns, which must not change the board. */
typedef void (*t3_board_change_fn)(void *context, const struct t3_board_row *row, int gone);

/* Folds a JSON text of `host` into the board: a chunk (an array of stream items), one item, or a
 * bare projection. Each row whose values differ afterwards is told once, when all is folded, in no
 * order; `changed` and `ret_counts` may be NULL. A host is its label: stable, one for each T3
 * installation, 1 to 255 bytes; the first use makes it. (So many parameters since each call has all
 * of them to say, and none has a default that a structure of options would be for.)
 *
 * FORMAT: nothing was changed. VERSION: what stood before the item was folded. LIMIT: all but the
 * threads beyond the limit was folded. MEMORY: a part was; subscribe anew, which brings a snapshot.
 * Whatever was folded has been told. */
int t3_board_apply(struct t3_board *board, const char *host, const char *json, size_t len,
                   t3_board_change_fn changed, void *context, struct t3_board_counts *ret_counts,
                   struct t3_board_error *ret_error);

/* Called for each operation: with `gone` 0 an upsert, whose values may be absent, and with 1 the
 * deletion of a thread, of which there is the id only. The row has no host. */
typedef void (*t3_board_operation_fn)(void *context, const struct t3_board_row *row, int gone);

/* Takes such a text apart for those who fold by themselves: each item's operations as they stand,
 * without what came before. What is absent is not told apart from what is null, older runs and
 * messages not from the newest, and that a snapshot replaces all rows of its host is not said.
 * `options` may be NULL. ARGUMENT, FORMAT, VERSION, MEMORY, as above. */
int t3_board_normalize(const struct t3_board_options *options, const char *json, size_t len,
                       t3_board_operation_fn operation, void *context,
                       struct t3_board_counts *ret_counts, struct t3_board_error *ret_error);

/* How many rows there are. */
size_t t3_board_count(const struct t3_board *board);

/* The row of a thread: 1, or 0 where there is none. It lives until the board next changes. */
int t3_board_find(const struct t3_board *board, const char *host, const char *thread_id,
                  struct t3_board_row *ret_row);

/* Called for each row; it lives as above. A result other than 0 ends the walk. */
typedef int (*t3_board_row_fn)(void *context, const struct t3_board_row *row);

/* All rows, sorted by the bytes of host, then thread id. Returns what the callback did. MEMORY: no
 * row was given. */
int t3_board_each(const struct t3_board *board, t3_board_row_fn each, void *context);

#ifdef __cplusplus
}
#endif

#endif
