/* A tree is read depth first, so its keys come in order, and one key has to be remembered. What is
 * wrong with a page is told, the page with all below it is left out, and the walk goes on beside
 * it: then the counts cannot be right either, and are not compared. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "log/btree.h"

#define KEY_BYTES_MAX 512u
#define WHAT_BYTES    256u

int btree_usage_init(struct btree_usage *u, const struct btree_file *f)
{
    u->count = f->page_count;
    u->used = calloc(1, (size_t)(f->page_count / 8 + 1));
    return u->used ? 0 : ERR_NOMEM;
}

void btree_usage_finish(struct btree_usage *u)
{
    free(u->used);
    *u = (struct btree_usage){0};
}

/* Marks a page as used; false when it was already. */
static bool mark(struct btree_usage *u, uint64_t page)
{
    if (page >= u->count) {
        return true; /* reading it says what is wrong */
    }
    uint8_t bit = (uint8_t)(1u << (page % 8));
    bool fresh = (u->used[page / 8] & bit) == 0;
    u->used[page / 8] |= bit;
    return fresh;
}

struct check {
    struct btree_file *file;
    struct btree_usage *usage;
    btree_problem_fn problem;
    void *context;
    bool numbers;      /* keys are numbers in the machine's order */
    bool any;          /* there was a key before */
    uint64_t problems; /* told */
    struct btree found;
    unsigned depth;           /* of the tree */
    char *pages;              /* owned; a page per level */
    char last[KEY_BYTES_MAX]; /* the key before */
    size_t last_len;          /* of it */
};

static void tell(struct check *k, uint64_t page, const char *format, ...) PRINTF_LIKE(3, 4);

static void tell(struct check *k, uint64_t page, const char *format, ...)
{
    char what[WHAT_BYTES];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    k->problems++;
    k->problem(k->context, page, what);
}

static int compare_keys(const struct check *k, struct slice a, struct slice b)
{
    if (k->numbers && a.len == 8 && b.len == 8) {
        uint64_t left = bytes_get_u64(a.ptr);
        uint64_t right = bytes_get_u64(b.ptr);
        return left < right ? -1 : left > right;
    }
    return slice_compare(a, b);
}

/* Takes the next key; a separator of a branch may be equal to the key that comes behind it. */
static void take_key(struct check *k, uint64_t page, unsigned index, struct slice key,
                     bool separator)
{
    struct slice last = {k->last, k->last_len};
    if (key.len == 0 || key.len > KEY_BYTES_MAX - 1) {
        tell(k, page, "node %u has a key of %zu bytes", index, key.len);
        return;
    }
    if (k->any && compare_keys(k, last, key) > 0) {
        tell(k, page, "the key of node %u is not behind the one before: entries are not found",
             index);
    }
    memcpy(k->last, key.ptr, key.len);
    k->last_len = key.len;
    k->any = true;
    k->found.entries += !separator;
}

static void take_large(struct check *k, uint64_t page, unsigned index, const struct btree_node *n)
{
    uint64_t count = btree_overflow_count(k->file, n->bytes);
    k->found.overflow_pages += count;
    if (n->child < 2 || n->child >= k->usage->count || count > k->usage->count - n->child) {
        tell(k, page, "the large value of node %u is on pages that do not exist", index);
        return;
    }
    for (uint64_t i = 0; i < count; i++) {
        if (!mark(k->usage, n->child + i)) {
            tell(k, n->child + i, "it is used twice: one of its users reads foreign bytes");
        }
    }
}

static int take_page(struct check *k, uint64_t number, unsigned level);

static int take_nodes(struct check *k, const char *page, uint64_t number, unsigned level)
{
    bool leaf = btree_page_is_leaf(page);
    for (unsigned i = 0; i < btree_page_nodes(page); i++) {
        struct btree_node n;
        btree_page_node(page, i, &n);
        if (leaf || i > 0) {
            take_key(k, number, i, n.key, !leaf);
        }
        if (leaf && (n.flags & BTREE_NODE_LARGE)) {
            take_large(k, number, i, &n);
        }
        int rc = leaf ? 0 : take_page(k, n.child, level + 1);
        if (rc) {
            return rc;
        }
    }
    return 0;
}

/* Bounded by the depth of the tree, at most BTREE_DEPTH_MAX. */
static int take_page(struct check *k, uint64_t number, unsigned level)
{
    char *page = k->pages + (size_t)level * k->file->page_bytes;
    if (level == k->depth) {
        tell(k, number, "it is deeper in its tree than the tree is");
        return 0;
    }
    if (!mark(k->usage, number)) {
        tell(k, number, "it is used twice: one of its users reads foreign entries");
        return 0;
    }
    int rc = btree_page_read(k->file, number, page);
    if (rc == ERR_NOMEM) {
        return rc;
    }
    if (rc) {
        tell(k, number, "%s", k->file->fault);
        return 0;
    }
    bool leaf = btree_page_is_leaf(page);
    if (leaf != (level + 1 == k->depth)) {
        tell(k, number, "it is at level %u of %u, where its kind does not belong", level + 1,
             k->depth);
        return 0;
    }
    k->found.leaf_pages += leaf;
    k->found.branch_pages += !leaf;
    return take_nodes(k, page, number, level);
}

static void compare_counts(struct check *k, const struct btree *tree)
{
    const struct btree *f = &k->found;
    if (f->entries != tree->entries || f->leaf_pages != tree->leaf_pages ||
        f->branch_pages != tree->branch_pages || f->overflow_pages != tree->overflow_pages) {
        tell(k, tree->root, "its tree has %llu entries on %llu pages and says %llu on %llu",
             (unsigned long long)f->entries,
             (unsigned long long)(f->leaf_pages + f->branch_pages + f->overflow_pages),
             (unsigned long long)tree->entries,
             (unsigned long long)(tree->leaf_pages + tree->branch_pages + tree->overflow_pages));
    }
}

static int check_tree(struct check *k, const struct btree *tree)
{
    if (tree->root == UINT64_MAX) {
        compare_counts(k, tree);
        return k->problems > 0 ? ERR_CORRUPT : 0;
    }
    k->depth = tree->depth;
    if (tree->depth == 0 || tree->depth > BTREE_DEPTH_MAX) {
        tell(k, tree->root, "its tree is %u levels deep", tree->depth);
        return ERR_CORRUPT;
    }
    k->pages = malloc((size_t)tree->depth * k->file->page_bytes);
    if (!k->pages) {
        return ERR_NOMEM;
    }
    int rc = take_page(k, tree->root, 0);
    free(k->pages);
    if (rc == 0 && k->problems == 0) {
        compare_counts(k, tree);
    }
    return rc ? rc : k->problems > 0 ? ERR_CORRUPT : 0;
}

int btree_check_tree(struct btree_file *f, const struct btree *tree, struct btree_usage *usage,
                     btree_problem_fn problem, void *context)
{
    struct check k = {.file = f, .usage = usage, .problem = problem, .context = context};
    return check_tree(&k, tree);
}

/* A value of the tree of free pages: u64 count, u64 numbers. */
static void take_free(struct check *k, struct slice value)
{
    uint64_t count = value.len >= 8 ? bytes_get_u64(value.ptr) : 0;
    if (value.len < 8 || count > value.len / 8 - 1) {
        tell(k, k->file->free.root, "a list of free pages is cut short");
        return;
    }
    for (uint64_t i = 0; i < count; i++) {
        uint64_t page = bytes_get_u64(value.ptr + 8 + i * 8);
        if (page < 2 || page >= k->usage->count) {
            tell(k, k->file->free.root, "page %llu is listed as free and does not exist",
                 (unsigned long long)page);
        } else if (!mark(k->usage, page)) {
            tell(k, page,
                 "it is in use, or free twice, and listed as free: it will be "
                 "overwritten");
        }
    }
}

int btree_check_free(struct btree_file *f, struct btree_usage *usage, btree_problem_fn problem,
                     void *context)
{
    struct check k = {
        .file = f, .usage = usage, .problem = problem, .context = context, .numbers = true};
    int rc = check_tree(&k, &f->free);
    if (rc) {
        return rc;
    }
    struct btree_cursor c;
    struct slice key;
    struct slice value;
    btree_cursor_init(&c, f, &f->free);
    rc = btree_cursor_seek(&c, (struct slice){0});
    rc = rc ? rc : btree_cursor_next(&c, &key, &value);
    while (rc > 0) {
        take_free(&k, value);
        rc = btree_cursor_next(&c, &key, &value);
    }
    btree_cursor_finish(&c);
    if (rc == ERR_CORRUPT) {
        tell(&k, f->fault_page, "%s", f->fault);
    }
    return rc ? rc : k.problems > 0 ? ERR_CORRUPT : 0;
}
