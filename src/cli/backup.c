/* arbe streams backup DIR OUT: copies a data directory that may be served meanwhile. */
#include "cli/command.h"
#include "cli/dir_access.h"
#include "cli/progress.h"
#include "cli/tool.h"

#include "log/backup.h"
#include "thread/store_tool.h"

#include <stdio.h>

struct copying {
    struct dir_access access;
    struct progress progress;
    const char *from;
};

static void on_progress(void *context, uint64_t done, uint64_t total)
{
    struct copying *c = context;

    progress_update(&c->progress, done, total);
    dir_access_keep(&c->access);
}

static bool on_records_progress(void *context)
{
    struct copying *c = context;

    dir_access_keep(&c->access);
    return c->access.lost[0] == '\0';
}

static int on_records(void *context, const char *path, struct errmsg *msg)
{
    struct copying *c = context;
    char from[DIR_PATH_BYTES];
    const struct store_tool tool = {.path = from, .go_on = on_records_progress, .context = c};

    (void)snprintf(from, sizeof(from), "%s/" STORE_FILE, c->from); /* fits: it was accessed */
    return store_copy(&tool, path, msg);
}

static int on_durable(void *context, log_pos *ret_durable, struct errmsg *msg)
{
    struct copying *c = context;

    return dir_access_durable(&c->access, ret_durable, msg);
}

static void on_log_done(void *context)
{
    struct copying *c = context;

    dir_access_log_done(&c->access);
}

static void on_catalog_done(void *context)
{
    struct copying *c = context;

    dir_access_catalog_done(&c->access);
}

static int on_confirm(void *context, struct errmsg *msg)
{
    struct copying *c = context;

    return dir_access_lost(&c->access, msg) ? ERR_AGAIN : 0;
}

/* When files went since the server let go, that is what is worth telling. */
static const char *reason(struct copying *c, struct errmsg *msg)
{
    struct errmsg lost = {{0}};

    if (dir_access_lost(&c->access, &lost)) {
        *msg = lost;
    }
    return msg->text;
}

int tool_backup(const struct tool_call *call)
{
    struct copying c = {.access = {.socket = -1}, .from = call->operands[0]};
    struct errmsg msg = {{0}};
    struct backup_report report;
    char size[PROGRESS_SIZE_BYTES];

    if (dir_access_apart(call->operands[0], call->operands[1], &msg) != 0 ||
        dir_access_begin(call->operands[0], &c.access, &msg) != 0) {
        return tool_fail(call, msg.text);
    }
    progress_init(&c.progress, "backup");
    const struct backup_config config = {.sys = &c.access.sys,
                                         .from = call->operands[0],
                                         .to = call->operands[1],
                                         .running = c.access.running,
                                         .context = &c,
                                         .records = on_records,
                                         .durable = on_durable,
                                         .log_done = on_log_done,
                                         .catalog_done = on_catalog_done,
                                         .progress = on_progress,
                                         .confirm = on_confirm};
    int code = backup_make(&config, &report, &msg);

    progress_clear(&c.progress);
    if (code != 0) {
        code = tool_fail(call, reason(&c, &msg));
    } else if (call->json) {
        (void)printf("{\"files\":%llu,\"bytes\":%llu,\"logRecords\":%llu,\"position\":%llu,"
                     "\"running\":%s}\n",
                     (unsigned long long)report.files, (unsigned long long)report.bytes,
                     (unsigned long long)report.records, (unsigned long long)report.position,
                     c.access.running ? "true" : "false");
        code = tool_end_output();
    } else {
        (void)printf("%s is a backup of %s: %llu files, %s, all that was acknowledged before log "
                     "position %llu\n",
                     config.to, config.from, (unsigned long long)report.files,
                     progress_size(report.bytes, size), (unsigned long long)report.position);
        code = tool_end_output();
    }
    dir_access_end(&c.access);
    return code;
}
