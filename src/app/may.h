/* Who may do what in a house: any house, thread or config is first led back to its house, and the
 * caller's membership there is all there is. Who is no member is told 403 of what exists and 404 of
 * what does not. On threads of the application; each asks the records, or what is known by heart.
 * All return API_DONE, or API_FAILED with the error set. */
#ifndef ARBE_APP_MAY_H
#define ARBE_APP_MAY_H

#include "app/api_call.h"

/* The house, when the caller has at least that role in it. */
int may_house(struct api_call *c, struct slice house_id, enum member_role at_least,
              struct house_record *ret_house) MUST_USE;

/* Fills c->access, when the caller has at least that role in the thread's house. */
int may_thread(struct api_call *c, struct slice thread_id, enum member_role at_least) MUST_USE;

/* The same where it is known by heart, without blocking: API_PENDING when it is not. */
int may_thread_by_heart(struct api_call *c, struct slice thread_id) MUST_USE;

/* An agent that lives, when the caller is that agent or made it. */
int may_agent(struct api_call *c, struct slice agent_id, struct agent_record *ret_agent) MUST_USE;

#endif
