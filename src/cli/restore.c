/* arbe streams restore OUT DIR: makes a data directory of a backup that proves itself. */
#include "cli/command.h"
#include "cli/dir_access.h"
#include "cli/progress.h"
#include "cli/tool.h"

#include "log/backup.h"

#include <stdio.h>

static void on_progress(void *context, uint64_t done, uint64_t total)
{
    progress_update(context, done, total);
}

int tool_restore(const struct tool_call *call)
{
    struct progress progress;
    struct errmsg msg = {{0}};
    struct backup_report report;
    char size[PROGRESS_SIZE_BYTES];
    struct sys sys;

    if (dir_access_apart(call->operands[0], call->operands[1], &msg) != 0) {
        return tool_fail(call, msg.text);
    }
    sys_posix_init(&sys);
    progress_init(&progress, "restore");
    const struct backup_config config = {.sys = &sys,
                                         .from = call->operands[0],
                                         .to = call->operands[1],
                                         .context = &progress,
                                         .progress = on_progress};
    int code = backup_restore(&config, &report, &msg);

    progress_clear(&progress);
    if (code != 0) {
        return tool_fail(call, msg.text);
    }
    if (call->json) {
        (void)printf("{\"files\":%llu,\"bytes\":%llu,\"position\":%llu}\n",
                     (unsigned long long)report.files, (unsigned long long)report.bytes,
                     (unsigned long long)report.position);
    } else {
        (void)printf("%s is a data directory again: %llu files, %s\n", config.to,
                     (unsigned long long)report.files, progress_size(report.bytes, size));
    }
    return tool_end_output();
}
