/* What is left of a secret in a text: nothing that tells it. */
#include "base/redact.h"

#include "unit/base/unit.h"

#include <stdio.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(redacts)};

    return UNIT_RUN(tests);
}
