/* A command of `arbe stream`: how it was called, its server, and how it ends. The table of all is
 * in stream.c; each command is a function in a file of its own, which stands at the end here. */
#ifndef ARBE_CLI_STREAM_CALL_H
#define ARBE_CLI_STREAM_CALL_H

#include "arbe/producer.h"
#include "arbe/stream_client.h"
#include "cli/flags.h"
#include "cli/out.h"
#include "cli/stream_site.h"

#include <sys/types.h>

/* What all flags of all commands say: NULL or 0 where nothing was said. */
struct stream_settings {
    /* of every command */
    const char *url;
    const char *profile;
    const char *secret_file;
    const char *ca_file;
    uint64_t json;
    uint64_t retries; /* UINT64_MAX: as usual */
    uint64_t timeout_ms;
    /* create, append, fork */
    const char *type;
    const char *expires_at;
    uint64_t ttl_ms;
    uint64_t closed;
    const char *at;
    uint64_t skip;
    uint64_t lines;
    uint64_t text;
    uint64_t close;
    const char *seq;
    const char *producer;
    /* read, tail, follow */
    const char *from;
    uint64_t count;
    uint64_t sse;
    uint64_t long_poll;
    /* list */
    uint64_t details;
    /* copy */
    const char *to_url;
    const char *to_profile;
    const char *to_secret_file;
    const char *to_ca_file;
    uint64_t keep_following;
    uint64_t trust;
    /* bench */
    uint64_t time_ms;
    uint64_t size;
    uint64_t connections;
    uint64_t keep;
};

struct stream_call {
    const char *name;           /* of the command */
    char **operands;            /* those after the command that are no flags */
    int operand_count;          /* as many as its row allows */
    struct stream_settings set; /* by its flags */
    struct out out;             /* stdout; finished by whoever called the command */
};

#define STREAM_CALL_RETRIES      3 /* usually: somebody waits for the answer */
#define STREAM_CALL_RETRIES_LONG 8 /* of long work: half a minute */

/* A server that is talked to. */
struct stream_peer {
    struct site site;
    struct stream_client *client;
};

/* Chooses the site of the stream (NULL: of none), makes a client for it and has signals abort it.
 * `retries` is for when --retries says nothing. 0, or an exit code after having said on stderr
 * why. */
int stream_call_open(const struct stream_call *call, const char *stream, int retries,
                     struct stream_peer *ret_peer) MUST_USE;

/* The same for a wish of the command's own. */
int stream_call_open_site(const struct stream_call *call, const struct site_wish *wish, int retries,
                          struct stream_peer *ret_peer) MUST_USE;

/* The same again for a client that has more patience: for those who have looked, with the usual
 * one, whether the server is there at all. */
int stream_call_reopen(const struct stream_call *call, int retries,
                       struct stream_peer *peer) MUST_USE;

/* Frees. Accepts a zeroed peer. */
void stream_call_close(struct stream_peer *peer);

/* Waits until a reader or a call of the peer has something to do, or a signal has come. With `out`
 * also until nobody reads stdout any more, which is then its error. May return for nothing. */
void stream_call_wait(const struct stream_peer *peer, struct out *out);

/* Says on stderr what `error` tells about the stream `name`, and returns the exit code for it.
 * After a signal nothing is said. */
int stream_call_fail(const struct stream_call *call, const char *name,
                     const struct stream_error *error);

/* The exit code for an error, saying nothing. */
int stream_call_exit(const struct stream_error *error);

/* Says on stderr that the command was called wrongly. Returns COMMAND_USAGE. */
int stream_call_usage(const struct stream_call *call, const char *format, ...) PRINTF_LIKE(2, 3);

/* Says on stderr, for people, how it goes; nothing where machines read or nobody looks. */
void stream_call_tell(const struct stream_call *call, const char *format, ...) PRINTF_LIKE(2, 3);

/* Says on stderr why it cannot be done. Returns COMMAND_FAILED. */
int stream_call_cannot(const struct stream_call *call, const char *format, ...) PRINTF_LIKE(2, 3);

/* The same where something else is in the way. Returns COMMAND_CONFLICT. */
int stream_call_conflict(const struct stream_call *call, const char *format, ...) PRINTF_LIKE(2, 3);

/* Writes what is known of a stream to stdout: lines for people, one JSON object for machines. */
void stream_call_print(struct stream_call *call, const char *name, const struct stream_info *info);

/* The media type that --type means: json, text and bytes are short for the usual ones. NULL for
 * NULL. */
const char *stream_call_type(const char *type);

/* Whether a stream of that content type holds JSON messages. */
bool stream_call_is_json(const char *content_type);

/* Reads what stdin has, as read does; a signal ends the wait with EINTR. Blocks. */
ssize_t stream_call_read_some(char *out, size_t size) MUST_USE;

/* Reads stdin to its end, to be given back by free(). 0, or an exit code after having said why. */
int stream_call_read_stdin(const struct stream_call *call, char **ret_data,
                           size_t *ret_len) MUST_USE;

/* The commands. Each returns an exit code and blocks until all is done. */
int stream_call_create(struct stream_call *call);

/* Appends one message, or each line of stdin. As above. */
int stream_call_append(struct stream_call *call);

/* Reads what there is; `tail` and `follow` go on. As above. */
int stream_call_read(struct stream_call *call);
int stream_call_tail(struct stream_call *call);
int stream_call_follow(struct stream_call *call);

/* Tells what is known of a stream. As above. */
int stream_call_head(struct stream_call *call);

/* End a stream, or remove some. As above; removing goes on after an error. */
int stream_call_finish(struct stream_call *call);
int stream_call_delete(struct stream_call *call);

/* Makes a stream that begins as another one does. As above. */
int stream_call_fork(struct stream_call *call);

/* Lists streams, in order. As above. */
int stream_call_list(struct stream_call *call);

/* Copies a stream, each message once, going on where an earlier copy ended. As above. */
int stream_call_copy(struct stream_call *call);

/* Measures what the server can do from here. As above. */
int stream_call_bench(struct stream_call *call);

#endif
