/* Which keys a terminal's bytes are. */
#include "cli/keypress.c"

#include "unit/base/unit.h"

#include <stdio.h>

/* The keys of `bytes`, each as a letter or name; "..." when the last one has only begun. */
static const char *keys_of(const char *bytes, size_t len, bool whole)
{
    static const char *const letters[] = {"",     "^",     "ENTER", "ESC",  "BACK", "UP",  "DOWN",
                                          "LEFT", "RIGHT", "PGUP",  "PGDN", "HOME", "END", "?"};
    static char text[400];
    size_t used = 0;
    struct slice rest = {bytes, len};

    text[0] = '\0';
    while (rest.len > 0) {
        struct keypress key = {.kind = KEYPRESS_UNKNOWN};
        size_t taken = keypress_take(rest, whole, &key);

        if (taken == 0) {
            (void)snprintf(text + used, sizeof(text) - used, "...");
            break;
        }
        assert_true(taken <= rest.len);
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%.*s ", letters[key.kind],
                                 (int)key.len, key.text);
        rest = (struct slice){rest.ptr + taken, rest.len - taken};
    }
    return text;
}

#define assert_keys(bytes, whole, w) \
    assert_string_equal(keys_of(bytes, sizeof(bytes) - 1, whole), w)

static void characters(void **state)
{
    (void)state;
    assert_keys("q/\u4f60\u00e9\U0001f600", false, "q / \u4f60 \u00e9 \U0001f600 ");
    assert_keys("\r\n\177\b\014\002", false, "ENTER ENTER BACK BACK ^l ^b ");
    assert_keys("\t", false, "^i ");
    assert_keys("\0\037", false, "? ? ");
}

static void named_keys(void **state)
{
    (void)state;
    assert_keys("\033[A\033OB\033[C\033[D", false, "UP DOWN RIGHT LEFT ");
    assert_keys("\033[5~\033[6~\033[H\033OF\033[1~\033[4~", false, "PGUP PGDN HOME END HOME END ");
    assert_keys("\033[1;5A\033[200~x", false, "? ? x ");
}

/* A key that has only begun waits for the rest, until nothing follows. */
static void halves(void **state)
{
    (void)state;
    assert_keys("\033", false, "...");
    assert_keys("\033", true, "ESC ");
    assert_keys("\033[", false, "...");
    assert_keys("\033[", true, "? ");
    assert_keys("\033[5", false, "...");
    assert_keys("\033\033[A", false, "ESC UP ");
    assert_keys("\033x", false, "? ");
    assert_keys("\033\344\275\240x", false, "? x ");
    assert_keys("\033\303\251\033[A", false, "? UP ");
    assert_keys("\033\344\275", false, "...");
    assert_keys("\033\344\275", true, "? ");
    assert_keys("\033\377a", false, "...");
    assert_keys("\033\377aaaa", false, "? a a a a ");
    assert_keys("\344\275", false, "...");
    assert_keys("\344\275", true, "? ");
    assert_keys("\377a", false, "...");
    assert_keys("\377aaaa", false, "? a a a a ");
}

/* Whatever comes, keys end. */
static void any_bytes(void **state)
{
    uint32_t seed = 1;

    (void)state;
    for (int round = 0; round < 20000; round++) {
        char bytes[12];

        for (size_t i = 0; i < sizeof(bytes); i++) {
            seed = seed * 1664525u + 1013904223u;
            bytes[i] = (seed >> 28) < 4 ? '\033' : (seed >> 28) < 6 ? '[' : (char)(seed >> 20);
        }
        struct slice rest = {bytes, sizeof(bytes)};

        while (rest.len > 0) {
            struct keypress key;
            size_t taken = keypress_take(rest, true, &key);

            assert_true(taken > 0 && taken <= rest.len);
            rest = (struct slice){rest.ptr + taken, rest.len - taken};
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(characters),
        cmocka_unit_test(named_keys),
        cmocka_unit_test(halves),
        cmocka_unit_test(any_bytes),
    };

    return UNIT_RUN(tests);
}
