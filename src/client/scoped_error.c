/* One struct for what the API says and for what kept it from saying anything. */
#include "client/call.h"
#include "client/scoped.h"

#include <stdio.h>

/* "client." and the name of the code in lower case. */
static void own_code(enum stream_error_code code, char out[static 64])
{
    const char *name = code == STREAM_ERROR_FORMAT ? "response_invalid" : stream_error_name(code);

    (void)snprintf(out, 64, "client.%s", name);
    for (char *p = out; *p != '\0'; p++) {
        *p = (char)(*p >= 'A' && *p <= 'Z' ? *p - 'A' + 'a' : *p);
    }
}

/* Whether it may do better by itself. */
static bool may_pass(enum stream_error_code code)
{
    return code == STREAM_ERROR_NETWORK || code == STREAM_ERROR_TIMEOUT ||
           code == STREAM_ERROR_BUSY || code == STREAM_ERROR_SERVER;
}

int scoped_error_fill(struct scoped_error *out, const struct stream_error *error,
                      const struct refusal *refusal)
{
    if (out == NULL) {
        return (int)error->code;
    }
    *out = (struct scoped_error){
        .kind = error->code,
        .status = error->status,
        .recoverable = may_pass(error->code),
        .outcome_unknown = error->outcome_unknown,
        .retry_after_ms = error->retry_after_ms,
    };
    memcpy(out->message, error->message, sizeof(out->message));
    if (!refusal->present) {
        own_code(error->code, out->code);
        return (int)error->code;
    }
    memcpy(out->code, refusal->code, sizeof(out->code));
    memcpy(out->suggestion, refusal->suggestion, sizeof(out->suggestion));
    memcpy(out->field, refusal->field, sizeof(out->field));
    if (refusal->message[0] != '\0') {
        memcpy(out->message, refusal->message, sizeof(out->message));
    }
    out->recoverable = refusal->recoverable;
    return (int)error->code;
}

int scoped_error_set(struct scoped_error *out, enum stream_error_code code, const char *format, ...)
{
    static const struct refusal none = {.present = false};
    char text[STREAM_ERROR_MESSAGE_BYTES];
    struct stream_error error;
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    (void)call_error_set(&error, code, "%s", text);
    return scoped_error_fill(out, &error, &none);
}
