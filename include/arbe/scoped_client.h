/* A client of arbe's own API: threads and their entries, as the caller's token lets it see them.
 *
 * It knows the app's URL, the caller's token and ids of threads; it makes the URLs, and never has
 * to do with a stream's path or the secret of the streams. Below it is a stream client of its own,
 * with one thread that does the network and nothing else.
 *
 * Threads: a client may be used by several threads at a time; a tail or an observer by one at a
 * time, but for its abort. Callbacks of the options run on the client's own thread and must not
 * block nor call into the client. */
#ifndef ARBE_SCOPED_CLIENT_H
#define ARBE_SCOPED_CLIENT_H

#include "arbe/stream_client.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Blocking or not: calls that say "blocks" wait for their answer; the `start` form comes back at
 * once, and scoped_client_step runs its callback when scoped_client_fd is readable.
 *
 * Errors: calls return STREAM_OK (0) or a code of stream_error.h and then fill `ret_error`, which
 * may be NULL; outputs stay as they were. What passes by itself (no connection, 429, 500, 502, 503,
 * 504) is tried again as the options say, wherever that cannot do a thing twice: reads always,
 * PUT and DELETE, and posts of entries, since every entry has an id that is stored once. 401, 403
 * and 404 are final at once. */

struct scoped_client;
struct scoped_tail;
struct scoped_observer;

#define SCOPED_ID_BYTES    128 /* of ids, with the NUL; thread ids have at most 96 bytes */
#define SCOPED_TYPE_BYTES  64  /* of a payload's type, with the NUL */
#define SCOPED_AFTER_BYTES 256 /* of a page's end, with the NUL */

/* What went wrong. Plain memory, the caller's; texts that are not there are empty. */
struct scoped_error {
    /* The API's own code, such as "auth.forbidden"; where no answer of the API came: "client." and
     * the name of `kind`, such as "client.network", "client.aborted", "client.timeout", or
     * "client.response_invalid" for FORMAT. */
    char code[64];
    enum stream_error_code kind; /* what the call returned */
    int status;                  /* HTTP status; 0: there was no answer */
    int recoverable;             /* 1: the same call may do better later */
    int outcome_unknown;         /* 1: what was sent may or may not have taken effect */
    long retry_after_ms;         /* what the server asked for; -1: nothing */
    /* One line: the API's message as it is, else what was wrong, and with what. */
    char message[STREAM_ERROR_MESSAGE_BYTES];
    char suggestion[256]; /* the API's */
    char field[160];      /* context.field of the API: where in the body, "payload.text" */
};

struct scoped_client_options {
    /* Authorization: Bearer; copied; NULL: none. Any token of the app: an API key ("arbe_..."), or
     * none when add_headers gives one, which then outranks this. */
    const char *bearer;
    const char *ca_file;       /* certificates to trust instead of the system's; NULL: those */
    const char *user_agent;    /* NULL: "arbe/" and the version */
    int connect_timeout_ms;    /* until a connection stands */
    int request_timeout_ms;    /* until an answer that is not a long-poll is whole; 0: none */
    int idle_timeout_ms;       /* a long-poll without a byte; 0: none */
    int compression;           /* 1: accept compressed answers */
    int max_connections;       /* at once; further calls wait; each tail has one of its own */
    size_t max_entry_bytes;    /* of one entry of a tail; longer ones are refused with FORMAT */
    size_t max_answer_bytes;   /* of one answer; likewise */
    struct stream_retry retry; /* of requests */
    struct stream_retry tail_retry; /* of tails and observers; counts anew after each success */
    /* Called for each request, each try anew, with fields to add: a token that changes. NULL:
     * none. */
    void (*add_headers)(void *context, struct stream_headers *headers);
    void *context;
};

/* Fills the options with their defaults: 10 s to connect, 30 s for an answer, 45 s without a byte,
 * compression, 8 connections, 64 MiB for both sizes; 5 retries of a request from 100 ms to 10 s,
 * times 2; tails are tried again for ever, at most every 5 s. */
void scoped_client_options_init(struct scoped_client_options *options);

/* Makes a client for the app at `app_url`, such as "http://127.0.0.1:4437" (a path is fine, a query
 * is not). Nothing is sent yet. Everything in `options` (NULL: the defaults) is copied but for
 * `context`. ARGUMENT with a sentence, MEMORY. */
int scoped_client_new(const char *app_url, const struct scoped_client_options *options,
                      struct scoped_client **ret_client, struct scoped_error *ret_error);

/* Aborts what is under way, ends the thread, frees; callbacks of calls that have not been told of
 * their end run here. No other thread is in a call, and tails and observers of it are freed by now.
 * Accepts NULL. */
void scoped_client_free(struct scoped_client *client);

/* Ends every call, tail and observer under way, and every one to come, with STREAM_ERROR_ABORTED,
 * at once, also in the middle of a body or of a pause between tries. Any thread; also a signal
 * handler: async-signal-safe. */
void scoped_client_abort(struct scoped_client *client);

/* Takes abort back for calls to come. Not from a signal handler. */
void scoped_client_reset(struct scoped_client *client);

/* An entry, decoded as far as every reader needs it. The texts are copies; a type that this library
 * does not know, or a text that does not fit, is no error: the text is then empty. */
struct scoped_entry {
    char id[SCOPED_ID_BYTES];
    long long ts;                    /* unix ms; 0: not said */
    char author_id[SCOPED_ID_BYTES]; /* empty: none */
    char type[SCOPED_TYPE_BYTES];    /* payload.type */
    const char *payload;             /* the JSON of the payload, as it was posted; inside `json` */
    size_t payload_len;              /* 0: there is none */
    const char *json;                /* the whole entry; borrowed, see who hands it out */
    size_t json_len;
};

/* Decodes one entry; `json` must live as long as the result is used. FORMAT: it is no JSON object.
 * Pure. */
int scoped_entry_read(const char *json, size_t len, struct scoped_entry *ret_entry);

/* ------------------------------------------------------------------------------------- requests */

/* An answer of the API. */
struct scoped_answer {
    int status; /* HTTP; 200 to 299 */
    char *body; /* JSON, NUL-terminated; "" where there is none */
    size_t len;
};

/* Frees what a call has put into it; it is then zeroed. Accepts a zeroed one. */
void scoped_answer_finish(struct scoped_answer *answer);

/* An entry to post. Zero but for what is wanted. */
struct scoped_post {
    const char *payload; /* one JSON object */
    size_t payload_len;
    const char *id;        /* NULL: a new one (UUIDv7) is made; 1 to 96 of A-Za-z0-9._~- */
    const char *author_id; /* NULL: not said; the server knows the caller */
};

/* Appends an entry to a thread. Blocks. Whatever breaks meanwhile, it is stored at most once, and a
 * try whose answer was lost is repeated. The answer's body is the entry as it is stored; its status
 * is 201, or 200 when an entry of that id was there before (perhaps from a lost try). FORBIDDEN,
 * NOT_FOUND, REJECTED with `field`; FORMAT: the answer is another entry. */
int scoped_client_post(struct scoped_client *client, const char *thread_id,
                       const struct scoped_post *post, struct scoped_answer *ret_answer,
                       struct scoped_error *ret_error);

/* Deletes a chat entry: appends a tombstone, which is the answer's body. Blocks. Deleting twice is
 * fine (status 200). */
int scoped_client_delete(struct scoped_client *client, const char *thread_id, const char *entry_id,
                         struct scoped_answer *ret_answer, struct scoped_error *ret_error);

/* A page of entries: raw history, oldest first. */
struct scoped_page {
    struct scoped_entry *entries; /* borrow from the page */
    size_t count;
    char next_after[SCOPED_AFTER_BYTES]; /* go on from here; empty: not said */
    int up_to_date;                      /* nothing follows for now */
    struct scoped_answer answer;         /* private */
};

/* Reads the entries behind `after` (NULL: from the beginning; else next_after of the page before),
 * at most `limit` of them (0: as many as the server likes). Blocks. `ret_page` is to be given to
 * scoped_page_finish. */
int scoped_client_page(struct scoped_client *client, const char *thread_id, const char *after,
                       int limit, struct scoped_page *ret_page, struct scoped_error *ret_error);

/* Frees what a page holds; it is then zeroed. Accepts a zeroed one. */
void scoped_page_finish(struct scoped_page *page);

/* Any other request to the API. Zero but for what is wanted. */
struct scoped_request {
    const char *method; /* GET, POST, PUT, PATCH or DELETE */
    const char *path;   /* "/api/houses", sent as it is; may have a query */
    /* Names and values in turn, then NULL; added to the query, escaped as needed. NULL: none. A
     * value that is NULL leaves out its name: {"house_id", id, "tag", NULL, NULL}. */
    const char *const *query;
    const char *body; /* JSON; NULL: none */
    size_t len;
    int repeatable; /* 1: POST or PATCH may be sent again when its fate is not known */
};

/* Sends it. Blocks. An answer of 2xx is a success; its body, if there is one, is JSON, else FORMAT.
 * A DELETE that was tried again and finds nothing has succeeded, with status 204. */
int scoped_client_request(struct scoped_client *client, const struct scoped_request *request,
                          struct scoped_answer *ret_answer, struct scoped_error *ret_error);

/* The step form. Everything given is copied. `answer` is NULL on failure, `error` on success; what
 * they point to is freed after the callback, which may keep an answer by copying the struct and
 * zeroing the one it was given. ARGUMENT, MEMORY; BUSY: 65,536 are under way. */
typedef void (*scoped_done_fn)(void *context, int code, struct scoped_answer *answer,
                               const struct scoped_error *error);

int scoped_client_start_post(struct scoped_client *client, const char *thread_id,
                             const struct scoped_post *post, scoped_done_fn done, void *context,
                             struct scoped_error *ret_error);
int scoped_client_start_delete(struct scoped_client *client, const char *thread_id,
                               const char *entry_id, scoped_done_fn done, void *context,
                               struct scoped_error *ret_error);
int scoped_client_start_request(struct scoped_client *client, const struct scoped_request *request,
                                scoped_done_fn done, void *context, struct scoped_error *ret_error);

/* A descriptor that is readable while scoped_client_step, a scoped_tail_step or a
 * scoped_observer_step has something to do. The client's; only to be polled. -1: the program has no
 * descriptor left. */
int scoped_client_fd(struct scoped_client *client);

/* Runs the callbacks of calls that have ended, on this thread. Does not block. */
void scoped_client_step(struct scoped_client *client);

/* ---------------------------------------------------------------------------------------- tails */

struct scoped_tail_options {
    const char *from_offset; /* NULL: "-1", the beginning; "now"; or an offset told before */
    int catch_up;            /* 1: ends at the tail; 0: goes on by long-polls */
    int poll_timeout_ms; /* a long-poll that brings no byte for so long is begun anew; 0: never */
};

/* A step of a tail: an entry, or news of where it stands, or both. Borrowed from the tail until the
 * next call on it. */
struct scoped_tail_view {
    int has_entry; /* 1: `entry` is one */
    struct scoped_entry entry;
    /* Where to resume once this entry and those before it are dealt with; NULL inside a page, where
     * no offset exists. */
    const char *next_offset;
    int up_to_date; /* the tail is reached */
    int closed;     /* the end of a thread whose stream is closed; nothing follows */
};

/* Begins to follow a thread. Nothing is sent before the first `next`. Within one tail each entry
 * comes exactly once and in order, whatever breaks meanwhile. ARGUMENT, MEMORY. `options` may be
 * NULL. */
int scoped_client_tail(struct scoped_client *client, const char *thread_id,
                       const struct scoped_tail_options *options, struct scoped_tail **ret_tail,
                       struct scoped_error *ret_error);

/* The next step: STREAM_OK, STREAM_END (a catch-up is at the tail, or the stream is closed), or an
 * error; both stay for good. Blocks. UNAUTHORIZED, FORBIDDEN and NOT_FOUND come at once, also in
 * the middle of a tail: a member may be removed, a thread be deleted. */
int scoped_tail_next(struct scoped_tail *tail, struct scoped_tail_view *ret_view,
                     struct scoped_error *ret_error);

/* The same without blocking: STREAM_WAIT when there is nothing yet; scoped_client_fd tells when to
 * ask again. */
int scoped_tail_step(struct scoped_tail *tail, struct scoped_tail_view *ret_view,
                     struct scoped_error *ret_error);

/* The last offset that was told, or the one to begin with: whoever resumes there misses nothing,
 * and may see the entries of one page again. Borrowed until the next call on the tail. */
const char *scoped_tail_offset(const struct scoped_tail *tail);

/* Ends it with STREAM_ERROR_ABORTED, at once. Any thread; also a signal handler. */
void scoped_tail_abort(struct scoped_tail *tail);

/* Frees it, also in the middle of a body. Accepts NULL. */
void scoped_tail_free(struct scoped_tail *tail);

/* ------------------------------------------------------------------------------------ observers */

/* How what was observed came out; of several that ended, the one that stands first here. */
enum scoped_outcome {
    SCOPED_FAILED,
    SCOPED_CANCELLED,
    SCOPED_COMPLETED,
    SCOPED_SKIPPED, /* no agent saw a reason to act */
};

/* An observer is a tail that also says two things: that the backfill is over (the tail was reached
 * for the first time), and that the thread has settled. What settles it, of entries behind the
 * backfill, or from the trigger on where one is named:
 *
 *   signal.dispatch.completed, failed, cancelled   once no other dispatch is open, of those that
 *                                                  were seen to start there
 *   signal.dispatch.skipped                        if it stands alone: no dispatch is open, and no
 *                                                  agent that signal.thread_director.decided names
 *                                                  is still to start or to be skipped
 *   signal.thread_director.failed                  as failed, once no dispatch is open: nobody is
 *                                                  going to act
 *   signal.thread.status_changed                   to completed, failed or cancelled, at once
 *   signal.thread.pi_failed, pi_session_orphaned   as failed, at once */
struct scoped_observe_options {
    const char *from_offset; /* as of a tail */
    /* Id of an entry: signals of dispatches count only if it triggered them, in the backfill too;
     * others count from that entry on. So a caller who posts and then observes misses nothing.
     * NULL: all count, behind the backfill. */
    const char *trigger;
    /* 1: a thread which the backfill shows at rest settles when that is over: something settled it,
     * and neither a chat nor the start of a dispatch came after that. 0: it is waited for. */
    int settle_at_rest;
    int go_on; /* 1: goes on after it has settled, and may settle again; 0: ends */
    int poll_timeout_ms;
};

enum scoped_event_kind {
    SCOPED_ENTRY,      /* an entry */
    SCOPED_BACKFILLED, /* once: all entries so far were of the past */
    SCOPED_SETTLED,    /* see `outcome`; what settled it was handed out before */
};

/* Borrowed from the observer until the next call on it. */
struct scoped_event {
    enum scoped_event_kind kind;
    struct scoped_entry entry;      /* ENTRY; else zero */
    enum scoped_outcome outcome;    /* SETTLED */
    char entry_id[SCOPED_ID_BYTES]; /* SETTLED: of the entry that says so; of several, the worst */
    char reason[256];               /* SETTLED: as that entry has it; empty: not said */
};

/* Begins to observe a thread. Nothing is sent before the first `next`. ARGUMENT, MEMORY. `options`
 * may be NULL. */
int scoped_client_observe(struct scoped_client *client, const char *thread_id,
                          const struct scoped_observe_options *options,
                          struct scoped_observer **ret_observer, struct scoped_error *ret_error);

/* The next event: STREAM_OK, STREAM_END (settled and not to go on, or the stream is closed), or an
 * error, as of a tail. Blocks. */
int scoped_observer_next(struct scoped_observer *observer, struct scoped_event *ret_event,
                         struct scoped_error *ret_error);

/* The same without blocking, as scoped_tail_step. */
int scoped_observer_step(struct scoped_observer *observer, struct scoped_event *ret_event,
                         struct scoped_error *ret_error);

/* As scoped_tail_offset. */
const char *scoped_observer_offset(const struct scoped_observer *observer);

/* Stops it with STREAM_ERROR_ABORTED, at once. Any thread; also a signal handler. */
void scoped_observer_stop(struct scoped_observer *observer);

/* Frees it, also in the middle of a body. Accepts NULL. */
void scoped_observer_free(struct scoped_observer *observer);

/* The name of an outcome: "completed". Static storage. */
const char *scoped_outcome_name(enum scoped_outcome outcome);

#ifdef __cplusplus
}
#endif

#endif
