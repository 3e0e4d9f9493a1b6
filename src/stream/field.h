/* What the fields of a request say, whatever carried them: text in, a part of an operation out, or
 * a sentence that says what would be accepted. A text whose ptr is NULL was not sent. Outputs
 * borrow from the texts and are written only when all is good. Pure. */
#ifndef ARBE_STREAM_FIELD_H
#define ARBE_STREAM_FIELD_H

#include "stream/engine.h"

/* Content-Type of a creation: a media type, or nothing. ERR_INVALID. */
int field_content_type(struct slice text, struct slice *ret_type, struct errmsg *msg) MUST_USE;

/* Stream-TTL and Stream-Expires-At, of which at most one may be there. ERR_INVALID. */
int field_expiry(struct slice ttl, struct slice expires_at, struct stream_expiry *ret_expiry,
                 struct errmsg *msg) MUST_USE;

/* Producer-Id, Producer-Epoch and Producer-Seq, in this order: all or none. ERR_INVALID. */
int field_producer(const struct slice texts[static 3], struct record_producer *ret_producer,
                   struct errmsg *msg) MUST_USE;

/* Stream-Seq: opaque, but neither empty nor long. ERR_INVALID. */
int field_seq(struct slice text, bool *ret_has_seq, struct slice *ret_seq,
              struct errmsg *msg) MUST_USE;

/* Where a fork begins. */
struct field_fork {
    struct slice source;     /* Stream-Forked-From: a path of this server */
    struct slice offset;     /* Stream-Fork-Offset */
    struct slice sub_offset; /* Stream-Fork-Sub-Offset */
};

/* Fills the fork of a creation, whose other parts stay; the source's name lands in `name`.
 * ERR_INVALID; ERR_NOTFOUND for a name that no stream can have. */
int field_fork(const struct field_fork *fork, char name[static STREAM_NAME_BYTES_MAX],
               struct stream_create_request *ret_create, struct errmsg *msg) MUST_USE;

/* An offset to read from. ERR_INVALID. */
int field_offset(struct slice text, struct offset *ret_offset, struct errmsg *msg) MUST_USE;

/* The prefix of a listing, or the name it goes on behind, decoded; `which` is what it is called.
 * ERR_INVALID: longer than names are. */
int field_listed(struct slice text, const char *which, struct errmsg *msg) MUST_USE;

#endif
