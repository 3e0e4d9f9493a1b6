/* What an entry of a thread says to people: what somebody said, a short sentence for a signal, one
 * line for each call of a tool. What only machines need, such as chunks and the results of tools
 * that went well, says nothing; neither does a type that is not known. Pure, but for memory.
 *
 * The texts hold what others wrote, control characters too: whoever shows them sees to that. */
#ifndef ARBE_CLI_NARRATION_H
#define ARBE_CLI_NARRATION_H

#include "base/arena.h"
#include "base/slice.h"

enum narration_kind {
    NARRATION_SPEECH, /* words of the author; any number of lines */
    NARRATION_NOTE,   /* a sentence, with its subject */
    NARRATION_TOOL,   /* what the author does with a tool: name, and what with */
};

struct narrator {
    /* The name of an agent, for people; never empty. Lives until the next call. */
    struct slice (*name_of)(void *context, struct slice agent_id);
    /* Called for each piece, in order; `text` lives until it returns. */
    void (*tell)(void *context, enum narration_kind kind, struct slice text);
    void *context;
};

#define NARRATION_SHORT_BYTES 160 /* of what is quoted within a note, or said of a tool */

/* Tells an entry by its author (empty: the server) and its payload, an object that has been
 * scanned. `memory` is used for what has to be decoded; without any, less is told. */
void narrate(const struct narrator *n, struct slice author_id, struct slice payload,
             struct arena *memory);

#endif
