/* arbe streams verify: checks a data directory. Being built. */
#include "cli/command.h"
#include "cli/tool.h"

int tool_verify(const struct tool_call *call)
{
    return tool_fail(call, "not built yet");
}
