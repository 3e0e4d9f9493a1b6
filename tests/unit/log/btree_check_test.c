/* Damage to the pages of the catalog: each kind is named, and random bytes do no harm. */
#include "log/btree_check.c"

#include "sim/fakedisk.h"
#include "unit/log/verify_fixture.h"

#define PAGE   4096u
#define NAMES  600u /* enough for branches above the leaves */
#define ROUNDS 300u

/* A directory whose tables have branches and whose catalog has free pages. */
static void build(struct site *s)
{
    *s = (struct site){0};
    rig_open(&s->rig);
    for (unsigned i = 0; i < NAMES; i++) {
        char name[64];
        (void)snprintf(name, sizeof(name), "a/name/of/some/length/that/fills/pages/%06u", i);
        assert_int_equal(rig_put(&s->rig, name, "text/plain", "bytes"), 0);
        if (i % 200 == 199) {
            site_save(&s->rig);
        }
    }
    for (unsigned i = 0; i < 50; i++) {
        char name[64];
        (void)snprintf(name, sizeof(name), "a/name/of/some/length/that/fills/pages/%06u", i);
        assert_int_equal(rig_delete(&s->rig, name), 0);
    }
    site_save(&s->rig);
    site_down(s);
}

static void read_page(const struct site *s, uint64_t number, char *out)
{
    int fd = site_open(s, CATALOG_FILE);
    assert_int_equal(pread(fd, out, PAGE, (off_t)(number * PAGE)), PAGE);
    close(fd);
}

static void write_page(const struct site *s, uint64_t number, const char *bytes)
{
    site_write(s, CATALOG_FILE, number * PAGE, bytes, PAGE);
}

static struct btree_file *open_file(struct site *s)
{
    char path[256];
    struct btree_file *f = NULL;
    struct errmsg msg = {{0}};
    site_path(s, CATALOG_FILE, path);
    assert_int_equal(btree_file_open(&s->rig.sys, path, &f, &msg), 0);
    assert_int_equal(f->page_bytes, PAGE);
    return f;
}

/* The root of a table, which is a branch, and its first child. */
static void find_pages(struct site *s, const char *table, uint64_t *ret_root, uint64_t *ret_leaf)
{
    struct btree_file *f = open_file(s);
    struct btree tree;
    struct btree_node node;
    char page[PAGE];
    assert_int_equal(btree_file_table(f, table, &tree), 0);
    assert_int_equal(tree.depth, 2);
    read_page(s, tree.root, page);
    btree_page_node(page, 0, &node);
    *ret_root = tree.root;
    *ret_leaf = node.child;
    btree_file_close(f);
}

static void change_page(struct site *s, bool leaf, void (*change)(char *page))
{
    uint64_t root = 0;
    uint64_t child = 0;
    char page[PAGE];
    find_pages(s, "streams", &root, &child);
    read_page(s, leaf ? child : root, page);
    change(page);
    write_page(s, leaf ? child : root, page);
}

static void other_number(char *page)
{
    page[0] ^= 1;
}

static void other_kind(char *page)
{
    page[10] = 0x20;
}

static void bounds(char *page)
{
    bytes_put_u16(page + 12, 5000);
}

static void node_outside(char *page)
{
    bytes_put_u16(page + 16 + 2, PAGE - 2);
}

static void long_key(char *page)
{
    bytes_put_u16(page + bytes_get_u16(page + 16) + 6, 60000);
}

static void swapped(char *page)
{
    uint16_t first = bytes_get_u16(page + 16);
    bytes_put_u16(page + 16, bytes_get_u16(page + 18));
    bytes_put_u16(page + 18, first);
}

static void fewer(char *page)
{
    bytes_put_u16(page + 12, (uint16_t)(bytes_get_u16(page + 12) - 2));
}

static void same_child(char *page)
{
    const char *first = page + bytes_get_u16(page + 16);
    char *second = page + bytes_get_u16(page + 18);
    memcpy(second, first, 6);
}

static void far_child(char *page)
{
    bytes_put_u16(page + bytes_get_u16(page + 18) + 2, 0x7fff);
}

static void itself(char *page)
{
    char *first = page + bytes_get_u16(page + 16);
    bytes_put_u16(first, bytes_get_u16(page));
}

#define LEAF(name)                          \
    static void leaf_##name(struct site *s) \
    {                                       \
        change_page(s, true, name);         \
    }
#define BRANCH(name)                          \
    static void branch_##name(struct site *s) \
    {                                         \
        change_page(s, false, name);          \
    }
LEAF(other_number)
LEAF(other_kind)
LEAF(bounds)
LEAF(node_outside)
LEAF(long_key)
LEAF(swapped)
LEAF(fewer)
BRANCH(same_child)
BRANCH(far_child)
BRANCH(itself)
BRANCH(swapped)

static void first_root(struct site *s)
{
    site_flip(s, CATALOG_FILE, 16);
}

static void second_root(struct site *s)
{
    site_flip(s, CATALOG_FILE, PAGE + 16);
}

static void both_roots(struct site *s)
{
    first_root(s);
    second_root(s);
}

static void no_file(struct site *s)
{
    site_unlink(s, CATALOG_FILE);
}

static void empty_file(struct site *s)
{
    site_cut(s, CATALOG_FILE, 0);
}

static void cut_file(struct site *s)
{
    uint64_t root = 0;
    uint64_t leaf = 0;
    find_pages(s, "streams", &root, &leaf);
    site_cut(s, CATALOG_FILE, (root < leaf ? root : leaf) * PAGE);
}

/* A page that is in use is put into the list of free ones. */
static void used_is_free(struct site *s)
{
    struct btree_file *f = open_file(s);
    uint64_t root = 0;
    uint64_t leaf = 0;
    uint64_t list = f->free.root;
    char page[PAGE];
    struct btree_node node;
    assert_int_equal(f->free.depth, 1);
    btree_file_close(f);
    find_pages(s, "streams", &root, &leaf);
    read_page(s, list, page);
    btree_page_node(page, 0, &node);
    assert_true(bytes_get_u64(node.value.ptr) > 0);
    bytes_put_u64(page + (node.value.ptr - page) + 8, leaf);
    write_page(s, list, page);
}

static const struct damage damages[] = {
    {"a leaf of another number", leaf_other_number, CATALOG_FILE, "it says that it is page"},
    {"a leaf of another kind", leaf_other_kind, CATALOG_FILE, "its kind is 32"},
    {"bounds outside", leaf_bounds, CATALOG_FILE, "its bounds 5000 and"},
    {"a node outside", leaf_node_outside, CATALOG_FILE, "lies outside of it"},
    {"a key that is too long", leaf_long_key, CATALOG_FILE, "lies outside of it"},
    {"keys out of order", leaf_swapped, CATALOG_FILE, "is not behind the one before"},
    {"an entry gone", leaf_fewer, CATALOG_FILE, "its tree has 549 entries"},
    {"a page twice", branch_same_child, CATALOG_FILE, "it is used twice"},
    {"a page that does not exist", branch_far_child, CATALOG_FILE, "there is no such page"},
    {"a page that is its own child", branch_itself, CATALOG_FILE, "it is"},
    {"branches out of order", branch_swapped, CATALOG_FILE, "is not behind the one before"},
    {"the first root", first_root, CATALOG_FILE, "page 0, a root: it does not prove itself"},
    {"the second root", second_root, CATALOG_FILE, "page 1, a root: it does not prove itself"},
    {"both roots", both_roots, CATALOG_FILE, "neither of its two root pages is good"},
    {"no file", no_file, CATALOG_FILE, "the catalog cannot be opened"},
    {"an empty file", empty_file, CATALOG_FILE, "the catalog cannot be opened"},
    {"a file that was cut", cut_file, CATALOG_FILE, "the file ends before it"},
    {"a used page in the list of free ones", used_is_free, CATALOG_FILE, "will be overwritten"},
};

static void test_damages(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(damages); i++) {
        struct site s;
        build(&s);
        site_expect_good(&s);
        damages[i].inflict(&s);
        site_verify(&s);
        if (!site_says(&s, damages[i].file, damages[i].text)) {
            fail_msg("%s: nobody says \"%s\" but:\n%s", damages[i].name, damages[i].text, s.text);
        }
        site_remove(&s);
    }
}

/* Whatever stands in the file, it is read to an end, and most of what changes it is told. */
static void test_random_damage(void **state)
{
    (void)state;
    struct site s;
    build(&s);
    struct btree_file *f = open_file(&s);
    uint64_t pages = f->page_count;
    uint64_t random = 7;
    btree_file_close(f);
    for (unsigned i = 0; i < ROUNDS; i++) {
        char before[PAGE];
        uint64_t number = 2 + fakedisk_below(&random, pages - 2);
        read_page(&s, number, before);
        char page[PAGE];
        memcpy(page, before, PAGE);
        for (unsigned j = 0; j < 3; j++) {
            uint64_t at = fakedisk_below(&random, j == 0 ? 64 : PAGE);
            page[at] = (char)fakedisk_next(&random);
        }
        write_page(&s, number, page);
        site_verify(&s);
        write_page(&s, number, before);
    }
    site_expect_good(&s);
    site_remove(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_damages),
        cmocka_unit_test(test_random_damage),
    };
    return UNIT_RUN(tests);
}
