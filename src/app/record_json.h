/* Records as the API shows them: docs/api.md has their members. Each appends one JSON object;
 * failure sticks to the buffer. Pure. */
#ifndef ARBE_APP_RECORD_JSON_H
#define ARBE_APP_RECORD_JSON_H

#include "base/buf.h"
#include "thread/store_thread.h"
#include "thread/store_usage.h"

/* {"id","kind","name","handle",…}, without keys. */
void json_put_agent(struct buf *out, const struct agent_record *agent);
void json_put_key(struct buf *out, const struct key_record *key);
void json_put_house(struct buf *out, const struct house_record *house);
void json_put_member(struct buf *out, const struct member_record *member);

/* last_entry_ts is the newer of the record's and `ahead_ts`, which memory may know. */
void json_put_thread(struct buf *out, const struct thread_record *thread, int64_t ahead_ts);

/* {"total","byAgent","byModel"}. */
void json_put_usage(struct buf *out, const struct usage_sum *sum);

/* "name": and a text, or null for an absent one; a time, or null for 0. With a comma before it
 * unless it is the first of its object. */
void json_put_text(struct buf *out, const char *name, struct slice text);
void json_put_time(struct buf *out, const char *name, int64_t ms);
void json_put_number(struct buf *out, const char *name, int64_t number);

#endif
