/* A connection of the library, and its server, which is written byte by byte. */
#ifndef ARBE_TESTS_UNIT_T3_RPC_RIG_H
#define ARBE_TESTS_UNIT_T3_RPC_RIG_H

#include "arbe/t3_rpc.h"
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

/* No pings, so that nothing but the test's own words is said, and no end of the patience that a
 * busy machine needs. */
static inline struct t3_rpc_options quiet(void)
{
    struct t3_rpc_options options;

    t3_rpc_options_init(&options);
    options.ping_interval_ms = 0;
    options.connect_timeout_ms = 600000;
    return options;
}

/* `options`: NULL for quiet ones; so with the others. */
static inline void rig_connect(struct rig *rig, const struct t3_rpc_options *options)
{
    const struct t3_rpc_options usual = quiet();
    char url[64];
    struct t3_rpc_error error = {0};

    ws_peer_init(&rig->peer, NULL);
    options = options != NULL ? options : &usual;
    if (t3_rpc_connect(ws_peer_url(&rig->peer, url), options, &rig->rpc, &error) != T3_RPC_OK) {
        fail_msg("%s", error.message);
    }
}

static inline void rig_next(struct rig *rig, enum t3_rpc_event_kind kind)
{
    assert_int_equal(t3_rpc_next(rig->rpc, -1, &rig->event), 1);
    if (rig->event.kind != kind) {
        print_error("%d: %s\n", rig->event.error.code, rig->event.error.message);
    }
    assert_int_equal(rig->event.kind, kind);
}

static inline void rig_open(struct rig *rig, const struct t3_rpc_options *options)
{
    rig_connect(rig, options);
    ws_peer_open(&rig->peer);
    rig_next(rig, T3_RPC_EVENT_OPEN);
}

/* The connection must end with that, and nothing follow. */
static inline void rig_ends(struct rig *rig, enum t3_rpc_code code, const char *says)
{
    rig_next(rig, T3_RPC_EVENT_CLOSED);
    if (rig->event.error.code != code || strstr(rig->event.error.message, says) == NULL) {
        print_error("%s: %s\n", t3_rpc_code_name(rig->event.error.code), rig->event.error.message);
    }
    assert_int_equal(rig->event.error.code, code);
    assert_non_null(strstr(rig->event.error.message, says));
    assert_int_equal(t3_rpc_next(rig->rpc, -1, &rig->event), 0);
}

static inline void rig_finish(struct rig *rig)
{
    t3_rpc_free(rig->rpc);
    ws_peer_finish(&rig->peer);
}

#define CHUNK(id, values) "{\"_tag\":\"Chunk\",\"requestId\":\"" id "\",\"values\":" values "}"
#define DONE(id, value)                                                                           \
    "{\"_tag\":\"Exit\",\"requestId\":\"" id "\",\"exit\":{\"_tag\":\"Success\",\"value\":" value \
    "}}"
#define STOPPED(id)                          \
    "{\"_tag\":\"Exit\",\"requestId\":\"" id \
    "\",\"exit\":{\"_tag\":\"Failure\",\"cause\":[{\"_tag\":\"Interrupt\"}]}}"
#define ACK(id)       "{\"_tag\":\"Ack\",\"requestId\":\"" id "\"}"
#define INTERRUPT(id) "{\"_tag\":\"Interrupt\",\"requestId\":\"" id "\"}"

/* Subscribed to a stream, which the server knows. */
static inline void rig_subscribe(struct rig *rig, const struct t3_rpc_options *options)
{
    uint64_t id;

    rig_open(rig, options);
    assert_int_equal(t3_rpc_subscribe(rig->rpc, "s", NULL, &id, NULL), T3_RPC_OK);
    ws_peer_expect(&rig->peer, REQUEST("1", "s"));
}

#endif
