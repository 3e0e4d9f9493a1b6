/* The commands of `arbe thread` that are in files of their own. */
#ifndef ARBE_CLI_THREAD_H
#define ARBE_CLI_THREAD_H

#include "cli/app_call.h"
#include "cli/lookup.h"

/* Opens, and finds the thread that the first operand means. 0, or an exit code. */
int thread_open(struct app_call *call, struct lookup *ret_thread) MUST_USE;

/* Posts a message to a thread, or to an agent's direct messages. Returns an exit code. */
int thread_entries_create(struct app_call *call);

/* Prints what is in a thread, and what comes. As above. */
int thread_entries_read(struct app_call *call);

/* Prints the last words of an assistant. As above. */
int thread_result(struct app_call *call);

/* Tells how far the last dispatch got. As above. */
int thread_diagnose(struct app_call *call);

#endif
