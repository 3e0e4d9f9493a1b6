/* What a server says to a session with requests under way: each line of the input is a message. The
 * program takes events, acknowledges and interrupts by what the lines say. What it is given must be
 * JSON, a sentence must be one line, and the end the last. */
#include "base/json_value.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "t3/rpc_session.h"

#include <assert.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUESTS 6
#define DEPTH    20

static void check_sentence(const struct t3_rpc_error *error)
{
    struct slice text = slice_of(error->message);

    assert(text.len < T3_RPC_MESSAGE_BYTES && utf8_valid(text));
    for (size_t i = 0; i < text.len; i++) {
        assert(utf8_control((struct slice){text.ptr + i, text.len - i}) == 0);
    }
}

static void check_event(const struct t3_rpc_event *event)
{
    struct slice value;

    check_sentence(&event->error);
    if (event->json != NULL) {
        assert(event->json[event->len] == '\0');
        assert(json_text_read((struct slice){event->json, event->len}, &value, NULL) == 0);
        assert(value.len == event->len && json_depth(value) <= DEPTH);
    }
    if (event->kind == T3_RPC_EVENT_CHUNK) {
        assert(event->json != NULL && json_kind(value) == JSON_ARRAY && event->len > 2);
    }
    if (event->kind == T3_RPC_EVENT_DONE || event->kind == T3_RPC_EVENT_CHUNK) {
        assert(event->error.code == T3_RPC_OK && event->id > 0);
    }
}

static void send_all(struct rpc_session *s)
{
    struct buf out;

    buf_init(&out, MIB);
    while (rpc_session_send(s, &out)) {
        struct slice value;

        assert(json_text_read(buf_slice(&out), &value, NULL) == 0);
        buf_clear(&out);
    }
    buf_finish(&out);
}

/* One message; whether the connection goes on. */
static bool hear(struct rpc_session *s, struct slice line)
{
    struct t3_rpc_error error = {.code = T3_RPC_OK};
    struct t3_frame frame = {.json = SLICE("")};
    struct buf message;

    buf_init(&message, MIB);
    buf_append(&message, line);
    int code = t3_frame_read(buf_slice(&message), DEPTH, &frame, &error);

    if (code == T3_RPC_OK) {
        code = rpc_session_take(s, &frame, &message, &error);
    }
    if (code != T3_RPC_OK) {
        assert(code == (int)error.code);
        check_sentence(&error);
        rpc_session_end(s, &error, code == T3_RPC_ERROR_DEFECT ? frame.json : SLICE(""), &message);
    }
    buf_finish(&message);
    return code == T3_RPC_OK;
}

/* What a program does, by a number. */
static void act(struct rpc_session *s, size_t number)
{
    struct t3_rpc_event event;
    uint64_t id = 0;

    if (number % 5 == 0) {
        rpc_session_interrupt(s, 1 + number % REQUESTS);
    }
    if (number % 3 != 0 && rpc_session_next(s, &event)) {
        check_event(&event);
        if (event.kind == T3_RPC_EVENT_CHUNK && number % 2 == 0) {
            (void)rpc_session_ack(s, event.id, NULL); /* it may have ended */
        }
    }
    if (number % 7 == 0) {
        (void)rpc_session_request(s, true, SLICE("m"), SLICE("{}"), &id, NULL); /* or no room */
    }
    send_all(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice rest = {(const char *)data, size};
    struct t3_rpc_event event = {.kind = T3_RPC_EVENT_OPEN};
    struct rpc_session s;
    struct slice line;
    size_t count = 0;
    uint64_t id;

    if (size == 0) {
        return 0;
    }
    rpc_session_init(&s, REQUESTS);
    for (int i = 0; i < REQUESTS / 2; i++) {
        (void)rpc_session_request(&s, i != 1, SLICE("m"), SLICE("{}"), &id,
                                  NULL); /* there is room */
    }
    send_all(&s);
    while (slice_split(&rest, '\n', &line) && hear(&s, line)) {
        act(&s, line.len + count++);
        assert(s.requests.count <= (size_t)2 * REQUESTS);
    }
    while (rpc_session_next(&s, &event)) {
        check_event(&event);
    }
    assert(!s.ended || event.kind == T3_RPC_EVENT_CLOSED);
    assert(s.event_bytes == 0);
    rpc_session_finish(&s);
    return 0;
}
