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

/* What the caller is told, without what only the operator is to see. */
static const char *words_for(enum api_code code)
{
    switch (code) {
    case API_NOT_FOUND:
        return "the thread has no stream";
    case API_THREAD_CLOSED:
        return "the thread takes no more entries";
    case API_STREAMS_UNAVAILABLE:
        return "the thread's stream cannot be reached now; try again shortly";
    case API_OUTCOME_UNKNOWN:
        return "the thread's stream did not answer: it may or may not have been stored";
    case API_BUSY:
        return "the thread's stream takes nothing just now; try again shortly";
    case API_STORAGE_FULL:
        return "no space is left where the thread's stream is";
    case API_TOO_LARGE:
        return "this is too large for the thread's stream";
    default:
        return "something went wrong inside the server";
    }
}

static void tell(const struct failure_teller *teller, const char *sentence)
{
    if (teller && teller->tell) {
        teller->tell(teller->context, sentence);
    }
}

int failure_of_stream(struct api_error *e, const struct stream_error *error,
                      const struct failure_teller *teller)
{
    enum api_code code = code_of_stream(error);
    if (code != API_NOT_FOUND && code != API_THREAD_CLOSED && code != API_TOO_LARGE) {
        tell(teller, error->message);
    }
    return api_error_set(e, code, "%s", words_for(code));
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

int failure_of_store(struct api_error *e, int code, const struct errmsg *msg,
                     const struct failure_teller *teller)
{
    const char *why = msg && msg->text[0] ? msg->text : err_text(code);
    if (code == ERR_NOTFOUND) {
        return api_error_set(e, API_NOT_FOUND, "%s", why);
    }
    tell(teller, why);
    if (code == ERR_NOSPC) {
        return api_error_set(e, API_STORAGE_FULL, "no space is left on the disk");
    }
    if (code == ERR_BUSY || code == ERR_AGAIN || code == ERR_NOMEM) {
        return api_error_set(e, API_BUSY, "%s", err_text(code));
    }
    return api_error_set(e, API_INTERNAL, "something went wrong inside the server");
}
