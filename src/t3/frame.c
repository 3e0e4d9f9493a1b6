/* A cause is an array of what went wrong, and a request may fail in several ways at once. It counts
 * as what it declares, if it declares anything, or else as a break-down, or else as interrupted. */
#include "t3/frame.h"

#include "base/json.h"
#include "base/json_value.h"
#include "base/limits.h"
#include "base/number.h"
#include "t3/fields.h"
#include "t3/rpc_error.h"

#include <stdio.h>

#define QUOTED_BYTES_MAX 200u /* of a text of the server, in a sentence */

enum {
    FRAME_TAG,
    FRAME_ID,
    FRAME_VALUES,
    FRAME_EXIT,
    FRAME_DEFECT,
    FRAME_FIELDS
};
enum {
    EXIT_TAG,
    EXIT_VALUE,
    EXIT_CAUSE,
    EXIT_FIELDS
};
enum {
    REASON_TAG,
    REASON_ERROR,
    REASON_DEFECT,
    REASON_FIELDS
};
enum {
    FAILURE_TAG,
    FAILURE_NAME,
    FAILURE_MESSAGE,
    FAILURE_SCOPE,
    FAILURE_FIELDS
};

static const struct slice frame_names[] = {
    [FRAME_TAG] = {"_tag", 4},  [FRAME_ID] = {"requestId", 9},  [FRAME_VALUES] = {"values", 6},
    [FRAME_EXIT] = {"exit", 4}, [FRAME_DEFECT] = {"defect", 6},
};
static const struct slice exit_names[] = {
    [EXIT_TAG] = {"_tag", 4},
    [EXIT_VALUE] = {"value", 5},
    [EXIT_CAUSE] = {"cause", 5},
};
static const struct slice reason_names[] = {
    [REASON_TAG] = {"_tag", 4},
    [REASON_ERROR] = {"error", 5},
    [REASON_DEFECT] = {"defect", 6},
};
static const struct slice failure_names[] = {
    [FAILURE_TAG] = {"_tag", 4},
    [FAILURE_NAME] = {"name", 4},
    [FAILURE_MESSAGE] = {"message", 7},
    [FAILURE_SCOPE] = {"requiredScope", 13},
};

static bool says(struct slice value, const char *text)
{
    return t3_field_string(value) && json_string_equal(value, slice_of(text));
}

/* -------------------------------------------------------------------------- texts for sentences */

/* How many bytes of the inside of a JSON string its first character takes. */
static size_t character_len(struct slice inside)
{
    size_t len = 1;

    if (inside.ptr[0] == '\\') {
        len = inside.len > 1 && inside.ptr[1] == 'u' ? 6 : 2;
    } else {
        while (len < inside.len && ((unsigned char)inside.ptr[len] & 0xc0) == 0x80) {
            len++;
        }
    }
    return len < inside.len ? len : inside.len;
}

/* The beginning of a string value as plain text, which is never longer than its escapes; empty for
 * any other value. */
static void quote(struct slice value, char text[static QUOTED_BYTES_MAX + 1])
{
    char cut[QUOTED_BYTES_MAX + 2];
    size_t len = 0;
    struct buf out;

    text[0] = '\0';
    if (!t3_field_string(value)) {
        return;
    }
    struct slice inside = {value.ptr + 1, value.len - 2};

    while (len < inside.len) {
        size_t step = character_len((struct slice){inside.ptr + len, inside.len - len});

        if (len + step > QUOTED_BYTES_MAX) {
            break;
        }
        len += step;
    }
    cut[0] = '"';
    memcpy(cut + 1, inside.ptr, len);
    cut[len + 1] = '"';
    buf_init_fixed(&out, text, QUOTED_BYTES_MAX + 1);
    json_string_decode_lossy((struct slice){cut, len + 2}, &out);
    for (size_t i = 0; i < out.len; i++) {
        text[i] = text[i] != '\0' ? text[i] : ' ';
    }
    text[out.len] = '\0';
}

/* What a declared error or a defect says of itself: "Name: message", or as much of it as is. */
static void describe(struct slice value, char text[static T3_RPC_MESSAGE_BYTES])
{
    struct slice field[FAILURE_FIELDS];
    char name[QUOTED_BYTES_MAX + 1];
    char message[QUOTED_BYTES_MAX + 1];

    name[0] = '\0';
    quote(value, message);
    if (value.ptr != NULL && t3_fields_read(value, T3_WANTED(failure_names), field)) {
        quote(t3_field_string(field[FAILURE_TAG]) ? field[FAILURE_TAG] : field[FAILURE_NAME], name);
        quote(field[FAILURE_MESSAGE], message);
    }
    (void)snprintf(text, T3_RPC_MESSAGE_BYTES, "%s%s%s", name,
                   name[0] != '\0' && message[0] != '\0' ? ": " : "",
                   name[0] != '\0' || message[0] != '\0' ? message : "it does not say why");
}

/* ----------------------------------------------------------------------------------- the causes */

/* A declared error. That the token may not is told by its name. */
static void read_failure(struct slice declared, struct t3_rpc_error *error)
{
    struct slice field[FAILURE_FIELDS];
    char text[T3_RPC_MESSAGE_BYTES];

    if (declared.ptr != NULL && t3_fields_read(declared, T3_WANTED(failure_names), field) &&
        says(field[FAILURE_TAG], "EnvironmentAuthorizationError")) {
        char scope[QUOTED_BYTES_MAX + 1];

        quote(field[FAILURE_SCOPE], scope);
        (void)rpc_error_set(error, T3_RPC_ERROR_SCOPE,
                            "the token may not do this; it needs the %s%s",
                            scope[0] != '\0' ? "scope " : "right scope", scope);
        return;
    }
    describe(declared, text);
    (void)rpc_error_set(error, T3_RPC_ERROR_FAILED, "the request failed: %s", text);
}

/* A break-down. That the method is unknown is told by its text alone. */
static void read_death(struct slice defect, struct t3_rpc_error *error)
{
    static const char unknown[] = "Unknown request tag: ";
    char text[T3_RPC_MESSAGE_BYTES];

    describe(defect, text);
    if (strncmp(text, unknown, sizeof(unknown) - 1) == 0) {
        (void)rpc_error_set(error, T3_RPC_ERROR_METHOD, "the server does not know the method %s",
                            text + sizeof(unknown) - 1);
        return;
    }
    (void)rpc_error_set(error, T3_RPC_ERROR_DIED, "the server broke at the request: %s", text);
}

/* The first reason with that tag; false when there is none. */
static bool find_reason(struct slice cause, const char *tag, struct slice *ret_field)
{
    struct t3_elements walk;
    struct slice element;
    int found;

    t3_elements_begin(&walk, cause);
    while ((found = t3_elements_read(&walk, T3_WANTED(reason_names), ret_field, &element)) != 0) {
        if (found > 0 && says(ret_field[REASON_TAG], tag)) {
            return true;
        }
    }
    return false;
}

static void read_cause(struct slice cause, struct t3_rpc_error *error)
{
    struct slice field[REASON_FIELDS];

    if (find_reason(cause, "Fail", field)) {
        read_failure(field[REASON_ERROR], error);
    } else if (find_reason(cause, "Die", field)) {
        read_death(field[REASON_DEFECT], error);
    } else if (find_reason(cause, "Interrupt", field)) {
        (void)rpc_error_set(error, T3_RPC_ERROR_INTERRUPTED, "the server interrupted the request");
    } else {
        (void)rpc_error_set(error, T3_RPC_ERROR_DIED, "the request failed without a reason");
    }
}

/* --------------------------------------------------------------------------- the server's words */

/* Ids are ours, and come back as the string or the number that they were. */
static bool read_id(struct slice value, uint64_t *ret_id)
{
    if (t3_field_string(value)) {
        return number_parse_u64((struct slice){value.ptr + 1, value.len - 2}, UINT64_MAX, false,
                                ret_id) &&
               *ret_id > 0;
    }
    return value.ptr != NULL && json_kind(value) == JSON_NUMBER &&
           json_number_u64(value, UINT64_MAX, ret_id) && *ret_id > 0;
}

static int read_chunk(const struct slice *field, struct t3_frame *frame, struct t3_rpc_error *error)
{
    struct t3_elements walk;
    struct slice first;

    t3_elements_begin(&walk, field[FRAME_VALUES]);
    if (!t3_field_array(field[FRAME_VALUES]) || !t3_elements_next(&walk, &first)) {
        return rpc_error_set(error, T3_RPC_ERROR_PROTOCOL,
                             "the server sent a chunk without values");
    }
    frame->kind = T3_FRAME_CHUNK;
    frame->json = field[FRAME_VALUES];
    return T3_RPC_OK;
}

static int read_exit(struct slice value, struct t3_frame *frame, struct t3_rpc_error *error)
{
    struct slice field[EXIT_FIELDS];

    if (value.ptr == NULL || !t3_fields_read(value, T3_WANTED(exit_names), field)) {
        return rpc_error_set(error, T3_RPC_ERROR_PROTOCOL,
                             "the server ended a request without an exit");
    }
    frame->kind = T3_FRAME_EXIT;
    if (says(field[EXIT_TAG], "Success")) {
        frame->json = field[EXIT_VALUE].ptr != NULL ? field[EXIT_VALUE] : SLICE("null");
        return T3_RPC_OK;
    }
    if (!says(field[EXIT_TAG], "Failure") || !t3_field_array(field[EXIT_CAUSE])) {
        return rpc_error_set(error, T3_RPC_ERROR_PROTOCOL,
                             "the server ended a request neither well nor with a cause");
    }
    frame->json = field[EXIT_CAUSE];
    read_cause(field[EXIT_CAUSE], &frame->error);
    return T3_RPC_OK;
}

static int read_of_request(const struct slice *field, struct t3_frame *frame,
                           struct t3_rpc_error *error)
{
    if (!read_id(field[FRAME_ID], &frame->id)) {
        return rpc_error_set(error, T3_RPC_ERROR_PROTOCOL,
                             "the server answered a request that it does not name by an id");
    }
    return says(field[FRAME_TAG], "Chunk") ? read_chunk(field, frame, error)
                                           : read_exit(field[FRAME_EXIT], frame, error);
}

static void read_defect(struct slice defect, struct t3_frame *frame)
{
    char text[T3_RPC_MESSAGE_BYTES];

    frame->kind = T3_FRAME_DEFECT;
    frame->json = defect.ptr != NULL ? defect : SLICE("null");
    describe(defect, text);
    (void)rpc_error_set(&frame->error, T3_RPC_ERROR_DEFECT, "the server broke: %s", text);
}

static int too_deep(unsigned depth_max, struct t3_rpc_error *error)
{
    return rpc_error_set(error, T3_RPC_ERROR_LIMIT,
                         "the server sent a message that is nested deeper than %u", depth_max);
}

/* Validates the text and its depth. */
static int read_text(struct slice text, unsigned depth_max, struct slice *ret_value,
                     struct t3_rpc_error *error)
{
    struct errmsg msg = {""};

    if (json_text_read(text, ret_value, &msg) != 0) {
        if (json_depth(text) > JSON_DEPTH_MAX) {
            return too_deep(depth_max < JSON_DEPTH_MAX ? depth_max : JSON_DEPTH_MAX, error);
        }
        return rpc_error_set(error, T3_RPC_ERROR_PROTOCOL, "the server sent what is no JSON: %s",
                             msg.text);
    }
    if (depth_max < JSON_DEPTH_MAX && json_depth(*ret_value) > depth_max) {
        return too_deep(depth_max, error);
    }
    return T3_RPC_OK;
}

int t3_frame_read(struct slice text, unsigned depth_max, struct t3_frame *ret_frame,
                  struct t3_rpc_error *ret_error)
{
    struct slice field[FRAME_FIELDS];
    struct t3_frame frame = {.kind = T3_FRAME_OTHER};
    struct slice value;
    int code = read_text(text, depth_max, &value, ret_error);

    if (code != T3_RPC_OK) {
        return code;
    }
    if (!t3_fields_read(value, T3_WANTED(frame_names), field) ||
        !t3_field_string(field[FRAME_TAG])) {
        return rpc_error_set(ret_error, T3_RPC_ERROR_PROTOCOL,
                             "the server sent a message that is no object with one _tag");
    }
    if (says(field[FRAME_TAG], "Pong")) {
        frame.kind = T3_FRAME_PONG;
    } else if (says(field[FRAME_TAG], "Defect")) {
        read_defect(field[FRAME_DEFECT], &frame);
    } else if (says(field[FRAME_TAG], "Chunk") || says(field[FRAME_TAG], "Exit")) {
        code = read_of_request(field, &frame, ret_error);
    }
    if (code == T3_RPC_OK) {
        *ret_frame = frame;
    }
    return code;
}

/* --------------------------------------------------------------------------- the client's words */

int t3_frame_payload(struct slice text, struct slice *ret_payload, struct t3_rpc_error *ret_error)
{
    struct errmsg msg = {""};
    struct slice value;

    if (json_text_read(text, &value, &msg) != 0) {
        return rpc_error_set(ret_error, T3_RPC_ERROR_ARGUMENT, "the payload is no JSON: %s",
                             msg.text);
    }
    if (json_kind(value) != JSON_OBJECT) {
        return rpc_error_set(ret_error, T3_RPC_ERROR_ARGUMENT,
                             "the payload is %s; it must be an object",
                             json_kind_text(json_kind(value)));
    }
    *ret_payload = value;
    return T3_RPC_OK;
}

/* Servers close the connection on a request without headers. */
void t3_frame_request(struct buf *out, uint64_t id, struct slice method, struct slice payload)
{
    buf_append(out, SLICE("{\"_tag\":\"Request\",\"id\":\""));
    buf_append_u64(out, id);
    buf_append(out, SLICE("\",\"tag\":"));
    json_append_string(out, method);
    buf_append(out, SLICE(",\"payload\":"));
    buf_append(out, payload);
    buf_append(out, SLICE(",\"headers\":[]}"));
}

void t3_frame_ack(struct buf *out, uint64_t id)
{
    buf_append(out, SLICE("{\"_tag\":\"Ack\",\"requestId\":\""));
    buf_append_u64(out, id);
    buf_append(out, SLICE("\"}"));
}

void t3_frame_interrupt(struct buf *out, uint64_t id)
{
    buf_append(out, SLICE("{\"_tag\":\"Interrupt\",\"requestId\":\""));
    buf_append_u64(out, id);
    buf_append(out, SLICE("\"}"));
}

void t3_frame_ping(struct buf *out)
{
    buf_append(out, SLICE("{\"_tag\":\"Ping\"}"));
}
