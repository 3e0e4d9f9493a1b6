/* Any bytes as the body of each request of the subscription API: refused with a sentence, or taken
 * in normal form. */
#include "stream/subscription_request.h"

#include "stream/glob.h"
#include "stream/name.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_code(int code, struct errmsg *msg, struct slice body)
{
    assert(code == 0 || code == ERR_INVALID || code == ERR_TOOBIG);
    assert((code == ERR_TOOBIG) == (body.len > SUBSCRIPTION_BODY_BYTES_MAX));
    assert((code == 0) == (msg->text[0] == '\0'));
    msg->text[0] = '\0';
}

/* A canonical name, as JSON would give it again. */
static void check_name(struct slice name)
{
    char again[STREAM_NAME_BYTES_MAX];
    size_t len = 0;

    assert(subscription_path_parse(name, again, &len, NULL) == 0);
    assert(slice_equal((struct slice){again, len}, name));
}

static void check_streams(const struct slice *streams, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        check_name(streams[i]);
        assert(i == 0 || slice_compare(streams[i - 1], streams[i]) < 0);
    }
}

static void check_put(struct slice body, struct arena *a, struct errmsg *msg)
{
    struct subscription_spec spec;
    int code = subscription_request_put(body, a, &spec, msg);
    char again[GLOB_BYTES_MAX];
    size_t len = 0;

    check_code(code, msg, body);
    if (code < 0) {
        return;
    }
    check_streams(spec.streams, spec.stream_count);
    assert(spec.stream_count > 0 || spec.def.pattern.len > 0);
    assert(spec.def.target.len > 0);
    assert(spec.def.lease_ttl_ms >= SUBSCRIPTION_LEASE_MS_MIN);
    assert(spec.def.lease_ttl_ms <= SUBSCRIPTION_LEASE_MS_MAX);
    if (spec.def.type == SUBSCRIPTION_PULL_WAKE) {
        check_name(spec.def.target);
    }
    if (spec.def.pattern.len > 0) {
        assert(glob_parse(spec.def.pattern, again, &len, NULL) == 0);
        assert(slice_equal((struct slice){again, len}, spec.def.pattern));
    }
}

static void check_report(struct slice body, struct arena *a, struct errmsg *msg)
{
    struct subscription_report report;
    int code = subscription_request_report(body, a, &report, msg);

    check_code(code, msg, body);
    for (size_t i = 0; code == 0 && i < report.ack_count; i++) {
        check_name(report.acks[i].path);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice body = size == 0 ? SLICE("") : (struct slice){(const char *)data, size};
    struct errmsg msg = {.text = ""};
    struct arena arena;
    const struct slice *streams = NULL;
    struct slice worker;
    size_t count = 0;
    char name[STREAM_NAME_BYTES_MAX];

    arena_init(&arena, SUBSCRIPTION_ARENA_BYTES_MAX);
    check_put(body, &arena, &msg);
    check_report(body, &arena, &msg);
    check_code(subscription_request_streams(body, &arena, &streams, &count, &msg), &msg, body);
    check_streams(streams, count);
    check_code(subscription_request_claim(body, &arena, &worker, &msg), &msg, body);
    (void)subscription_reply_done(body);
    if (subscription_url_path_parse(body, name, &count, NULL) == 0) {
        check_name((struct slice){name, count});
    }
    arena_finish(&arena);
    return 0;
}
