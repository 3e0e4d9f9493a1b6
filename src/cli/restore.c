/* arbe streams restore: brings a backup back. Being built. */
#include "cli/command.h"
#include "cli/tool.h"

int tool_restore(const struct tool_call *call)
{
    return tool_fail(call, "not built yet");
}
