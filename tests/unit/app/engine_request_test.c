/* Calls as operations. Which values are refused, and how, is what transport_calls.h and the
 * transcript compare with HTTP. */
#include "app/engine_request.c"

#include "unit/base/unit.h"

static const struct engine_request_limits limits = {.body_bytes_max = 8, .page_bytes = 100};

static void assert_name(const char *name, const char *canonical)
{
    struct call call = {.verb = CALL_HEAD, .name = slice_of(name)};
    struct engine_request request = {.body = NULL};

    call_begin(&call);
    assert_true(engine_request_fill(&request, &call, &limits));
    assert_int_equal(request.op.verb, STREAM_HEAD);
    assert_int_equal(request.op.name.len, strlen(canonical));
    assert_memory_equal(request.op.name.ptr, canonical, strlen(canonical));
    engine_request_finish(&request);
}

/* Names become what a server makes of them. */
static void makes_names_canonical(void **state)
{
    (void)state;
    assert_name("a/b c?d#e", "a/b c?d#e");
    assert_name("a%2fb%2Fc", "a%2Fb%2Fc");
    assert_name("a%25b", "a%25b");
    assert_name("100%", "100%25");
    assert_name("%41%", "%2541%25");
}

/* An operation owns all that it says: the call may go before it. */
static void copies_what_it_keeps(void **state)
{
    char name[] = "n";
    char body[] = "body";
    char type[] = " text/plain";
    char id[] = "id";
    char seq[] = "seq ";
    struct call call = {.verb = CALL_APPEND,
                        .name = slice_of(name),
                        .body = slice_of(body),
                        .content_type = type,
                        .producer_id = id,
                        .producer_epoch = 1,
                        .producer_seq = 2,
                        .seq = seq,
                        .close = true};
    struct engine_request request = {.body = NULL};
    const struct stream_append_request *append = &request.op.append;

    (void)state;
    call_begin(&call);
    assert_true(engine_request_fill(&request, &call, &limits));
    memset(name, '-', sizeof(name));
    memset(body, '-', sizeof(body));
    memset(type, '-', sizeof(type));
    memset(id, '-', sizeof(id));
    memset(seq, '-', sizeof(seq));
    assert_true(slice_equal(request.op.name, SLICE("n")));
    assert_true(slice_equal(append->body, SLICE("body")));
    assert_ptr_equal(append->body.ptr, append->body_block->data);
    assert_true(slice_equal(append->content_type, SLICE("text/plain")));
    assert_true(slice_equal(append->producer.id, SLICE("id")));
    assert_int_equal(append->producer.epoch, 1);
    assert_int_equal(append->producer.seq, 2);
    assert_true(append->has_seq && slice_equal(append->seq, SLICE("seq")));
    assert_true(append->close);
    engine_request_finish(&request);
}

/* Reads renew a TTL, bring memory, and are bounded; listings have their two bounds. */
static void fills_reads(void **state)
{
    struct call call = {.verb = CALL_LONG_POLL, .name = SLICE("n"), .offset = "now"};
    struct engine_request request = {.body = NULL};

    (void)state;
    call_begin(&call);
    assert_true(engine_request_fill(&request, &call, &limits));
    assert_int_equal(request.op.read.from.kind, OFFSET_NOW);
    assert_true(request.op.read.touch && request.op.read.in_memory);
    assert_int_equal(request.op.read.bytes_max, 100);
    engine_request_finish(&request);

    call = (struct call){.verb = CALL_LIST, .name = SLICE("pre"), .after = "prefix/x"};
    request = (struct engine_request){.body = NULL};
    call_begin(&call);
    assert_true(engine_request_fill(&request, &call, &limits));
    assert_true(slice_equal(request.list.prefix, SLICE("pre")));
    assert_true(slice_equal(request.list.after, SLICE("prefix/x")));
    engine_request_finish(&request);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(makes_names_canonical),
        cmocka_unit_test(copies_what_it_keeps),
        cmocka_unit_test(fills_reads),
    };

    return UNIT_RUN(tests);
}
