/* A thread as people read it: the time, who, and what (narration.h), a day's date above its first
 * line. What others wrote is shown without its control characters. */
#ifndef ARBE_CLI_TRANSCRIPT_H
#define ARBE_CLI_TRANSCRIPT_H

#include "arbe/scoped_client.h"
#include "cli/roster.h"

struct transcript {
    struct out *out;
    struct roster *roster;
    struct arena memory; /* private: of one entry */
    char day[16];        /* private: of the last line */
    char time[8];        /* private: of the entry at hand */
    struct slice author; /* private: likewise */
};

/* Begins one that is written to `out`. */
void transcript_begin(struct transcript *t, struct out *out, struct roster *roster);

/* Adds an entry: some lines, or none. Of one that is deleted only that is told. May block on the
 * API for a name. */
void transcript_add(struct transcript *t, const struct scoped_entry *entry, bool deleted);

#endif
