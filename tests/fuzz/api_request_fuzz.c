/* Any bytes as a request to the API: a head, and behind it a body. Whatever the reading of path,
 * credentials, query and body lets through is as it promises, and whatever it refuses it refuses by
 * a whole sentence in JSON. */
#include "app/caller.h"
#include "app/input.h"
#include "app/params.h"
#include "app/route.h"
#include "base/limits.h"
#include "base/utf8.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MEMORY_BYTES (64ull << 20)
#define NAME_BYTES   200u
#define TAGS_MAX     4u

static void check_refusal(const struct api_error *error)
{
    char memory[8192];
    struct buf out;
    struct slice value;

    assert(error->message[0] != '\0' && utf8_valid(slice_of(error->message)));
    assert(utf8_valid(slice_of(error->suggestion)) && utf8_valid(slice_of(error->field)));
    assert(api_error_status(error->code) >= 400);
    buf_init_fixed(&out, memory, sizeof(memory));
    api_error_format(&out, error);
    assert(!out.failed && json_text_read(buf_slice(&out), &value, NULL) == 0);
}

static void check_text(struct slice text, size_t bytes_max)
{
    assert(text.ptr == NULL || (text.len > 0 && text.len <= bytes_max && utf8_valid(text)));
}

/* Every spelling of a path leads to one route, by HEAD as by GET. */
static void read_path(struct slice path)
{
    static const enum http_method methods[] = {HTTP_GET,  HTTP_PUT,   HTTP_POST,
                                               HTTP_HEAD, HTTP_PATCH, HTTP_DELETE};
    char *memory = malloc(path.len + 1);
    char allow[64];

    if (memory == NULL || path.len == 0 || path.ptr[0] != '/') {
        free(memory);
        return;
    }
    for (size_t i = 0; i < ARRAY_COUNT(methods); i++) {
        struct route_match match = route_find(methods[i], path, memory);

        assert(match.route == NULL || match.known);
        for (size_t j = 0; match.route != NULL && j < ROUTE_PARAMS_MAX; j++) {
            assert(match.params[j].ptr == NULL ||
                   (match.params[j].len > 0 && match.params[j].len <= path.len));
        }
        if (methods[i] == HTTP_HEAD) {
            assert(match.route == route_find(HTTP_GET, path, memory).route);
        }
    }
    route_allow(path, allow, sizeof(allow));
    assert(strlen(allow) >= strlen("OPTIONS"));
    free(memory);
}

static void read_credentials(const struct http_request *request)
{
    struct credentials shown;
    struct api_error error = {.message = ""};

    if (!credentials_find(request, &shown, &error)) {
        assert(error.code == API_UNAUTHENTICATED);
        check_refusal(&error);
    } else {
        assert((shown.proof == CALLER_NOBODY) == (shown.secret.ptr == NULL));
        assert(shown.proof != CALLER_KEY || api_key_shape_good(shown.secret));
        assert(shown.proof != CALLER_SESSION || api_token_shape_good(shown.secret));
    }
    if (origin_check(request, SLICE("https://arbe.test/x"), &error) != 0) {
        assert(error.code == API_BAD_ORIGIN);
        check_refusal(&error);
    }
}

static void read_query(struct slice query)
{
    struct arena memory;
    struct params p;
    struct api_error error = {.message = ""};

    arena_init(&memory, MEMORY_BYTES);
    params_begin(&p, query, &memory, &error);
    struct slice cursor = params_text(&p, "cursor", NAME_BYTES);
    uint64_t limit = params_number(&p, "limit", 1, 200, 50);

    (void)params_flag(&p, "pinned"); /* either is right */
    if (params_end(&p) == 0) {
        assert(limit >= 1 && limit <= 200);
        check_text(cursor, NAME_BYTES);
    } else {
        check_refusal(&error);
    }
    arena_finish(&memory);
}

static void read_body(struct slice body)
{
    static const struct input_text rules = {
        .bytes_max = NAME_BYTES, .required = true, .null_ok = true};
    struct arena memory;
    struct input in;
    struct slice tags[TAGS_MAX];
    struct api_error error = {.message = ""};

    arena_init(&memory, MEMORY_BYTES);
    input_begin(&in, body, true, &memory, &error);
    struct slice name = input_text(&in, "name", &rules);
    struct slice id = input_text(&in, "id", &(struct input_text){.bytes_max = 64, .lines = true});
    uint64_t seconds = input_number(&in, "expiresIn", 1, 86400, 3600);
    size_t count = input_texts(&in, "tags", TAGS_MAX, 64, tags);
    (void)input_flag(&in, "pinned", false); /* either is right */
    struct slice config = input_value(&in, "config");

    if (input_end(&in) == 0) {
        assert(seconds >= 1 && seconds <= 86400 && count <= TAGS_MAX);
        check_text(name, NAME_BYTES);
        check_text(id, 64);
        for (size_t i = 0; i < count; i++) {
            check_text(tags[i], 64);
            for (size_t j = 0; j < i; j++) {
                assert(!slice_equal(tags[i], tags[j]));
            }
        }
        assert(config.ptr == NULL || config.len > 0);
    } else {
        check_refusal(&error);
    }
    arena_finish(&memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = {(const char *)data, size};
    struct http_request request;
    struct http_refusal refusal = {.status = 0};
    size_t scanned = 0;
    struct slice path;
    struct slice query;
    long len = size == 0 ? 0 : http_request_parse(text, &scanned, &request, &refusal);

    if (len > 0) {
        http_target_split(request.target, &path, &query);
        read_path(path);
        read_query(query);
        read_credentials(&request);
        read_body((struct slice){text.ptr + len, text.len - (size_t)len});
    } else {
        read_body(text);
    }
    return 0;
}
