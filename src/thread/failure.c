/* Two tables in words of code. What is not known to have been refused is streams.outcome_unknown,
 * whatever else may be said of it. */
#include "thread/failure.h"

static enum api_code code_of_busy(const struct stream_error *error)
{
    return error->status == 507 ? API_STORAGE_FULL : API_BUSY;
}

static enum api_code code_of_stream(const struct stream_error *error)
{
    if (error->outcome_unknown) {
        return API_OUTCOME_UNKNOWN;
    }
    switch (error->code) {
    case STREAM_ERROR_NOT_FOUND:
    case STREAM_ERROR_GONE:
        return API_NOT_FOUND;
    case STREAM_ERROR_CLOSED:
        return API_THREAD_CLOSED;
    case STREAM_ERROR_BUSY:
        return code_of_busy(error);
    case STREAM_ERROR_MEMORY:
        return API_BUSY;
    case STREAM_ERROR_REJECTED:
        return error->status == 413 ? API_TOO_LARGE : API_INTERNAL;
    case STREAM_ERROR_ABORTED:
    case STREAM_ERROR_TIMEOUT:
    case STREAM_ERROR_NETWORK:
    case STREAM_ERROR_TLS:
    case STREAM_ERROR_UNAUTHORIZED:
    case STREAM_ERROR_FORBIDDEN:
    case STREAM_ERROR_SERVER:
        return API_STREAMS_UNAVAILABLE;
    default: /* an argument of ours, a stream of another kind, an answer that makes no sense */
        return API_INTERNAL;
    }
}

int failure_of_stream(struct api_error *e, const struct stream_error *error)
{
    return api_error_set(e, code_of_stream(error), "%s", error->message);
}

bool failure_is_final(const struct stream_error *error)
{
    if (error->outcome_unknown) {
        return false;
    }
    switch (error->code) {
    case STREAM_ERROR_ARGUMENT:
    case STREAM_ERROR_CLOSED:
    case STREAM_ERROR_EXISTS: /* of another content type */
        return true;
    case STREAM_ERROR_REJECTED:
        /* 408 and 425 speak of the moment, 405 of a server that is none of ours. */
        return error->status == 400 || error->status == 413 || error->status == 415 ||
               error->status == 422;
    default:
        return false;
    }
}

uint64_t failure_retry_after_s(const struct stream_error *error)
{
    if (error->retry_after_ms < 0) {
        return 0;
    }
    return error->retry_after_ms < 1000 ? 1 : ((uint64_t)error->retry_after_ms + 999) / 1000;
}

int failure_of_store(struct api_error *e, int code, const struct errmsg *msg)
{
    enum api_code api = API_INTERNAL;
    if (code == ERR_NOSPC) {
        api = API_STORAGE_FULL;
    } else if (code == ERR_BUSY || code == ERR_AGAIN || code == ERR_NOMEM) {
        api = API_BUSY;
    } else if (code == ERR_NOTFOUND) {
        api = API_NOT_FOUND;
    }
    return api_error_set(e, api, "%s", msg && msg->text[0] ? msg->text : err_text(code));
}
