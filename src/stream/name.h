/* Canonical stream names: what follows /v1/stream/ in a path, percent-decoded so that one
 * stream has one name, but for %2F and %25, which stay encoded (in upper case), so that URLs
 * that differ stay different. Names are keys of the catalog, never file names. Pure. */
#ifndef ARBE_STREAM_NAME_H
#define ARBE_STREAM_NAME_H

#include "base/buf.h"
#include "base/err.h"
#include "base/limits.h"

#define NAME_ROOT "/v1/stream/"

/* Whether `path` lies below the root of streams. The one decision by which requests are routed, and
 * by which the secret is asked for. */
bool name_is_stream_path(struct slice path);

/* Makes the canonical name of `raw`, the part of a path after the root, at most
 * STREAM_NAME_BYTES_MAX bytes into `out`. ERR_NOTFOUND: empty or reserved; ERR_TOOBIG: too
 * long; ERR_INVALID: escapes, bytes or segments that no name may have. `msg` says what was
 * wrong. */
int name_parse(struct slice raw, char out[static STREAM_NAME_BYTES_MAX], size_t *ret_len,
               struct errmsg *msg) MUST_USE;

/* Appends `name` as it stands in a URL; name_parse gives the same name back. */
void name_append_escaped(struct buf *out, struct slice name);

/* Decodes all escapes of `raw` into `out`, which takes `cap` bytes: for a name that was escaped
 * once more to be part of a path. Bytes written; ERR_INVALID: a broken escape; ERR_TOOBIG. */
long name_unescape(struct slice raw, char *out, size_t cap) MUST_USE;

#endif
