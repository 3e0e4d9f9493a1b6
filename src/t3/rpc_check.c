/* Each is refused in a sentence that says what would be taken and repeats none of it: a token or a
 * URL may be a secret. */
#include "t3/rpc_check.h"

#include "base/limits.h"
#include "t3/frame.h"
#include "t3/rpc_error.h"
#include "t3/rpc_url.h"

#include <stdint.h>
#include <string.h>

static int check_numbers(const struct t3_rpc_options *o, struct t3_rpc_error *error)
{
    const struct {
        const char *name;
        long value;
        long least;
        long most;
    } numbers[] = {
        {"connect_timeout_ms", o->connect_timeout_ms, 1, 24L * 3600 * 1000},
        {"ping_interval_ms", o->ping_interval_ms, 0, 24L * 3600 * 1000},
        {"pings_missed_max", o->pings_missed_max, 1, 1000},
        {"message_bytes_max",
         o->message_bytes_max > INT32_MAX ? INT64_MAX : (long)o->message_bytes_max, 1, INT32_MAX},
        {"depth_max", o->depth_max, 1, JSON_DEPTH_MAX},
        {"requests_max", o->requests_max, 1, T3_REQUESTS_MAX},
    };

    for (size_t i = 0; i < ARRAY_COUNT(numbers); i++) {
        if (numbers[i].value < numbers[i].least || numbers[i].value > numbers[i].most) {
            return rpc_error_set(error, T3_RPC_ERROR_ARGUMENT, "%s must be from %ld to %ld",
                                 numbers[i].name, numbers[i].least, numbers[i].most);
        }
    }
    return T3_RPC_OK;
}

/* Whether a header field can carry it. */
static bool is_field(const char *text, size_t bytes_max)
{
    size_t len = strlen(text);

    for (size_t i = 0; i < len; i++) {
        if (text[i] < ' ' || text[i] > '~') {
            return false;
        }
    }
    return len <= bytes_max;
}

static int check_texts(const struct t3_rpc_options *o, struct t3_rpc_error *error)
{
    if (o->token != NULL && (o->token[0] == '\0' || !is_field(o->token, T3_TOKEN_BYTES_MAX))) {
        return rpc_error_set(error, T3_RPC_ERROR_ARGUMENT,
                             "the token is empty, has more than %u bytes, or holds what no header "
                             "field can carry",
                             T3_TOKEN_BYTES_MAX);
    }
    if (o->user_agent != NULL && !is_field(o->user_agent, T3_AGENT_BYTES_MAX)) {
        return rpc_error_set(error, T3_RPC_ERROR_ARGUMENT,
                             "user_agent has more than %u bytes, or holds what no header field can "
                             "carry",
                             T3_AGENT_BYTES_MAX);
    }
    return T3_RPC_OK;
}

int rpc_check_options(const struct t3_rpc_options *options, struct t3_rpc_error *ret_error)
{
    int code = check_numbers(options, ret_error);

    return code == T3_RPC_OK ? check_texts(options, ret_error) : code;
}

int rpc_check_url(const char *url, struct t3_rpc_error *ret_error)
{
    struct rpc_url parts = {.host = NULL};
    int code = rpc_url_init(&parts, url, ret_error);

    rpc_url_finish(&parts);
    return code;
}

int rpc_check_request(const char *method, const char *payload, struct slice *ret_method,
                      struct slice *ret_payload, struct t3_rpc_error *ret_error)
{
    size_t len = strnlen(method, T3_METHOD_BYTES_MAX + 1);

    if (len == 0 || len > T3_METHOD_BYTES_MAX) {
        return rpc_error_set(ret_error, T3_RPC_ERROR_ARGUMENT,
                             "the name of the method must have 1 to %u bytes", T3_METHOD_BYTES_MAX);
    }
    *ret_method = (struct slice){method, len};
    if (payload == NULL) {
        *ret_payload = SLICE("{}");
        return T3_RPC_OK;
    }
    return t3_frame_payload(slice_of(payload), ret_payload, ret_error);
}
