/* arbe streams stats: tells what a data directory holds. Being built. */
#include "cli/command.h"
#include "cli/tool.h"

int tool_stats(const struct tool_call *call)
{
    return tool_fail(call, "not built yet");
}
