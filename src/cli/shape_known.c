/* A member whose contract is a string, a number and so on has no row: whatever stands there is
 * shown by its type. */
#include "cli/shape_known.h"

#include "base/attr.h"

static const struct {
    enum shape_view in;
    struct shape_known known;
    struct slice name;
} members[] = {
    {VIEW_TOP, {VIEW_TOP, false}, SLICE("snapshot")},
    {VIEW_TOP, {VIEW_TOP, false}, SLICE("projection")},
    {VIEW_TOP, {VIEW_EVENT, false}, SLICE("event")},
    {VIEW_TOP, {VIEW_RECORD, true}, SLICE("archivedThreads")},
    {VIEW_TOP, {VIEW_RECORD, true}, SLICE("attempts")},
    {VIEW_TOP, {VIEW_RECORD, true}, SLICE("checkpointScopes")},
    {VIEW_TOP, {VIEW_RECORD, true}, SLICE("checkpoints")},
    {VIEW_TOP, {VIEW_RECORD, true}, SLICE("contextHandoffs")},
    {VIEW_TOP, {VIEW_RECORD, true}, SLICE("contextTransfers")},
    {VIEW_TOP, {VIEW_RECORD, true}, SLICE("messages")},
    {VIEW_TOP, {VIEW_RECORD, true}, SLICE("nodes")},
    {VIEW_TOP, {VIEW_RECORD, true}, SLICE("plans")},
    {VIEW_TOP, {VIEW_RECORD, false}, SLICE("project")},
    {VIEW_TOP, {VIEW_RECORD, true}, SLICE("projects")},
    {VIEW_TOP, {VIEW_RECORD, true}, SLICE("providerSessions")},
    {VIEW_TOP, {VIEW_RECORD, true}, SLICE("providerThreads")},
    {VIEW_TOP, {VIEW_RECORD, true}, SLICE("providerTurns")},
    {VIEW_TOP, {VIEW_RECORD, true}, SLICE("runs")},
    {VIEW_TOP, {VIEW_RECORD, true}, SLICE("runtimeRequests")},
    {VIEW_TOP, {VIEW_RECORD, true}, SLICE("subagents")},
    {VIEW_TOP, {VIEW_RECORD, false}, SLICE("thread")},
    {VIEW_TOP, {VIEW_RECORD, true}, SLICE("threads")},
    {VIEW_TOP, {VIEW_RECORD, true}, SLICE("turnItems")},
    {VIEW_TOP, {VIEW_RECORD, true}, SLICE("visibleTurnItems")},
    {VIEW_EVENT, {VIEW_RECORD, false}, SLICE("payload")},
    {VIEW_RECORD,
     {VIEW_NAMES, true},
     SLICE("activities")}, /* as what follows of the first version */
    {VIEW_RECORD, {VIEW_NAMES, true}, SLICE("checkpoints")},
    {VIEW_RECORD, {VIEW_NAMES, false}, SLICE("latestTurn")},
    {VIEW_RECORD, {VIEW_NAMES, true}, SLICE("messages")},
    {VIEW_RECORD, {VIEW_NAMES, true}, SLICE("proposedPlans")},
    {VIEW_RECORD, {VIEW_NAMES, false}, SLICE("session")},
    {VIEW_RECORD, {VIEW_NAMES, false}, SLICE("defaultModelSelection")},
    {VIEW_RECORD, {VIEW_NAMES, false}, SLICE("latestVisibleMessage")},
    {VIEW_RECORD, {VIEW_NAMES, false}, SLICE("lineage")},
    {VIEW_RECORD, {VIEW_NAMES, false}, SLICE("modelSelection")},
    {VIEW_RECORD, {VIEW_NAMES, true}, SLICE("pendingBackgroundTasks")},
    {VIEW_RECORD, {VIEW_NAMES, false}, SLICE("pendingRuntimeRequest")},
    {VIEW_RECORD, {VIEW_NAMES, false}, SLICE("responseCapability")},
    {VIEW_RECORD, {VIEW_NAMES, false}, SLICE("sourcePlanRef")},
    {VIEW_RECORD, {VIEW_NAMES, true}, SLICE("steps")},
    {VIEW_RECORD, {VIEW_NAMES, false}, SLICE("titleRegeneration")},
    {VIEW_RECORD, {VIEW_NAMES, false}, SLICE("tokenUsage")},
    {VIEW_RECORD, {VIEW_NAMES, false}, SLICE("turnTokenUsage")},
};

struct shape_known shape_known_member(enum shape_view in, struct slice name)
{
    for (size_t i = 0; i < ARRAY_COUNT(members); i++) {
        if (members[i].in == in && slice_equal(members[i].name, name)) {
            return members[i].known;
        }
    }
    return (struct shape_known){VIEW_NONE, false};
}
