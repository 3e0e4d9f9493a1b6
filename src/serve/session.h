/* An HTTP connection: heads, bodies and answers one after another, in order, on one worker's
 * loop. It decides when bytes are read and when the connection ends; what a request means is
 * exchange.h's business. An idle connection costs this struct and its socket. */
#ifndef ARBE_SERVE_SESSION_H
#define ARBE_SERVE_SESSION_H

#include "serve/worker.h"

struct exchange;

enum session_state {
    SESSION_HEAD,    /* between requests, or in the middle of a head */
    SESSION_BODY,    /* a request body is coming */
    SESSION_BUSY,    /* the request is being worked on, or waits for data */
    SESSION_LIVE,    /* an endless answer; what the client sends is thrown away */
    SESSION_DRAIN,   /* the answer is out, the rest of the body is read away */
    SESSION_CLOSING, /* the last answer is on its way out */
};

struct session {
    struct conn conn;
    struct worker *worker;
    struct list link;        /* on the worker's sessions */
    struct task free_task;   /* frees the memory outside of every callback */
    struct loop_timer timer; /* one for all purposes; see session_set_deadline */
    enum session_state state;
    struct exchange *exchange; /* the request at hand; NULL in HEAD, DRAIN and CLOSING */
    size_t scanned;            /* see http_request_parse */
    uint64_t drain_left;       /* DRAIN: body bytes still to come */
    uint64_t progress;         /* what had been moved at the last look, see on_timer */
    bool head_started;         /* HEAD: the head's time runs */
    bool advancing;            /* session_advance is at work further up the stack */
    bool endless;              /* CLOSING: the last answer was a live one, which is resumed */
    bool gone;                 /* the connection is finished; only a pending op keeps the memory */
    bool refused;              /* came above the cap on connections */
};

/* Takes over an accepted socket. On failure the socket is closed. */
void session_accept(struct worker *w, int fd);

/* Goes on: parses what has come, as far as it can now; then sends what was queued. */
void session_advance(struct session *s);

/* The answer is queued whole: what is next on this connection. `keep` false closes it after the
 * output is out. The exchange has been destroyed. */
void session_answered(struct session *s, bool keep, uint64_t unread_body_bytes);

/* Drops the connection at once. */
void session_drop(struct session *s);

/* The op that kept a gone session in memory has ended. */
void session_release(struct session *s);

/* The time the present state may last from now on; LOOP_NEVER_MS: for ever. */
void session_set_deadline(struct session *s, uint64_t delay_ms);

/* The server will not wait any longer: refuses a request that is still coming. */
void session_hurry(struct session *s);

/* Ends a live answer, cleanly, as its time-out would. The connection may go on. A read that is not
 * live yet is refused (403) when it is to become so. */
void session_end_read(struct session *s);

/* The server is stopping: ends idle and live connections, lets answers come that are being made. */
void session_drain(struct session *s);

#endif
