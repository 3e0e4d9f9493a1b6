/* Which server a stream is on, and whose secret it gets. */
#include "cli/stream_site.c"

#include "unit/base/unit.h"

#include <sys/stat.h>
#include <unistd.h>

static char dir[] = "/tmp/arbe-site-XXXXXX";

static void write_file(const char *name, const char *text)
{
    char path[200];
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, 0600), 0);
}

static int set_up(void **state)
{
    static const char *const unset[] = {"ARBE_URL", "ARBE_PROFILE", "ARBE_SECRET_FILE",
                                        "ARBE_CA_FILE"};
    static bool made;
    char path[200];

    (void)state;
    if (!made) {
        assert_non_null(mkdtemp(dir));
        made = true;
    }
    for (size_t i = 0; i < ARRAY_COUNT(unset); i++) {
        assert_int_equal(unsetenv(unset[i]), 0);
    }
    (void)snprintf(path, sizeof(path), "%s/profiles", dir);
    assert_int_equal(setenv("ARBE_PROFILES", path, 1), 0);
    (void)unlink(path); /* of the test before */
    write_file("one", "first-secret\n");
    write_file("two", "second-secret\n");
    return 0;
}

static int clean(void **state)
{
    static const char *const names[] = {"profiles", "one", "two"};
    char path[200];

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
        (void)unlink(path); /* not every test made it */
    }
    return rmdir(dir);
}

static void assert_site(const struct site_wish *wish, const char *url, const char *name,
                        const char *secret)
{
    struct site site;
    struct errmsg msg = {{0}};
    int code = site_choose(wish, &site, &msg);

    assert_string_equal(msg.text, "");
    assert_int_equal(code, 0);
    assert_string_equal(site.url, url);
    assert_string_equal(site.name, name);
    assert_string_equal(site.secret, secret);
}

#define WISH(...) (&(const struct site_wish){__VA_ARGS__})

/* Nothing said, a flag, the environment, a profile: the first of them that is there. */
static void names_have_a_base(void **state)
{
    char one[200];

    (void)state;
    (void)snprintf(one, sizeof(one), "%s/one", dir);
    assert_site(WISH(.stream = "a/b"), SITE_URL_DEFAULT, "a/b", "");
    assert_site(WISH(.stream = NULL), SITE_URL_DEFAULT, "", "");
    assert_site(WISH(.stream = "a", .url = "http://h:1"), "http://h:1/v1/stream/", "a", "");
    assert_site(WISH(.stream = "a", .url = "http://h/"), "http://h/v1/stream/", "a", "");
    assert_site(WISH(.stream = "a", .url = "https://h/x"), "https://h/x/", "a", "");
    assert_site(WISH(.stream = "a", .url = "https://h/x//"), "https://h/x/", "a", "");
    assert_int_equal(setenv("ARBE_URL", "http://env", 1), 0);
    assert_int_equal(setenv("ARBE_SECRET_FILE", one, 1), 0);
    assert_site(WISH(.stream = "a"), "http://env/v1/stream/", "a", "first-secret");
    write_file("profiles", "[default]\nurl=http://usual\n[p]\nurl=http://h/p\nsecret-file=two\n");
    assert_site(WISH(.stream = "a"), "http://env/v1/stream/", "a", "first-secret");
    assert_site(WISH(.stream = "a", .profile = "p"), "http://h/p/", "a", "second-secret");
    assert_site(WISH(.stream = "a", .profile = "p", .secret_file = one), "http://h/p/", "a",
                "first-secret");
    assert_int_equal(unsetenv("ARBE_URL"), 0);
    assert_site(WISH(.stream = "a"), "http://usual/v1/stream/", "a", "first-secret");
    assert_int_equal(setenv("ARBE_PROFILE", "p", 1), 0);
    assert_site(WISH(.stream = "a"), "http://h/p/", "a", "second-secret");
}

/* A whole URL is cut where its base ends, and gets the secret of what it lies below. */
static void urls_are_cut(void **state)
{
    char one[200];

    (void)state;
    (void)snprintf(one, sizeof(one), "%s/one", dir);
    write_file("profiles", "[p]\nurl=http://h/p\nsecret-file=two\n[q]\nurl=http://h/p/q/\n");
    assert_site(WISH(.stream = "http://x/v1/stream/a/b"), "http://x/v1/stream/", "a/b", "");
    assert_site(WISH(.stream = "http://x/y/v1/stream/a"), "http://x/y/v1/stream/", "a", "");
    assert_site(WISH(.stream = "http://x/a/b"), "http://x/", "a/b", "");
    assert_site(WISH(.stream = "http://x/z/a", .url = "http://x/z"), "http://x/z/", "a", "");
    assert_site(WISH(.stream = "http://h/p/a"), "http://h/p/", "a", "second-secret");
    assert_site(WISH(.stream = "http://h/p/q/a"), "http://h/p/q/", "a", "");
    assert_site(WISH(.stream = "http://h/pa"), "http://h/", "pa", "");
    assert_site(WISH(.stream = "http://h.evil/p/a"), "http://h.evil/", "p/a", "");
    assert_int_equal(setenv("ARBE_SECRET_FILE", one, 1), 0);
    assert_site(WISH(.stream = "http://x/a"), "http://x/", "a", "");
    assert_site(WISH(.stream = "http://x/a", .secret_file = one), "http://x/", "a", "first-secret");
    assert_site(WISH(.stream = "http://127.0.0.1:4437/v1/stream/a"), SITE_URL_DEFAULT, "a",
                "first-secret");
}

/* The secret of the environment is for the server that the environment names, by URL or by profile;
 * where it names none, for the first server of the command and not for the second. */
static void secrets_of_the_environment_stay(void **state)
{
    char one[200];

    (void)state;
    (void)snprintf(one, sizeof(one), "%s/one", dir);
    write_file("profiles", "[p]\nurl=http://p/x\n[q]\nurl=http://q\n");
    assert_int_equal(setenv("ARBE_SECRET_FILE", one, 1), 0);
    assert_site(WISH(.stream = "a", .url = "http://b"), "http://b/v1/stream/", "a", "first-secret");
    assert_site(WISH(.stream = "a", .profile = "q"), "http://q/v1/stream/", "a", "first-secret");
    assert_site(WISH(.stream = "a", .url = "http://b", .foreign = true), "http://b/v1/stream/", "a",
                "");
    assert_site(WISH(.stream = "a", .profile = "q", .foreign = true), "http://q/v1/stream/", "a",
                "");
    assert_site(WISH(.stream = "a", .foreign = true), SITE_URL_DEFAULT, "a", "");
    assert_int_equal(setenv("ARBE_PROFILE", "p", 1), 0);
    assert_site(WISH(.stream = "a", .profile = "q"), "http://q/v1/stream/", "a", "");
    assert_site(WISH(.stream = "a", .profile = "p", .foreign = true), "http://p/x/", "a",
                "first-secret");
    assert_int_equal(setenv("ARBE_PROFILE", "gone", 1), 0);
    assert_site(WISH(.stream = "a", .profile = "p"), "http://p/x/", "a", "");
    assert_int_equal(setenv("ARBE_URL", "http://b", 1), 0);
    assert_site(WISH(.stream = "a"), "http://b/v1/stream/", "a", "first-secret");
    assert_site(WISH(.stream = "a", .url = "http://b/", .foreign = true), "http://b/v1/stream/",
                "a", "first-secret");
    assert_site(WISH(.stream = "http://b/v1/stream/a", .foreign = true), "http://b/v1/stream/", "a",
                "first-secret");
    assert_site(WISH(.stream = "a", .url = "http://b.evil"), "http://b.evil/v1/stream/", "a", "");
    assert_site(WISH(.stream = "a", .url = "http://b:81"), "http://b:81/v1/stream/", "a", "");
    assert_site(WISH(.stream = "a", .profile = "p"), "http://p/x/", "a", "");
    assert_int_equal(setenv("ARBE_URL", "b", 1), 0);
    assert_site(WISH(.stream = "a", .url = "http://b"), "http://b/v1/stream/", "a", "");
}

/* Names are told decoded; what stands for a slash or a percent sign in a name stays. */
static void names_are_decoded(void **state)
{
    (void)state;
    assert_site(WISH(.stream = "http://x/%C3%A4%20b"), "http://x/", "\xc3\xa4 b", "");
    assert_site(WISH(.stream = "http://x/a%2Fb%2fc%25d"), "http://x/", "a%2Fb%2fc%25d", "");
    assert_site(WISH(.stream = "a%20b"), SITE_URL_DEFAULT, "a%20b", "");
}

static void assert_refused(const struct site_wish *wish, const char *part)
{
    struct site site;
    struct errmsg msg = {{0}};

    assert_int_equal(site_choose(wish, &site, &msg), ERR_INVALID);
    if (strstr(msg.text, part) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", msg.text, part);
    }
}

/* What makes no sense is refused with a sentence. */
static void refuses(void **state)
{
    char flood[3000];

    (void)state;
    memset(flood, 'x', sizeof(flood) - 1);
    flood[sizeof(flood) - 1] = '\0';
    assert_refused(WISH(.stream = ""), "is not good");
    assert_refused(WISH(.stream = "/a"), "without a slash");
    assert_refused(WISH(.stream = flood), "at most");
    assert_refused(WISH(.stream = "a", .url = "h:80"), "http://");
    assert_refused(WISH(.stream = "a", .url = "http:///x"), "no host");
    assert_refused(WISH(.stream = "a", .url = "http://me:pw@h/"), "no place for a password");
    assert_refused(WISH(.stream = "http://h/a?x"), "without query");
    assert_refused(WISH(.stream = "http://h/"), "names no stream");
    assert_refused(WISH(.stream = "http://h"), "names no stream");
    assert_refused(WISH(.stream = "http://h/%4"), "hex digits");
    assert_refused(WISH(.stream = "http://h/%00"), "not 00");
    assert_refused(WISH(.stream = "a", .url = "http://h", .profile = "p"), "exclude");
    assert_refused(WISH(.stream = "a", .profile = "p"), "no profile");
    assert_refused(WISH(.stream = "http://x/a", .url = "http://h"), "is not below");
    memcpy(flood, "http://", 7);
    assert_refused(WISH(.stream = "a", .url = flood), "at most");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(names_have_a_base, set_up),
        cmocka_unit_test_setup(urls_are_cut, set_up),
        cmocka_unit_test_setup(secrets_of_the_environment_stay, set_up),
        cmocka_unit_test_setup(names_are_decoded, set_up),
        cmocka_unit_test_setup(refuses, set_up),
    };

    return cmocka_run_group_tests(tests, NULL, clean);
}
