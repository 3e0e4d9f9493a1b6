/* DIR/keys (0700) holds keys.pem (0600, see keys_file.c), for a moment keys.pem.new, and `lock`,
 * held by whoever replaces the file: the server at its first start or when it erases a key, the
 * command that rotates.
 *
 * A rotation, by wall clock:
 *
 *     0            60 s                    360 s                        750 s
 *     |-- NOTICE --|------- CACHE ---------|-------- RETIRE ------------|
 *     new key in   every server publishes  the new key signs,           the old key is published
 *     the file     it by now               the old one no more          no more, and erased
 *
 * CACHE: a receiver may use the JWKS that it has for 300 s (our own Cache-Control), so a key is
 * published that long before it signs. RETIRE: the last request that the old key signed is under
 * way for 30 s at most and accepted for 300 s (PROTOCOL.md 7.1); 60 s are for clocks that differ.
 * Retries need no more: each is signed anew, with the key and the time of its own sending.
 *
 * A wall clock may jump. So a running server counts both spans with the monotonic clock too, and
 * takes the later end. Rotations that follow one another as closely as they may leave 4 keys. */
#include "serve/keys.h"
#include "serve/keys_file.h"

#include "base/date.h"
#include "base/limits.h"

#include <openssl/crypto.h>

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define NOTICE_MS      60000
#define CACHE_MS       300000
#define RETIRE_MS      (WEBHOOK_TIMEOUT_MS + 300000 + 60000)
#define ERASE_RETRY_MS 3600000u /* a disk that refuses to have a key erased is asked again */
#define PATH_BYTES_MAX 1200u

struct paths {
    char data[PATH_BYTES_MAX];
    char dir[PATH_BYTES_MAX];
    char file[PATH_BYTES_MAX];
    char fresh[PATH_BYTES_MAX];
    char lock[PATH_BYTES_MAX];
};

struct keys {
    struct sys *sys;
    struct paths paths;
    pthread_mutex_t mutex; /* guards what follows */
    struct keys_set set;
    uint64_t signs_mono[KEYS_MAX];   /* not earlier, for keys that came while running; 0 */
    uint64_t retired_mono[KEYS_MAX]; /* not earlier, for keys that signed while running; 0 */
    unsigned active;                 /* signs at present */
    uint64_t erase_mono;             /* not earlier; 0 */
    int told;                        /* the error of the last refresh, told already; 0 */
};

static int paths_init(struct paths *p, const char *dir, struct errmsg *msg)
{
    if (strlen(dir) + 32 > PATH_BYTES_MAX) {
        return err_set(msg, ERR_INVALID, "the path of the data directory is too long");
    }
    (void)snprintf(p->data, sizeof(p->data), "%s", dir); /* these fit, as was checked */
    (void)snprintf(p->dir, sizeof(p->dir), "%s/keys", dir);
    (void)snprintf(p->file, sizeof(p->file), "%s/keys/keys.pem", dir);
    (void)snprintf(p->fresh, sizeof(p->fresh), "%s/keys/keys.pem.new", dir);
    (void)snprintf(p->lock, sizeof(p->lock), "%s/keys/lock", dir);
    return 0;
}

static int say(struct errmsg *msg, int code, const char *what, const char *path)
{
    return err_set(msg, code, "cannot %s %.180s: %s", what, path, err_file_text(code));
}

/* Reads the set out of an open file. ERR_CORRUPT with what is wrong in `why`, ERR_NOMEM, or what
 * the disk says. */
static int read_open(struct sys *sys, int fd, struct keys_set *set, struct errmsg *why)
{
    char text[KEYS_FILE_BYTES_MAX + 1];
    int64_t len = sys->pread(sys->context, fd, text, sizeof(text), 0);
    int rc = len < 0 ? (int)len : 0;

    if (len > (int64_t)KEYS_FILE_BYTES_MAX) {
        rc = err_set(why, ERR_CORRUPT, "it is longer than such files are");
    } else if (rc == 0) {
        rc = keys_set_decode((struct slice){text, (size_t)len}, set, why);
    }
    OPENSSL_cleanse(text, sizeof(text));
    return rc;
}

/* Reads the file into `set`. `sync`: what was read is durable from here on; a process that made the
 * file may have been killed before it was. */
static int read_set(struct sys *sys, const struct paths *p, bool sync, struct keys_set *set,
                    struct errmsg *msg)
{
    struct errmsg why = {{0}};
    int fd = sys->open(sys->context, p->file, false);

    if (fd < 0) {
        return say(msg, fd, "open", p->file);
    }
    int rc = read_open(sys, fd, set, &why);

    if (rc == 0 && sync) {
        rc = sys->fdatasync(sys->context, fd);
        rc = rc == 0 ? sys->sync_dir(sys->context, p->dir) : rc;
        rc = rc == 0 ? sys->sync_dir(sys->context, p->data) : rc;
    }
    sys->close(sys->context, fd);
    if (rc == ERR_CORRUPT && why.text[0] != '\0') {
        return err_set(msg, rc, "%.140s is damaged: %s", p->file, why.text);
    }
    return rc == 0 ? 0 : say(msg, rc, "read", p->file);
}

/* Writes the bytes to a new file beside the one that they are to replace. */
static int write_fresh(struct sys *sys, const struct paths *p, struct slice text)
{
    struct iovec iov = {(void *)(uintptr_t)text.ptr, text.len};
    int fd = sys->open(sys->context, p->fresh, true);

    if (fd == ERR_EXISTS) { /* a crash left it */
        int rc = sys->unlink(sys->context, p->fresh);

        fd = rc != 0 ? rc : sys->open(sys->context, p->fresh, true);
    }
    if (fd < 0) {
        return fd;
    }
    int rc = sys->pwritev(sys->context, fd, &iov, 1, 0);

    rc = rc == 0 ? sys->fdatasync(sys->context, fd) : rc;
    sys->close(sys->context, fd);
    return rc;
}

/* Replaces the file; the caller holds the lock. After an error the old one is there, or, when the
 * last sync of the directory failed, the new one, of which a power loss may bring the old back. */
static int write_set(struct sys *sys, const struct paths *p, const struct keys_set *set,
                     struct errmsg *msg)
{
    struct buf text;

    buf_init(&text, KEYS_FILE_BYTES_MAX);
    /* In one piece, so that no copy of the secrets stays behind where a buffer has grown. */
    int rc = buf_reserve(&text, KEYS_FILE_BYTES_MAX) == NULL ? ERR_NOMEM : 0;

    if (rc == 0) {
        keys_set_encode(set, &text);
        rc = text.failed ? ERR_NOMEM : 0;
    }
    if (rc == 0) {
        rc = write_fresh(sys, p, buf_slice(&text));
        rc = rc == 0 ? sys->rename(sys->context, p->fresh, p->file) : rc;
        if (rc != 0) {
            (void)sys->unlink(sys->context,
                              p->fresh); /* may not be there; the next one tries too */
        }
        rc = rc == 0 ? sys->sync_dir(sys->context, p->dir) : rc;
    }
    if (text.ptr != NULL) {
        OPENSSL_cleanse(text.ptr, text.cap);
    }
    buf_finish(&text);
    return rc == 0 ? 0 : say(msg, rc, "write", p->file);
}

/* Adds a pair that signs from `signs_ms`, out of the system's randomness. */
static int add_pair(struct sys *sys, struct keys_set *set, int64_t made_ms, int64_t signs_ms,
                    struct errmsg *msg)
{
    uint8_t seed[KEYS_SEED_BYTES];

    assert(set->count < KEYS_MAX);
    sys->random(sys->context, seed, sizeof(seed));
    int rc = keys_pair_init(&set->pairs[set->count], seed, made_ms, signs_ms);

    OPENSSL_cleanse(seed, sizeof(seed));
    if (rc != 0) {
        return err_set(msg, rc, "cannot make a signing key: %s", err_text(rc));
    }
    set->count++;
    return 0;
}

/* Makes the first secrets; the caller holds the lock. */
static int make_set(struct sys *sys, const struct paths *p, struct keys_set *set,
                    struct errmsg *msg)
{
    int64_t now = sys->now_ms(sys->context);

    *set = (struct keys_set){.count = 0};
    sys->random(sys->context, set->token, sizeof(set->token));
    int rc = add_pair(sys, set, now, now, msg);

    rc = rc == 0 ? write_set(sys, p, set, msg) : rc;
    if (rc == 0) {
        rc = sys->sync_dir(sys->context, p->data);
        rc = rc == 0 ? 0 : say(msg, rc, "sync", p->data);
    }
    return rc;
}

static int take_lock(struct sys *sys, const struct paths *p, struct errmsg *msg)
{
    int fd = sys->lock(sys->context, p->lock);

    if (fd == ERR_LOCKED) {
        return err_set(msg, fd, "another process is changing the keys in %.180s", p->dir);
    }
    return fd < 0 ? say(msg, fd, "lock", p->lock) : fd;
}

static int make_dir(struct sys *sys, const struct paths *p, struct errmsg *msg)
{
    int rc = sys->mkdir(sys->context, p->dir);

    if (rc == 0 && sys->make_private != NULL) {
        rc = sys->make_private(sys->context, p->dir);
    }
    return rc == 0 ? 0 : say(msg, rc, "make", p->dir);
}

/* Reads the set, or makes it when there is none and nothing depends on one. */
static int load(struct sys *sys, const struct paths *p, bool must_exist, struct keys_set *set,
                struct errmsg *msg)
{
    int rc = read_set(sys, p, true, set, msg);

    if (rc == ERR_NOTFOUND && must_exist) {
        return err_set(msg, rc,
                       "%.90s is missing, but subscriptions depend on it: restore it from a "
                       "backup, or make new keys: arbe streams replace-keys DIR",
                       p->file);
    }
    if (rc != ERR_NOTFOUND) {
        return rc;
    }
    rc = make_dir(sys, p, msg);
    if (rc != 0) {
        return rc;
    }
    int lock = take_lock(sys, p, msg);

    if (lock < 0) {
        return lock;
    }
    rc = make_set(sys, p, set, msg);
    sys->close(sys->context, lock);
    return rc;
}

int keys_open(struct sys *sys, const char *dir, bool must_exist, struct keys **ret_keys,
              struct errmsg *msg)
{
    struct keys *k = calloc(1, sizeof(*k));

    if (k == NULL || pthread_mutex_init(&k->mutex, NULL) != 0) {
        free(k);
        return err_set(msg, ERR_NOMEM, "out of memory");
    }
    k->sys = sys;
    int rc = paths_init(&k->paths, dir, msg);

    rc = rc == 0 ? load(sys, &k->paths, must_exist, &k->set, msg) : rc;
    if (rc != 0) {
        keys_close(k);
        return rc;
    }
    /* What signed before this process is published by wall clock alone. */
    while (k->active + 1 < k->set.count &&
           k->set.pairs[k->active + 1].signs_ms <= sys->now_ms(sys->context)) {
        k->active++;
    }
    *ret_keys = k;
    return 0;
}

void keys_close(struct keys *k)
{
    if (k == NULL) {
        return;
    }
    keys_set_wipe(&k->set);
    (void)pthread_mutex_destroy(&k->mutex); /* nobody holds it */
    free(k);
}

/* Chooses the pair that signs now. Never goes back: a receiver that has seen a key sign may have
 * dropped those before it. */
static void choose(struct keys *k)
{
    int64_t now = k->sys->now_ms(k->sys->context);
    uint64_t mono = k->sys->mono_ms(k->sys->context);

    while (k->active + 1 < k->set.count && k->set.pairs[k->active + 1].signs_ms <= now &&
           k->signs_mono[k->active + 1] <= mono) {
        k->retired_mono[k->active] = mono + RETIRE_MS;
        k->active++;
    }
}

/* Whether pair `i` signs, will sign, or may have signed what a receiver still accepts. */
static bool is_published(const struct keys *k, unsigned i)
{
    return i >= k->active ||
           k->sys->now_ms(k->sys->context) < k->set.pairs[i + 1].signs_ms + (int64_t)RETIRE_MS ||
           k->sys->mono_ms(k->sys->context) < k->retired_mono[i];
}

static bool same_sets(const struct keys_set *a, const struct keys_set *b)
{
    return a->count == b->count &&
           slice_equal(slice_of(a->pairs[a->count - 1].kid),
                       slice_of(b->pairs[b->count - 1].kid)) &&
           slice_equal(slice_of(a->pairs[0].kid), slice_of(b->pairs[0].kid));
}

/* Takes over what the file holds by now. Pairs keep what is known of them; a pair that is new here
 * waits until every receiver can know it. The key of tokens stays. */
static void adopt(struct keys *k, const struct keys_set *set)
{
    uint64_t signs_mono[KEYS_MAX];
    uint64_t retired_mono[KEYS_MAX] = {0};
    unsigned active = 0;

    for (unsigned i = 0; i < set->count; i++) {
        signs_mono[i] = k->sys->mono_ms(k->sys->context) + CACHE_MS;
        for (unsigned old = 0; old < k->set.count; old++) {
            if (strcmp(set->pairs[i].kid, k->set.pairs[old].kid) == 0) {
                signs_mono[i] = k->signs_mono[old];
                retired_mono[i] = k->retired_mono[old];
                active = old == k->active ? i : active;
            }
        }
    }
    memcpy(k->set.pairs, set->pairs, sizeof(k->set.pairs));
    memcpy(k->signs_mono, signs_mono, sizeof(k->signs_mono));
    memcpy(k->retired_mono, retired_mono, sizeof(k->retired_mono));
    k->set.count = set->count;
    k->active = active;
}

/* Takes the first `count` pairs out of a set. */
static void drop_first(struct keys_set *set, unsigned count)
{
    unsigned left = set->count - count;

    memmove(set->pairs, set->pairs + count, left * sizeof(set->pairs[0]));
    OPENSSL_cleanse(set->pairs + left, count * sizeof(set->pairs[0]));
    set->count = left;
}

/* How many pairs at the front are published no more. */
static unsigned retired_count(struct keys *k)
{
    unsigned count = 0;

    choose(k);
    while (count < k->active && !is_published(k, count)) {
        count++;
    }
    return count;
}

/* Erases the first `count` pairs from the file, which holds what `set` does unless it was changed
 * meanwhile; then the next refresh will see to it. */
static int erase(struct keys *k, unsigned count, struct keys_set *set, struct errmsg *msg)
{
    int lock = take_lock(k->sys, &k->paths, msg);

    if (lock < 0) {
        return lock == ERR_LOCKED ? 0 : lock;
    }
    struct keys_set now = {.count = 0};
    int rc = read_set(k->sys, &k->paths, false, &now, msg);

    if (rc == 0 && same_sets(&now, set)) {
        drop_first(&now, count);
        rc = write_set(k->sys, &k->paths, &now, msg);
        *set = rc == 0 ? now : *set;
    }
    keys_set_wipe(&now);
    k->sys->close(k->sys->context, lock);
    return rc;
}

/* The disk is read and written without the mutex: those who sign or publish never wait for it. One
 * thread refreshes. */
int keys_refresh(struct keys *k, struct errmsg *msg)
{
    struct keys_set set = {.count = 0};
    int rc = read_set(k->sys, &k->paths, false, &set, msg);
    unsigned retired = 0;

    if (rc == 0) {
        (void)pthread_mutex_lock(&k->mutex);
        if (CRYPTO_memcmp(set.token, k->set.token, sizeof(set.token)) != 0) {
            rc = err_set(msg, ERR_MISMATCH,
                         "%.120s is another one than at the start: it is left "
                         "alone until the server starts anew",
                         k->paths.file);
        } else if (!same_sets(&set, &k->set)) {
            adopt(k, &set);
        }
        retired = rc == 0 ? retired_count(k) : 0;
        (void)pthread_mutex_unlock(&k->mutex);
    }
    if (retired > 0 && k->sys->mono_ms(k->sys->context) >= k->erase_mono) {
        rc = erase(k, retired, &set, msg);
        k->erase_mono = rc == 0 ? 0 : k->sys->mono_ms(k->sys->context) + ERASE_RETRY_MS;
        (void)pthread_mutex_lock(&k->mutex);
        if (rc == 0) {
            adopt(k, &set);
        }
        (void)pthread_mutex_unlock(&k->mutex);
    }
    keys_set_wipe(&set);
    bool news = rc != k->told;

    k->told = rc;
    if (!news && msg != NULL) {
        msg->text[0] = '\0';
    }
    return rc;
}

void keys_token_key(const struct keys *k, uint8_t out[static KEYS_TOKEN_BYTES])
{
    memcpy(out, k->set.token, KEYS_TOKEN_BYTES); /* never changes, so no lock */
}

void keys_kid(struct keys *k, char out[static KEYS_KID_BYTES])
{
    (void)pthread_mutex_lock(&k->mutex);
    choose(k);
    memcpy(out, k->set.pairs[k->active].kid, KEYS_KID_BYTES);
    (void)pthread_mutex_unlock(&k->mutex);
}

int keys_sign(struct keys *k, struct slice body, char out[static KEYS_SIGNATURE_BYTES])
{
    long long seconds = k->sys->now_ms(k->sys->context) / 1000;
    struct keys_pair pair;
    struct buf bytes;
    char signature[87];

    (void)pthread_mutex_lock(&k->mutex);
    choose(k);
    pair = k->set.pairs[k->active];
    /* Published for that long from its last signature, however the wall clock moves. */
    k->retired_mono[k->active] = k->sys->mono_ms(k->sys->context) + RETIRE_MS;
    (void)pthread_mutex_unlock(&k->mutex);

    buf_init(&bytes, body.len + 32);
    buf_append_format(&bytes, "%lld.", seconds);
    buf_append(&bytes, body);
    int rc = bytes.failed ? ERR_NOMEM : keys_pair_sign(&pair, buf_slice(&bytes), signature);

    buf_finish(&bytes);
    if (rc == 0) {
        int len = snprintf(out, KEYS_SIGNATURE_BYTES, "t=%lld,kid=%s,ed25519=%s", seconds, pair.kid,
                           signature);

        assert(len > 0 && len < (int)KEYS_SIGNATURE_BYTES);
    }
    OPENSSL_cleanse(&pair, sizeof(pair));
    return rc;
}

void keys_append_jwks(struct keys *k, struct buf *out)
{
    const char *separator = "";

    buf_append(out, SLICE("{\"keys\":["));
    (void)pthread_mutex_lock(&k->mutex);
    choose(k);
    for (unsigned i = 0; i < k->set.count; i++) {
        const struct keys_pair *pair = &k->set.pairs[i];

        if (is_published(k, i)) {
            buf_append_format(out,
                              "%s{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"kid\":\"%s\",\"use\":"
                              "\"sig\",\"alg\":\"EdDSA\",\"x\":\"%s\"}",
                              separator, pair->kid, pair->x);
            separator = ",";
        }
    }
    (void)pthread_mutex_unlock(&k->mutex);
    buf_append(out, SLICE("]}"));
}

/* The caller holds the lock. */
static int rotate(struct sys *sys, const struct paths *p, struct keys_rotation *ret,
                  struct errmsg *msg)
{
    struct keys_set set = {.count = 0};
    int64_t now = sys->now_ms(sys->context);
    char when[DATE_RFC3339_BYTES];
    unsigned old = 0;
    int rc = read_set(sys, p, false, &set, msg);

    if (rc == ERR_NOTFOUND) {
        return err_set(msg, rc, "there is no %.120s: a server makes it at its first start",
                       p->file);
    }
    if (rc != 0) {
        return rc;
    }
    const struct keys_pair *last = &set.pairs[set.count - 1];

    if (last->signs_ms > now) {
        date_format_rfc3339(when, last->signs_ms);
        rc = err_set(msg, ERR_CONFLICT, "the last rotation has not ended: its key signs from %s",
                     when);
    } else {
        while (old + 1 < set.count && now >= set.pairs[old + 1].signs_ms + (int64_t)RETIRE_MS) {
            old++;
        }
        drop_first(&set, old);
        rc = set.count == KEYS_MAX ? err_set(msg, ERR_LIMIT, "there are %u keys already", KEYS_MAX)
                                   : add_pair(sys, &set, now, now + NOTICE_MS + CACHE_MS, msg);
    }
    rc = rc == 0 ? write_set(sys, p, &set, msg) : rc;
    if (rc == 0) {
        const struct keys_pair *pair = &set.pairs[set.count - 1];

        memcpy(ret->kid_new, pair->kid, KEYS_KID_BYTES);
        memcpy(ret->kid_old, pair[-1].kid, KEYS_KID_BYTES);
        ret->signs_ms = pair->signs_ms;
        ret->retired_ms = pair->signs_ms + (int64_t)RETIRE_MS;
    }
    keys_set_wipe(&set);
    return rc;
}

int keys_rotate(struct sys *sys, const char *dir, struct keys_rotation *ret_rotation,
                struct errmsg *msg)
{
    struct paths paths;
    int rc = paths_init(&paths, dir, msg);

    if (rc != 0) {
        return rc;
    }
    int lock = take_lock(sys, &paths, msg);

    if (lock == ERR_NOTFOUND) {
        return err_set(msg, lock, "there is no %.120s: a server makes it at its first start",
                       paths.dir);
    }
    if (lock < 0) {
        return lock;
    }
    rc = rotate(sys, &paths, ret_rotation, msg);
    sys->close(sys->context, lock);
    return rc;
}

/* Renames the damaged file to the first free name. */
static int set_aside(struct sys *sys, const struct paths *p, struct errmsg *msg)
{
    char name[PATH_BYTES_MAX + 16];

    for (unsigned i = 0; i < 100; i++) {
        (void)snprintf(name, sizeof(name), i == 0 ? "%s.damaged" : "%s.damaged.%u", p->file, i);
        int fd = sys->open(sys->context, name, false);

        if (fd >= 0) {
            sys->close(sys->context, fd);
            continue;
        }
        if (fd != ERR_NOTFOUND) {
            return say(msg, fd, "look at", name);
        }
        int rc = sys->rename(sys->context, p->file, name);

        return rc == 0 ? 0 : say(msg, rc, "set aside", p->file);
    }
    return err_set(msg, ERR_EXISTS, "there are 100 damaged files in %.180s", p->dir);
}

/* The caller holds both locks. */
static int replace(struct sys *sys, const struct paths *p, struct errmsg *msg)
{
    struct keys_set set = {.count = 0};
    int rc = read_set(sys, p, false, &set, msg);

    if (rc == 0) {
        keys_set_wipe(&set);
        return err_set(msg, ERR_EXISTS, "%.120s is there and good: nothing was changed", p->file);
    }
    if (rc == ERR_CORRUPT) {
        rc = set_aside(sys, p, msg);
    } else if (rc == ERR_NOTFOUND) {
        rc = 0;
    }
    rc = rc == 0 ? make_set(sys, p, &set, msg) : rc;
    keys_set_wipe(&set);
    return rc;
}

int keys_replace(struct sys *sys, const char *dir, struct errmsg *msg)
{
    struct paths paths;
    char name[PATH_BYTES_MAX + 8];
    int rc = paths_init(&paths, dir, msg);

    if (rc != 0) {
        return rc;
    }
    (void)snprintf(name, sizeof(name), "%s/lock", dir); /* fits */
    int server = sys->lock(sys->context, name);

    if (server == ERR_LOCKED) {
        return err_set(msg, server, "a server runs on %.180s: stop it first", dir);
    }
    if (server < 0) {
        return say(msg, server, "lock", name);
    }
    rc = make_dir(sys, &paths, msg);
    int lock = rc == 0 ? take_lock(sys, &paths, msg) : rc;

    rc = lock < 0 ? lock : replace(sys, &paths, msg);
    if (lock >= 0) {
        sys->close(sys->context, lock);
    }
    sys->close(sys->context, server);
    return rc;
}

int keys_check(struct sys *sys, const char *dir, struct errmsg *msg)
{
    struct paths paths;
    struct keys_set set = {.count = 0};
    int rc = paths_init(&paths, dir, msg);
    int fd = rc != 0 ? rc : sys->open_read(sys->context, paths.file);

    if (fd < 0) {
        return rc != 0 ? rc : err_set(msg, fd, "it cannot be opened: %s", err_file_text(fd));
    }
    rc = read_open(sys, fd, &set, msg);
    sys->close(sys->context, fd);
    keys_set_wipe(&set);
    return rc == 0 || rc == ERR_CORRUPT
               ? rc
               : err_set(msg, rc, "it cannot be read: %s", err_file_text(rc));
}
