/* Something is told when it changes: that a thing ceases to work, for another reason, or that it
 * works again. What fails again and again for the same reason is told once. */
#include "log/vitals.h"

#include <stdarg.h>
#include <stdio.h>

#define SENTENCE_BYTES_MAX 512

void vitals_init(struct vitals *v, const struct store_events *events)
{
    v->events = events;
    pthread_mutex_init(&v->lock, NULL);
}

void vitals_finish(struct vitals *v)
{
    pthread_mutex_destroy(&v->lock);
}

void vitals_say(struct vitals *v, enum trouble trouble, const char *format, ...)
{
    char sentence[SENTENCE_BYTES_MAX];
    va_list args;
    if (!v->events->trouble) {
        return;
    }
    va_start(args, format);
    (void)vsnprintf(sentence, sizeof(sentence), format, args);
    va_end(args);
    v->events->trouble(v->events->context, trouble, sentence);
}

void vitals_log(struct vitals *v, const char *path, int error)
{
    if (error && !__atomic_exchange_n(&v->failure_told, true, __ATOMIC_ACQ_REL)) {
        vitals_say(v, TROUBLE_BROKEN,
                   "the log in %s failed (%s); no writes are accepted until a restart", path,
                   err_text(error));
    }
}

void vitals_checkpoint(struct vitals *v, const char *dir, int rc)
{
    pthread_mutex_lock(&v->lock);
    struct store_health *h = &v->health;
    int before = h->checkpoint_error;
    h->checkpoint_error = rc;
    h->checkpoint_failures = rc ? h->checkpoint_failures + 1 : 0;
    h->text[0] = '\0';
    if (rc) {
        (void)snprintf(h->text, sizeof(h->text), "the last checkpoint failed: %s", err_text(rc));
    }
    pthread_mutex_unlock(&v->lock);
    counter_add(&v->checkpoint_failures, rc != 0);
    if (rc && rc != before) {
        vitals_say(v, TROUBLE_BROKEN,
                   "checkpoints of %s fail: %s; nothing is lost, the log keeps what was "
                   "acknowledged, and they are tried again",
                   dir, err_text(rc));
    } else if (!rc && before) {
        vitals_say(v, TROUBLE_OVER, "checkpoints of %s work again", dir);
    }
}

void vitals_checkpointed(struct vitals *v, uint64_t took_us)
{
    pthread_mutex_lock(&v->lock);
    v->health.checkpoints++;
    pthread_mutex_unlock(&v->lock);
    histogram_observe(&v->checkpoint_us, took_us);
}

void vitals_compaction(struct vitals *v, const char *path, int rc)
{
    pthread_mutex_lock(&v->lock);
    int before = v->health.compaction_error;
    v->health.compaction_error = rc;
    pthread_mutex_unlock(&v->lock);
    counter_add(&v->compaction_failures, rc != 0);
    if (rc && rc != before) {
        vitals_say(v, TROUBLE_BROKEN,
                   "compaction of %s fails: %s; dead bytes keep their space, and it is tried again",
                   path, err_text(rc));
    } else if (!rc && before) {
        vitals_say(v, TROUBLE_OVER, "compaction of %s works again", path);
    }
}

void vitals_compacted(struct vitals *v, uint64_t moved_bytes, size_t packs_gone, uint64_t took_us)
{
    if (moved_bytes == 0 && packs_gone == 0) {
        return;
    }
    counter_add(&v->compacted_bytes, moved_bytes);
    histogram_observe(&v->compaction_us, took_us);
}

struct pack_sums {
    uint64_t packs;
    uint64_t live_bytes;
    uint64_t bytes;
};

static int add_pack(void *context, pack_id id, uint64_t live_bytes, uint64_t total_bytes)
{
    struct pack_sums *sums = context;
    (void)id; /* one is like the other */
    sums->packs++;
    sums->live_bytes += live_bytes;
    sums->bytes += total_bytes;
    return 0;
}

void vitals_count(struct vitals *v, struct catalog *catalog)
{
    struct pack_sums sums = {0};
    /* A catalog that cannot be read is told where it matters; here the old numbers stay. */
    if (catalog_each_pack(catalog, add_pack, &sums) == 0) {
        counter_set(&v->packs, sums.packs);
        counter_set(&v->pack_bytes, sums.bytes);
        counter_set(&v->pack_live_bytes, sums.live_bytes);
    }
}

void vitals_get_health(struct vitals *v, int log_error, struct store_health *ret_health)
{
    pthread_mutex_lock(&v->lock);
    *ret_health = v->health;
    pthread_mutex_unlock(&v->lock);
    ret_health->log_error = log_error;
    if (log_error) {
        (void)snprintf(ret_health->text, sizeof(ret_health->text),
                       "the log failed (%s); no writes are accepted until a restart",
                       err_text(log_error));
    }
}

void vitals_get_stats(const struct vitals *v, struct store_stats *stats)
{
    histogram_add_to(&v->checkpoint_us, &stats->checkpoint_us);
    histogram_add_to(&v->compaction_us, &stats->compaction_us);
    stats->checkpoint_failures = counter_get(&v->checkpoint_failures);
    stats->compaction_failures = counter_get(&v->compaction_failures);
    stats->compacted_bytes = counter_get(&v->compacted_bytes);
    stats->packs = counter_get(&v->packs);
    stats->pack_bytes = counter_get(&v->pack_bytes);
    stats->pack_live_bytes = counter_get(&v->pack_live_bytes);
}
