/* Any bytes as the path of a request, and as what follows the reserved segment. No path is both of
 * the control API and a stream's. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/limits.h"
#include "base/utf8.h"
#include "serve/control_route.h"
#include "stream/name.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_inside(struct slice part, const char *ptr, size_t len)
{
    return part.len == 0 || (part.ptr >= ptr && part.ptr + part.len <= ptr + len);
}

static void not_a_stream_too(struct slice path)
{
    const size_t root_len = sizeof(NAME_ROOT) - 1;
    char name[STREAM_NAME_BYTES_MAX];
    size_t len = 0;

    if (name_is_stream_path(path)) {
        struct slice raw = {path.ptr + root_len, path.len - root_len};

        assert(name_parse(raw, name, &len, NULL) != 0 || !control_is_path(path));
    }
}

static void check(struct slice path, const struct control_route *route, const char *memory)
{
    bool subscription = route->resource >= CONTROL_SUBSCRIPTION &&
                        route->resource < CONTROL_RESOURCE_COUNT;

    assert(route->resource < CONTROL_RESOURCE_COUNT);
    assert(is_inside(route->id, memory, path.len));
    assert(is_inside(route->path, path.ptr, path.len));
    assert(!subscription || (route->id.len > 0 && route->id.len <= SUBSCRIPTION_ID_BYTES_MAX));
    assert(!subscription ||
           (utf8_valid(route->id) && memchr(route->id.ptr, 0, route->id.len) == NULL));
    assert((route->resource == CONTROL_MEMBER) == (route->path.len > 0));
    assert(control_allow(route->resource).len > 0 || route->resource == CONTROL_NOTHING ||
           route->resource == CONTROL_COLLECTION);
}

static void read_path(struct slice path)
{
    struct control_route route = {.resource = CONTROL_RESOURCE_COUNT};
    struct errmsg msg = {{0}};

    not_a_stream_too(path);
    if (!control_is_path(path)) {
        return;
    }
    char *memory = malloc(path.len); /* of exactly the promised size */

    if (memory == NULL) {
        return;
    }
    int code = control_route_parse(path, memory, &route, &msg);

    if (code == 0) {
        check(path, &route, memory);
    } else {
        assert(code == ERR_INVALID && msg.text[0] != '\0');
        assert(route.resource == CONTROL_RESOURCE_COUNT);
    }
    free(memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct slice heads[] = {SLICE(""), SLICE(NAME_ROOT), SLICE(CONTROL_ROOT),
                                  SLICE(CONTROL_ROOT "/subscriptions/")};

    for (size_t i = 0; i < ARRAY_COUNT(heads); i++) {
        char *path = malloc(heads[i].len + size + 1);

        if (path == NULL) {
            return 0;
        }
        memcpy(path, heads[i].ptr, heads[i].len);
        if (size > 0) {
            memcpy(path + heads[i].len, data, size);
        }
        read_path((struct slice){path, heads[i].len + size});
        free(path);
    }
    return 0;
}
