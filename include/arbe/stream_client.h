/* A client of Durable Streams servers: create, append, read, follow.
 *
 * A client is one base URL with its connections and one thread of its own, which does the network
 * and nothing else. It knows nothing of threads, permissions or scopes. Names are what follows the
 * base URL: "events/2026", without a leading slash; they are escaped as needed.
 *
 * Threads: a client may be used by several threads at a time; a reader by one at a time, but for
 * stream_reader_abort. Callbacks of the options run on the client's own thread and must not block
 * nor call into the client. */
#ifndef ARBE_STREAM_CLIENT_H
#define ARBE_STREAM_CLIENT_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "arbe/stream_error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Blocking or not: every call that says "blocks" waits for its answer. A program with an event loop
 * of its own uses the `start` form and watches stream_client_fd; results then come from
 * stream_client_step. Both forms may be mixed.
 *
 * Errors: calls return STREAM_OK (0) or a code of stream_error.h and then fill `ret_error`, which
 * may be NULL. Failures that pass by themselves (no connection, 429, 500, 502, 503, 504) are tried
 * again as the options say, wherever that cannot do a thing twice: reads always; creates, closes
 * and deletes, since they are idempotent; appends when the server cannot have taken them, or when
 * they bear a producer's claim. An append whose fate is not known fails with `outcome_unknown`. */

struct stream_client;
struct stream_reader;
struct stream_headers; /* where a callback puts header fields or query parameters */

/* An offset as text, opaque; compare with strcmp. "-1" is the beginning, "now" the tail. */
#define STREAM_OFFSET_BYTES 128 /* with the NUL; longer ones are refused as STREAM_ERROR_FORMAT */

/* Adds one field or parameter to the request at hand; copied. A name or value that would break the
 * request (control characters) fails the request with STREAM_ERROR_ARGUMENT. */
void stream_headers_add(struct stream_headers *headers, const char *name, const char *value);

#define STREAM_RETRY_FOREVER INT_MAX

/* Back-off: the first pause, doubled (times `multiplier`) each time up to the longest one, each
 * shortened by a random part of up to a half; Retry-After outranks it, up to retry_after_max_ms. */
struct stream_retry {
    int max_retries; /* 0: never; STREAM_RETRY_FOREVER, which is what a tail wants */
    int initial_delay_ms;
    int max_delay_ms;
    double multiplier;
    int retry_after_max_ms;
};

struct stream_client_options {
    const char *bearer;     /* Authorization: Bearer; copied; NULL: none */
    const char *ca_file;    /* certificates to trust instead of the system's; NULL: those */
    const char *user_agent; /* NULL: "arbe/" and the version */
    int connect_timeout_ms; /* until a connection stands */
    int request_timeout_ms; /* until an answer that is not live is whole; 0: none */
    int idle_timeout_ms;    /* a live answer without a byte, heartbeats included; 0: none */
    int at_least_once;   /* 1: tries a plain append again although it may have been taken before */
    int compression;     /* 1: accept compressed answers */
    int max_connections; /* at once; further calls wait; each reader has one of its own */
    size_t max_message_bytes; /* one JSON message or SSE event; longer ones are refused */
    struct stream_retry retry;
    /* Called for each request, each try anew, with fields and parameters to add: a token that
     * changes. NULL: none. */
    void (*add_headers)(void *context, struct stream_headers *headers);
    void (*add_query)(void *context, struct stream_headers *query);
    void *context;
};

/* Fills the options with their defaults: 10 s to connect, 30 s for an answer, 45 s without a byte,
 * compression, 8 connections, 64 MiB messages, 5 retries from 100 ms to 10 s, times 2. */
void stream_client_options_init(struct stream_client_options *options);

/* Makes a client for `base_url`, such as "http://127.0.0.1:4437/v1/stream/": http or https, no
 * query, no fragment. Nothing is sent yet. Everything in `options` (NULL: the defaults) is copied
 * but for `context`. ARGUMENT with a sentence, MEMORY. */
int stream_client_new(const char *base_url, const struct stream_client_options *options,
                      struct stream_client **ret_client, struct stream_error *ret_error);

/* Aborts what is under way, ends the thread, frees; the callbacks of calls that were started and
 * have not been told of their end run here, and whatever they begin fails with ABORTED. No other
 * thread is in a call, and readers and producers of it are freed by now. Accepts NULL. */
void stream_client_free(struct stream_client *client);

/* Ends every call and read under way, and every one to come, with STREAM_ERROR_ABORTED, at once,
 * also in the middle of a body. Any thread; also a signal handler: async-signal-safe. */
void stream_client_abort(struct stream_client *client);

/* Takes abort back for calls to come. Not from a signal handler. */
void stream_client_reset(struct stream_client *client);

/* What an operation may say of a stream. Unset texts are empty. */
struct stream_info {
    int status;                            /* HTTP status of the answer */
    char next_offset[STREAM_OFFSET_BYTES]; /* one past the last byte, as of the answer */
    char content_type[256];
    int created;         /* create: 1 new, 0 it was there with this configuration */
    int closed;          /* no more appends */
    int duplicate;       /* append of a producer: it had been taken before */
    int64_t ttl_seconds; /* head: -1: none */
    char expires_at[64]; /* head: RFC 3339, as the server wrote it */
    char etag[128];
    char cursor[64];
    int64_t producer_epoch; /* append of a producer; -1: not said */
    int64_t producer_seq;   /* highest that was taken; -1: not said */
};

/* How to create. Zero but for what is wanted. */
struct stream_create_options {
    const char *content_type; /* NULL: that of the source, or application/octet-stream */
    int64_t ttl_seconds;      /* 0: none */
    const char *expires_at;   /* RFC 3339; NULL: never */
    int closed;               /* 1: with `data`, and no more */
    const void *data;         /* first content; NULL: none */
    size_t len;
    const char *fork_of;     /* name of the stream to fork; NULL: not a fork */
    const char *fork_offset; /* NULL: its tail */
    int64_t fork_sub_offset; /* messages (JSON) or bytes beyond it; 0: none */
};

/* How to append. Zero but for what is wanted. */
struct stream_append_options {
    const char *content_type; /* NULL: what a create or head of this client said of the stream */
    const char *seq;          /* Stream-Seq; NULL: none */
    int close;                /* 1: the stream takes no more after this */
    const char *producer_id;  /* NULL: none; see producer.h for all that belongs to it */
    int64_t producer_epoch;
    int64_t producer_seq;
};

/* Creates a stream. Blocks. `options` and `ret_info` may be NULL. EXISTS: with another
 * configuration. */
int stream_client_create(struct stream_client *client, const char *name,
                         const struct stream_create_options *options, struct stream_info *ret_info,
                         struct stream_error *ret_error);

/* Asks for what HEAD tells. Blocks. NOT_FOUND, GONE. */
int stream_client_head(struct stream_client *client, const char *name, struct stream_info *ret_info,
                       struct stream_error *ret_error);

/* Appends `len` bytes: one message, or, for JSON, what one JSON text holds. `len` 0 is for closing
 * only. Blocks. */
int stream_client_append(struct stream_client *client, const char *name, const void *data,
                         size_t len, const struct stream_append_options *options,
                         struct stream_info *ret_info, struct stream_error *ret_error);

struct stream_message {
    const void *data;
    size_t len;
};

/* Appends all of the messages in one request, so that all of them are stored or none: as a JSON
 * array for JSON streams, one behind the other for others. Blocks. ARGUMENT: for a JSON stream one
 * of them is not one JSON value; nothing is sent then. */
int stream_client_append_batch(struct stream_client *client, const char *name,
                               const struct stream_message *messages, size_t count,
                               const struct stream_append_options *options,
                               struct stream_info *ret_info, struct stream_error *ret_error);

/* Closes a stream; closing a closed one is fine. Blocks. */
int stream_client_close(struct stream_client *client, const char *name,
                        struct stream_info *ret_info, struct stream_error *ret_error);

/* Deletes a stream. Blocks. */
int stream_client_delete(struct stream_client *client, const char *name,
                         struct stream_error *ret_error);

/* Called for each stream of a list; a result other than 0 ends it. */
typedef int (*stream_list_fn)(void *context, const char *name, const struct stream_info *info);

/* Lists the streams whose names begin with `prefix` ("": all), in order, where the server offers a
 * listing (arbe does). Blocks. NOT_FOUND: it does not. */
int stream_client_list(struct stream_client *client, const char *prefix, stream_list_fn each,
                       void *context, struct stream_error *ret_error);

/* All catch up page by page; the live ones then go on until the stream is closed. Server-sent
 * events carry text with its line ends made LF; long-polls are exact. */
enum stream_live {
    STREAM_CATCH_UP,  /* ends at the tail */
    STREAM_LONG_POLL, /* goes on: long-polls */
    STREAM_SSE,       /* goes on: server-sent events */
    STREAM_AUTO,      /* goes on: events, or long-polls where those would not be exact, are not
                       * served, or do not get through (5 s of silence, or ended 3 times at once) */
};

enum stream_unit {
    STREAM_BYTES,    /* pieces of the bytes as they come */
    STREAM_MESSAGES, /* JSON streams: one message a piece, as it was sent */
};

struct stream_read_options {
    const char *offset; /* NULL: "-1"; copied */
    enum stream_live live;
    enum stream_unit unit;
    int poll_timeout_ms; /* a long-poll that brings no byte for so long is begun anew; 0: never */
};

/* A piece of a stream. Borrowed from the reader until the next call on it. */
struct stream_piece_view {
    const void *data; /* NULL when len is 0 */
    size_t len;
    /* Where to resume once this piece and those before it are dealt with; NULL inside a page of the
     * server, where no offset exists: who resumes after an end there gets the page once more. */
    const char *next_offset;
    int up_to_date; /* the tail is reached; such a piece may be empty, and so may one that only
                     * tells an offset */
    int closed;     /* the end of a closed stream; nothing follows */
};

#define STREAM_END  (-1) /* a catch-up is at the tail, or the stream is closed and read whole */
#define STREAM_WAIT (-2) /* step form: nothing yet */

/* Begins to read. Nothing is sent before the first `next`. Within one reader each byte or message
 * comes exactly once and in order, whatever breaks meanwhile. ARGUMENT, MEMORY. */
int stream_client_read(struct stream_client *client, const char *name,
                       const struct stream_read_options *options, struct stream_reader **ret_reader,
                       struct stream_error *ret_error);

/* The next piece: STREAM_OK and a piece, STREAM_END, or an error; both stay for good. Blocks. A
 * reader that is not asked holds at most 1 MiB and one message, and makes the server wait. FORMAT,
 * among others: MESSAGES of a stream that is not JSON; a server that lost what it gave before. */
int stream_reader_next(struct stream_reader *reader, struct stream_piece_view *ret_piece,
                       struct stream_error *ret_error);

/* The same without blocking: STREAM_WAIT when there is nothing yet; stream_client_fd tells when to
 * ask again. */
int stream_reader_step(struct stream_reader *reader, struct stream_piece_view *ret_piece,
                       struct stream_error *ret_error);

/* What the last answers said: content type, cursor, ETag, the next offset, closed. */
void stream_reader_info(const struct stream_reader *reader, struct stream_info *ret_info);

/* Ends the reader with STREAM_ERROR_ABORTED, at once. Any thread; also a signal handler. */
void stream_reader_abort(struct stream_reader *reader);

/* Frees it, also in the middle of a body. Accepts NULL. */
void stream_reader_free(struct stream_reader *reader);

/* Reads all there is from `offset` (NULL: the beginning) to the tail, at most `max` bytes, into
 * memory to be given back by free(). JSON streams give one array. Blocks. REJECTED: there is
 * more. */
int stream_client_read_all(struct stream_client *client, const char *name, const char *offset,
                           size_t max, char **ret_data, size_t *ret_len,
                           struct stream_info *ret_info, struct stream_error *ret_error);

/* The step form. A started call belongs to the client until its callback has run; `data` and what
 * `options` point to must live until then. ARGUMENT, MEMORY; BUSY: 65,536 are under way; ABORTED:
 * the client is being freed. */
typedef void (*stream_done_fn)(void *context, int code, const struct stream_info *info,
                               const struct stream_error *error);

int stream_client_start_create(struct stream_client *client, const char *name,
                               const struct stream_create_options *options, stream_done_fn done,
                               void *context, struct stream_error *ret_error);
int stream_client_start_head(struct stream_client *client, const char *name, stream_done_fn done,
                             void *context, struct stream_error *ret_error);
int stream_client_start_append(struct stream_client *client, const char *name, const void *data,
                               size_t len, const struct stream_append_options *options,
                               stream_done_fn done, void *context, struct stream_error *ret_error);
int stream_client_start_delete(struct stream_client *client, const char *name, stream_done_fn done,
                               void *context, struct stream_error *ret_error);

/* A descriptor that is readable while stream_client_step or a stream_reader_step has something to
 * do. The client's; only to be polled. -1: the program has no descriptor left. */
int stream_client_fd(struct stream_client *client);

/* Runs the callbacks of calls that have ended, on this thread. Does not block. */
void stream_client_step(struct stream_client *client);

/* The library's version, such as "0.1.0". Static storage. */
const char *stream_client_version(void);

#ifdef __cplusplus
}
#endif

#endif
