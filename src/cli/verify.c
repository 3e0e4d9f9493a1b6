/* arbe streams verify DIR: says what is wrong with a data directory, a line each, and sums up. */
#include "cli/command.h"
#include "cli/dir_access.h"
#include "cli/progress.h"
#include "cli/tool.h"

#include "base/json.h"
#include "base/limits.h"
#include "log/verify.h"
#include "serve/keys.h"
#include "thread/store_tool.h"

#include <stdio.h>

#define LINE_BYTES_MAX (8 * KIB)

struct view {
    const struct tool_call *call;
    struct dir_access access;
    struct progress progress;
    uint64_t record_damages;
};

static void print_json(const struct verify_finding *f)
{
    struct buf line;

    buf_init(&line, LINE_BYTES_MAX);
    buf_append(&line, f->level == VERIFY_DAMAGE ? SLICE("{\"finding\":\"damage\",\"file\":")
                                                : SLICE("{\"finding\":\"note\",\"file\":"));
    json_append_string(&line, slice_of(f->file));
    buf_append(&line, SLICE(",\"text\":"));
    json_append_string(&line, slice_of(f->text));
    buf_append(&line, SLICE("}\n"));
    if (!line.failed) {
        (void)fwrite(line.ptr, 1, line.len, stdout); /* tool_end_output looks at the stream */
    }
    buf_finish(&line);
}

static void on_found(void *context, const struct verify_finding *f)
{
    struct view *view = context;

    progress_clear(&view->progress);
    if (view->call->json) {
        print_json(f);
    } else {
        (void)printf("%s: %s: %s\n", f->level == VERIFY_DAMAGE ? "damage" : "note", f->file,
                     f->text);
    }
}

static int on_durable(void *context, log_pos *ret_durable, struct errmsg *msg)
{
    struct view *view = context;

    return dir_access_durable(&view->access, ret_durable, msg);
}

static void on_progress(void *context, uint64_t done, uint64_t total)
{
    struct view *view = context;

    progress_update(&view->progress, done, total);
    dir_access_keep(&view->access);
}

static void sum_up_json(const struct verify_report *r, bool running)
{
    (void)printf("{\"damages\":%llu,\"notes\":%llu,\"running\":%s,\"streams\":%llu,\"forks\":%llu,"
                 "\"streamBytes\":%llu,\"extents\":%llu,\"producers\":%llu,\"packs\":%llu,"
                 "\"packBytes\":%llu,\"liveBytes\":%llu,\"logRecords\":%llu,\"logBytes\":%llu,"
                 "\"catalogBytes\":%llu}\n",
                 (unsigned long long)r->damages, (unsigned long long)r->notes,
                 running ? "true" : "false", (unsigned long long)r->streams,
                 (unsigned long long)r->forks, (unsigned long long)r->stream_bytes,
                 (unsigned long long)r->extents, (unsigned long long)r->producers,
                 (unsigned long long)r->packs, (unsigned long long)r->pack_bytes,
                 (unsigned long long)r->live_bytes, (unsigned long long)r->log_records,
                 (unsigned long long)r->log_bytes, (unsigned long long)r->catalog_bytes);
}

static void sum_up(const struct verify_report *r, const char *dir, bool running)
{
    char packs[PROGRESS_SIZE_BYTES];
    char log[PROGRESS_SIZE_BYTES];

    (void)printf("%s, %s: at the last checkpoint %llu streams, %llu of them forks; %llu extents in "
                 "%llu packs of %s; %llu producers; behind it %llu log records of %s%s\n",
                 dir, running ? "in use by a server" : "not in use", (unsigned long long)r->streams,
                 (unsigned long long)r->forks, (unsigned long long)r->extents,
                 (unsigned long long)r->packs, progress_size(r->pack_bytes, packs),
                 (unsigned long long)r->producers, (unsigned long long)r->log_records,
                 progress_size(r->log_bytes, log), r->memory ? "; of memory mode" : "");
    if (r->damages > 0) {
        (void)printf("%llu %s wrong\n", (unsigned long long)r->damages,
                     r->damages == 1 ? "thing is" : "things are");
    } else {
        (void)printf("everything is right\n");
    }
}

/* The keys are not the log's business. A directory whose server never ran has none, and needs none
 * before there are subscriptions. */
static void verify_keys(struct view *view, const char *dir, struct verify_report *report)
{
    struct errmsg msg = {{0}};
    int code = keys_check(&view->access.sys, dir, &msg);

    if (code == 0 || (code == ERR_NOTFOUND && report->note_entries == 0)) {
        return;
    }
    const struct verify_finding finding = {
        .level = VERIFY_DAMAGE,
        .file = KEYS_FILE,
        .text = code == ERR_NOTFOUND ? "it is missing, but subscriptions depend on it" : msg.text,
    };

    on_found(view, &finding);
    report->damages++;
}

static void on_record_found(void *context, const char *text)
{
    struct view *view = context;
    const struct verify_finding finding = {
        .level = VERIFY_DAMAGE, .file = STORE_FILE, .text = text};

    on_found(view, &finding);
    view->record_damages++;
}

static bool on_records_progress(void *context)
{
    struct view *view = context;

    dir_access_keep(&view->access);
    return view->access.lost[0] == '\0';
}

/* Nor are the records of threads, which a directory of arbe streams has not. */
static int verify_records(struct view *view, const char *dir, struct verify_report *report,
                          struct errmsg *msg)
{
    char path[DIR_PATH_BYTES];
    const struct store_tool tool = {.path = path, .go_on = on_records_progress, .context = view};

    (void)snprintf(path, sizeof(path), "%s/" STORE_FILE, dir); /* fits: it was accessed */
    int code = store_check(&tool, on_record_found, msg);

    report->damages += view->record_damages;
    return code == ERR_NOTFOUND ? 0 : code;
}

static int verify(struct view *view, const char *dir)
{
    struct errmsg msg = {{0}};
    struct verify_report report;
    const struct verify_config config = {.sys = &view->access.sys,
                                         .dir = dir,
                                         .running = view->access.running,
                                         .context = view,
                                         .durable = on_durable,
                                         .found = on_found,
                                         .progress = on_progress};
    int code = verify_run(&config, &report, &msg);

    code = code == 0 ? verify_records(view, dir, &report, &msg) : code;
    progress_clear(&view->progress);
    bool lost = dir_access_lost(&view->access, &msg); /* which is then what is worth telling */

    if (code != 0 || lost) {
        return tool_fail(view->call, msg.text);
    }
    verify_keys(view, dir, &report);
    if (view->call->json) {
        sum_up_json(&report, view->access.running);
    } else {
        sum_up(&report, dir, view->access.running);
    }
    code = tool_end_output();
    return code == COMMAND_GOOD && report.damages > 0 ? COMMAND_FAILED : code;
}

int tool_verify(const struct tool_call *call)
{
    struct view view = {.call = call};
    struct errmsg msg = {{0}};

    if (dir_access_begin(call->operands[0], &view.access, &msg) != 0) {
        return tool_fail(call, msg.text);
    }
    progress_init(&view.progress, "verify");
    int code = verify(&view, call->operands[0]);

    dir_access_end(&view.access);
    return code;
}
