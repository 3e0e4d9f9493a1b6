/* How operations move: from step to step on their worker, to the pool and back, and onto the list
 * of those whose answer must wait for the log. All but op_post on the worker's thread. */
#ifndef ARBE_STREAM_OP_H
#define ARBE_STREAM_OP_H

#include "stream/core.h"

/* What a step returns, besides 0 (answered: result and end are set) and STREAM_PENDING (the
 * operation is on its way elsewhere): take the next step now. */
#define OP_NEXT 2

/* The first steps of the verbs: PROTOCOL.md 5.1, 5.2, 5.4, 5.5, 5.6. Each returns as steps do. */
int create_begin(struct stream_op *op);
/* See create_begin. */
int append_begin(struct stream_op *op);
/* See create_begin. */
int remove_begin(struct stream_op *op);
/* See create_begin. */
int head_begin(struct stream_op *op);
/* See create_begin. */
int read_begin(struct stream_op *op);
/* A batch of notes, see note.h. Returns as steps do. */
int note_begin(struct stream_op *op);

/* Brings the operation back to its worker, where its step is called. Any thread. */
void op_post(struct stream_op *op);

/* Sets the answer: `code`, with its default sentence if there is none yet. Returns 0, as steps
 * do. */
int op_answer(struct stream_op *op, int code);

/* The same, but it rests on everything staged for `s`, whose lock the caller holds. */
int op_answer_after(struct stream_op *op, struct stream *s, int code);

/* Answers with a result of expiry_check below 0: that the stream is not there rests on what was
 * staged, why one cannot tell does not. ERR_AGAIN is returned as it is: wait, and look again. */
int op_answer_absent(struct stream_op *op, struct stream *s, int code);

/* Runs op->task.run on the pool, which will op_post. */
int op_to_pool(struct stream_op *op, void (*run)(struct task *task),
               int (*then)(struct stream_op *));

/* Looks `name` up; then `then` is called with op->found and op->stream. */
int op_resolve(struct stream_op *op, struct slice name, int (*then)(struct stream_op *));

/* To be read before staging: what op_wait_room compares with. */
void op_note(struct stream_op *op);

/* Takes the same step again once room in the log was made or refused. */
int op_wait_room(struct stream_op *op);

/* Takes the same step again once more is durable; ERR_UNKNOWN when nothing more ever will be. */
int op_wait_visible(struct stream_op *op);

/* The error that an attempt to change anything gets at once: 0, or ERR_FAILED. */
int op_refused(const struct engine *e);

/* Drops what the operation holds: references to streams. */
void op_release(struct stream_op *op);

/* Fills in the content type of a stream. */
void op_set_type(struct stream_op *op, const struct stream *s);

/* The task of a worker: answers what has become durable, and tries again what waits for room. */
void op_commit(struct task *task);

/* The store gave notice: workers with something to do get their task. Any thread. */
void workers_notice(struct engine *e);

/* Tells the live readers of `s` once the log is durable up to `end`. Called with or without its
 * lock. Without memory they learn of it at the next change. Any thread. */
void publish_later(struct engine *e, struct stream *s, log_pos end);

/* Tells the readers of all such streams whose time has come. Any thread. */
void publish_due(struct engine *e);

#endif
