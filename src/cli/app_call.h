/* A command that works with arbe's API (`arbe auth`, `house`, `agent`, `config`, `thread`): how it
 * was called, who it is to which server, its requests, and how it ends. The table of each group is
 * in the file of its name; the commands are functions beside it. */
#ifndef ARBE_CLI_APP_CALL_H
#define ARBE_CLI_APP_CALL_H

#include "arbe/scoped_client.h"
#include "base/arena.h"
#include "cli/group.h"
#include "cli/login.h"
#include "cli/out.h"
#include "cli/ref.h"

#define APP_URL_DEFAULT "http://127.0.0.1:4437"

/* What all flags of all commands say: NULL or 0 where nothing was said. */
struct app_settings {
    /* of every command */
    const char *url;
    const char *ca_file;
    const char *house; /* a reference */
    uint64_t json;
    uint64_t retries; /* UINT64_MAX: as usual */
    uint64_t timeout_ms;
    /* of records */
    const char *name;
    const char *description;
    const char *model;
    const char *system_prompt_file;
    const char *kind;
    const char *role;
    const char *status;
    const char *tags;
    const char *environment;
    const char *agent; /* a reference */
    uint64_t pin;
    uint64_t unpin;
    uint64_t remove;
    /* of lists */
    const char *tag;
    const char *parent; /* a reference */
    uint64_t pinned;
    uint64_t limit; /* 0: all */
    /* of logins and invites */
    const char *key_file;
    const char *token_file;
    uint64_t expires_ms;
    /* of configs */
    const char *patch;
    uint64_t raw;
    /* of entries */
    const char *id;
    const char *reply_to;
    const char *from;
    uint64_t once;
    uint64_t follow;
    uint64_t offsets;
};

struct app_call {
    const char *group; /* after "arbe" */
    const char *name;  /* of the command */
    char **operands;   /* those behind the command that are no flags */
    int operand_count; /* as many as its row allows */
    struct app_settings set;
    struct out out;      /* stdout; finished by whoever called the command */
    struct arena memory; /* until the end of the command */
    char login_path[LOGIN_PATH_BYTES];
    struct login login;        /* what the file says; empty: nothing */
    char url[LOGIN_URL_BYTES]; /* of the server, once open */
    char key[LOGIN_KEY_BYTES]; /* for it; empty: none */
    struct scoped_client *client;
};

/* Runs the command of `group` that the words ask for. Returns an exit code. */
int app_call_run(const struct group *group, int argc, char **argv);

/* Finds out which server is meant and which key is for it: fills url and key, reads the file of the
 * login. A key goes only where it belongs: that of the file to the URL of the file, ARBE_API_KEY to
 * the server of the command. 0, or an exit code after having said why. */
int app_call_choose(struct app_call *call) MUST_USE;

/* Makes the client for url and key as they are; signals abort it from now on. As above. */
int app_call_connect(struct app_call *call) MUST_USE;

/* Both, and refuses to go on without a key. As above. */
int app_call_open(struct app_call *call) MUST_USE;

/* 0 for what begins as a URL does, or an exit code after having said that it does not. */
int app_call_refuse_url(const struct app_call *call, const char *url) MUST_USE;

/* Writes the URL of an app: without what follows its host's root or stream route. */
void app_call_set_url(struct app_call *call, const char *url);

/* ------------------------------------------------------------------------------------- requests */

/* Sends a request and waits. `path` and `query` as scoped_client_request has them; `body` may be
 * NULL. The answer lives as long as the call; empty for none. 0, or an exit code after having said
 * why. */
int app_call_send(struct app_call *call, const char *method, const char *path,
                  const char *const *query, const struct buf *body,
                  struct slice *ret_answer) MUST_USE;

/* The same for a GET without a query, that tells nobody when it fails: for those who know better
 * what to say. Returns a code of stream_error.h. */
int app_call_probe(struct app_call *call, const char *path, struct slice *ret_answer,
                   struct scoped_error *ret_error) MUST_USE;

/* Called for each record of a list, which lives until the next call; a result other than 0 ends the
 * walk and is returned. */
typedef int (*app_record_fn)(void *context, struct slice record);

/* Walks over a list of the API, page by page, to its end or --limit: `member` is the name of its
 * array. `query` has at most APP_QUERY_MAX words. As app_call_send. */
int app_call_each(struct app_call *call, const char *path, const char *const *query,
                  const char *member, app_record_fn each, void *context) MUST_USE;

#define APP_QUERY_MAX 12u

/* --------------------------------------------------------------------------------------- bodies */

/* Begins a body. */
void app_body_begin(struct buf *body);

/* Adds a member with a string; nothing for NULL. */
void app_body_text(struct buf *body, const char *name, const char *text);

/* Adds a member whose value is JSON. */
void app_body_json(struct buf *body, const char *name, struct slice json);

/* Ends it. */
void app_body_end(struct buf *body);

/* -------------------------------------------------------------------------------------- talking */

/* Says on stderr what went wrong: "error: ..." and perhaps a line with what to do, or with --json
 * the object that the API answers. Returns the exit code for it. After a signal nothing is said. */
int app_call_fail(const struct app_call *call, const struct scoped_error *error);

/* The same for what the program itself found: `code` is dotted, such as "client.usage", and
 * `suggestion` may be NULL. Returns `exit`. */
int app_call_refuse(const struct app_call *call, int exit, const char *code, const char *suggestion,
                    const char *format, ...) PRINTF_LIKE(5, 6);

/* The same for a reference that means several records, with a list of them. COMMAND_USAGE. */
int app_call_ambiguous(const struct app_call *call, const struct ref_search *search);

/* The same for what a function with an errmsg found. */
int app_call_cannot(const struct app_call *call, const struct errmsg *msg);

/* Says on stderr, for people, how it goes; nothing where machines read or nobody looks. Texts of
 * others become harmless. */
void app_call_tell(const struct app_call *call, const char *format, ...) PRINTF_LIKE(2, 3);

/* The same for what one should know of a success, whoever looks; nothing with --json, where the
 * answer has it. */
void app_call_warn(const struct app_call *call, const char *format, ...) PRINTF_LIKE(2, 3);

/* Prints a record as it came, on one line. */
void app_call_print_json(struct app_call *call, struct slice record);

/* Prints "name: text" for people; nothing for an empty text. */
void app_call_print_field(struct app_call *call, const char *name, struct slice text);

/* Prints a text of a row for people, padded to `width` bytes, and a space. */
void app_call_print_cell(struct app_call *call, struct slice text, size_t width);

/* Reads stdin, which must be UTF-8, to its end into the call's memory. 0, or an exit code after
 * having said why. */
int app_call_read_stdin(struct app_call *call, struct slice *ret_text) MUST_USE;

#endif
