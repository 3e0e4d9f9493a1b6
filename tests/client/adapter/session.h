/* What an adapter keeps between commands: the client of the library, what goes with its requests,
 * the producers that live on, and which streams hold JSON. */
#ifndef ARBE_TESTS_ADAPTER_SESSION_H
#define ARBE_TESTS_ADAPTER_SESSION_H

#include "client/adapter/command.h"
#include "client/adapter/reply.h"

#include <arbe/producer.h>
#include <pthread.h>

enum dynamic_kind {
    DYNAMIC_COUNTER,
    DYNAMIC_TIMESTAMP,
    DYNAMIC_TOKEN
};

/* A field or parameter whose value is made anew for each request. */
struct dynamic {
    struct dynamic *next;
    char *name; /* owned, as the token */
    char *token;
    enum dynamic_kind kind;
    bool is_param;           /* of the query; else a field */
    unsigned long long made; /* values so far */
    char sent[128];          /* with the first request of the command at hand; "": none */
};

/* A field that one command wants sent. */
struct field {
    const char *name;
    const char *value;
};

#define FIELDS_MAX 64u

/* A producer that outlives its command. */
struct kept_producer {
    struct kept_producer *next;
    char *key; /* path, id and epoch; owned */
    struct stream_producer *producer;
};

/* A stream of which the content type is known. */
struct kept_type {
    struct kept_type *next;
    char *path; /* owned */
    bool is_json;
};

struct session {
    char *base_url; /* owned; ends in a slash */
    struct stream_client *client;
    struct kept_producer *producers;
    struct kept_type *types;
    pthread_mutex_t lock; /* guards what follows, which the client's thread reads */
    struct dynamic *dynamics;
    struct field fields[FIELDS_MAX]; /* of the command at hand */
    size_t field_count;
};

void session_init(struct session *s);
void session_finish(struct session *s);

/* Begins anew with a server. On failure the session has no client. */
int session_open(struct session *s, const char *server_url, int timeout_ms,
                 struct stream_error *ret_error);

/* Options that all clients of a session have, less those that differ. */
void session_client_options(struct session *s, struct stream_client_options *ret_options);

/* Sets what the next requests take along; forgets what the last ones did. */
void session_set_fields(struct session *s, const struct command *c);

/* Before the command's texts go: what is sent from now on takes none of them along. */
void session_clear_fields(struct session *s);

/* Sets or replaces a field or parameter that is made anew each time. */
void session_set_dynamic(struct session *s, const char *name, bool is_param, const char *kind,
                         const char *token);
void session_clear_dynamics(struct session *s);

/* Tells what was sent of these. */
void session_reply_sent(struct session *s, struct reply *r);

void session_note_type(struct session *s, const char *path, const char *content_type);
bool session_is_json(const struct session *s, const char *path);

/* The name of a stream is its path less the slash in front. */
const char *session_name(const char *path);

/* A kept producer; NULL when there is none. */
struct kept_producer *session_find_producer(struct session *s, const char *key);
void session_keep_producer(struct session *s, const char *key, struct stream_producer *producer);
void session_drop_producer(struct session *s, struct kept_producer *kept);

#endif
