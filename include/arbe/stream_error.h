/* What can go wrong with a stream: a small list, with what the server said. */
#ifndef ARBE_STREAM_ERROR_H
#define ARBE_STREAM_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif

enum stream_error_code {
    STREAM_OK = 0,
    STREAM_ERROR_ARGUMENT,     /* the call itself makes no sense; nothing was sent */
    STREAM_ERROR_MEMORY,       /* out of memory */
    STREAM_ERROR_ABORTED,      /* one of the abort functions, or the client is being freed */
    STREAM_ERROR_TIMEOUT,      /* a time limit of the options passed */
    STREAM_ERROR_NETWORK,      /* no connection, or it broke before the answer was whole */
    STREAM_ERROR_TLS,          /* the server's certificate or the handshake is not good */
    STREAM_ERROR_UNAUTHORIZED, /* 401 */
    STREAM_ERROR_FORBIDDEN,    /* 403 */
    STREAM_ERROR_NOT_FOUND,    /* 404 */
    STREAM_ERROR_GONE,         /* 410: deleted, or the offset is no longer kept */
    STREAM_ERROR_EXISTS,       /* 409: it exists with another configuration */
    STREAM_ERROR_CLOSED,       /* 409: the stream takes no more */
    STREAM_ERROR_SEQUENCE,     /* 409: Stream-Seq does not rise, or a producer left a gap */
    STREAM_ERROR_FENCED,       /* 403: another producer of this id has a newer epoch */
    STREAM_ERROR_REJECTED,     /* any other 4xx: asking again the same way would not help */
    STREAM_ERROR_BUSY,         /* 429, 503, 507: the server can do this later, not now */
    STREAM_ERROR_SERVER,       /* any other 5xx */
    STREAM_ERROR_FORMAT,       /* an answer that the protocol does not allow */
};

#define STREAM_ERROR_MESSAGE_BYTES 512

/* Filled by a call that fails; as it was otherwise. The caller's; plain memory. */
struct stream_error {
    enum stream_error_code code;
    int status;              /* HTTP status; 0: there was no answer */
    int outcome_unknown;     /* 1: what was sent may or may not have taken effect */
    long retry_after_ms;     /* what the server asked for; -1: nothing */
    long long current_epoch; /* FENCED: the epoch in force; -1 otherwise */
    long long expected_seq;  /* SEQUENCE of a producer: the one to come next; -1 otherwise */
    /* One line: what was wrong, and with what; the server's own sentence where it gave one. */
    char message[STREAM_ERROR_MESSAGE_BYTES];
};

/* The name of a code, such as "NOT_FOUND". Static storage. */
const char *stream_error_name(enum stream_error_code code);

#ifdef __cplusplus
}
#endif

#endif
