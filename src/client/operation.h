/* A call with all its retries, and with the HEAD that asks for the content type of an append which
 * was not told it: what the functions of arbe/stream_client.h are made of. */
#ifndef ARBE_CLIENT_OPERATION_H
#define ARBE_CLIENT_OPERATION_H

#include "client/call.h"

#define OPERATION_TYPE_BYTES 256u /* of a content type, with its NUL */

/* Does a copy of `call`, whose functions but on_listed are not used, and waits for its end. Of a
 * listing, ret_after gets what call_result.after says (NULL: nobody asks). Blocks. */
int operation_block(struct stream_client *client, const struct call *call,
                    struct stream_info *ret_info, char *ret_after, struct stream_error *ret_error);

/* Starts a copy of `call`; stream_client_step calls `done`. The name is copied, all else is
 * borrowed until then. MEMORY, BUSY, ABORTED. */
int operation_start(struct stream_client *client, const struct call *call, stream_done_fn done,
                    void *context, struct stream_error *ret_error);

/* The same, but `done` is called on the client's thread, as soon as the end is known and without
 * waking anybody: it must not block, nor call what blocks. It may start other calls. */
int operation_start_inside(struct stream_client *client, const struct call *call,
                           stream_done_fn done, void *context, struct stream_error *ret_error);

/* STREAM_OK; or ABORTED, in the words of the call as it would have been: the client is being freed,
 * and nobody would see it through. What begins anything on the client's thread asks first. */
int operation_check_client(const struct stream_client *client, const struct call *call,
                           struct stream_error *ret_error);

/* Fails with ARGUMENT, in the words of the call as it would have been. */
int operation_refuse(const struct call *call, const char *why, struct stream_error *ret_error);

#endif
