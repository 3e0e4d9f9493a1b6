/* Who is shown by a request's headers, and from where a session may change things. */
#include "app/caller.c"

#include "unit/serve/request_of.h"

#define DIGITS "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define KEY    "arbe_" DIGITS

static enum caller_proof shown(const char *lines, struct slice *ret_secret)
{
    static struct request_of r;
    struct credentials credentials;
    struct api_error error;

    assert_true(credentials_find(request_of(&r, lines), &credentials, &error));
    *ret_secret = credentials.secret;
    return credentials.proof;
}

static void assert_refused(const char *lines, const char *message)
{
    struct request_of r;
    struct credentials credentials;
    struct api_error error;

    assert_false(credentials_find(request_of(&r, lines), &credentials, &error));
    assert_int_equal(error.code, API_UNAUTHENTICATED);
    assert_string_equal(error.message, message);
}

/* A key, a cookie, or nobody; the key outranks the cookie. */
static void finds_credentials(void **state)
{
    struct slice secret;

    (void)state;
    assert_int_equal(shown("", &secret), CALLER_NOBODY);
    assert_int_equal(shown("Authorization: bEARER  " KEY "\r\n", &secret), CALLER_KEY);
    assert_true(slice_equal(secret, SLICE(KEY)));
    assert_int_equal(shown("Cookie: a=b; arbe_session=" DIGITS " ; c\r\n", &secret),
                     CALLER_SESSION);
    assert_true(slice_equal(secret, SLICE(DIGITS)));
    assert_int_equal(
        shown("Cookie: arbe_session=" DIGITS "\r\nAuthorization: Bearer " KEY "\r\n", &secret),
        CALLER_KEY);
    assert_int_equal(shown("Cookie: arbe_sessions=x; xarbe_session=y; arbe_session\r\n", &secret),
                     CALLER_NOBODY);
}

/* What cannot be right shows nobody and says why, also where a cookie would have been good. */
static void refuses_what_cannot_be(void **state)
{
    (void)state;
    assert_refused("Authorization: Basic eA==\r\n", "Authorization must be Bearer and an API key");
    assert_refused("Authorization: Bearer\r\n", "Authorization must be Bearer and an API key");
    assert_refused("Authorization: Bearer arbe_00\r\nCookie: arbe_session=" DIGITS "\r\n",
                   "the bearer token is no API key: arbe_ and 64 hexadecimal digits");
    assert_refused("Authorization: Bearer " KEY "\r\nAuthorization: Bearer " KEY "\r\n",
                   "there must be one Authorization field");
    assert_refused("Cookie: arbe_session=" DIGITS "; arbe_session=" DIGITS "\r\n",
                   "there must be one session cookie");
    assert_refused("Cookie: arbe_session=" DIGITS "\r\nCookie: a=b\r\n",
                   "there must be one session cookie");
    assert_refused("Cookie: arbe_session=xyz\r\n", "the session cookie is not one of ours");
}

static bool from(const char *lines, const char *public_url)
{
    struct request_of r;
    struct api_error error = {.code = API_INTERNAL};
    int result = origin_check(request_of(&r, lines), slice_of(public_url), &error);

    assert_true(result == 0 || error.code == API_BAD_ORIGIN);
    return result == 0;
}

/* The origin is the public URL's, or the Host's (here x); a missing one is none. */
static void checks_origins(void **state)
{
    (void)state;
    assert_true(from("Origin: http://x\r\n", ""));
    assert_true(from("Origin: http://X\r\n", ""));
    assert_false(from("Origin: https://x\r\n", ""));
    assert_false(from("Origin: http://x.evil\r\n", ""));
    assert_false(from("Origin: null\r\n", ""));
    assert_false(from("", ""));
    assert_false(from("Origin: http://x\r\nOrigin: http://x\r\n", ""));
    assert_true(from("Origin: https://a.example\r\n", "https://a.example"));
    assert_true(from("Origin: https://a.example\r\n", "https://a.example/below"));
    assert_false(from("Origin: https://a.example:8443\r\n", "https://a.example"));
    assert_false(from("Origin: http://x\r\n", "https://a.example"));
}

/* A cookie opens and closes a session, and is Secure where the public URL is. */
static void formats_cookies(void **state)
{
    char memory[512];
    struct buf out;

    (void)state;
    buf_init_fixed(&out, memory, sizeof(memory));
    cookie_format(&out, SLICE("t"), 60, true);
    assert_true(slice_equal(buf_slice(&out), SLICE("arbe_session=t; HttpOnly; SameSite=Lax; "
                                                   "Path=/; Max-Age=60; Secure")));
    buf_init_fixed(&out, memory, sizeof(memory));
    cookie_format(&out, SLICE(""), 0, false);
    assert_true(slice_equal(buf_slice(&out),
                            SLICE("arbe_session=; HttpOnly; SameSite=Lax; Path=/; Max-Age=0")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_credentials),
        cmocka_unit_test(refuses_what_cannot_be),
        cmocka_unit_test(checks_origins),
        cmocka_unit_test(formats_cookies),
    };

    return UNIT_RUN(tests);
}
