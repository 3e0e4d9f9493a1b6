/* The reader of the catalog's file, on any bytes: it comes to an end, and within them. */
#include "log/btree.h"

#include <assert.h>

#include "base/bytes.h"
#include "log/catalog_env.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct bytes {
    const uint8_t *ptr;
    size_t len;
};

static int memory_open(void *context, const char *path)
{
    (void)context;
    (void)path;
    return 0;
}

static void memory_close(void *context, int fd)
{
    (void)context;
    (void)fd;
}

static int64_t memory_size(void *context, int fd)
{
    const struct bytes *b = context;
    (void)fd;
    return (int64_t)b->len;
}

static int64_t memory_pread(void *context, int fd, void *out, size_t len, uint64_t at)
{
    const struct bytes *b = context;
    (void)fd;
    size_t left = at < b->len ? b->len - (size_t)at : 0;
    size_t n = len < left ? len : left;
    if (n > 0) {
        memcpy(out, b->ptr + at, n);
    }
    return (int64_t)n;
}

static void on_problem(void *context, uint64_t page, const char *what)
{
    (void)context;
    (void)page;
    assert(what[0] != '\0');
}

static void walk(struct btree_file *f, const struct btree *tree)
{
    struct btree_cursor c;
    struct btree_cursor look;
    struct slice key;
    struct slice value;
    unsigned sum = 0;
    unsigned steps = 0;
    btree_cursor_init(&c, f, tree);
    btree_cursor_init(&look, f, tree);
    int rc = btree_cursor_seek(&c, (struct slice){0});
    rc = rc ? rc : btree_cursor_next(&c, &key, &value);
    while (rc > 0 && steps++ < 2000) {
        for (size_t i = 0; i < value.len; i++) {
            sum += (unsigned char)value.ptr[i];
        }
        if (key.len > 0) {
            (void)(btree_cursor_get(&look, key, &value) == 0); /* it need not be found */
        }
        rc = btree_cursor_next(&c, &key, &value);
    }
    assert(rc <= 1 && sum + 1 > 0);
    btree_cursor_finish(&c);
    btree_cursor_finish(&look);
}

static void check(struct btree_file *f)
{
    struct btree_usage usage;
    struct btree tree;
    if (f->page_count > 100000 || btree_usage_init(&usage, f) != 0) {
        return;
    }
    bool whole = btree_check_tree(f, &f->main, &usage, on_problem, NULL) == 0;
    for (unsigned i = 0; i < TABLE_COUNT; i++) {
        if (btree_file_table(f, catalog_table_name((enum catalog_table)i), &tree) == 0) {
            whole = btree_check_tree(f, &tree, &usage, on_problem, NULL) == 0 && whole;
            walk(f, &tree);
        }
    }
    whole = btree_check_free(f, &usage, on_problem, NULL) == 0 && whole;
    btree_usage_finish(&usage);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes bytes = {data, size};
    struct btree_file *f = NULL;
    struct errmsg msg = {{0}};
    struct sys sys = {.context = &bytes,
                      .open_read = memory_open,
                      .close = memory_close,
                      .size = memory_size,
                      .pread = memory_pread};
    if (btree_file_open(&sys, "memory", &f, &msg) == 0) {
        check(f);
        btree_file_close(f);
    } else {
        assert(msg.text[0] != '\0');
    }
    return 0;
}
