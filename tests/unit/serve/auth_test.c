/* The secret: who shows it, and who only seems to. */
#include "serve/auth.c"

#include "unit/serve/request_of.h"

static bool good(const char *lines)
{
    struct request_of r;

    return auth_is_good(request_of(&r, lines), SLICE("s3cret"));
}

/* Without a secret nobody is asked. */
static void asks_nobody(void **state)
{
    struct request_of r;

    (void)state;
    assert_true(auth_is_good(request_of(&r, ""), (struct slice){NULL, 0}));
}

/* The scheme is compared without case, the secret byte by byte. */
static void accepts_bearer(void **state)
{
    (void)state;
    assert_true(good("Authorization: Bearer s3cret\r\n"));
    assert_true(good("authorization: bEARER s3cret\r\n"));
    assert_true(good("Authorization:  Bearer   s3cret \r\n"));
}

/* Everything else is refused, two fields as well. */
static void refuses_others(void **state)
{
    const char *bad[] = {
        "",
        "Authorization:\r\n",
        "Authorization: Bearer\r\n",
        "Authorization: Bearer \r\n",
        "Authorization: s3cret\r\n",
        "Authorization: Basic s3cret\r\n",
        "Authorization: Bearers3cret\r\n",
        "Authorization: Bearer S3cret\r\n",
        "Authorization: Bearer s3cre\r\n",
        "Authorization: Bearer s3crett\r\n",
        "Authorization: Bearer \"s3cret\"\r\n",
        "Authorization: Bearer s3cret s3cret\r\n",
        "Authorization: Bearer x\r\nAuthorization: Bearer s3cret\r\n",
        "X-Authorization: Bearer s3cret\r\n",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        assert_false(good(bad[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(asks_nobody),
        cmocka_unit_test(accepts_bearer),
        cmocka_unit_test(refuses_others),
    };

    return UNIT_RUN(tests);
}
