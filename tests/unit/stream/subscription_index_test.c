/* The index against a list that is looked through: what matches, what is left after removals, what
 * memory that runs out leaves behind, hostile patterns, and readers on another thread. */
#include <stdlib.h>

static int allocations_left = -1; /* below 0: as many as wanted */

static void *test_calloc(size_t count, size_t size)
{
    return allocations_left == 0 ? NULL : (allocations_left--, calloc(count, size));
}

static void *test_realloc(void *old, size_t size)
{
    return allocations_left == 0 ? NULL : (allocations_left--, realloc(old, size));
}

#define calloc  test_calloc
#define realloc test_realloc
#include "stream/subscription_index.c"
#undef calloc
#undef realloc

#include <stdatomic.h>
#include <stdio.h>

#include "base/dice.h"
#include "unit/base/unit.h"

#define RULES 300u

/* A name or pattern, as the list has it. */
struct rule {
    struct index_entry entry;
    bool added;
    bool pattern;
    unsigned found; /* in the current look-up */
    char text[64];
};

static struct rule rules[RULES];
static struct subscription_index *x;
static uint64_t seed;

static unsigned draw(unsigned below)
{
    return (unsigned)(dice_roll(&seed) % below);
}

static int open_index(void **state)
{
    (void)state;
    allocations_left = -1;
    seed = 1;
    memset(rules, 0, sizeof(rules));
    x = subscription_index_create(42);
    assert_non_null(x);
    return 0;
}

static int close_index(void **state)
{
    (void)state;
    subscription_index_destroy(x);
    return 0;
}

static int add(struct rule *r, bool pattern, const char *text)
{
    r->pattern = pattern;
    memcpy(r->text, text, strlen(text) + 1);
    int code = pattern ? subscription_index_add_pattern(x, &r->entry, slice_of(text))
                       : subscription_index_add_name(x, &r->entry, slice_of(text));
    r->added = code == 0;
    return code;
}

static void take_out(struct rule *r)
{
    subscription_index_remove(x, &r->entry);
    r->added = false;
}

static void count(void *context, struct index_entry *entry)
{
    struct rule *r = container_of(entry, struct rule, entry);
    assert_int_equal(entry->is_pattern, r->pattern);
    r->found++;
    (*(unsigned *)context)++;
}

static unsigned look_up(const char *name)
{
    unsigned found = 0;
    for (size_t i = 0; i < RULES; i++) {
        rules[i].found = 0;
    }
    subscription_index_each(x, slice_of(name), count, &found);
    return found;
}

/* Every entry that the list says matches is found, once, and no other. */
static void compare(const char *name)
{
    unsigned found = look_up(name);
    unsigned want = 0;
    for (size_t i = 0; i < RULES; i++) {
        struct rule *r = &rules[i];
        bool matches = r->added && (r->pattern ? glob_matches(slice_of(r->text), slice_of(name))
                                               : strcmp(r->text, name) == 0);
        want += matches;
        if (r->found != matches) {
            fail_msg("%s and %s: found %u times", r->text, name, r->found);
        }
    }
    assert_int_equal(found, want);
    assert_int_equal(subscription_index_matches(x, slice_of(name)), want > 0);
}

static void draw_path(char *out, const char *const *segments, unsigned kinds)
{
    unsigned segment_count = 1 + draw(5);
    size_t len = 0;
    for (unsigned i = 0; i < segment_count; i++) {
        const char *segment = segments[draw(kinds)];
        out[len] = '/';
        len += i > 0;
        memcpy(out + len, segment, strlen(segment));
        len += strlen(segment);
    }
    out[len] = '\0';
}

/* Names and patterns find their way back, each kind by itself. */
static void test_simple(void **state)
{
    (void)state;
    assert_int_equal(add(&rules[0], false, "events/a"), 0);
    assert_int_equal(add(&rules[1], true, "events/*"), 0);
    assert_int_equal(add(&rules[2], true, "**"), 0);
    assert_int_equal(add(&rules[3], false, "*"), 0);
    assert_int_equal(add(&rules[4], true, "%2A"), 0);
    assert_int_equal(look_up("events/a"), 3);
    assert_int_equal(look_up("events/b"), 2);
    assert_int_equal(look_up("x"), 1);
    assert_int_equal(look_up("*"), 3);
    take_out(&rules[2]);
    assert_false(subscription_index_matches(x, SLICE("x")));
    take_out(&rules[2]); /* it is in none */
    compare("events/a");
}

/* Random rules come and go; when all are gone nothing is left. */
static void test_random(void **state)
{
    static const char *const parts[] = {"a", "b", "*", "*", "**", "%2A", "c"};
    static const char *const names[] = {"a", "b", "*", "c", ""};
    (void)state;
    for (int round = 0; round < 20000; round++) {
        struct rule *r = &rules[draw(RULES)];
        char text[64];
        if (r->added) {
            take_out(r);
        } else {
            bool pattern = draw(4) > 0;
            draw_path(text, pattern ? parts : names,
                      pattern ? ARRAY_COUNT(parts) : ARRAY_COUNT(names));
            assert_int_equal(add(r, pattern, text), 0);
        }
        draw_path(text, names, ARRAY_COUNT(names));
        if (text[0] != '\0') {
            compare(text);
        }
    }
    for (size_t i = 0; i < RULES; i++) {
        take_out(&rules[i]);
    }
    assert_int_equal(x->nodes.count, 0);
    assert_int_equal(x->trie_nodes, 1);
}

/* Patterns that mean the same share a node: there is no use in writing stars in other orders. */
static void test_normal_form(void **state)
{
    (void)state;
    assert_int_equal(add(&rules[0], true, "*/**/x"), 0);
    size_t nodes = x->trie_nodes;
    assert_int_equal(add(&rules[1], true, "**/*/x"), 0);
    assert_int_equal(add(&rules[2], true, "**/**/*/**/x"), 0);
    assert_int_equal(x->trie_nodes, nodes);
    compare("a/x");
    compare("x");
}

/* Whichever allocation fails, the index is as before and the entry free to try again. */
static void test_no_memory(void **state)
{
    (void)state;
    assert_int_equal(add(&rules[0], true, "a/*"), 0);
    for (int kind = 0; kind < 2; kind++) {
        int code = ERR_NOMEM;
        for (int i = 0; code != 0; i++) {
            size_t nodes = x->nodes.count;
            size_t trie_nodes = x->trie_nodes;
            allocations_left = i;
            code = add(&rules[1 + kind], kind > 0, "a/b/*/**/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q/r");
            allocations_left = -1;
            if (code != 0) {
                assert_int_equal(code, ERR_NOMEM);
                assert_null(rules[1 + kind].entry.node);
                assert_int_equal(x->nodes.count, nodes);
                assert_int_equal(x->trie_nodes, trie_nodes);
                compare("a/b");
            }
        }
    }
    compare("a/b/x/c/d/e/f/g/h/i/j/k/l/m/n/o/p/q/r");
    for (int i = 0; i < 2; i++) {
        allocations_left = i;
        assert_null(subscription_index_create(1));
    }
    allocations_left = -1;
}

/* At the cap of segments a pattern is refused, and fits again once others left. */
static void test_full(void **state)
{
    struct index_entry *entries = calloc(INDEX_NODES_MAX / 60, sizeof(*entries));
    unsigned added = 0;
    int code = 0;
    (void)state;
    assert_non_null(entries);
    while (code == 0) {
        char text[200];
        int len = snprintf(text, sizeof(text), "%u", added);
        for (int i = 0; i < 62; i++) {
            len += snprintf(text + len, sizeof(text) - (size_t)len, "/a");
        }
        assert_true(added < INDEX_NODES_MAX / 60);
        code = subscription_index_add_pattern(x, &entries[added], slice_of(text));
        added += code == 0;
    }
    assert_int_equal(code, ERR_LIMIT);
    assert_true(x->trie_nodes > INDEX_NODES_MAX - 63);
    subscription_index_remove(x, &entries[0]);
    assert_int_equal(add(&rules[0], true, "one/more"), 0);
    assert_int_equal(add(&rules[1], false, "names/are/not/counted"), 0);
    compare("one/more");
    free(entries);
}

static void count_all(void *context, struct index_entry *entry)
{
    (void)entry;
    (*(unsigned *)context)++;
}

/* Every pattern of eight segments out of three, and a name that all but some match to the end: the
 * quick look-up gives up and says yes, the exact one is exact. */
static void test_hostile(void **state)
{
    enum {
        ALL = 6561
    }; /* three to the eighth */
    static const char *const parts[] = {"a", "*", "**"};
    struct index_entry *entries = calloc(ALL, sizeof(*entries));
    char name[STREAM_NAME_BYTES_MAX + 1];
    unsigned want = 0;
    unsigned got = 0;
    (void)state;
    assert_non_null(entries);
    for (unsigned i = 0; i < 401; i++) {
        name[i] = i % 2 == 0 ? 'a' : '/';
    }
    name[400] = 'b';
    name[401] = '\0';
    for (unsigned n = 0; n < ALL; n++) {
        char text[64] = "";
        size_t len = 0;
        unsigned rest = n;
        for (int i = 0; i < 8; i++, rest /= 3) {
            const char *part = parts[rest % 3];
            text[len] = '/';
            len += i > 0;
            memcpy(text + len, part, strlen(part) + 1);
            len += strlen(part);
        }
        assert_int_equal(subscription_index_add_pattern(x, &entries[n], slice_of(text)), 0);
        want += glob_matches(slice_of(text), slice_of(name));
    }
    assert_true(subscription_index_matches(x, slice_of(name)));
    subscription_index_each(x, slice_of(name), count_all, &got);
    assert_int_equal(got, want);
    free(entries);
}

/* A look-up that ran out of places says yes where the exact answer is no. */
static void test_gives_up(void **state)
{
    enum {
        MANY = QUICK_ANY + 1
    };
    struct index_entry entries[MANY];
    unsigned found = 0;
    (void)state;
    memset(entries, 0, sizeof(entries));
    for (unsigned n = 0; n < MANY; n++) {
        char text[64];
        (void)snprintf(text, sizeof(text), "%s/**/z%u/**/z", n % 2 ? "*" : "**", n); /* fits */
        assert_int_equal(subscription_index_add_pattern(x, &entries[n], slice_of(text)), 0);
    }
    char name[512] = "a";
    size_t len = 1;
    for (unsigned n = 0; n < MANY; n++) {
        len += (size_t)snprintf(name + len, sizeof(name) - len, "/z%u", n);
    }
    subscription_index_each(x, slice_of(name), count_all, &found);
    assert_int_equal(found, 0);
    assert_true(subscription_index_matches(x, slice_of(name)));
    assert_false(subscription_index_matches(x, SLICE("a/b")));
}

struct reader {
    atomic_bool stop;
    atomic_uint rounds;
};

static void *read_all(void *context)
{
    struct reader *r = context;
    while (!atomic_load(&r->stop)) {
        assert(subscription_index_matches(x, SLICE("stays/a")));
        assert(!subscription_index_matches(x, SLICE("never")));
        (void)subscription_index_matches(x, SLICE("comes/a/b"));
        atomic_fetch_add(&r->rounds, 1);
    }
    return NULL;
}

/* Others may look up while the owner changes. */
static void test_threads(void **state)
{
    struct reader reader = {0};
    pthread_t thread;
    (void)state;
    assert_int_equal(add(&rules[0], true, "stays/*"), 0);
    assert_int_equal(pthread_create(&thread, NULL, read_all, &reader), 0);
    for (int i = 0; i < 2000 || atomic_load(&reader.rounds) < 100; i++) {
        assert_int_equal(add(&rules[1], true, "comes/**/b"), 0);
        assert_int_equal(add(&rules[2], false, "comes/a/b"), 0);
        assert_int_equal(look_up("comes/a/b"), 2);
        take_out(&rules[1]);
        take_out(&rules[2]);
    }
    atomic_store(&reader.stop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_simple, open_index, close_index),
        cmocka_unit_test_setup_teardown(test_random, open_index, close_index),
        cmocka_unit_test_setup_teardown(test_normal_form, open_index, close_index),
        cmocka_unit_test_setup_teardown(test_no_memory, open_index, close_index),
        cmocka_unit_test_setup_teardown(test_full, open_index, close_index),
        cmocka_unit_test_setup_teardown(test_hostile, open_index, close_index),
        cmocka_unit_test_setup_teardown(test_gives_up, open_index, close_index),
        cmocka_unit_test_setup_teardown(test_threads, open_index, close_index),
    };
    return UNIT_RUN(tests);
}
