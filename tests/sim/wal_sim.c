/* The write-ahead log on a disk that fails and crashes at every single call. A model keeps what was
 * staged and what was acknowledged; after each mishap the log is opened again and must hold every
 * acknowledged record, then perhaps a few that were under way, in order, and nothing else. */
#include "log/wal.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/limits.h"
#include "log/marks.h"
#include "log/segment.h"
#include "sim/fakedisk.h"
#include "unit/base/unit.h"

#define DIR           "/log"
#define SEGMENT_BYTES (4u * SEGMENT_HEADER_BYTES)
#define ENTRIES_MAX   1024u
#define STAGED_MAX    (512u * KIB)

struct entry {
    uint64_t number; /* never the same twice */
    size_t body_len;
    log_pos end;
    bool acked;
};

struct model {
    struct fakedisk *disk;
    struct wal *wal;
    struct entry entries[ENTRIES_MAX];
    size_t count;       /* of entries */
    size_t covered;     /* entries that a checkpoint covers */
    size_t seen;        /* by the replay that runs */
    size_t lost;        /* entries behind `count` that the last opening did not find */
    log_pos checkpoint; /* where recovery begins */
    uint32_t epoch;
    uint64_t next_number;
    uint64_t random;
    bool opened; /* once: the log is not fresh any more */
    struct wal_report report;
    struct errmsg msg; /* of the last opening */
};

static struct model *model_create(uint64_t seed)
{
    struct model *m = calloc(1, sizeof(*m));
    assert_non_null(m);
    m->disk = fakedisk_create(seed);
    m->random = seed;
    fakedisk_add_dir(m->disk, DIR);
    return m;
}

static void model_destroy(struct model *m)
{
    wal_close(m->wal);
    fakedisk_destroy(m->disk);
    free(m);
}

static char body_byte(uint64_t number, size_t at)
{
    return (char)((number * 131 + at * 7 + (at >> 8)) & 0xff);
}

static int check_replayed(void *context, const struct record *r, log_pos end)
{
    struct model *m = context;
    size_t i = m->covered + m->seen++;
    assert_true(i < m->count);
    const struct entry *e = &m->entries[i];
    assert_int_equal(r->type, RECORD_APPEND);
    assert_int_equal(r->append.now_ms, e->number);
    assert_int_equal(r->append.body.len, e->body_len);
    assert_int_equal(end, e->end);
    for (size_t at = 0; at < e->body_len; at++) {
        assert_int_equal(r->append.body.ptr[at], body_byte(e->number, at));
    }
    return 0;
}

/* Opens the log and compares; what the log holds now counts as acknowledged, the rest is gone. */
static int reopen(struct model *m)
{
    struct wal_config config = {.sys = fakedisk_sys(m->disk),
                                .dir = DIR,
                                .uuid = "0123456789abcde",
                                .segment_bytes = SEGMENT_BYTES,
                                .staged_bytes_max = STAGED_MAX,
                                .durability = DURABILITY_SYNC,
                                .start = m->checkpoint,
                                .epoch = ++m->epoch,
                                .fresh = !m->opened};
    struct errmsg msg = {""};
    m->seen = 0;
    int rc = wal_open(&config, check_replayed, m, &m->report, &m->wal, &msg);
    m->msg = msg;
    if (rc) {
        assert_true(msg.text[0] != '\0');
        m->wal = NULL;
        return rc;
    }
    m->opened = true;
    assert_int_equal(m->report.records, m->seen);
    for (size_t i = m->covered; i < m->count; i++) {
        if (i < m->covered + m->seen) {
            m->entries[i].acked = true;
        } else if (m->entries[i].acked) {
            fail_msg("acknowledged record %zu of %zu was lost (%zu covered, %zu read)", i, m->count,
                     m->covered, m->seen);
        }
    }
    m->lost = m->count - m->covered - m->seen;
    m->count = m->covered + m->seen;
    return 0;
}

static void reopen_good(struct model *m)
{
    int rc = reopen(m);
    if (rc) {
        fail_msg("the log does not open: %s: %s", err_name(rc), m->msg.text);
    }
}

/* Stages one record; 0 or the error, which leaves nothing in the model. Right after an opening a
 * lost record may come once more, as clients send it: the very same bytes in the very same
 * place. */
static int stage(struct model *m, size_t body_len)
{
    assert_true(m->count < ENTRIES_MAX);
    struct entry *e = &m->entries[m->count];
    bool again = m->lost > 0 && fakedisk_below(&m->random, 4) != 0;
    m->lost = again ? m->lost - 1 : 0;
    if (again) {
        body_len = e->body_len;
        *e = (struct entry){.number = e->number, .body_len = body_len};
    } else {
        *e = (struct entry){.number = ++m->next_number, .body_len = body_len};
    }
    struct block *block = block_try_create(body_len + 1);
    assert_non_null(block);
    for (size_t i = 0; i < body_len; i++) {
        block->data[i] = body_byte(e->number, i);
    }
    uint8_t marks[VARINT_BYTES_MAX];
    size_t marks_len = body_len > 0 ? marks_put(marks, body_len, true) : 0;
    struct record r = {.type = RECORD_APPEND,
                       .id = 7,
                       .append = {.now_ms = (int64_t)e->number,
                                  .close = body_len == 0,
                                  .marks = {(char *)marks, marks_len},
                                  .body = {block->data, body_len}}};
    int rc = wal_stage(m->wal, &r, block, &e->end);
    block_unref(block);
    if (rc == 0) {
        m->count++;
    } else {
        m->lost += again;
    }
    return rc;
}

static int commit(struct model *m)
{
    int rc = wal_commit_now(m->wal);
    for (size_t i = 0; i < m->count; i++) {
        if (m->entries[i].end <= wal_durable(m->wal)) {
            m->entries[i].acked = true;
        } else {
            assert_int_not_equal(rc, 0); /* a good commit leaves nothing behind */
        }
    }
    assert_true(rc == 0 || (rc == ERR_FAILED && wal_failed(m->wal)));
    return rc;
}

/* A checkpoint that covers a random part of what is acknowledged. */
static void release(struct model *m)
{
    size_t acked = 0;
    while (acked < m->count && m->entries[acked].acked) {
        acked++;
    }
    if (acked > m->covered) {
        m->covered += fakedisk_below(&m->random, acked - m->covered + 1);
    }
    if (m->covered > 0) {
        m->checkpoint = m->entries[m->covered - 1].end;
        wal_release(m->wal, m->checkpoint);
    }
}

static size_t random_len(struct model *m)
{
    switch (fakedisk_below(&m->random, 6)) {
    case 0:
        return 0;
    case 1:
        return 1 + fakedisk_below(&m->random, 9000);
    case 2:
        return fakedisk_below(&m->random, 40) == 0 ? 40000 : 17000;
    default:
        return 1 + fakedisk_below(&m->random, 200);
    }
}

/* Stages, making room when asked to. True unless the log has failed. */
static bool stage_some(struct model *m)
{
    size_t len = random_len(m);
    for (unsigned try = 0; try < 8; try++) {
        int rc = stage(m, len);
        if (rc == 0) {
            return true;
        }
        if (rc == ERR_FAILED) {
            assert_true(wal_failed(m->wal));
            return false;
        }
        assert_true(rc == ERR_AGAIN || rc == ERR_NOSPC || rc == ERR_NOMEM);
        if (commit(m)) {
            return false;
        }
    }
    return true; /* refused: the disk stays full */
}

/* The scripted run: stage, commit, roll over, release, recycle. Ends early when the log fails. */
static void run_script(struct model *m, unsigned steps)
{
    for (unsigned i = 0; i < steps; i++) {
        unsigned batch = 1 + (unsigned)fakedisk_below(&m->random, 3);
        for (unsigned k = 0; k < batch; k++) {
            if (!stage_some(m)) {
                return;
            }
        }
        if (fakedisk_below(&m->random, 4) != 0 && commit(m)) {
            return;
        }
        if (fakedisk_below(&m->random, 5) == 0) {
            release(m);
        }
    }
}

/* How a run ends before the log is opened again. */
enum ending {
    END_CLOSE, /* an orderly end, if the log still works */
    END_KILL,  /* the process is gone, the kernel writes the rest */
    END_CRASH, /* power loss */
    ENDINGS
};

static void end_run(struct model *m, enum ending ending, uint64_t seed)
{
    if (ending == END_CLOSE && m->wal && !wal_failed(m->wal)) {
        (void)commit(m);
    }
    if (ending == END_CRASH) {
        fakedisk_crash(m->disk, seed);
    }
    if (ending != END_CLOSE) {
        /* The model has seen what was acknowledged; closing may write more only to a dead disk. */
        fakedisk_fail(m->disk, CALL_ANY, 0, ERR_IO, true);
    }
    wal_close(m->wal);
    m->wal = NULL;
    fakedisk_restart(m->disk);
}

/* One run with the fault in place. True when the fault never came up: the loop is through. */
static bool run_with_fault(uint64_t seed, enum fakedisk_call kind, uint64_t index, int code,
                           bool for_ever, enum ending ending)
{
    struct model *m = model_create(seed);
    fakedisk_fail(m->disk, kind, index, code, for_ever);
    if (reopen(m) == 0) {
        run_script(m, 25);
    }
    bool hit = fakedisk_fault_hit(m->disk);
    end_run(m, ending, index);
    reopen_good(m);
    run_script(m, 5);
    assert_false(wal_failed(m->wal));
    end_run(m, (enum ending)(index % ENDINGS), index);
    reopen_good(m);
    model_destroy(m);
    return !hit;
}

static void loop_over_calls(enum fakedisk_call kind, int code)
{
    for (unsigned for_ever = 0; for_ever < 2; for_ever++) {
        for (unsigned ending = 0; ending < ENDINGS; ending++) {
            uint64_t i = 0;
            while (!run_with_fault(11 + i % 3, kind, i, code, for_ever, (enum ending)ending)) {
                i++;
            }
            assert_true(i > 0);
        }
    }
}

/* Whichever write fails, once or for ever: nothing acknowledged is lost, nothing refused is
 * there. */
static void failing_writes(void **state)
{
    (void)state;
    loop_over_calls(CALL_PWRITEV, ERR_IO);
    loop_over_calls(CALL_PWRITEV, ERR_NOSPC);
}

/* Whichever sync fails. */
static void failing_syncs(void **state)
{
    (void)state;
    loop_over_calls(CALL_FDATASYNC, ERR_IO);
    loop_over_calls(CALL_SYNC_DIR, ERR_IO);
}

/* Whichever call that makes or moves a file fails. */
static void failing_files(void **state)
{
    (void)state;
    loop_over_calls(CALL_CREATE, ERR_IO);
    loop_over_calls(CALL_CREATE, ERR_NOSPC);
    loop_over_calls(CALL_ALLOCATE, ERR_NOSPC);
    loop_over_calls(CALL_ALLOCATE, ERR_IO);
    loop_over_calls(CALL_RENAME, ERR_IO);
}

/* Power is lost in every call that changes the disk; then in every call of the recovery. */
static void crashes_everywhere(void **state)
{
    (void)state;
    for (uint64_t i = 0;; i++) {
        struct model *m = model_create(i);
        fakedisk_crash_at(m->disk, i);
        if (reopen(m) == 0) {
            run_script(m, 25);
        }
        bool through = !fakedisk_crashed(m->disk);
        end_run(m, END_KILL, 0);
        for (uint64_t k = 0;; k++) {
            fakedisk_crash_at(m->disk, k);
            int rc = reopen(m);
            bool crashed = fakedisk_crashed(m->disk);
            assert_true(rc == 0 || crashed);
            if (!crashed) {
                break;
            }
            end_run(m, END_KILL, 0);
        }
        run_script(m, 3);
        end_run(m, END_CRASH, i);
        reopen_good(m);
        model_destroy(m);
        if (through) {
            break;
        }
    }
}

/* Many crashes one after the other, by random seeds, each from what the last one left. */
static void crashes_in_a_row(void **state)
{
    (void)state;
    const char *text = getenv("SIM_SEEDS");
    uint64_t seeds = text ? strtoull(text, NULL, 10) : 300;
    for (uint64_t seed = 0; seed < seeds; seed++) {
        struct model *m = model_create(seed * 7919);
        for (unsigned round = 0; round < 6; round++) {
            if (fakedisk_below(&m->random, 3) == 0) {
                fakedisk_crash_at(m->disk, fakedisk_below(&m->random, 12));
            }
            if (reopen(m) == 0) {
                fakedisk_crash_at(m->disk, fakedisk_below(&m->random, 120));
                run_script(m, 20);
            } else {
                assert_true(fakedisk_crashed(m->disk));
            }
            end_run(m, (enum ending)fakedisk_below(&m->random, ENDINGS), seed + round);
        }
        reopen_good(m);
        model_destroy(m);
    }
}

/* Records of a fixed small size, committed one by one; the log is closed then. */
static struct model *make_small_log(size_t count, size_t body_len)
{
    struct model *m = model_create(5);
    reopen_good(m);
    for (size_t i = 0; i < count; i++) {
        int rc = stage(m, body_len);
        if (rc == ERR_AGAIN) {
            assert_int_equal(commit(m), 0);
            rc = stage(m, body_len);
        }
        assert_int_equal(rc, 0);
        assert_int_equal(commit(m), 0);
    }
    end_run(m, END_CLOSE, 0);
    return m;
}

static void first_segment(char out[static SEGMENT_PATH_MAX + 16])
{
    char name[SEGMENT_PATH_MAX];
    segment_format_name(0, name);
    (void)snprintf(out, SEGMENT_PATH_MAX + 16, DIR "/%s", name);
}

/* A copy of the model on a copy of its disk. */
static struct model *copy_model(const struct model *m)
{
    struct model *copy = calloc(1, sizeof(*copy));
    assert_non_null(copy);
    *copy = *m;
    copy->wal = NULL;
    copy->disk = fakedisk_create(3);
    fakedisk_copy(m->disk, copy->disk);
    return copy;
}

enum harm {
    HARM_CUT,
    HARM_ZERO,
    HARM_FLIP,
    HARMS
};

static void do_harm(struct model *m, enum harm harm, const char *path, uint64_t at)
{
    uint8_t byte = 0;
    uint64_t size = 0;
    static const char zeros[SEGMENT_BYTES];
    assert_true(fakedisk_file_size(m->disk, path, &size));
    switch (harm) {
    case HARM_CUT:
        assert_true(fakedisk_cut(m->disk, path, at));
        break;
    case HARM_ZERO:
        assert_true(fakedisk_poke(m->disk, path, at, zeros, (size_t)(size - at)));
        break;
    default:
        assert_true(fakedisk_peek(m->disk, path, at, &byte, 1));
        byte ^= 0x41;
        assert_true(fakedisk_poke(m->disk, path, at, &byte, 1));
        break;
    }
}

/* After harm at log position `at`, exactly the records that end before it are read; the place is
 * used again by a record of the same length, and those behind it stay dead. */
static void check_harmed(const struct model *whole, enum harm harm, uint64_t at)
{
    struct model *m = copy_model(whole);
    char path[SEGMENT_PATH_MAX + 16];
    first_segment(path);
    do_harm(m, harm, path, SEGMENT_HEADER_BYTES + at);
    size_t good = 0;
    while (good < m->count && m->entries[good].end <= at) {
        good++;
    }
    for (size_t i = good; i < m->count; i++) {
        m->entries[i].acked = false; /* the disk broke its promise */
    }
    reopen_good(m);
    /* Padding is not proven by anything, so harm there is not found, and does no harm. */
    size_t padding = RECORD_ALIGN - 1;
    assert_true(m->count == good || (m->count > good && at + padding >= m->entries[good].end) ||
                m->count > good + 1);
    if (m->count > good) {
        assert_true(at + padding >= m->entries[good].end);
    }
    size_t before = m->count;
    assert_int_equal(stage(m, 60), 0);
    assert_int_equal(commit(m), 0);
    end_run(m, END_CRASH, at);
    reopen_good(m);
    assert_int_equal(m->count, before + 1);
    end_run(m, END_CLOSE, 0);
    reopen_good(m);
    assert_int_equal(m->count, before + 1);
    model_destroy(m);
}

/* The tail torn, zeroed, or changed in one byte, at every byte position. */
static void damaged_at_every_byte(void **state)
{
    (void)state;
    struct model *m = make_small_log(5, 60);
    log_pos end = m->entries[m->count - 1].end;
    for (unsigned harm = 0; harm < HARMS; harm++) {
        for (uint64_t at = 0; at < end; at++) {
            check_harmed(m, (enum harm)harm, at);
        }
    }
    model_destroy(m);
}

/* A header page that does not prove itself: the log is refused, nothing is lost or made anew. */
static void garbled_first_header(void **state)
{
    (void)state;
    struct model *whole = make_small_log(3, 60);
    char path[SEGMENT_PATH_MAX + 16];
    first_segment(path);
    for (uint64_t at = 0; at < 56; at++) {
        struct model *m = copy_model(whole);
        do_harm(m, HARM_FLIP, path, at);
        assert_int_equal(reopen(m), ERR_MISMATCH);
        model_destroy(m);
    }
    for (unsigned harm = 0; harm < HARM_FLIP; harm++) {
        struct model *m = copy_model(whole);
        do_harm(m, (enum harm)harm, path, 0);
        assert_int_equal(reopen(m), ERR_MISMATCH);
        model_destroy(m);
    }
    model_destroy(whole);
}

static int count_entry(void *context, const char *name)
{
    (void)name;
    ++*(unsigned *)context;
    return 0;
}

static unsigned count_files(struct model *m)
{
    struct sys *sys = fakedisk_sys(m->disk);
    unsigned count = 0;
    assert_int_equal(sys->list_dir(sys->context, DIR, count_entry, &count), 0);
    return count;
}

/* A segment that is missing or garbled in the middle ends the log there; what lies behind is set
 * aside, not deleted, and the log goes on. The first one missing is refused. */
static void missing_segments(void **state)
{
    (void)state;
    struct model *whole = make_small_log(40, 1000);
    uint64_t room = SEGMENT_BYTES - SEGMENT_HEADER_BYTES;
    for (uint64_t k = 0; k * room < whole->entries[whole->count - 1].end; k++) {
        for (unsigned garbled = 0; garbled < 2; garbled++) {
            struct model *m = copy_model(whole);
            char name[SEGMENT_PATH_MAX];
            char path[SEGMENT_PATH_MAX + 16];
            segment_format_name(k * room, name);
            (void)snprintf(path, sizeof(path), DIR "/%s", name);
            unsigned files = count_files(m);
            if (garbled) {
                do_harm(m, HARM_FLIP, path, 33);
            } else {
                assert_true(fakedisk_remove(m->disk, path));
            }
            for (size_t i = 0; i < m->count; i++) {
                m->entries[i].acked = m->entries[i].end <= k * room;
            }
            if (k == 0) {
                assert_int_equal(reopen(m), ERR_MISMATCH);
            } else {
                reopen_good(m);
                assert_true(m->report.files_set_aside > 0);
                assert_int_equal(count_files(m), garbled ? files : files - 1);
                run_script(m, 5);
                end_run(m, END_CRASH, k);
                reopen_good(m);
            }
            model_destroy(m);
        }
    }
    model_destroy(whole);
}

/* Recovery a second time finds the same and changes nothing. */
static void recovers_twice(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct model *m = model_create(seed);
        reopen_good(m);
        run_script(m, 20);
        end_run(m, END_CRASH, seed);
        reopen_good(m);
        size_t count = m->count;
        uint64_t records = m->report.records;
        end_run(m, END_CRASH, seed + 1);
        reopen_good(m);
        assert_int_equal(m->count, count);
        assert_int_equal(m->report.records, records);
        assert_int_equal(m->report.torn_bytes, 0);
        model_destroy(m);
    }
}

/* A full disk refuses and stores nothing; space that comes back is found; the log never fails of
 * it. */
static void full_disk(void **state)
{
    (void)state;
    for (uint64_t pages = 4; pages < 40; pages++) {
        struct model *m = model_create(pages);
        fakedisk_set_capacity(m->disk, pages * SEGMENT_HEADER_BYTES);
        reopen_good(m);
        unsigned refused = 0;
        for (unsigned i = 0; i < 400 && refused < 5; i++) {
            int rc = stage(m, 3000);
            assert_true(rc == 0 || rc == ERR_AGAIN || rc == ERR_NOSPC);
            refused += rc == ERR_NOSPC;
            assert_int_equal(commit(m), 0);
        }
        assert_int_equal(refused, 5);
        size_t count = m->count;
        fakedisk_set_capacity(m->disk, UINT64_MAX);
        int rc = ERR_NOSPC;
        for (unsigned i = 0; i < 3 && rc; i++) {
            rc = stage(m, 3000);
            assert_int_equal(commit(m), 0);
        }
        assert_int_equal(rc, 0);
        end_run(m, END_CRASH, pages);
        reopen_good(m);
        assert_int_equal(m->count, count + 1);
        model_destroy(m);
    }
}

/* A log with a past opens on a full disk, for reading at least. */
static void opens_on_a_full_disk(void **state)
{
    (void)state;
    struct model *m = make_small_log(20, 1000);
    fakedisk_set_capacity(m->disk, fakedisk_used(m->disk));
    reopen_good(m);
    assert_int_equal(m->count, 20);
    model_destroy(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failing_writes),       cmocka_unit_test(failing_syncs),
        cmocka_unit_test(failing_files),        cmocka_unit_test(crashes_everywhere),
        cmocka_unit_test(crashes_in_a_row),     cmocka_unit_test(damaged_at_every_byte),
        cmocka_unit_test(garbled_first_header), cmocka_unit_test(missing_segments),
        cmocka_unit_test(recovers_twice),       cmocka_unit_test(full_disk),
        cmocka_unit_test(opens_on_a_full_disk),
    };
    return UNIT_RUN(tests);
}
