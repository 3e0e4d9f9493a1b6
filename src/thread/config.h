/* Configuration: the code's defaults, one patch per house, one per thread, and what
 * dispatch.perAgent says of one agent. Objects merge, arrays replace, null resets to the default
 * over any ancestor, what is left out is inherited, unknown keys survive. Pure over JSON text, but
 * for allocations; the text is bounded in size, depth and keys (CONFIG_ in limits.h). */
#ifndef ARBE_THREAD_CONFIG_H
#define ARBE_THREAD_CONFIG_H

#include "base/attr.h"
#include "base/buf.h"
#include "base/limits.h"
#include "thread/api_error.h"

/* llm.model null: the agent's own. */
#define CONFIG_DEFAULT                                                                    \
    "{\"dispatch\":{\"triggerMode\":\"mention\",\"perAgent\":{},\"ambientDelayMs\":1500," \
    "\"gateWindow\":12,\"cooldownMessages\":4,\"entryLimit\":200,\"depthCap\":8,"         \
    "\"fanoutCap\":8},\"llm\":{\"model\":null},\"flags\":{}}"

/* Appends the resolved object: defaults, house, thread, and on `dispatch` what perAgent has of
 * `agent_id` (empty: of nobody), last. An empty patch is as {}. -1: a patch is not what
 * config_check_patch takes in size and form, or INTERNAL when memory ran out. */
int config_resolve(struct slice house_patch, struct slice thread_patch, struct slice agent_id,
                   struct buf *out, struct api_error *ret_error) MUST_USE;

/* Appends what dispatch.perAgent has of the agent, as one patch over `dispatch`: the thread's on
 * the house's, null kept; {} when there is nothing. For showing where a value comes from. -1 as
 * above. */
int config_agent_patch(struct slice house_patch, struct slice thread_patch, struct slice agent_id,
                       struct buf *out, struct api_error *ret_error) MUST_USE;

/* Appends the patch `new_patch` merged into `old_patch` (empty: {}); null is a value like any other
 * and is kept. -1 as above; the result is within the bounds as well. */
int config_merge_patch(struct slice old_patch, struct slice new_patch, struct buf *out,
                       struct api_error *ret_error) MUST_USE;

/* Judges a patch that somebody sends: bounds, and the kinds of the keys that are known, with the
 * path of the first that is wrong; null is good everywhere. -1: MALFORMED_JSON, INVALID_INPUT,
 * TOO_LARGE, INTERNAL. */
int config_check_patch(struct slice patch, struct api_error *ret_error) MUST_USE;

/* Appends the patch of a direct message's thread: its agent answers always. */
void config_seed_dm(struct slice agent_id, struct buf *out);

#endif
