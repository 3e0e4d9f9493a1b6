/* The spare ones are a stack: what was used last is in the processor's cache. */
#include "serve/work.h"

#include "base/asan.h"
#include "serve/worker.h"

#include <stdlib.h>

#define SPARE_MAX 64u /* as many requests as a busy worker has at once; about 90 KiB */

struct work *work_take(struct worker *w)
{
    struct work *work = w->spare;

    if (work == NULL) {
        work = malloc(sizeof(*work));
        if (work == NULL) {
            return NULL;
        }
    } else {
        asan_show(work, sizeof(*work));
        w->spare = work->next;
        w->spare_count--;
    }
    work->op = (struct stream_op){.name = {NULL, 0}};
    work->name_len = 0;
    return work;
}

void work_give(struct worker *w, struct work *work)
{
    if (work == NULL) {
        return;
    }
    if (work->op.verb == STREAM_READ) {
        stream_page_finish(&work->op.result.page);
    }
    if (w->spare_count == SPARE_MAX) {
        free(work);
        return;
    }
    work->next = w->spare;
    w->spare = work;
    w->spare_count++;
    asan_hide(work, offsetof(struct work, next));
}

void work_free_spare(struct worker *w)
{
    for (struct work *work; (work = w->spare) != NULL;) {
        w->spare = work->next;
        free(work);
    }
    w->spare_count = 0;
}
