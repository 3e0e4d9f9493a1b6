/* Takes server-sent events apart (HTML section 9.2.6) as far as PROTOCOL.md 5.8 uses them: the
 * payload of data events as it comes, control events whole, other events not at all. Lines end with
 * CR, LF or CRLF. Bytes in, tokens out; however large an event is, at most SSE_HELD_BYTES_MAX are
 * held. Data may be handed out of an event whose end never comes: who reads decides what it means.
 *
 * The standard ignores what it does not know. So does this, but for lines that do not even begin
 * like a field: those are garbage, such as a proxy's page, and end the reading. */
#ifndef ARBE_CLIENT_SSE_H
#define ARBE_CLIENT_SSE_H

#include "base/attr.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/slice.h"

#define SSE_HELD_BYTES_MAX   65536 /* a control event, or data before its event's name; TOOBIG */
#define SSE_FIELD_NAME_BYTES 16    /* no field known has a longer name; INVALID */
#define SSE_EVENT_NAME_BYTES 16    /* a longer one is no event of ours */

enum sse_token {
    SSE_TOKEN_MORE,     /* all bytes are taken */
    SSE_TOKEN_DATA,     /* a part of a data event's payload; lines are joined by LF */
    SSE_TOKEN_DATA_END, /* the data event is whole */
    SSE_TOKEN_CONTROL,  /* the payload of a control event */
};

enum sse_event {
    SSE_EVENT_NONE,    /* not named yet */
    SSE_EVENT_DATA,    /* "data" */
    SSE_EVENT_CONTROL, /* "control" */
    SSE_EVENT_OTHER,   /* any other: ignored */
};

struct sse_parser {
    /* private */
    int state;                        /* where in a line */
    char name[SSE_FIELD_NAME_BYTES];  /* of the field at hand */
    size_t name_len;                  /* bytes in it */
    char value[SSE_EVENT_NAME_BYTES]; /* of an "event" field */
    size_t value_len;                 /* bytes of it, also those that did not fit */
    bool after_cr;                    /* an LF now belongs to the line before */
    unsigned mark;                    /* bytes of a byte order mark found so far; 3: past it */
    enum sse_event event;             /* the one at hand */
    bool has_data;                    /* it has a data line */
    bool given_data;                  /* some of its data is handed out */
    struct buf held;                  /* its data, unless they are handed out as they come */
    bool held_out;                    /* `held` is what the last call returned */
};

/* Ready for the first byte of an event stream. */
void sse_parser_init(struct sse_parser *p);

/* Frees what is held. Accepts a zeroed struct. */
void sse_parser_finish(struct sse_parser *p);

/* Takes bytes from the front of *rest up to the next token. ret_bytes is that of DATA and CONTROL,
 * borrowed until the next call and as long as *rest's memory lives. ERR_INVALID with a sentence: no
 * server-sent events; ERR_TOOBIG; ERR_NOMEM: only finish may follow. */
int sse_parser_take(struct sse_parser *p, struct slice *rest, struct slice *ret_bytes,
                    struct errmsg *msg) MUST_USE;

/* Base64 (RFC 4648 section 4) that comes in pieces, with LF and CR anywhere. */
struct sse_base64 {
    uint32_t bits;  /* private: of the group at hand */
    unsigned count; /* private: characters of it, padding included */
    bool ended;     /* private: padding was seen */
    unsigned pads;  /* private: of the group at hand */
};

/* Bytes that sse_base64_take may write for `len` characters. */
#define SSE_BASE64_ROOM(len) (((len) + 3) / 4 * 3)

/* Decodes all of `text` into `out`, of SSE_BASE64_ROOM(text.len) bytes, and tells how many came of
 * it. Begins with a zeroed struct. ERR_INVALID: not base64. */
int sse_base64_take(struct sse_base64 *d, struct slice text, char *out, size_t *ret_len,
                    struct errmsg *msg) MUST_USE;

/* Whether what was taken is whole: groups of four. */
static inline bool sse_base64_whole(const struct sse_base64 *d)
{
    return d->count == 0;
}

#endif
