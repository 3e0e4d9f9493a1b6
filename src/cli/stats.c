/* arbe streams stats DIR: what a data directory holds, by its catalog. */
#include "cli/command.h"
#include "cli/dir_access.h"
#include "cli/progress.h"
#include "cli/tool.h"

#include "base/json.h"
#include "base/utf8.h"
#include "log/survey.h"

#include <stdio.h>
#include <stdlib.h>

#define JSON_BYTES_MAX (64 * KIB)

static void put_number(struct buf *out, const char *name, uint64_t value)
{
    if (out->ptr[out->len - 1] != '{') {
        buf_append_char(out, ',');
    }
    buf_append_format(out, "\"%s\":%llu", name, (unsigned long long)value);
}

static void put_largest(struct buf *out, const struct survey *s)
{
    buf_append(out, SLICE(",\"largest\":["));
    for (size_t i = 0; i < s->largest_count; i++) {
        const struct survey_stream *one = &s->largest[i];

        buf_append(out, i == 0 ? SLICE("{\"name\":") : SLICE(",{\"name\":"));
        json_append_string(out, (struct slice){one->name, one->name_len});
        put_number(out, "id", one->id);
        put_number(out, "bytes", one->bytes);
        buf_append_char(out, '}');
    }
    buf_append(out, SLICE("]}\n"));
}

static void print_json(const struct survey *s, bool running)
{
    struct buf out;

    buf_init(&out, JSON_BYTES_MAX);
    buf_append_char(&out, '{');
    put_number(&out, "streams", s->streams);
    put_number(&out, "forks", s->forks);
    put_number(&out, "softDeleted", s->soft_deleted);
    put_number(&out, "closed", s->closed);
    put_number(&out, "expiring", s->expiring);
    put_number(&out, "streamBytes", s->stream_bytes);
    put_number(&out, "extents", s->extents);
    put_number(&out, "producers", s->producers);
    put_number(&out, "notes", s->notes);
    put_number(&out, "noteBytes", s->note_bytes);
    put_number(&out, "packs", s->packs);
    put_number(&out, "packBytes", s->pack_bytes);
    put_number(&out, "liveBytes", s->live_bytes);
    put_number(&out, "logFiles", s->log_files);
    put_number(&out, "logFileBytes", s->log_file_bytes);
    put_number(&out, "checkpoint", s->checkpoint);
    put_number(&out, "catalogPages", s->pages);
    put_number(&out, "catalogFreePages", s->free_pages);
    put_number(&out, "catalogPageBytes", s->page_bytes);
    put_number(&out, "unreadable", s->unreadable);
    buf_append_format(&out, ",\"running\":%s,\"memory\":%s", running ? "true" : "false",
                      s->memory ? "true" : "false");
    put_largest(&out, s);
    if (!out.failed) {
        (void)fwrite(out.ptr, 1, out.len, stdout); /* tool_end_output looks at the stream */
    }
    buf_finish(&out);
}

/* A name without what a terminal would obey. */
static void print_name(const struct survey_stream *one)
{
    for (size_t i = 0; i < one->name_len; i++) {
        size_t control = utf8_control((struct slice){one->name + i, one->name_len - i});

        (void)putchar(control > 0 ? '?' : (unsigned char)one->name[i]);
        i += control > 0 ? control - 1 : 0;
    }
}

static void print_streams(const struct survey *s)
{
    char size[PROGRESS_SIZE_BYTES];

    (void)printf("streams    %llu, %s; %llu forks, %llu kept for forks, %llu closed, %llu that "
                 "expire\n",
                 (unsigned long long)s->streams, progress_size(s->stream_bytes, size),
                 (unsigned long long)s->forks, (unsigned long long)s->soft_deleted,
                 (unsigned long long)s->closed, (unsigned long long)s->expiring);
    (void)printf("producers  %llu\n", (unsigned long long)s->producers);
    (void)printf("notes      %llu, %s\n", (unsigned long long)s->notes,
                 progress_size(s->note_bytes, size));
}

static void print_files(const struct survey *s)
{
    char size[PROGRESS_SIZE_BYTES];
    uint64_t live = s->pack_bytes > 0 ? s->live_bytes * 100 / s->pack_bytes : 100;

    (void)printf("packs      %llu, %s, %llu %% live, in %llu extents\n",
                 (unsigned long long)s->packs, progress_size(s->pack_bytes, size),
                 (unsigned long long)live, (unsigned long long)s->extents);
    (void)printf("log        %llu files, %s, checkpoint at %llu\n",
                 (unsigned long long)s->log_files, progress_size(s->log_file_bytes, size),
                 (unsigned long long)s->checkpoint);
    (void)printf("catalog    %llu pages, %s, %llu pages free\n", (unsigned long long)s->pages,
                 progress_size(s->pages * s->page_bytes, size), (unsigned long long)s->free_pages);
}

static void print_text(const struct survey *s, const char *dir, bool running)
{
    char size[PROGRESS_SIZE_BYTES];

    (void)printf("%s, %s%s, as of the last checkpoint\n", dir,
                 running ? "in use by a server" : "not in use", s->memory ? ", memory mode" : "");
    print_streams(s);
    print_files(s);
    for (size_t i = 0; i < s->largest_count; i++) {
        (void)printf("%s %10s  ", i == 0 ? "largest   " : "          ",
                     progress_size(s->largest[i].bytes, size));
        print_name(&s->largest[i]);
        (void)printf("\n");
    }
    if (s->unreadable > 0) {
        (void)printf("%llu entries of the catalog cannot be read: run arbe streams verify\n",
                     (unsigned long long)s->unreadable);
    }
}

int tool_stats(const struct tool_call *call)
{
    struct dir_access access;
    struct errmsg msg = {{0}};
    struct survey *survey = calloc(1, sizeof(*survey));

    if (survey == NULL) {
        return tool_fail(call, err_text(ERR_NOMEM));
    }
    if (dir_access_begin(call->operands[0], &access, &msg) != 0) {
        free(survey);
        return tool_fail(call, msg.text);
    }
    int code = survey_run(&access.sys, call->operands[0], survey, &msg);

    if (code == 0 && dir_access_lost(&access, &msg)) {
        code = ERR_AGAIN;
    }
    if (code != 0) {
        code = tool_fail(call, msg.text);
    } else {
        if (call->json) {
            print_json(survey, access.running);
        } else {
            print_text(survey, call->operands[0], access.running);
        }
        code = tool_end_output();
    }
    dir_access_end(&access);
    free(survey);
    return code;
}
