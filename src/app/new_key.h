/* A key for an agent, made for a call and shown in its answer, once. */
#ifndef ARBE_APP_NEW_KEY_H
#define ARBE_APP_NEW_KEY_H

#include "app/api_call.h"

/* Makes key and record; `name` may be absent. The secret is in ret_key, to be wiped by its owner;
 * the record's slices live as long as the call. API_DONE or API_FAILED. */
int new_key_make(struct api_call *c, struct slice agent_id, struct slice name,
                 char ret_key[static API_KEY_BYTES], struct key_record *ret_record) MUST_USE;

/* Makes a token, as of an invite, and its hash in the call's memory. */
int new_token_make(struct api_call *c, char ret_token[static API_TOKEN_BYTES],
                   struct slice *ret_hash) MUST_USE;

#endif
