/* A stream remembers what the observer answered about it and for which generation of the
 * observer's mind. The generation is read before the observer is asked: should its mind change
 * meanwhile, the stream remembers an older generation than the answer may be of, and asks again.
 *
 * The news of a stream are told under its lock, so they come in order; and because the lock is also
 * taken by whoever reads a tail, an observer that changes its mind first and reads the tail then
 * either sees the growth there or is told of it. */
#include "stream/observe.h"

#include <assert.h>

void observe_init(struct engine *e)
{
    pthread_rwlockattr_t attr;
    pthread_rwlockattr_init(&attr);
    /* Callbacks come all the time, and must not keep engine_observe out. */
    pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&e->observer_lock, &attr);
    pthread_rwlockattr_destroy(&attr);
}

void observe_finish(struct engine *e)
{
    pthread_rwlock_destroy(&e->observer_lock);
}

void engine_observe(struct engine *e, const struct engine_observer *observer)
{
    assert(!observer || (observer->matches && observer->grew && observer->dropped));
    pthread_rwlock_wrlock(&e->observer_lock);
    e->observer = observer ? *observer : (struct engine_observer){0};
    pthread_rwlock_unlock(&e->observer_lock);
    engine_observer_changed(e);
}

void engine_observer_changed(struct engine *e)
{
    atomic_fetch_add(&e->observer_generation, 1);
}

static void tell(const struct engine_observer *o, const struct stream *s)
{
    if (s->news & NEWS_DROPPED) {
        o->dropped(o->context, stream_name(s), s->id);
    } else if (s->news & NEWS_GREW) {
        o->grew(o->context, stream_name(s), s->id, s->visible.tail);
    } else if (o->made) {
        o->made(o->context, stream_name(s), s->id, s->visible.tail);
    }
}

void observe_news(struct stream *s, uint64_t generation)
{
    struct engine *e = s->engine;
    assert(s->news != 0);
    if (s->observed_generation == generation && !s->observed) {
        return;
    }
    pthread_rwlock_rdlock(&e->observer_lock);
    const struct engine_observer *o = &e->observer;
    if (s->observed_generation != generation) {
        s->observed = o->matches && o->matches(o->context, stream_name(s));
        s->observed_generation = generation;
    }
    if (s->observed && o->matches) {
        tell(o, s);
    }
    pthread_rwlock_unlock(&e->observer_lock);
}
