/* A disk in memory behind struct sys (log/sys.h), which loses, tears and reorders what was not
 * synced, and fails any single call. Contents are tracked by sectors of 512 bytes, names by
 * directory.
 *
 * What it promises: bytes and size of a file are durable after fdatasync, its name after sync_dir.
 * What a crash may do with the rest: keep each sector as it was after any of its writes, tear one
 * in the middle, keep any size that the file had, keep any prefix of a directory's changes. A
 * failed sync leaves pages that look clean: readable, and lost at the crash unless they are written
 * again.
 *
 * Any thread; one mutex. Deterministic for one seed and one order of calls. The catalog is not
 * here: LMDB writes real files, and what it has committed counts as durable. Running out of memory
 * aborts. */
#ifndef ARBE_TESTS_SIM_FAKEDISK_H
#define ARBE_TESTS_SIM_FAKEDISK_H

#include "log/sys.h"

struct fakedisk;

enum fakedisk_call {
    CALL_OPEN,
    CALL_CREATE, /* open with create */
    CALL_PWRITEV,
    CALL_PREAD,
    CALL_FDATASYNC,
    CALL_ALLOCATE,
    CALL_TRUNCATE,
    CALL_SIZE,
    CALL_RENAME,
    CALL_UNLINK,
    CALL_MKDIR,
    CALL_SYNC_DIR,
    CALL_LIST_DIR,
    CALL_LOCK,
    CALL_COMMIT, /* catalog_commit */
    CALL_KINDS,
    CALL_CHANGES = CALL_KINDS, /* counted besides: every call that may change something durable */
    CALL_ANY,                  /* every call of all */
    CALL_COUNTERS
};

/* An empty disk with the directory "/" alone. */
struct fakedisk *fakedisk_create(uint64_t seed);

/* Frees everything; descriptors that are still open are no fault. */
void fakedisk_destroy(struct fakedisk *d);

/* The disk's functions; lives as long as the disk. */
struct sys *fakedisk_sys(struct fakedisk *d);

/* Makes the directory and those above it, durably. */
void fakedisk_add_dir(struct fakedisk *d, const char *path);

/* How often calls of the kind were made since the disk was created. */
uint64_t fakedisk_calls(const struct fakedisk *d, enum fakedisk_call kind);

/* Lets call number `index` of the kind, counted from now on, fail with `code`, or it and every
 * later one. A failed write may have written a part, a failed sync may have synced a part. Replaces
 * an earlier fault; code 0 takes it away. */
void fakedisk_fail(struct fakedisk *d, enum fakedisk_call kind, uint64_t index, int code,
                   bool for_ever);

/* Whether the fault came to pass. */
bool fakedisk_fault_hit(const struct fakedisk *d);

/* Crashes in call number `index` of CALL_CHANGES, counted from now on: it may or may not have had
 * its effect. UINT64_MAX: not at all. */
void fakedisk_crash_at(struct fakedisk *d, uint64_t index);

/* Power is lost now: decides what is left, by `seed`; until fakedisk_restart every call fails. */
void fakedisk_crash(struct fakedisk *d, uint64_t seed);

bool fakedisk_crashed(const struct fakedisk *d);

/* The disk works again, with what survived, no descriptor open, no lock held, no fault planned.
 * Also without a crash: then the process was merely killed and everything written is there. */
void fakedisk_restart(struct fakedisk *d);

/* Most bytes that files may occupy; ERR_NOSPC beyond. May be changed at any time. */
void fakedisk_set_capacity(struct fakedisk *d, uint64_t bytes);

/* Bytes that files occupy. */
uint64_t fakedisk_used(struct fakedisk *d);

/* Called before each call, without the lock: a place to stall, or to take note. */
typedef void (*fakedisk_hook_fn)(void *context, enum fakedisk_call kind, const char *path);
void fakedisk_set_hook(struct fakedisk *d, fakedisk_hook_fn hook, void *context);

/* Called when the disk's own code begins and ends in each call: it allocates, and cannot do
 * without. */
void fakedisk_set_guard(struct fakedisk *d, void (*guard)(bool inside));

/* The two clocks. They begin at 2026-01-01 and 0, and move only here. */
void fakedisk_advance(struct fakedisk *d, uint64_t ms);
void fakedisk_set_now(struct fakedisk *d, int64_t now_ms);

/* For tests that look at files or damage them, past all faults, durably: false when it is not
 * there. */
bool fakedisk_file_size(struct fakedisk *d, const char *path, uint64_t *ret_bytes);
bool fakedisk_peek(struct fakedisk *d, const char *path, uint64_t at, void *out, size_t len);
bool fakedisk_poke(struct fakedisk *d, const char *path, uint64_t at, const void *bytes,
                   size_t len);
bool fakedisk_cut(struct fakedisk *d, const char *path, uint64_t size_bytes);
bool fakedisk_remove(struct fakedisk *d, const char *path);

/* Writes a copy of all durable files to `to`, an empty disk. After a crash or a clean close. */
void fakedisk_copy(struct fakedisk *d, struct fakedisk *to);

/* Deterministic randomness for tests: the next number of the sequence, and one below `limit`. */
uint64_t fakedisk_next(uint64_t *state);
uint64_t fakedisk_below(uint64_t *state, uint64_t limit);

#endif
