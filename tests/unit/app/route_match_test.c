/* Paths to routes: each route is found by its own path, and no spelling slips by. */
#include "app/route_match.c"

#include "unit/base/unit.h"

#include <stdlib.h>

static struct route_match find(enum http_method method, const char *path)
{
    static char memory[512];

    assert_true(strlen(path) < sizeof(memory));
    return route_find(method, slice_of(path), memory);
}

/* Writes an example of the pattern: parameters become x1 and x2. */
static void example_of(const char *pattern, char *out, size_t size)
{
    size_t len = 0;
    int count = 0;

    while (*pattern != '\0' && len + 4 < size) {
        if (*pattern == ':') {
            pattern += strcspn(pattern, "/");
            len += (size_t)snprintf(out + len, size - len, "x%d", ++count);
        } else {
            out[len++] = *pattern++;
        }
    }
    out[len] = '\0';
}

/* Every row of the table is reached by a path of its pattern, with its parameters. */
static void finds_every_route(void **state)
{
    (void)state;
    for (size_t i = 0; i < route_count; i++) {
        char path[128];

        example_of(routes[i].pattern, path, sizeof(path));
        struct route_match match = find(routes[i].method, path);

        assert_ptr_equal(match.route, &routes[i]);
        if (strchr(routes[i].pattern, ':') != NULL) {
            assert_true(slice_equal(match.params[0], SLICE("x1")));
        }
        if (strchr(routes[i].pattern, ':') != strrchr(routes[i].pattern, ':')) {
            assert_true(slice_equal(match.params[1], SLICE("x2")));
        }
    }
}

/* A part of a segment, or more than it, is another one; so is one with a NUL. */
static void segments_are_whole(void **state)
{
    const char *const paths[] = {
        "/api/m",   "/api/mee", "/api/me%00", "/api/me%00x",       "/api/me/",
        "/api//me", "/api",     "/api/",      "/api/agents/keys/", "/api/houses//config"};

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(paths); i++) {
        assert_null(find(HTTP_GET, paths[i]).route);
    }
}

/* HEAD is served where GET is, and nowhere else. */
static void serves_head_by_get(void **state)
{
    (void)state;
    assert_ptr_equal(find(HTTP_HEAD, "/api/me").route, find(HTTP_GET, "/api/me").route);
    assert_null(find(HTTP_HEAD, "/api/session").route);
}

/* A path that is known for other methods is told from one that is not known. */
static void tells_method_from_path(void **state)
{
    (void)state;
    assert_null(find(HTTP_PUT, "/api/houses").route);
    assert_true(find(HTTP_PUT, "/api/houses").known);
    assert_false(find(HTTP_PUT, "/api/nothing").known);
    assert_false(find(HTTP_GET, "/api").known);
    assert_false(find(HTTP_GET, "/api/").known);
    assert_false(find(HTTP_GET, "/api/houses/").known);
    assert_false(find(HTTP_GET, "/api/houses//members").known);
    assert_false(find(HTTP_GET, "/api/a/b/c/d/e/f/g/h").known);
}

/* Escapes are decoded once, segment by segment: an escaped slash stays within its segment. */
static void decodes_segments(void **state)
{
    (void)state;
    assert_ptr_equal(find(HTTP_GET, "/api/m%65").route, find(HTTP_GET, "/api/me").route);
    assert_true(slice_equal(find(HTTP_GET, "/api/houses/a%2Fb").params[0], SLICE("a/b")));
    assert_true(slice_equal(find(HTTP_GET, "/api/houses/a%2525").params[0], SLICE("a%25")));
    assert_true(find(HTTP_GET, "/api/houses/%zz").bad_escape);
    assert_null(find(HTTP_GET, "/api/houses/%zz").route);
}

/* Of two patterns that fit, the fixed one is meant, also for methods that only the other knows. */
static void prefers_fixed_segments(void **state)
{
    (void)state;
    assert_string_equal(find(HTTP_GET, "/api/agents/keys").route->pattern, "/api/agents/keys");
    assert_null(find(HTTP_PATCH, "/api/agents/keys").route);
    assert_true(find(HTTP_PATCH, "/api/agents/keys").known);
    assert_string_equal(find(HTTP_PATCH, "/api/agents/key").route->pattern, "/api/agents/:id");
}

/* Allow names what the path knows, in one order. */
static void tells_allowed_methods(void **state)
{
    static const struct {
        const char *path;
        const char *allow;
    } cases[] = {
        {"/api/me", "GET, HEAD, OPTIONS"},
        {"/api/session", "POST, DELETE, OPTIONS"},
        {"/api/houses/a", "GET, HEAD, PATCH, DELETE, OPTIONS"},
        {"/api/houses/a/members/b", "PUT, DELETE, OPTIONS"},
        {"/api/agents/keys", "GET, HEAD, POST, OPTIONS"},
        {"/api/nothing", "OPTIONS"},
    };
    char out[64];

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        route_allow(slice_of(cases[i].path), out, sizeof(out));
        assert_string_equal(out, cases[i].allow);
    }
}

/* The API is /api and what lies below it, and nothing that only begins alike. */
static void takes_its_own(void **state)
{
    (void)state;
    assert_true(route_takes(SLICE("/api")));
    assert_true(route_takes(SLICE("/api/")));
    assert_true(route_takes(SLICE("/api/x")));
    assert_false(route_takes(SLICE("/apis")));
    assert_false(route_takes(SLICE("/v1/stream/api")));
    assert_false(route_takes(SLICE("/")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_every_route),     cmocka_unit_test(segments_are_whole),
        cmocka_unit_test(serves_head_by_get),    cmocka_unit_test(tells_method_from_path),
        cmocka_unit_test(decodes_segments),      cmocka_unit_test(prefers_fixed_segments),
        cmocka_unit_test(tells_allowed_methods), cmocka_unit_test(takes_its_own),
    };

    return UNIT_RUN(tests);
}
