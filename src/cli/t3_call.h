/* A command of `arbe t3`: how it was called, and how it talks. The table is in t3.c. */
#ifndef ARBE_CLI_T3_CALL_H
#define ARBE_CLI_T3_CALL_H

#include "cli/command.h"
#include "cli/group.h"
#include "cli/out.h"
#include "cli/t3_hosts.h"

/* What all flags of all commands say: NULL or 0 where nothing was said. */
struct t3_settings {
    const char *hosts_file;
    const char *ca_file;
    const char *host; /* a label */
    uint64_t json;
    uint64_t timeout_ms; /* never 0 */
    uint64_t allow_http;
    uint64_t replace;
    uint64_t forget;
};

struct t3_call {
    const char *name; /* of the command */
    char **operands;  /* those words behind the command that are no flags */
    struct t3_settings set;
    struct out out; /* stdout; finished by whoever called the command */
};

/* Says on stderr what went wrong, by a code of err.h: a sentence, or with --json an object as the
 * commands of the API say it. Returns the exit code for it; after a signal that of the signal, and
 * nothing is said. */
int t3_call_fail(const struct t3_call *call, int code, const struct errmsg *msg);

/* The same for what makes no sense as it was asked for. COMMAND_USAGE. */
int t3_call_refuse(const struct t3_call *call, const char *format, ...) PRINTF_LIKE(2, 3);

/* Says on stderr, for people, how it went; nothing with --json, where the answer has it. */
void t3_call_tell(const struct t3_call *call, const char *format, ...) PRINTF_LIKE(2, 3);

/* The commands, each in a file of its name, as the table of t3.c tells them. They return an exit
 * code. */
int t3_list(struct t3_call *call);

/* As above. */
int t3_login(struct t3_call *call);

/* As above. */
int t3_logout(struct t3_call *call);

/* As above. */
int t3_probe(struct t3_call *call);

#endif
