/* Who may write what: one pure function of the caller's kind, the payload's type and the author
 * that was given.
 *   agent    a person's or bot's API key: chat only, as itself
 *   sandbox  pi.*, signal.environment.*, signal.files.*, the three signals that end a run, and
 *            chat, each where its token lists it, as the token's agent
 *   server   everything, as anybody; what a bot's turn produces gets the bot as author */
#ifndef ARBE_THREAD_AUTHORSHIP_H
#define ARBE_THREAD_AUTHORSHIP_H

#include "thread/api_error.h"
#include "thread/payload.h"

enum caller_kind {
    CALLER_AGENT,
    CALLER_SANDBOX,
    CALLER_SERVER,
};

struct authorship_question {
    enum caller_kind caller;
    struct slice agent_id;            /* the caller's; the server's: whose turn it is, or empty */
    struct payload_types token_types; /* of a sandbox: what its token lists */
    enum payload_type type;           /* of the payload, as payload_check found it */
    struct slice author_given;        /* empty: none */
};

/* 0 and the author to stamp (empty: none; borrowed from the question), or -1 with FORBIDDEN and a
 * sentence. */
int authorship_decide(const struct authorship_question *question, struct slice *ret_author,
                      struct api_error *ret_error) MUST_USE;

/* Whether a sandbox token may list the type at all. */
bool authorship_sandbox_may(enum payload_type type);

#endif
