/* What is left of a secret in a text: nothing that tells it. */
#include "base/dice.h"
#include "base/redact.h"

#include "unit/base/unit.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define TOKEN "eyJzaWQiOiJzZXNzaW9uLTEifQ.c2lnbmF0dXJl"

static void redacts(void **state)
{
    static const struct {
        const char *text;
        const char *secret;
        const char *left;
    } cases[] = {
        {"", TOKEN, ""},
        {"bad session", TOKEN, "bad session"},
        {"bad session " TOKEN, TOKEN, "bad session ***"},
        {TOKEN "," TOKEN ".", TOKEN, "***,***."},
        {TOKEN TOKEN, TOKEN, "******"},
        {"cut: eyJzaWQiOi", TOKEN, "cut: ***"},
        {"end: c2lnbmF0dXJl", TOKEN, "end: ***"},
        {"chance: eyJzaWQ", TOKEN, "chance: eyJzaWQ"},
        {"a token tok-1 of old", "tok-1", "a token *** of old"},
        {"a tok- of old", "tok-1", "a tok- of old"},
        {"abcd", "abcd", "***"},
        {"abc", "abc", "abc"}, /* too short to be one */
        {"q=abc%2Bdef%2f%3D&", "abc+def/=", "q=***&"},
        {"%61%62%63%2b%64%65%66%2f%3d", "abc+def/=", "***"},
        {"{\"a\":\"abc\\u002bdef\\/\\u003D\"}", "abc+def/=", "{\"a\":\"***\"}"},
        {"cut: abc%2bdef%2", "abc+def/=", "cut: abc%2bdef%2"}, /* seven of it */
        {"cut: abc%2bdefg%2", "abc+defg/=", "cut: ***%2"},
        {"as it is: abc%2bde\\/f.", "abc%2bde\\/f", "as it is: ***."},
        {"escaped: abc%252bde%5c/f.", "abc%2bde\\/f", "escaped: ***."},
        {"abc\\u012bdef/=gh", "abc+def/=", "abc\\u012bdef/=gh"}, /* another character */
        {"end: \\", TOKEN, "end: \\"},
        {"end: %", TOKEN, "end: %"},
        {"end: \\u00", TOKEN, "end: \\u00"},
        {"none", "", "none"},
        {"none", NULL, "none"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[200];

        (void)snprintf(text, sizeof(text), "%s", cases[i].text);
        redact(text, cases[i].secret);
        assert_string_equal(text, cases[i].left);
    }
}

/* Appends a character as it is, or in one of its escapes. */
static char *append_somehow(char *at, int c, unsigned how)
{
    bool short_escape = how == 4 && (c == '/' || c == '"');

    switch (how) {
    case 0:
        return at + snprintf(at, 8, "%%%02x", (unsigned)c);
    case 1:
        return at + snprintf(at, 8, "%%%02X", (unsigned)c);
    case 2:
        return at + snprintf(at, 8, "\\u%04x", (unsigned)c);
    case 3:
        return at + snprintf(at, 8, "\\u%04X", (unsigned)c);
    default:
        return at + snprintf(at, 8, "%s%c", short_escape ? "\\" : "", c);
    }
}

static size_t roll(uint64_t *seed, size_t sides)
{
    return (size_t)(dice_roll(seed) % sides);
}

/* However its characters are escaped, and whatever part of it, from eight of them on, it is. */
static void redacts_at_random(void **state)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ/\"+=";
    uint64_t seed = 1;

    (void)state;
    for (int round = 0; round < 20000; round++) {
        char secret[41] = "";
        char text[400] = "<";
        char *at = text + 1;

        size_t len = 8 + roll(&seed, 33);

        for (size_t i = 0; i < len; i++) {
            secret[i] = letters[roll(&seed, sizeof(letters) - 1)];
        }
        size_t from = roll(&seed, len - 7);
        size_t until = from + 8 + roll(&seed, len - from - 7);
        size_t escapes = roll(&seed, 3) == 0 ? 5 : 20; /* many, or few */

        for (size_t i = from; i < until; i++) {
            at = append_somehow(at, secret[i], (unsigned)roll(&seed, escapes));
        }
        memcpy(at, ">", 2);
        redact(text, secret);
        if (strcmp(text, "<***>") != 0) {
            fail_msg("round %d: \"%s\" left of \"%s\"", round, text, secret);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(redacts),
                                       cmocka_unit_test(redacts_at_random)};

    return UNIT_RUN(tests);
}
