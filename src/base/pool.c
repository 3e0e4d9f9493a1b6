/* One mutex, one condition, one queue: tasks are whole disk operations, so contention here is
 * nothing beside what they do. */
#include "base/pool.h"

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/err.h"

struct pool {
    pthread_mutex_t lock;  /* guards queue and stopping */
    pthread_cond_t work;   /* signalled per task, broadcast to stop */
    struct list queue;     /* tasks, oldest first */
    bool stopping;         /* no further submissions */
    unsigned thread_count; /* of `threads`; 0: tasks run at once */
    pthread_t threads[];
};

/* The next task, or NULL once the pool stops and the queue is empty. */
static struct task *next_task(struct pool *p)
{
    pthread_mutex_lock(&p->lock);
    while (list_empty(&p->queue) && !p->stopping) {
        pthread_cond_wait(&p->work, &p->lock);
    }
    struct list *first = list_first(&p->queue);
    if (first) {
        list_remove(first);
    }
    pthread_mutex_unlock(&p->lock);
    return first ? container_of(first, struct task, link) : NULL;
}

static void *thread_main(void *context)
{
    struct pool *p = context;
    for (struct task *task = next_task(p); task; task = next_task(p)) {
        task->run(task);
    }
    return NULL;
}

static void stop_threads(struct pool *p, unsigned started)
{
    pthread_mutex_lock(&p->lock);
    p->stopping = true;
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
    for (unsigned i = 0; i < started; i++) {
        pthread_join(p->threads[i], NULL);
    }
    assert(list_empty(&p->queue));
    pthread_cond_destroy(&p->work);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

int pool_create(unsigned thread_count, struct pool **ret_pool)
{
    struct pool *p = calloc(1, sizeof(*p) + thread_count * sizeof(p->threads[0]));
    if (!p) {
        return ERR_NOMEM;
    }
    p->thread_count = thread_count;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    list_init(&p->queue);
    for (unsigned i = 0; i < thread_count; i++) {
        if (pthread_create(&p->threads[i], NULL, thread_main, p) != 0) {
            stop_threads(p, i);
            return ERR_AGAIN;
        }
    }
    *ret_pool = p;
    return 0;
}

void pool_destroy(struct pool *p)
{
    if (p) {
        stop_threads(p, p->thread_count);
    }
}

void pool_submit(struct pool *p, struct task *task)
{
    assert(task->run);
    if (p->thread_count == 0) {
        task->run(task);
        return;
    }
    pthread_mutex_lock(&p->lock);
    assert(!p->stopping);
    list_append(&p->queue, &task->link);
    pthread_cond_signal(&p->work);
    pthread_mutex_unlock(&p->lock);
}
