/* The secret that signs sandboxes' tokens: 32 random bytes in DIR/keys/sandbox.key (0600), made at
 * the first start. Who has it can write to every thread as any agent. */
#ifndef ARBE_APP_SANDBOX_KEY_H
#define ARBE_APP_SANDBOX_KEY_H

#include "base/err.h"
#include "thread/sandbox_token.h"

/* Reads it, or makes it, durably. May block. ERR_MISMATCH: others may read the file, or it is not
 * what we made; ERR_IO, ERR_NOSPC; with a sentence. */
int sandbox_key_load(const char *data_dir, unsigned char ret_key[static SANDBOX_KEY_BYTES],
                     struct errmsg *msg) MUST_USE;

#endif
