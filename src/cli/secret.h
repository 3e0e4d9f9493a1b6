/* The file that holds the shared secret. */
#ifndef ARBE_CLI_SECRET_H
#define ARBE_CLI_SECRET_H

#include "base/err.h"
#include "base/slice.h"

#define SECRET_BYTES_MAX 1024

/* Reads the secret at `path` into `memory`, without the line end behind it. ERR_PERM when
 * others than the owner may read the file, ERR_INVALID when it holds no usable secret, ERR_IO
 * when it cannot be read; each with a sentence. */
int secret_read(const char *path, char memory[static SECRET_BYTES_MAX], struct slice *ret_secret,
                struct errmsg *msg) MUST_USE;

/* The same where secrets may be longer, such as tokens: of less than `size` bytes. */
int secret_read_long(const char *path, char *memory, size_t size, struct slice *ret_secret,
                     struct errmsg *msg) MUST_USE;

#endif
