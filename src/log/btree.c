/* The layout of LMDB 0.9 on a 64-bit little-endian machine, as far as it is needed:
 *
 *   Page header, 16 bytes: u64 number, u16 pad, u16 flags (1 branch, 2 leaf, 4 overflow, 8
 *   root), u16 lower, u16 upper; on an overflow page u32 how many pages instead of these two.
 *   Behind it a u16 per node, up to `lower`: where the node is, at `upper` or behind it.
 *
 *   Node: u16 low and u16 high half of the value's length, u16 flags (1 the value is on pages of
 *   its own, 2 it is a tree), u16 length of the key, key, value; for a large value u64 its first
 *   page. On a branch the first three are 48 bits of the child's page number instead.
 *
 *   Tree record, 48 bytes: u32 pad, u16 flags, u16 depth, u64 branch, leaf, overflow pages,
 *   entries, root.
 *
 *   Root pages, number 0 and 1, behind the header: u32 magic, u32 version, u64 address, u64 size of
 *   the map, tree record of free pages (its pad is the page size), of tables, u64 last page, u64
 *   transaction. The one with the higher transaction counts.
 *
 * A root page is written while we may read it, so it is read until two readings agree. */
#include "log/btree.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"

#define HEADER_BYTES    16u
#define NODE_BYTES      8u
#define TREE_BYTES      48u
#define ROOT_BYTES      152u
#define ROOT_MAGIC      0xbeefc0deu
#define ROOT_VERSION    1u
#define PAGE_BRANCH     1u
#define PAGE_LEAF       2u
#define PAGE_OVERFLOW   4u
#define PAGE_ROOT       8u
#define PAGE_BYTES_MIN  512u
#define PAGE_BYTES_MAX  65536u
#define CACHE_PAGES     512u
#define ROOT_READS_MAX  100u
#define VALUE_BYTES_MAX (64u * 1024 * 1024)

int btree_fault(struct btree_file *f, uint64_t page, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(f->fault, sizeof(f->fault), format, args);
    va_end(args);
    f->fault_page = page;
    return ERR_CORRUPT;
}

void btree_decode(const void *bytes, struct btree *ret_tree)
{
    const uint8_t *at = bytes;
    *ret_tree = (struct btree){.flags = bytes_get_u16(at + 4),
                               .depth = bytes_get_u16(at + 6),
                               .branch_pages = bytes_get_u64(at + 8),
                               .leaf_pages = bytes_get_u64(at + 16),
                               .overflow_pages = bytes_get_u64(at + 24),
                               .entries = bytes_get_u64(at + 32),
                               .root = bytes_get_u64(at + 40)};
}

uint64_t btree_overflow_count(const struct btree_file *f, uint64_t bytes)
{
    return (HEADER_BYTES + bytes + f->page_bytes - 1) / f->page_bytes;
}

/* Roots. */

/* Reads the root page at `at` until two readings agree. */
static int read_root(struct btree_file *f, uint64_t at, uint8_t out[static ROOT_BYTES])
{
    uint8_t again[ROOT_BYTES];
    for (unsigned i = 0; i < ROOT_READS_MAX; i++) {
        int64_t n = f->sys->pread(f->sys->context, f->fd, out, ROOT_BYTES, at);
        if (n < 0) {
            return (int)n;
        }
        int64_t m = f->sys->pread(f->sys->context, f->fd, again, ROOT_BYTES, at);
        if (m < 0) {
            return (int)m;
        }
        if (n < ROOT_BYTES || m < ROOT_BYTES) {
            return ERR_CORRUPT;
        }
        if (memcmp(out, again, ROOT_BYTES) == 0) {
            return 0;
        }
    }
    return ERR_AGAIN;
}

static int judge_root(const uint8_t *root, uint64_t number)
{
    uint32_t page_bytes = bytes_get_u32(root + 40);
    bool known = bytes_get_u64(root) == number && bytes_get_u16(root + 10) == PAGE_ROOT &&
                 bytes_get_u32(root + 16) == ROOT_MAGIC;
    if (known && bytes_get_u32(root + 20) != ROOT_VERSION) {
        return ERR_MISMATCH;
    }
    bool sized = page_bytes >= PAGE_BYTES_MIN && page_bytes <= PAGE_BYTES_MAX &&
                 (page_bytes & (page_bytes - 1)) == 0;
    return known && sized && bytes_get_u64(root + 136) < UINT32_MAX ? 0 : ERR_CORRUPT;
}

static void use_root(struct btree_file *f, const uint8_t *root)
{
    memcpy(f->meta, root, ROOT_BYTES);
    f->page_bytes = bytes_get_u32(root + 40);
    btree_decode(root + 40, &f->free);
    btree_decode(root + 88, &f->main);
    f->page_count = bytes_get_u64(root + 136) + 1;
    f->txn = bytes_get_u64(root + 144);
}

/* The second root is found by the page size of the first, or by trying where that is damaged. */
static int find_roots(struct btree_file *f, struct errmsg *msg)
{
    uint8_t first[ROOT_BYTES];
    uint8_t second[ROOT_BYTES];
    int rc = read_root(f, 0, first);
    int good = rc ? rc : judge_root(first, 0);
    uint64_t from = good == 0 ? bytes_get_u32(first + 40) : PAGE_BYTES_MIN;
    uint64_t to = good == 0 ? from : PAGE_BYTES_MAX;
    int other = ERR_CORRUPT;
    for (uint64_t size = from; size <= to && other; size *= 2) {
        other = read_root(f, size, second);
        other = other ? other : judge_root(second, 1);
        other = other == 0 && bytes_get_u32(second + 40) != size ? ERR_CORRUPT : other;
    }
    if (good && other) {
        int code = good != ERR_CORRUPT ? good : other;
        return err_set(msg, code, "%s",
                       code == ERR_MISMATCH  ? "it has a version of LMDB that is not known here"
                       : code == ERR_CORRUPT ? "neither of its two root pages is good"
                                             : err_file_text(code));
    }
    f->root_damaged[0] = good != 0;
    f->root_damaged[1] = other != 0;
    bool newer = good || (!other && bytes_get_u64(second + 144) > bytes_get_u64(first + 144));
    use_root(f, newer ? second : first);
    return 0;
}

int btree_file_open(struct sys *sys, const char *path, struct btree_file **ret_file,
                    struct errmsg *msg)
{
    struct btree_file *f = calloc(1, sizeof(*f));
    if (!f) {
        return err_set(msg, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
    }
    f->sys = sys;
    f->fd = sys->open_read(sys->context, path);
    if (f->fd < 0) {
        int rc = f->fd;
        free(f);
        return err_set(msg, rc, "%s", err_file_text(rc));
    }
    int64_t size = sys->size(sys->context, f->fd);
    int rc = size < 0 ? err_set(msg, (int)size, "%s", err_file_text((int)size)) : 0;
    f->file_bytes = rc ? 0 : (uint64_t)size;
    rc = rc ? rc : find_roots(f, msg);
    if (rc == 0) {
        f->cache = malloc((size_t)CACHE_PAGES * f->page_bytes);
        f->cached = calloc(CACHE_PAGES, sizeof(f->cached[0]));
        rc = f->cache && f->cached ? 0 : err_set(msg, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
    }
    if (rc) {
        btree_file_close(f);
        return rc;
    }
    *ret_file = f;
    return 0;
}

void btree_file_close(struct btree_file *f)
{
    if (f) {
        f->sys->close(f->sys->context, f->fd);
        free(f->cache);
        free(f->cached);
        free(f);
    }
}

/* Pages. */

unsigned btree_page_nodes(const char *page)
{
    return (bytes_get_u16(page + 12) - HEADER_BYTES) / 2;
}

bool btree_page_is_leaf(const char *page)
{
    return (bytes_get_u16(page + 10) & PAGE_LEAF) != 0;
}

void btree_page_node(const char *page, unsigned index, struct btree_node *ret_node)
{
    const char *at = page + bytes_get_u16(page + HEADER_BYTES + 2 * index);
    uint64_t low = bytes_get_u16(at);
    uint64_t high = bytes_get_u16(at + 2);
    uint16_t flags = bytes_get_u16(at + 4);
    size_t key_len = bytes_get_u16(at + 6);
    struct btree_node n = {.key = {at + NODE_BYTES, key_len}, .flags = flags};
    if (!btree_page_is_leaf(page)) {
        n.flags = 0;
        n.child = low | high << 16 | (uint64_t)flags << 32;
    } else if (flags & BTREE_NODE_LARGE) {
        n.bytes = low | high << 16;
        n.child = bytes_get_u64(at + NODE_BYTES + key_len);
    } else {
        n.bytes = low | high << 16;
        n.value = (struct slice){at + NODE_BYTES + key_len, (size_t)n.bytes};
    }
    *ret_node = n;
}

/* Whether the node at `at` ends within the page. */
static bool node_fits(const struct btree_file *f, const char *page, unsigned at)
{
    if (at + NODE_BYTES > f->page_bytes) {
        return false;
    }
    uint64_t end = at + NODE_BYTES + bytes_get_u16(page + at + 6);
    if (btree_page_is_leaf(page)) {
        bool large = (bytes_get_u16(page + at + 4) & BTREE_NODE_LARGE) != 0;
        uint64_t bytes = bytes_get_u16(page + at) | (uint64_t)bytes_get_u16(page + at + 2) << 16;
        end += large ? 8 : bytes;
    }
    return end <= f->page_bytes;
}

static int prove_page(struct btree_file *f, uint64_t number, const char *page)
{
    unsigned flags = bytes_get_u16(page + 10);
    unsigned lower = bytes_get_u16(page + 12);
    unsigned upper = bytes_get_u16(page + 14);
    if (bytes_get_u64(page) != number) {
        return btree_fault(f, number, "it says that it is page %llu",
                           (unsigned long long)bytes_get_u64(page));
    }
    if (flags != PAGE_BRANCH && flags != PAGE_LEAF) {
        return btree_fault(f, number, "its kind is %u, which a page of a tree does not have",
                           flags);
    }
    if (lower < HEADER_BYTES || lower % 2 != 0 || upper < lower || upper > f->page_bytes) {
        return btree_fault(f, number, "its bounds %u and %u make no sense", lower, upper);
    }
    unsigned count = btree_page_nodes(page);
    if (count == 0) {
        return btree_fault(f, number, "it is empty");
    }
    for (unsigned i = 0; i < count; i++) {
        unsigned at = bytes_get_u16(page + HEADER_BYTES + 2 * i);
        if (at < upper || !node_fits(f, page, at)) {
            return btree_fault(f, number, "node %u of %u lies outside of it", i, count);
        }
    }
    return 0;
}

/* Reads `count` pages. */
static int read_pages(struct btree_file *f, uint64_t number, uint64_t count, char *out)
{
    if (number < 2 || number >= f->page_count || count > f->page_count - number) {
        return btree_fault(f, number, "there is no such page");
    }
    size_t len = (size_t)(count * f->page_bytes);
    int64_t n = f->sys->pread(f->sys->context, f->fd, out, len, number * f->page_bytes);
    if (n < 0) {
        (void)btree_fault(f, number, "%s", err_file_text((int)n));
        return (int)n;
    }
    return n == (int64_t)len ? 0 : btree_fault(f, number, "the file ends before it");
}

int btree_page_read(struct btree_file *f, uint64_t number, char *out)
{
    unsigned slot = (unsigned)(number % CACHE_PAGES);
    char *kept = f->cache + (size_t)slot * f->page_bytes;
    if (number == 0 || f->cached[slot] != number) {
        f->cached[slot] = 0;
        int rc = read_pages(f, number, 1, kept);
        rc = rc ? rc : prove_page(f, number, kept);
        if (rc) {
            return rc;
        }
        f->cached[slot] = number;
    }
    memcpy(out, kept, f->page_bytes);
    return 0;
}

/* Walking. */

void btree_cursor_init(struct btree_cursor *c, struct btree_file *f, const struct btree *tree)
{
    *c = (struct btree_cursor){.file = f, .tree = *tree};
}

void btree_cursor_finish(struct btree_cursor *c)
{
    for (unsigned i = 0; i < BTREE_DEPTH_MAX; i++) {
        free(c->levels[i].page);
    }
    free(c->value);
    *c = (struct btree_cursor){0};
}

/* Makes `number` the lowest level. */
static int push(struct btree_cursor *c, uint64_t number)
{
    struct btree_file *f = c->file;
    if (c->depth == BTREE_DEPTH_MAX || c->depth == c->tree.depth) {
        return btree_fault(f, number, "it is deeper in its tree than the tree is");
    }
    char **page = &c->levels[c->depth].page;
    if (!*page && !(*page = malloc(f->page_bytes))) {
        return ERR_NOMEM;
    }
    int rc = btree_page_read(f, number, *page);
    if (rc) {
        return rc;
    }
    if (btree_page_is_leaf(*page) != (c->depth + 1 == c->tree.depth)) {
        return btree_fault(f, number, "it is at level %u of %u, where its kind does not belong",
                           c->depth + 1, c->tree.depth);
    }
    c->levels[c->depth++].index = 0;
    return 0;
}

/* The first node whose key is `from` or above. */
static unsigned find_node(const char *page, struct slice from)
{
    unsigned low = 0;
    unsigned high = btree_page_nodes(page);
    while (low < high) {
        unsigned middle = (low + high) / 2;
        struct btree_node n;
        btree_page_node(page, middle, &n);
        if (slice_compare(n.key, from) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* The child of a branch that may hold `from`; its first key is empty and counts as the least. */
static unsigned find_child(const char *page, struct slice from)
{
    unsigned i = find_node(page, from);
    struct btree_node n;
    if (i < btree_page_nodes(page)) {
        btree_page_node(page, i, &n);
        if (i == 0 || slice_equal(n.key, from)) {
            return i;
        }
    }
    return i - 1;
}

int btree_cursor_seek(struct btree_cursor *c, struct slice from)
{
    c->depth = 0;
    if (c->tree.root == UINT64_MAX) {
        return 0;
    }
    int rc = push(c, c->tree.root);
    while (rc == 0) {
        unsigned level = c->depth - 1;
        const char *page = c->levels[level].page;
        if (btree_page_is_leaf(page)) {
            c->levels[level].index = find_node(page, from);
            return 0;
        }
        unsigned child = from.len == 0 ? 0 : find_child(page, from);
        c->levels[level].index = child + 1;
        struct btree_node n;
        btree_page_node(page, child, &n);
        rc = push(c, n.child);
    }
    c->depth = 0;
    return rc;
}

/* Puts the large value of a node together. */
static int read_large(struct btree_cursor *c, const struct btree_node *n, struct slice *ret_value)
{
    struct btree_file *f = c->file;
    if (n->bytes > VALUE_BYTES_MAX) {
        return btree_fault(f, n->child, "a value of %llu bytes begins there",
                           (unsigned long long)n->bytes);
    }
    uint64_t count = btree_overflow_count(f, n->bytes);
    size_t len = (size_t)(count * f->page_bytes);
    if (len > c->value_cap) {
        char *value = realloc(c->value, len);
        if (!value) {
            return ERR_NOMEM;
        }
        c->value = value;
        c->value_cap = len;
    }
    int rc = read_pages(f, n->child, count, c->value);
    if (rc) {
        return rc;
    }
    if (bytes_get_u64(c->value) != n->child || bytes_get_u16(c->value + 10) != PAGE_OVERFLOW ||
        bytes_get_u32(c->value + 12) != count) {
        return btree_fault(f, n->child, "it does not begin the large value that it should");
    }
    *ret_value = (struct slice){c->value + HEADER_BYTES, (size_t)n->bytes};
    return 0;
}

/* Goes to the next leaf, or to the end. */
static int next_leaf(struct btree_cursor *c)
{
    c->depth--;
    while (c->depth > 0 &&
           c->levels[c->depth - 1].index == btree_page_nodes(c->levels[c->depth - 1].page)) {
        c->depth--;
    }
    while (c->depth > 0 && c->depth < c->tree.depth) {
        struct btree_node n;
        unsigned level = c->depth - 1;
        btree_page_node(c->levels[level].page, c->levels[level].index++, &n);
        int rc = push(c, n.child);
        if (rc) {
            return rc;
        }
    }
    return 0;
}

int btree_cursor_next(struct btree_cursor *c, struct slice *ret_key, struct slice *ret_value)
{
    if (c->depth > 0 &&
        c->levels[c->depth - 1].index == btree_page_nodes(c->levels[c->depth - 1].page)) {
        int rc = next_leaf(c);
        if (rc) {
            c->depth = 0;
            return rc;
        }
    }
    if (c->depth == 0) {
        return 0;
    }
    struct btree_node n;
    unsigned level = c->depth - 1;
    btree_page_node(c->levels[level].page, c->levels[level].index++, &n);
    int rc = n.flags & BTREE_NODE_LARGE ? read_large(c, &n, &n.value) : 0;
    if (rc) {
        return rc;
    }
    *ret_key = n.key;
    *ret_value = n.value;
    return 1;
}

int btree_cursor_get(struct btree_cursor *c, struct slice key, struct slice *ret_value)
{
    struct slice found;
    struct slice value;
    int rc = btree_cursor_seek(c, key);
    rc = rc ? rc : btree_cursor_next(c, &found, &value);
    if (rc < 0) {
        return rc;
    }
    if (rc == 0 || !slice_equal(found, key)) {
        return ERR_NOTFOUND;
    }
    *ret_value = value;
    return 0;
}

int btree_file_table(struct btree_file *f, const char *name, struct btree *ret_tree)
{
    struct btree_cursor c;
    struct slice value;
    btree_cursor_init(&c, f, &f->main);
    int rc = btree_cursor_get(&c, slice_of(name), &value);
    if (rc == 0 && value.len != TREE_BYTES) {
        rc = btree_fault(f, f->main.root, "the entry of table %s is no tree", name);
    }
    if (rc == 0) {
        btree_decode(value.ptr, ret_tree);
    }
    btree_cursor_finish(&c);
    return rc;
}
