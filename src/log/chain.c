/* A list is enough: a log has a handful of segments, and each batch looks up one or two. */
#include "log/chain.h"

#include <assert.h>

#include "base/err.h"

static struct segment *segment_at(struct list *node)
{
    return container_of(node, struct segment, link);
}

void chain_init(struct chain *c, const struct segment_dir *dir)
{
    c->dir = dir;
    pthread_mutex_init(&c->lock, NULL);
    list_init(&c->segments);
}

void chain_finish(struct chain *c)
{
    LIST_FOR_EACH(node, &c->segments)
    {
        list_remove(node);
        segment_close(c->dir, segment_at(node));
    }
    pthread_mutex_destroy(&c->lock);
}

/* One past the last position; with the lock held. */
static log_pos end_locked(const struct chain *c)
{
    return list_empty(&c->segments) ? 0 : segment_end(segment_at(c->segments.prev));
}

void chain_append(struct chain *c, struct segment *s)
{
    pthread_mutex_lock(&c->lock);
    assert(list_empty(&c->segments) || end_locked(c) == s->start);
    list_append(&c->segments, &s->link);
    pthread_mutex_unlock(&c->lock);
}

struct segment *chain_find(struct chain *c, log_pos pos)
{
    struct segment *found = NULL;
    pthread_mutex_lock(&c->lock);
    LIST_FOR_EACH(node, &c->segments)
    {
        struct segment *s = segment_at(node);
        if (pos >= s->start && pos < segment_end(s)) {
            found = s;
            break;
        }
    }
    pthread_mutex_unlock(&c->lock);
    return found;
}

log_pos chain_end(struct chain *c)
{
    pthread_mutex_lock(&c->lock);
    log_pos end = end_locked(c);
    pthread_mutex_unlock(&c->lock);
    return end;
}

uint64_t chain_file_bytes(struct chain *c)
{
    uint64_t bytes = 0;
    pthread_mutex_lock(&c->lock);
    LIST_FOR_EACH(node, &c->segments)
    {
        bytes += segment_at(node)->bytes + SEGMENT_HEADER_BYTES;
    }
    pthread_mutex_unlock(&c->lock);
    return bytes;
}

struct segment *chain_take_before(struct chain *c, log_pos pos)
{
    struct segment *taken = NULL;
    pthread_mutex_lock(&c->lock);
    struct list *first = list_first(&c->segments);
    if (first && first != c->segments.prev && segment_end(segment_at(first)) <= pos) {
        taken = segment_at(first);
        list_remove(first);
    }
    pthread_mutex_unlock(&c->lock);
    return taken;
}

int64_t chain_read(struct chain *c, log_pos pos, void *out, size_t len)
{
    struct sys *sys = c->dir->sys;
    size_t done = 0;
    while (done < len) {
        struct segment *s = chain_find(c, pos + done);
        if (!s) {
            break;
        }
        uint64_t left = segment_end(s) - (pos + done);
        size_t want = len - done < left ? len - done : (size_t)left;
        char *to = (char *)out + done;
        int64_t n = sys->pread(sys->context, s->fd, to, want, segment_offset(s, pos + done));
        if (n < 0) {
            return n;
        }
        memset(to + n, 0, want - (size_t)n);
        done += want;
    }
    return (int64_t)done;
}

void chain_writer_init(struct chain_writer *w, struct chain *c, log_pos pos)
{
    w->chain = c;
    w->pos = pos;
    w->segment = NULL;
    w->offset = 0;
    w->count = 0;
    w->error = 0;
}

/* Writes what is gathered; an error sticks in w->error. */
static void write_out(struct chain_writer *w)
{
    struct sys *sys = w->chain->dir->sys;
    if (w->count > 0 && w->error == 0) {
        w->segment->dirty = true;
        w->error = sys->pwritev(sys->context, w->segment->fd, w->iov, w->count, w->offset);
    }
    w->count = 0;
}

int chain_writer_flush(struct chain_writer *w)
{
    write_out(w);
    return w->error;
}

/* The segment for the next byte; flushes when that is another one. */
static void enter_segment(struct chain_writer *w)
{
    if (w->segment && w->pos < segment_end(w->segment)) {
        return;
    }
    write_out(w);
    w->segment = chain_find(w->chain, w->pos);
    assert(w->segment); /* room was reserved before anything was staged */
}

void chain_writer_put(struct chain_writer *w, const void *bytes, size_t len)
{
    const char *from = bytes;
    while (len > 0) {
        if (w->count == CHAIN_IOV_MAX) {
            write_out(w);
        }
        enter_segment(w);
        if (w->count == 0) {
            w->offset = segment_offset(w->segment, w->pos);
        }
        uint64_t left = segment_end(w->segment) - w->pos;
        size_t part = len < left ? len : (size_t)left;
        w->iov[w->count++] = (struct iovec){(void *)(uintptr_t)from, part};
        w->pos += part;
        from += part;
        len -= part;
    }
}

int chain_sync(struct chain *c, log_pos from, log_pos to)
{
    struct sys *sys = c->dir->sys;
    while (from < to) {
        struct segment *s = chain_find(c, from);
        assert(s);
        if (s->dirty) {
            int rc = sys->fdatasync(sys->context, s->fd);
            if (rc) {
                return rc;
            }
            s->dirty = false;
        }
        from = segment_end(s);
    }
    return 0;
}
