/* What model calls cost, taken from the entries that tell of them: once per entry, however often it
 * is looked at. */
#ifndef ARBE_APP_SPEND_H
#define ARBE_APP_SPEND_H

#include "thread/poster.h"

struct app;

/* Records what these entries tell of; those that tell of nothing cost nothing. Never fails the
 * caller: what cannot be recorded is logged. Blocks. */
void spend_record(struct app *app, struct slice house_id, struct slice thread_id,
                  const struct post_entry *entries, size_t count);

/* The same of one entry that was stored before a crash, of a thread whose house is not at hand. */
void spend_catch_up(struct app *app, struct slice thread_id, const struct post_entry *entry);

#endif
