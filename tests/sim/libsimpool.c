/* Defines what base/pool.h declares: linked before the library, it takes the place of the
 * threads. */
#include "sim/simpool.h"

#include <assert.h>
#include <stdlib.h>

#include "base/err.h"
#include "sim/alloc.h"

struct pool {
    struct list queue; /* struct task, oldest first */
    size_t count;
};

int pool_create(unsigned thread_count, struct pool **ret_pool)
{
    assert(thread_count == 0);
    struct pool *p = calloc(1, sizeof(*p));
    if (!p) {
        return ERR_NOMEM;
    }
    list_init(&p->queue);
    *ret_pool = p;
    return 0;
}

void pool_destroy(struct pool *p)
{
    while (p && p->count > 0) {
        simpool_run(p, 0);
    }
    free(p);
}

void pool_submit(struct pool *p, struct task *task)
{
    list_append(&p->queue, &task->link);
    p->count++;
}

size_t simpool_count(const struct pool *p)
{
    return p->count;
}

void simpool_run(struct pool *p, size_t index)
{
    assert(index < p->count);
    struct list *node = p->queue.next;
    for (size_t i = 0; i < index; i++) {
        node = node->next;
    }
    list_remove(node);
    p->count--;
    struct task *task = container_of(node, struct task, link);
    task->run(task);
}
