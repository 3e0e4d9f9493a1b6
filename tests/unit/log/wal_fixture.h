/* What the tests of the log share: a log on a fake disk, records that are told by their number, and
 * the numbers that the last opening replayed. Includes wal.c, whose insides some tests look at. */
#ifndef ARBE_TESTS_UNIT_LOG_WAL_FIXTURE_H
#define ARBE_TESTS_UNIT_LOG_WAL_FIXTURE_H

#include "log/wal.c"

#include <stdio.h>

#include "base/bytes.h"
#include "base/err.h"
#include "sim/fakedisk.h"
#include "unit/base/unit.h"

#define SEGMENT_BYTES_SMALL 16384u /* 12 KiB of log in each */
#define DIR_PATH            "/data/wal"
#define SEEN_MAX            4096u

/* A log on a fake disk with the numbers of the records that the last opening replayed. */
struct fixture {
    struct fakedisk *disk;
    struct wal *wal;
    struct wal_report report;
    struct errmsg msg;
    log_pos start;          /* where recovery begins */
    log_pos ends[SEEN_MAX]; /* of the records replayed last */
    uint64_t seen[SEEN_MAX];
    size_t seen_count;
    uint64_t next;   /* number of the next record to stage */
    uint64_t acked;  /* every record below was durable while the log worked */
    size_t capacity; /* staged_bytes_max */
    uint64_t segment_bytes;
    uint32_t epoch;
    bool made; /* an opening succeeded */
    bool threads;
    unsigned notices;
    enum durability durability;
};

#define EVEN_FROM 1000000u /* records from this number on take 96 bytes, 128 of them a segment */

/* Records differ in size and are told by their offset; a few are larger than a segment. */
static inline size_t body_bytes(uint64_t number)
{
    if (number >= EVEN_FROM) {
        return 34;
    }
    return number % 50 == 49 ? 30000 : number % 7 == 3 ? 3000 : 1 + (size_t)(number * 37 % 500);
}

static inline void fill_body(uint64_t number, char *out, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        out[i] = (char)(number * 31 + i * 7);
    }
}

static inline int on_record(void *context, const struct record *r, log_pos end)
{
    struct fixture *f = context;
    uint64_t number = r->append.offset;
    assert_int_equal(r->type, RECORD_APPEND);
    assert_int_equal(r->append.body.len, body_bytes(number));
    char *wanted = malloc(r->append.body.len);
    fill_body(number, wanted, r->append.body.len);
    assert_memory_equal(r->append.body.ptr, wanted, r->append.body.len);
    free(wanted);
    assert_true(f->seen_count < SEEN_MAX);
    f->ends[f->seen_count] = end;
    f->seen[f->seen_count++] = number;
    return 0;
}

static inline void on_notice_count(void *context)
{
    struct fixture *f = context;
    __atomic_fetch_add(&f->notices, 1, __ATOMIC_RELAXED);
}

static inline int open_log(struct fixture *f)
{
    struct wal_config config = {.sys = fakedisk_sys(f->disk),
                                .dir = DIR_PATH,
                                .uuid = "0123456789abcde",
                                .segment_bytes = f->segment_bytes,
                                .staged_bytes_max = f->capacity,
                                .durability = f->durability,
                                .start = f->start,
                                .epoch = ++f->epoch,
                                .fresh = !f->made,
                                .threads = f->threads,
                                .notice = on_notice_count,
                                .notice_context = f};
    f->seen_count = 0;
    f->wal = NULL;
    int rc = wal_open(&config, on_record, f, &f->report, &f->wal, &f->msg);
    f->made = f->made || rc == 0;
    return rc;
}

static inline void fixture_init(struct fixture *f, uint64_t seed)
{
    *f = (struct fixture){
        .capacity = MIB, .segment_bytes = SEGMENT_BYTES_SMALL, .durability = DURABILITY_SYNC};
    f->disk = fakedisk_create(seed);
    fakedisk_add_dir(f->disk, DIR_PATH);
}

static inline void fixture_finish(struct fixture *f)
{
    wal_close(f->wal);
    fakedisk_destroy(f->disk);
}

/* Closes as a killed process does: nothing is committed any more. */
static inline void kill_log(struct fixture *f)
{
    if (f->wal) {
        wal_free(f->wal);
        f->wal = NULL;
    }
    fakedisk_restart(f->disk);
}

static inline int stage_once(struct fixture *f, uint64_t number)
{
    size_t len = body_bytes(number);
    struct block *block = block_try_create(len);
    assert_non_null(block);
    fill_body(number, block->data, len);
    char mark[VARINT_BYTES_MAX];
    size_t mark_len = bytes_put_varint(mark, len << 1 | 1);
    struct record r = {
        .type = RECORD_APPEND,
        .id = 7,
        .append = {.offset = number, .marks = {mark, mark_len}, .body = {block->data, len}}};
    log_pos end = 0;
    int rc = wal_stage(f->wal, &r, block, &end);
    block_unref(block);
    return rc;
}

/* Stages the next record, making room when that is all it takes. */
static inline int stage_next(struct fixture *f)
{
    int rc = ERR_AGAIN;
    for (int i = 0; i < 3 && rc == ERR_AGAIN; i++) {
        rc = stage_once(f, f->next);
        if (rc == ERR_AGAIN) {
            (void)!wal_commit_now(f->wal);
        }
    }
    f->next += rc == 0;
    return rc;
}

static inline int commit(struct fixture *f)
{
    int rc = wal_commit_now(f->wal);
    if (rc == 0) {
        f->acked = f->next;
    }
    return rc;
}

/* Stages and commits `count` records, `batch` at a time. */
static inline void write_records(struct fixture *f, unsigned count, unsigned batch)
{
    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(stage_next(f), 0);
        if (i % batch == batch - 1 || i == count - 1) {
            assert_int_equal(commit(f), 0);
        }
    }
}

/* Whether the last opening replayed `from` and on without a gap, up to at least what was
 * acknowledged. */
static inline void assert_seen(const struct fixture *f, uint64_t from)
{
    for (size_t i = 0; i < f->seen_count; i++) {
        assert_int_equal(f->seen[i], from + i);
    }
    assert_true(from + f->seen_count >= f->acked);
    assert_true(from + f->seen_count <= f->next);
}

/* Reopens after a kill or a crash and goes on where recovery ended. */
static inline void reopen(struct fixture *f, uint64_t from)
{
    int rc = open_log(f);
    if (rc) {
        fail_msg("%s: %s", err_name(rc), f->msg.text);
    }
    assert_seen(f, from);
    f->next = from + f->seen_count;
    f->acked = f->next;
}

/* Path of the segment that holds `pos`, and where in the file that is. */
static inline uint64_t locate(struct fixture *f, log_pos pos, char *path)
{
    struct segment *s = chain_find(&f->wal->chain, pos);
    assert_non_null(s);
    char name[SEGMENT_PATH_MAX];
    segment_format_name(s->name, name);
    (void)snprintf(path, 2 * SEGMENT_PATH_MAX, "%s/%s", DIR_PATH, name);
    return segment_offset(s, pos);
}

static inline int count_name(void *context, const char *name)
{
    unsigned *count = context;
    *count += strstr(name, "wal-") == name;
    return 0;
}

static inline unsigned count_files(struct fixture *f)
{
    unsigned count = 0;
    struct sys *sys = fakedisk_sys(f->disk);
    assert_int_equal(sys->list_dir(sys->context, DIR_PATH, count_name, &count), 0);
    return count;
}

#endif
