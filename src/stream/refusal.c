/* Statuses are those of base/err.h but for the few that depend on what was asked. */
#include "stream/refusal.h"

struct slice refusal_detail(int code, const struct errmsg *msg)
{
    /* What the disk said, with its paths, is for the operator. */
    bool inside = code == ERR_IO || code == ERR_CORRUPT || code == ERR_MISMATCH ||
                  code == ERR_LOCKED || code == ERR_NOMEM || code == ERR_FILEKIND;

    return slice_of(inside || msg->text[0] == '\0' ? err_text(code) : msg->text);
}

int refusal_status(const struct stream_op *op)
{
    /* A deleted stream whose forks live on blocks its path (PROTOCOL.md 4.2). */
    if (op->verb == STREAM_CREATE && op->result.code == ERR_GONE) {
        return 409;
    }
    return err_status(op->result.code);
}

struct slice refusal_of_op(const struct stream_op *op)
{
    /* The public client looks for the word "sequence" (a conflict that a retry cannot mend). */
    if (op->verb == STREAM_APPEND && op->result.seq_conflict) {
        return SLICE(
            "Sequence conflict: Stream-Seq must be greater than the last one of this stream");
    }
    return refusal_detail(op->result.code, &op->result.msg);
}

int refusal_name_status(int code)
{
    return code == ERR_TOOBIG ? 414 : err_status(code);
}

int refusal_of_body(struct errmsg *msg, uint64_t bytes_max)
{
    return err_set(msg, ERR_TOOBIG, "a request body has at most %llu bytes",
                   (unsigned long long)bytes_max);
}

int refusal_of_reader(struct errmsg *msg, const char *whose)
{
    (void)err_set(msg, ERR_LIMIT,
                  "as many live readers as %s may have are waiting; come again shortly, or read "
                  "without live",
                  whose);
    /* Not 429: it is the server that is full, not the client that asks too often. */
    return 503;
}
