/* Connections to servers that are written here byte by byte, good ones and hostile ones. */
#include "t3/rpc.c"

#include "unit/base/unit.h"
#include "unit/t3/ws_peer.h"

#define REQUEST(id, method)                                                                        \
    "{\"_tag\":\"Request\",\"id\":\"" id "\",\"tag\":\"" method "\",\"payload\":{},\"headers\":[]" \
    "}"

/* A client and its server. */
struct rig {
    struct ws_peer peer;
    struct t3_rpc *rpc;
    struct t3_rpc_event event;
};

static void rig_connect(struct rig *rig, const struct t3_rpc_options *options)
{
    char url[64];
    struct t3_rpc_error error = {0};

    ws_peer_init(&rig->peer, NULL);
    if (t3_rpc_connect(ws_peer_url(&rig->peer, url), options, &rig->rpc, &error) != T3_RPC_OK) {
        fail_msg("%s", error.message);
    }
}

static void rig_next(struct rig *rig, enum t3_rpc_event_kind kind)
{
    assert_int_equal(t3_rpc_next(rig->rpc, -1, &rig->event), 1);
    if (rig->event.kind != kind) {
        print_error("%d: %s\n", rig->event.error.code, rig->event.error.message);
    }
    assert_int_equal(rig->event.kind, kind);
}

static void rig_open(struct rig *rig, const struct t3_rpc_options *options)
{
    rig_connect(rig, options);
    ws_peer_open(&rig->peer);
    rig_next(rig, T3_RPC_EVENT_OPEN);
}

/* The connection must end with that, and nothing follow. */
static void rig_ends(struct rig *rig, enum t3_rpc_code code, const char *says)
{
    rig_next(rig, T3_RPC_EVENT_CLOSED);
    if (rig->event.error.code != code || strstr(rig->event.error.message, says) == NULL) {
        print_error("%s: %s\n", t3_rpc_code_name(rig->event.error.code), rig->event.error.message);
    }
    assert_int_equal(rig->event.error.code, code);
    assert_non_null(strstr(rig->event.error.message, says));
    assert_int_equal(t3_rpc_next(rig->rpc, -1, &rig->event), 0);
}

static void rig_finish(struct rig *rig)
{
    t3_rpc_free(rig->rpc);
    ws_peer_finish(&rig->peer);
}

/* A stream and a call, from the request to the end. */
static void test_talk(void **state)
{
    struct rig rig;
    uint64_t id;

    (void)state;
    rig_open(&rig, NULL);
    assert_int_equal(t3_rpc_subscribe(rig.rpc, "a.b", NULL, &id, NULL), T3_RPC_OK);
    assert_int_equal(id, 1);
    ws_peer_expect(&rig.peer, REQUEST("1", "a.b"));
    ws_peer_text(&rig.peer, "{\"_tag\":\"Chunk\",\"requestId\":\"1\",\"values\":[1, {\"a\":[2]}]}");
    rig_next(&rig, T3_RPC_EVENT_CHUNK);
    assert_int_equal(rig.event.id, 1);
    assert_string_equal(rig.event.json, "[1, {\"a\":[2]}]");
    assert_int_equal(rig.event.len, strlen(rig.event.json));
    assert_int_equal(t3_rpc_ack(rig.rpc, 1, NULL), T3_RPC_OK);
    ws_peer_expect(&rig.peer, "{\"_tag\":\"Ack\",\"requestId\":\"1\"}");
    assert_int_equal(t3_rpc_call(rig.rpc, "c", "{}", &id, NULL), T3_RPC_OK);
    ws_peer_expect(&rig.peer, REQUEST("2", "c"));
    ws_peer_text(
        &rig.peer,
        "{\"_tag\":\"Exit\",\"requestId\":\"2\",\"exit\":{\"_tag\":\"Success\",\"value\":7}}");
    rig_next(&rig, T3_RPC_EVENT_DONE);
    assert_string_equal(rig.event.json, "7");
    ws_peer_text(&rig.peer, "{\"_tag\":\"Exit\",\"requestId\":1,\"exit\":{\"_tag\":\"Success\"}}");
    rig_next(&rig, T3_RPC_EVENT_DONE);
    assert_int_equal(rig.event.id, 1);
    assert_string_equal(rig.event.json, "null");
    t3_rpc_close(rig.rpc);
    ws_peer_expect_close(&rig.peer, 1000);
    ws_peer_frame(&rig.peer, 0x88, "\x03\xe8", 2);
    rig_ends(&rig, T3_RPC_ERROR_CLOSED, "was closed");
    rig_finish(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_talk),
    };

    return UNIT_RUN(tests);
}
