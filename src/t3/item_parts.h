/* What the files that read items share. The shapes are in three of them: item_shell.c,
 * item_projection.c, item_event.c; item.c tells which an item is. All return 0 or an error as
 * t3_item_read does. */
#ifndef ARBE_T3_ITEM_PARTS_H
#define ARBE_T3_ITEM_PARTS_H

#include "t3/item.h"

/* Begins an operation about the thread whose id is the JSON value; false when that is no id. */
bool t3_item_begin(struct t3_item_reader *r, enum t3_op_kind kind, enum t3_scope scope,
                   struct slice id) MUST_USE;

/* Tells the operation at hand. */
int t3_item_tell(struct t3_item_reader *r) MUST_USE;

/* Counts something broken. 0. */
int t3_item_skip(struct t3_item_reader *r);

/* Whether the thread is marked as deleted: the operation is its deletion then, whatever else its
 * record tells. */
bool t3_item_is_deletion(struct t3_op *op, struct slice deleted_at) MUST_USE;

/* ERR_MISMATCH, with a sentence that names what only the first protocol has. */
int t3_item_refuse_v1(struct errmsg *msg, struct slice what);

/* A projection. */
int t3_item_read_projection(struct t3_item_reader *r, struct slice projection) MUST_USE;

/* A snapshot of the shell. */
int t3_item_read_shell(struct t3_item_reader *r, struct slice snapshot,
                       struct errmsg *msg) MUST_USE;

/* A thread of the shell that was updated, and where it is said to be kept. */
int t3_item_read_updated(struct t3_item_reader *r, struct slice thread,
                         struct slice location) MUST_USE;

/* The envelope of an event. */
int t3_item_read_event(struct t3_item_reader *r, struct slice event, struct errmsg *msg) MUST_USE;

#endif
