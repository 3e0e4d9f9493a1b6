/* Reading the catalog's file without LMDB, which maps it and believes what it finds: a damaged page
 * ends the process there. Here every page is read with pread and every length is checked, so that
 * what is wrong can be told. btree.c opens with the layout.
 *
 * A file is one snapshot: the newest root when it was opened. While a server runs, that stays whole
 * as long as the server holds it (hold.h). Nothing is written. One thread. */
#ifndef ARBE_LOG_BTREE_H
#define ARBE_LOG_BTREE_H

#include "base/err.h"
#include "base/slice.h"
#include "log/sys.h"

#define BTREE_DEPTH_MAX   16u /* levels of a tree; LMDB's own trees of 64 GiB have less */
#define BTREE_FAULT_BYTES 160u

/* A tree of pages. */
struct btree {
    uint16_t flags;
    uint16_t depth;          /* levels; 0: empty */
    uint64_t branch_pages;   /* by count of LMDB, as are all of these */
    uint64_t leaf_pages;     /* its lowest level */
    uint64_t overflow_pages; /* of values that fill more than a page */
    uint64_t entries;        /* pairs of key and value */
    uint64_t root;           /* page; all ones: empty */
};

struct btree_file {
    struct sys *sys;
    int fd;
    uint64_t file_bytes;
    uint32_t page_bytes;
    uint64_t page_count;           /* pages of the snapshot, roots included */
    uint64_t txn;                  /* that made the snapshot */
    struct btree free;             /* of free pages */
    struct btree main;             /* of the tables' names */
    bool root_damaged[2];          /* one damaged root page is survived */
    uint8_t meta[152];             /* the root page's used bytes */
    char *cache;                   /* owned; pages by their number's low bits */
    uint64_t *cached;              /* owned; which page is there; 0: none */
    uint64_t fault_page;           /* where the last ERR_CORRUPT was found */
    char fault[BTREE_FAULT_BYTES]; /* and what it is */
};

/* Opens the file of the catalog and chooses the newest root. ERR_NOTFOUND, ERR_CORRUPT (neither
 * root page is good), ERR_MISMATCH (of another version), ERR_IO, each with a sentence. */
int btree_file_open(struct sys *sys, const char *path, struct btree_file **ret_file,
                    struct errmsg *msg) MUST_USE;

/* Closes and frees. Accepts NULL. */
void btree_file_close(struct btree_file *f);

/* The table of that name. ERR_NOTFOUND, ERR_CORRUPT, ERR_IO. */
int btree_file_table(struct btree_file *f, const char *name, struct btree *ret_tree) MUST_USE;

/* Called for each thing that is wrong: the page, and what. */
typedef void (*btree_problem_fn)(void *context, uint64_t page, const char *what);

/* Which pages are in use; shared by the checks of all trees of a file. */
struct btree_usage {
    uint8_t *used; /* owned; a bit per page */
    uint64_t count;
};

/* Room for all pages of the file. ERR_NOMEM. */
int btree_usage_init(struct btree_usage *u, const struct btree_file *f) MUST_USE;

/* Frees. Accepts a zeroed struct. */
void btree_usage_finish(struct btree_usage *u);

/* Reads a whole tree: links, lengths, order of the keys, counts, no page used twice. ERR_CORRUPT
 * when problems were told; ERR_IO, ERR_NOMEM. */
int btree_check_tree(struct btree_file *f, const struct btree *tree, struct btree_usage *usage,
                     btree_problem_fn problem, void *context) MUST_USE;

/* Reads the list of free pages and sees that none of them is in use; after all trees. */
int btree_check_free(struct btree_file *f, struct btree_usage *usage, btree_problem_fn problem,
                     void *context) MUST_USE;

/* A walk over a tree, in the order of its keys. */
struct btree_cursor {
    struct btree_file *file;
    struct btree tree;
    unsigned depth; /* levels in use; 0: at the end */
    struct {
        char *page;     /* owned; a copy */
        unsigned index; /* of the next node */
    } levels[BTREE_DEPTH_MAX];
    char *value; /* owned; the last value that fills more than a page */
    size_t value_cap;
};

/* A walk that has not begun. */
void btree_cursor_init(struct btree_cursor *c, struct btree_file *f, const struct btree *tree);

/* Frees. Accepts a zeroed struct. */
void btree_cursor_finish(struct btree_cursor *c);

/* Goes before the first entry whose key is `from` or above; an empty one: before all. 0,
 * ERR_CORRUPT (see fault), ERR_IO, ERR_NOMEM. */
int btree_cursor_seek(struct btree_cursor *c, struct slice from) MUST_USE;

/* Steps over an entry: 1 and the entry, borrowed until the cursor next moves; 0 at the end; errors
 * as btree_cursor_seek. */
int btree_cursor_next(struct btree_cursor *c, struct slice *ret_key,
                      struct slice *ret_value) MUST_USE;

/* Looks one key up with a cursor, whose value is borrowed until it next moves. ERR_NOTFOUND and as
 * btree_cursor_seek. */
int btree_cursor_get(struct btree_cursor *c, struct slice key, struct slice *ret_value) MUST_USE;

/* For btree_check.c: a proven page into `out`; what a node of it holds. */
int btree_page_read(struct btree_file *f, uint64_t number, char *out) MUST_USE;

/* Says what is wrong with a page; ERR_CORRUPT. */
int btree_fault(struct btree_file *f, uint64_t page, const char *format, ...) PRINTF_LIKE(3, 4);

struct btree_node {
    struct slice key;
    struct slice value; /* of a leaf, unless large */
    uint64_t child;     /* of a branch; of a leaf with a large value, its first page */
    uint64_t bytes;     /* of the value */
    uint16_t flags;
};

/* Nodes of a proven page. */
unsigned btree_page_nodes(const char *page);
bool btree_page_is_leaf(const char *page);
void btree_page_node(const char *page, unsigned index, struct btree_node *ret_node);

#define BTREE_NODE_LARGE 1u
#define BTREE_NODE_TREE  2u

/* Reads the record of a tree, 48 bytes. */
void btree_decode(const void *bytes, struct btree *ret_tree);

/* How many pages a value of so many bytes takes that has pages of its own. */
uint64_t btree_overflow_count(const struct btree_file *f, uint64_t bytes);

#endif
