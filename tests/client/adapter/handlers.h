/* What the adapter can be asked to do: one function a command. Each leaves a reply. */
#ifndef ARBE_TESTS_ADAPTER_HANDLERS_H
#define ARBE_TESTS_ADAPTER_HANDLERS_H

#include "client/adapter/session.h"

typedef void (*handler)(struct session *s, const struct command *c, struct reply *r);

/* operations.c */
void handle_create(struct session *s, const struct command *c, struct reply *r);
void handle_connect(struct session *s, const struct command *c, struct reply *r);
void handle_append(struct session *s, const struct command *c, struct reply *r);
void handle_head(struct session *s, const struct command *c, struct reply *r);
void handle_delete(struct session *s, const struct command *c, struct reply *r);
void handle_close(struct session *s, const struct command *c, struct reply *r);

/* read.c */
void handle_read(struct session *s, const struct command *c, struct reply *r);

/* produce.c */
void handle_produce(struct session *s, const struct command *c, struct reply *r);
void handle_produce_batch(struct session *s, const struct command *c, struct reply *r);
void handle_produce_close(struct session *s, const struct command *c, struct reply *r);
void handle_detach(struct session *s, const struct command *c, struct reply *r);

/* validate.c */
void handle_validate(struct session *s, const struct command *c, struct reply *r);

/* benchmark.c */
void handle_benchmark(struct session *s, const struct command *c, struct reply *r);

#endif
