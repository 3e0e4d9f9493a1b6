/* Scan. Every wal-* file is judged by its header. Zeros only: its creation was cut short, it is
 * removed. A broken header: set aside. Of another directory or format: refused, nothing is touched.
 * The others are put in order of their start. Those that end at or before the checkpoint are
 * spares; from the one that holds the checkpoint on they must follow each other without a gap. What
 * lies behind a gap can never be reached and is set aside. If none holds the checkpoint, the log is
 * not the one the catalog speaks of: refused.
 *
 * Walk. A record is good when
 *   1. its header has the magic, a right checksum and a known type,
 *   2. its lsn is the position where it was found,
 *   3. its epoch is not below that of the record before and is below that of this opening,
 *   4. it ends within the segments, and its payload has a right checksum and decodes.
 * The first that is not good ends the log.
 *
 * Durable. What was walked may so far be only in the kernel's memory: the process may have been
 * killed between write and sync, or a sync may have failed and left pages that merely look clean.
 * Readers are about to see these records, so their bytes are written once more and synced before
 * anybody does. The same goes for the headers of all segments that records are in or will go to,
 * since without its header a segment is not found again, and for their names, hence the directory.
 *
 * Cut. Behind the end P there may be whole records of a batch that tore in front of them. They must
 * stay dead. Two rules see to it, and each covers what the other cannot:
 *   - The epoch. The next record at P may have just the length of the torn one, so that the stale
 *     neighbour stands in its right place with its right lsn. Its epoch is lower than that of the
 *     record now in front of it: rule 3 stops there.
 *   - The zeros. The frame header at P is overwritten with zeros and synced before anything new is
 *     staged. Without that, a crash in the middle of writing the next record could leave the old
 *     header with the new payload; if a client sent the same bytes again, that frame would prove
 *     itself, and the neighbours behind it, of the same old epoch, with it.
 * Keep. Whole records behind P may also have been acknowledged, when a disk has damaged the one in
 * front of them. They cannot be replayed, since nobody knows what is missing between, but before
 * the cut the segments from P up to the last of them are copied to *.damaged for whoever wants to
 * look. If that fails, most likely for want of space, the server starts all the same and says so. A
 * torn batch looks alike, and a crash seldom tears one so that a later record of it is whole. Once
 * there is a copy the cut reaches over all of them, or the next start would find them again.
 *
 * A crash during recovery leaves either the state before or one in which some of this is done
 * already; doing it again changes nothing. */
#include "log/recover.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/limits.h"
#include "log/walk.h"

/* The files of the directory, by name. */
struct name_list {
    uint64_t *numbers; /* owned */
    size_t count;
    size_t cap;
};

static int add_name(void *context, const char *name)
{
    struct name_list *names = context;
    uint64_t number = 0;
    if (!segment_parse_name(name, &number)) {
        return 0;
    }
    if (names->count == names->cap) {
        size_t cap = names->cap ? names->cap * 2 : 64;
        uint64_t *numbers = realloc(names->numbers, cap * sizeof(numbers[0]));
        if (!numbers) {
            return ERR_NOMEM;
        }
        names->numbers = numbers;
        names->cap = cap;
    }
    names->numbers[names->count++] = number;
    return 0;
}

static struct segment *segment_of(struct list *node)
{
    return container_of(node, struct segment, link);
}

/* Puts `s` into `found`, which is kept ascending by start. */
static void insert_sorted(struct list *found, struct segment *s)
{
    struct list *after = found->prev;
    while (after != found && segment_of(after)->start > s->start) {
        after = after->prev;
    }
    /* A node appended to its successor as head comes right before it. */
    list_append(after->next, &s->link);
}

static int set_aside(struct recovery *r, const char *name, struct errmsg *msg)
{
    int rc = segment_set_aside(r->dir, name);
    if (rc) {
        return err_set(msg, rc, "cannot rename the damaged log file %s: %s", name,
                       err_file_text(rc));
    }
    r->report.files_set_aside++;
    return 0;
}

static int remove_unfinished(struct recovery *r, const char *name, struct errmsg *msg)
{
    struct sys *sys = r->dir->sys;
    char path[SEGMENT_PATH_MAX * 2];
    (void)snprintf(path, sizeof(path), "%s/%s", r->dir->path, name);
    int rc = sys->unlink(sys->context, path);
    return rc ? err_set(msg, rc, "cannot remove the unfinished log file %s: %s", name,
                        err_file_text(rc))
              : 0;
}

/* Opens one file and deals with what it is. */
static int scan_file(struct recovery *r, struct list *found, uint64_t number, struct errmsg *msg)
{
    char name[SEGMENT_PATH_MAX];
    segment_format_name(number, name);
    enum segment_state state = SEGMENT_GOOD;
    struct segment *s = NULL;
    int rc = segment_open(r->dir, name, &state, &s);
    if (rc) {
        return err_set(msg, rc, "cannot open the log file %s: %s", name, err_file_text(rc));
    }
    switch (state) {
    case SEGMENT_GOOD:
        insert_sorted(found, s);
        return 0;
    case SEGMENT_UNFINISHED:
        return remove_unfinished(r, name, msg);
    case SEGMENT_DAMAGED:
        return set_aside(r, name, msg);
    case SEGMENT_FOREIGN:
        return err_set(msg, ERR_MISMATCH,
                       "the log file %s belongs to another data directory; move it away or restore "
                       "the catalog that belongs to it",
                       name);
    case SEGMENT_FORMAT:
        return err_set(msg, ERR_MISMATCH,
                       "the log file %s has a format that this version does not know", name);
    }
    return ERR_CORRUPT;
}

static int scan_files(struct recovery *r, struct list *found, struct errmsg *msg)
{
    struct sys *sys = r->dir->sys;
    struct name_list names = {0};
    int rc = sys->list_dir(sys->context, r->dir->path, add_name, &names);
    if (rc) {
        rc = err_set(msg, rc, "cannot list %s: %s", r->dir->path, err_file_text(rc));
    }
    for (size_t i = 0; i < names.count && rc == 0; i++) {
        rc = scan_file(r, found, names.numbers[i], msg);
    }
    free(names.numbers);
    return rc;
}

/* Moves what a checkpoint covers to the spares. A segment that ends right at the checkpoint is
 * covered, unless it is the last: then the log goes on behind it. */
static void split_spares(struct recovery *r, struct list *found)
{
    LIST_FOR_EACH(node, found)
    {
        struct segment *s = segment_of(node);
        bool at_end = segment_end(s) == r->config->start && node->next == found;
        if (segment_end(s) > r->config->start || at_end) {
            return;
        }
        list_remove(node);
        list_append(r->spares, &s->link);
    }
}

/* Moves segments to the chain for as long as each begins where the one before ended. */
static void take_contiguous(struct recovery *r, struct list *found)
{
    LIST_FOR_EACH(node, found)
    {
        struct segment *s = segment_of(node);
        bool first = list_empty(&r->chain->segments);
        if (first ? s->start > r->config->start : s->start != chain_end(r->chain)) {
            return;
        }
        list_remove(node);
        chain_append(r->chain, s);
    }
}

static int set_rest_aside(struct recovery *r, struct list *found, struct errmsg *msg)
{
    int rc = 0;
    LIST_FOR_EACH(node, found)
    {
        struct segment *s = segment_of(node);
        char name[SEGMENT_PATH_MAX];
        segment_format_name(s->name, name);
        rc = rc ? rc : set_aside(r, name, msg);
        list_remove(node);
        segment_close(r->dir, s);
    }
    return rc;
}

static void close_all(const struct segment_dir *dir, struct list *found)
{
    LIST_FOR_EACH(node, found)
    {
        list_remove(node);
        segment_close(dir, segment_of(node));
    }
}

int recovery_scan(struct recovery *r, struct errmsg *msg)
{
    struct list found;
    list_init(&found);
    int rc = scan_files(r, &found, msg);
    if (rc) {
        close_all(r->dir, &found);
        return rc;
    }
    bool any = !list_empty(&found) || r->report.files_set_aside > 0;
    split_spares(r, &found);
    take_contiguous(r, &found);
    if (list_empty(&r->chain->segments) && (any || !r->config->fresh)) {
        close_all(r->dir, &found);
        return err_set(
            msg, ERR_MISMATCH,
            "the log file that holds position %llu is missing from %s; restore it, or move "
            "the data directory away to begin a new one",
            (unsigned long long)r->config->start, r->dir->path);
    }
    return set_rest_aside(r, &found, msg);
}

/* The walk over the records of a recovery. */
struct replay_walk {
    struct recovery *r;
    struct walk log;
};

/* The last byte that is not zero, counted from 1; 0: there is none. */
static size_t last_nonzero(const char *bytes, size_t len)
{
    static const char zeros[4096];
    while (len > 0) {
        size_t part = len < sizeof(zeros) ? len : sizeof(zeros);
        if (memcmp(bytes + len - part, zeros, part) != 0) {
            break;
        }
        len -= part;
    }
    while (len > 0 && bytes[len - 1] == 0) {
        len--;
    }
    return len;
}

/* How far the last byte of the segment at `pos` that is not zero is behind `pos`. */
static int count_nonzero(struct replay_walk *k, const struct segment *s, log_pos pos,
                         uint64_t *ret_bytes)
{
    uint64_t last = 0;
    log_pos at = pos;
    while (at < segment_end(s)) {
        uint64_t left = segment_end(s) - at;
        size_t len = left < WALK_READ_BYTES ? (size_t)left : WALK_READ_BYTES;
        const char *bytes = walk_bytes(&k->log, at, len);
        if (!bytes) {
            return walk_error(&k->log) ? walk_error(&k->log) : ERR_IO;
        }
        size_t used = last_nonzero(bytes, len);
        last = used > 0 ? at + used - pos : last;
        at += len;
    }
    *ret_bytes = last;
    return 0;
}

/* Tells a torn end from a clean one. A segment that was never recycled is zero behind its records;
 * in a recycled one only a header of this very position, or the rest of one, says that something
 * was begun here. */
static int count_torn(struct replay_walk *k, log_pos pos)
{
    struct segment *s = chain_find(k->r->chain, pos);
    if (!s) {
        return 0;
    }
    if (s->generation == 0) {
        return count_nonzero(k, s, pos, &k->r->report.torn_bytes);
    }
    const char *head = walk_bytes(&k->log, pos, RECORD_FRAME_BYTES);
    if (!head) {
        return walk_error(&k->log);
    }
    if (bytes_get_u64(head + 16) == pos) {
        uint64_t total = walk_padded(RECORD_FRAME_BYTES + (uint64_t)bytes_get_u32(head + 4));
        k->r->report.torn_bytes = total < k->log.limit - pos ? total : k->log.limit - pos;
    }
    return 0;
}

static int walk_records(struct replay_walk *k, wal_replay_fn replay, void *context,
                        struct errmsg *msg)
{
    struct recovery *r = k->r;
    log_pos pos = r->config->start;
    for (;;) {
        struct record record;
        log_pos end = pos;
        int rc = walk_prove(&k->log, pos, &record, &end);
        if (rc == ERR_CORRUPT) {
            break;
        }
        if (rc) {
            return err_set(msg, rc, "cannot read the log at %llu: %s", (unsigned long long)pos,
                           err_text(rc));
        }
        rc = replay(context, &record, end);
        if (rc) {
            return err_set(msg, rc, "cannot replay the log at %llu: %s", (unsigned long long)pos,
                           err_text(rc));
        }
        r->report.records++;
        r->report.bytes += end - pos;
        pos = end;
    }
    r->end = pos;
    int rc = count_torn(k, pos);
    return rc ? err_set(msg, rc, "cannot read the end of the log: %s", err_text(rc)) : 0;
}

/* Where the search for stranded records begins: behind the zeros of a clean end, if that is what
 * count_torn saw. */
static log_pos search_start(const struct replay_walk *k, log_pos pos)
{
    const struct segment *s = chain_find(k->r->chain, pos);
    bool clean = s && s->generation == 0 && k->r->report.torn_bytes == 0;
    return clean ? segment_end(s) : pos;
}

/* Bytes of the record at the end of the log, if its header proves itself and it is the payload that
 * does not; else 0. */
static uint64_t damaged_bytes(struct replay_walk *k, log_pos pos)
{
    struct record_frame f;
    const char *head = walk_bytes(&k->log, pos, RECORD_FRAME_BYTES);
    bool proven = head && record_decode_frame(head, &f) == 0 && f.lsn == pos;
    return proven ? walk_padded(RECORD_FRAME_BYTES + (uint64_t)f.payload_len) : 0;
}

/* Counts the whole records behind the end of the log. *ret_end is behind the last one. */
static int find_stranded(struct replay_walk *k, log_pos *ret_end)
{
    log_pos pos = search_start(k, k->r->end);
    log_pos stop = pos + damaged_bytes(k, pos) + WALK_SEARCH_BYTES;
    while (pos < stop && pos + RECORD_FRAME_BYTES <= k->log.limit) {
        struct record record;
        log_pos end = pos + RECORD_ALIGN;
        int rc = walk_prove(&k->log, pos, &record, &end);
        if (rc == 0) {
            k->r->report.stranded++;
            *ret_end = end;
            stop = end + WALK_SEARCH_BYTES;
        } else if (rc != ERR_CORRUPT) {
            return rc;
        }
        pos = end;
    }
    return 0;
}

/* Copies the segments that hold positions of from..to. */
static int copy_aside(struct recovery *r, log_pos from, log_pos to)
{
    while (from < to) {
        const struct segment *s = chain_find(r->chain, from);
        int rc = segment_copy_aside(r->dir, s);
        if (rc) {
            return rc;
        }
        r->report.files_copied++;
        from = segment_end(s);
    }
    return 0;
}

/* Keeps a copy of what the cut is about to strand for good. *ret_end is behind all that has one. */
static int keep_stranded(struct replay_walk *k, log_pos *ret_end)
{
    struct recovery *r = k->r;
    log_pos end = r->end;
    int rc = find_stranded(k, &end);
    if (rc) {
        return rc;
    }
    r->report.copy_error = copy_aside(r, r->end, end);
    *ret_end = r->report.copy_error ? r->end : end;
    return 0;
}

/* Segments are made at their full size, so one that is shorter was cut, and records may be missing
 * that were acknowledged. What is left is proven like any other log; it is also kept aside as it
 * was found, before extend fills the gap with zeros. Those that a checkpoint covers do not
 * matter. */
static void note_short(struct recovery *r)
{
    struct wal_report *p = &r->report;
    LIST_FOR_EACH(node, &r->chain->segments)
    {
        const struct segment *s = segment_of(node);
        uint64_t whole = s->bytes + SEGMENT_HEADER_BYTES;
        if (s->file_bytes >= whole) {
            continue;
        }
        if (p->files_short++ == 0) {
            p->short_bytes = whole - s->file_bytes;
            p->short_name = s->name;
        }
        if (s->file_bytes > SEGMENT_HEADER_BYTES) {
            int rc = segment_copy_aside(r->dir, s);
            p->short_error = rc ? rc : p->short_error;
        }
    }
}

/* Reserves what is missing of segments that records will still go to, so that no write in them can
 * run out of space. */
static int extend(struct recovery *r)
{
    struct sys *sys = r->dir->sys;
    for (log_pos at = r->end; at < chain_end(r->chain);) {
        struct segment *s = chain_find(r->chain, at);
        uint64_t whole = s->bytes + SEGMENT_HEADER_BYTES;
        int rc = s->file_bytes < whole ? sys->allocate(sys->context, s->fd, whole) : 0;
        if (rc) {
            return rc;
        }
        s->file_bytes = whole;
        at = segment_end(s);
    }
    return 0;
}

/* Writes the headers of all segments once more, and makes their names durable. */
static int rewrite_headers(struct recovery *r)
{
    struct sys *sys = r->dir->sys;
    int rc = sys->sync_dir(sys->context, r->dir->path);
    LIST_FOR_EACH(node, &r->chain->segments)
    {
        rc = rc ? rc : segment_rewrite_header(r->dir, segment_of(node));
    }
    return rc;
}

/* Writes start..end once more. */
static int rewrite_records(struct replay_walk *k)
{
    struct recovery *r = k->r;
    struct chain_writer *w = malloc(sizeof(*w));
    if (!w) {
        return ERR_NOMEM;
    }
    chain_writer_init(w, r->chain, r->config->start);
    int rc = 0;
    while (w->pos < r->end && rc == 0) {
        uint64_t left = r->end - w->pos;
        size_t len = left < WALK_READ_BYTES ? (size_t)left : WALK_READ_BYTES;
        const char *bytes = walk_bytes(&k->log, w->pos, len);
        if (!bytes) {
            rc = walk_error(&k->log) ? walk_error(&k->log) : ERR_IO;
            break;
        }
        chain_writer_put(w, bytes, len);
        rc = chain_writer_flush(w);
    }
    free(w);
    return rc;
}

/* Zeros over the frame header at the end of the log, as far as there is room for one, and over all
 * up to `to`. */
static int cut(struct recovery *r, log_pos to)
{
    static const char zeros[SEGMENT_HEADER_BYTES];
    struct chain_writer *w = malloc(sizeof(*w));
    if (!w) {
        return ERR_NOMEM;
    }
    chain_writer_init(w, r->chain, r->end);
    if (to < r->end + RECORD_FRAME_BYTES) {
        to = r->end + RECORD_FRAME_BYTES;
    }
    if (to > chain_end(r->chain)) {
        to = chain_end(r->chain);
    }
    while (w->pos < to) {
        uint64_t left = to - w->pos;
        chain_writer_put(w, zeros, left < sizeof(zeros) ? (size_t)left : sizeof(zeros));
    }
    int rc = chain_writer_flush(w);
    log_pos first = segment_of(r->chain->segments.next)->start;
    rc = rc ? rc : chain_sync(r->chain, first, chain_end(r->chain));
    free(w);
    return rc;
}

/* Adds a sentence about stranded records, if there are any. */
static size_t describe_stranded(const struct wal_report *p, char *out, size_t room)
{
    int len = 0;
    if (p->copy_error) {
        len = snprintf(out, room,
                       "; %llu whole records behind the damage could not be kept aside: %s",
                       (unsigned long long)p->stranded, err_text(p->copy_error));
    } else if (p->stranded > 0) {
        len = snprintf(out, room,
                       "; %llu whole records behind the damage were kept in %u copies *.damaged",
                       (unsigned long long)p->stranded, p->files_copied);
    }
    return (size_t)len;
}

/* Adds a sentence about files that were cut short, if there are any. */
static size_t describe_short(const struct wal_report *p, char *out, size_t room)
{
    if (p->files_short == 0) {
        return 0;
    }
    char name[SEGMENT_PATH_MAX];
    segment_format_name(p->short_name, name);
    int len = snprintf(
        out, room,
        "; log file %s is %llu bytes short (%u such files): it was cut, and what was "
        "acknowledged may be missing; %s",
        name, (unsigned long long)p->short_bytes, p->files_short,
        p->short_error ? "no copy of what is left could be made"
                       : "what is left was copied to *.damaged");
    return (size_t)len;
}

static void describe(struct recovery *r)
{
    struct wal_report *p = &r->report;
    int len = snprintf(p->text, sizeof(p->text), "log: %llu records, %llu bytes replayed",
                       (unsigned long long)p->records, (unsigned long long)p->bytes);
    size_t at = (size_t)len;
    if (p->torn_bytes > 0) {
        len = snprintf(p->text + at, sizeof(p->text) - at,
                       "; cut off %llu bytes at %llu that were never acknowledged or are damaged",
                       (unsigned long long)p->torn_bytes, (unsigned long long)r->end);
        at += (size_t)len;
    }
    at += describe_stranded(p, p->text + at, sizeof(p->text) - at);
    at += describe_short(p, p->text + at, sizeof(p->text) - at);
    if (p->files_set_aside > 0) {
        (void)snprintf(p->text + at, sizeof(p->text) - at, "; %u log files set aside as *.damaged",
                       p->files_set_aside);
    }
}

int recovery_replay(struct recovery *r, wal_replay_fn replay, void *context, struct errmsg *msg)
{
    struct replay_walk k = {.r = r};
    int rc = walk_init(&k.log, r->chain, r->config->epoch);
    rc = rc ? err_set(msg, rc, "%s", err_text(rc)) : 0;
    rc = rc ? rc : walk_records(&k, replay, context, msg);
    if (rc == 0) {
        log_pos stranded_end = r->end;
        note_short(r);
        rc = extend(r);
        rc = rc ? rc : keep_stranded(&k, &stranded_end);
        if (rc == 0 && r->config->durability == DURABILITY_SYNC) {
            rc = rewrite_headers(r);
            rc = rc ? rc : rewrite_records(&k);
        }
        rc = rc ? rc : cut(r, stranded_end);
        if (rc) {
            (void)err_set(msg, rc, "cannot cut the log at its end: %s", err_text(rc));
        }
    }
    walk_finish(&k.log);
    if (rc == 0) {
        describe(r);
    }
    return rc;
}
