/* Paths of the control API. */
#include "serve/control_route.c"

#include "unit/base/unit.h"

#include <stdio.h>

static char memory[4096];

static struct control_route parsed(const char *path)
{
    struct control_route route = {.resource = CONTROL_RESOURCE_COUNT};
    struct errmsg msg = {{0}};

    assert_true(control_is_path(slice_of(path)));
    assert_true(strlen(path) <= sizeof(memory));
    assert_int_equal(control_route_parse(slice_of(path), memory, &route, &msg), 0);
    assert_true(route.resource < CONTROL_RESOURCE_COUNT);
    return route;
}

static void assert_route(const char *path, enum control_resource resource, const char *id,
                         const char *stream)
{
    struct control_route route = parsed(path);

    assert_int_equal(route.resource, resource);
    assert_int_equal(route.id.len, strlen(id));
    assert_memory_equal(route.id.ptr == NULL ? "" : route.id.ptr, id, strlen(id));
    assert_int_equal(route.path.len, strlen(stream));
    assert_memory_equal(route.path.ptr == NULL ? "" : route.path.ptr, stream, strlen(stream));
}

static void assert_nothing(const char *path)
{
    assert_int_equal(parsed(path).resource, CONTROL_NOTHING);
}

static void assert_refused(const char *path)
{
    struct control_route route = {.resource = CONTROL_RESOURCE_COUNT};
    struct errmsg msg = {{0}};

    assert_true(control_is_path(slice_of(path)));
    assert_int_equal(control_route_parse(slice_of(path), memory, &route, &msg), ERR_INVALID);
    assert_true(msg.text[0] != '\0');
    assert_int_equal(route.resource, CONTROL_RESOURCE_COUNT); /* untouched */
}

/* The reserved segment is known however it is spelt, and nothing else is taken for it. */
static void knows_the_reserved_segment(void **state)
{
    const char *ours[] = {"/v1/stream/__ds",      "/v1/stream/__ds/",     "/v1/stream/%5F%5Fds",
                          "/v1/stream/_%5fds/x",  "/v1/stream/__%64%73/", "/v1/stream/%5f%5f%64%73",
                          "/v1/stream/__ds/%zz/", "/v1/stream/__ds//x"};
    const char *others[] = {"/v1/stream/__dsx",
                            "/v1/stream/a/__ds",
                            "/v1/stream/__DS",
                            "/v1/stream/__ds%2Fx",
                            "/v1/stream/",
                            "/v1/stream",
                            "/__ds",
                            "/v1/stream/%5F%5",
                            "/v1/stream/__d%7",
                            "/v1/stream//__ds",
                            "/v1/stream/__ds%00",
                            "/health"};

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(ours); i++) {
        assert_true(control_is_path(slice_of(ours[i])));
    }
    for (size_t i = 0; i < ARRAY_COUNT(others); i++) {
        assert_false(control_is_path(slice_of(others[i])));
    }
}

/* Every resource, plainly and with escapes. */
static void finds_resources(void **state)
{
    (void)state;
    assert_route("/v1/stream/__ds/jwks.json", CONTROL_JWKS, "", "");
    assert_route("/v1/stream/%5F%5Fds/jwks%2ejson", CONTROL_JWKS, "", "");
    assert_route("/v1/stream/__ds/streams", CONTROL_LISTING, "", "");
    assert_route("/v1/stream/__ds/subscriptions", CONTROL_COLLECTION, "", "");
    assert_route("/v1/stream/__ds/%73ubscriptions/", CONTROL_COLLECTION, "", "");
    assert_route("/v1/stream/__ds/subscriptions/a", CONTROL_SUBSCRIPTION, "a", "");
    assert_route("/v1/stream/__ds/subscription%73/a", CONTROL_SUBSCRIPTION, "a", "");
    assert_route("/v1/stream/__ds/subscriptions/a/streams", CONTROL_MEMBERS, "a", "");
    assert_route("/v1/stream/__ds/subscriptions/a/streams/b", CONTROL_MEMBER, "a", "b");
    assert_route("/v1/stream/__ds/subscriptions/a/callback", CONTROL_CALLBACK, "a", "");
    assert_route("/v1/stream/__ds/subscriptions/a/claim", CONTROL_CLAIM, "a", "");
    assert_route("/v1/stream/__ds/subscriptions/a/ack", CONTROL_ACK, "a", "");
    assert_route("/v1/stream/__ds/subscriptions/a/%72elease", CONTROL_RELEASE, "a", "");
}

/* An id is what stands between two slashes, decoded afterwards. */
static void decodes_ids(void **state)
{
    (void)state;
    assert_route("/v1/stream/__ds/subscriptions/a%2Fb", CONTROL_SUBSCRIPTION, "a/b", "");
    assert_route("/v1/stream/__ds/subscriptions/a%2Fclaim", CONTROL_SUBSCRIPTION, "a/claim", "");
    assert_route("/v1/stream/__ds/subscriptions/a%252Fb/ack", CONTROL_ACK, "a%2Fb", "");
    assert_route("/v1/stream/__ds/subscriptions/%C3%A9", CONTROL_SUBSCRIPTION, "\xc3\xa9", "");
    assert_route("/v1/stream/__ds/subscriptions/claim", CONTROL_SUBSCRIPTION, "claim", "");
    assert_route("/v1/stream/__ds/subscriptions/...", CONTROL_SUBSCRIPTION, "...", "");
    assert_route("/v1/stream/__ds/subscriptions/ /claim", CONTROL_CLAIM, " ", "");
}

/* A member's path may hold slashes, escaped or not, and is left for who knows stream names. */
static void leaves_member_paths(void **state)
{
    const char *head = "/v1/stream/__ds/subscriptions/a/streams/";
    const char *paths[] = {"manual%2Fb", "manual/b", "b/", "/b", "streams/claim", "%00", "%zz"};

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(paths); i++) {
        char path[128];

        (void)snprintf(path, sizeof(path), "%s%s", head, paths[i]);
        assert_route(path, CONTROL_MEMBER, "a", paths[i]);
    }
}

/* Whatever is a little longer, shorter or otherwise spelt names nothing. */
static void knows_nothing_else(void **state)
{
    const char *paths[] = {"",
                           "/",
                           "//",
                           "/x",
                           "/jwks.json/",
                           "/jwks.json/x",
                           "/jwks",
                           "/streams/",
                           "/streams/x",
                           "/Streams",
                           "/subscriptions//",
                           "/subscriptions//claim",
                           "/subscriptions/a/",
                           "/subscriptions/a/x",
                           "/subscriptions/a/claim/",
                           "/subscriptions/a//claim",
                           "/subscriptions/a/claim/x",
                           "/subscriptions/a/streams/",
                           "/subscriptions/a/streams%2Fb",
                           "/subscriptions%2Fa",
                           "/claim",
                           "/subscriptions/a/Claim",
                           "/subscriptions/a/jwks.json"};

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(paths); i++) {
        char path[128];

        (void)snprintf(path, sizeof(path), "/v1/stream/__ds%s", paths[i]);
        assert_nothing(path);
    }
}

/* Broken escapes anywhere, and ids that could not be written into a URL again. */
static void refuses_what_is_malformed(void **state)
{
    const char *paths[] = {"%",
                           "%zz",
                           "subscriptions/%",
                           "subscriptions/%2",
                           "subscriptions/%g0",
                           "subscriptions/a/%zz",
                           "subscriptions/%00",
                           "subscriptions/a%0Ab",
                           "subscriptions/%7f",
                           "subscriptions/%ff",
                           "subscriptions/%C3",
                           "subscriptions/.",
                           "subscriptions/%2e%2E",
                           "subscriptions/../claim"};

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(paths); i++) {
        char path[128];

        (void)snprintf(path, sizeof(path), "/v1/stream/__ds/%s", paths[i]);
        assert_refused(path);
    }
}

/* The cap on an id counts decoded bytes. */
static void bounds_ids(void **state)
{
    char path[2048] = "/v1/stream/__ds/subscriptions/";
    size_t at = strlen(path);

    (void)state;
    for (size_t i = 0; i < SUBSCRIPTION_ID_BYTES_MAX; i++, at += 3) {
        memcpy(path + at, "%61", 4);
    }
    assert_int_equal(parsed(path).id.len, SUBSCRIPTION_ID_BYTES_MAX);
    memcpy(path + at, "b", 2);
    assert_refused(path);
}

/* A wrong method is told which ones there are. */
static void knows_methods(void **state)
{
    (void)state;
    assert_true(control_allows(CONTROL_JWKS, HTTP_HEAD));
    assert_true(control_allows(CONTROL_SUBSCRIPTION, HTTP_PUT));
    assert_true(control_allows(CONTROL_SUBSCRIPTION, HTTP_HEAD));
    assert_false(control_allows(CONTROL_SUBSCRIPTION, HTTP_POST));
    assert_false(control_allows(CONTROL_MEMBERS, HTTP_GET));
    assert_false(control_allows(CONTROL_CLAIM, HTTP_HEAD));
    for (int i = 0; i < CONTROL_RESOURCE_COUNT; i++) {
        enum control_resource resource = (enum control_resource)i;
        char allow[64];

        assert_false(control_allows(resource, HTTP_OTHER));
        (void)snprintf(allow, sizeof(allow), ", %s,", control_allow(resource).ptr);
        assert_int_equal(control_allows(resource, HTTP_GET), strstr(allow, ", GET,") != NULL);
        assert_int_equal(control_allows(resource, HTTP_HEAD), strstr(allow, ", HEAD,") != NULL);
        assert_int_equal(control_allows(resource, HTTP_PUT), strstr(allow, ", PUT,") != NULL);
        assert_int_equal(control_allows(resource, HTTP_POST), strstr(allow, ", POST,") != NULL);
        assert_int_equal(control_allows(resource, HTTP_DELETE), strstr(allow, ", DELETE,") != NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_the_reserved_segment),
        cmocka_unit_test(finds_resources),
        cmocka_unit_test(decodes_ids),
        cmocka_unit_test(leaves_member_paths),
        cmocka_unit_test(knows_nothing_else),
        cmocka_unit_test(refuses_what_is_malformed),
        cmocka_unit_test(bounds_ids),
        cmocka_unit_test(knows_methods),
    };

    return UNIT_RUN(tests);
}
