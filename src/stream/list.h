/* Which streams no catalog knows yet, for lists: see the head of list.c. */
#ifndef ARBE_STREAM_LIST_H
#define ARBE_STREAM_LIST_H

struct engine;
struct stream;

/* There are none yet. */
void list_init_fresh(struct engine *e);

/* The stream was just created; it is marked for the next checkpoint. With or without its lock. */
void list_fresh(struct stream *s);

/* The catalog knows it now, or knows that it is gone. Without its lock. */
void list_stored(struct stream *s);

#endif
