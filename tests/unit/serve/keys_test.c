/* The keys of a data directory: made once, kept through crashes and failing disks, rotated so that
 * a receiver which follows the rules can verify every signature. */
#include "unit/base/fault.h"

#include "serve/keys.c"

#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base64.h"
#include "sim/fakedisk.h"
#include "unit/base/unit.h"

#define DIR  "/d"
#define FILE DIR "/keys/keys.pem"

struct fixture {
    struct fakedisk *disk;
    struct sys *sys;
    struct keys *keys;
    struct errmsg msg;
};

static void fixture_init(struct fixture *f)
{
    *f = (struct fixture){.disk = fakedisk_create(1)};
    fakedisk_add_dir(f->disk, DIR);
    f->sys = fakedisk_sys(f->disk);
}

static int reopen(struct fixture *f, bool must_exist)
{
    keys_close(f->keys);
    f->keys = NULL;
    f->msg.text[0] = '\0';
    return keys_open(f->sys, DIR, must_exist, &f->keys, &f->msg);
}

static void fixture_finish(struct fixture *f)
{
    keys_close(f->keys);
    fakedisk_destroy(f->disk);
}

static struct keys_set file_of(struct fixture *f)
{
    struct keys_set set = {.count = 0};
    struct paths paths;

    assert_int_equal(paths_init(&paths, DIR, &f->msg), 0);
    assert_int_equal(read_set(f->sys, &paths, false, &set, &f->msg), 0);
    return set;
}

/* Whether the JWKS holds that kid; also that it is JSON of keys. */
static bool is_shown(struct fixture *f, const char *kid)
{
    struct buf text;

    buf_init(&text, KEYS_JWKS_BYTES_MAX);
    keys_append_jwks(f->keys, &text);
    buf_append_char(&text, '\0');
    assert_false(text.failed);
    assert_int_equal(strncmp(text.ptr, "{\"keys\":[{\"kty\":\"OKP\",\"crv\":\"Ed25519\"", 36), 0);
    bool shown = strstr(text.ptr, kid) != NULL;

    buf_finish(&text);
    return shown;
}

/* On the real disk: rights are the owner's alone. */
static void test_rights(void **state)
{
    (void)state;
    struct sys sys;
    struct stat st;
    struct keys *keys = NULL;
    struct errmsg msg = {{0}};
    char dir[64] = "/tmp/arbe-keys-XXXXXX";
    char path[128];
    static const char *const names[] = {"/keys/keys.pem", "/keys/lock", "/keys", ""};
    static const unsigned modes[] = {0600, 0600, 0700, 0700};

    sys_posix_init(&sys);
    assert_non_null(mkdtemp(dir));
    mode_t mask = umask(0);

    assert_int_equal(keys_check(&sys, dir, &msg), ERR_NOTFOUND);
    assert_int_equal(keys_open(&sys, dir, false, &keys, &msg), 0);
    (void)umask(mask);
    keys_close(keys);
    assert_int_equal(keys_check(&sys, dir, &msg), 0);
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        (void)snprintf(path, sizeof(path), "%s%s", dir, names[i]);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, modes[i]);
        assert_int_equal(remove(path), 0);
    }
}

/* Made once: later starts find the same. */
static void test_made_once(void **state)
{
    (void)state;
    struct fixture f;
    char kid[KEYS_KID_BYTES];
    char again[KEYS_KID_BYTES];
    uint8_t token[KEYS_TOKEN_BYTES];
    uint8_t token_again[KEYS_TOKEN_BYTES];

    fixture_init(&f);
    assert_int_equal(reopen(&f, false), 0);
    keys_kid(f.keys, kid);
    keys_token_key(f.keys, token);
    for (int i = 0; i < 3; i++) {
        fakedisk_advance(f.disk, 1000000);
        assert_int_equal(reopen(&f, i > 0), 0);
        keys_kid(f.keys, again);
        keys_token_key(f.keys, token_again);
        assert_string_equal(kid, again);
        assert_memory_equal(token, token_again, sizeof(token));
    }
    fixture_finish(&f);
}

/* Where subscriptions depend on them, nothing is made up for what is missing or damaged. */
static void test_refuses(void **state)
{
    (void)state;
    struct fixture f;
    uint64_t size = 0;
    char byte = 0;

    fixture_init(&f);
    assert_int_equal(reopen(&f, true), ERR_NOTFOUND);
    assert_non_null(strstr(f.msg.text, "is missing, but subscriptions depend on it"));
    assert_non_null(strstr(f.msg.text, "replace-keys"));
    assert_false(fakedisk_file_size(f.disk, FILE, &size));

    assert_int_equal(reopen(&f, false), 0);
    assert_true(fakedisk_peek(f.disk, FILE, 200, &byte, 1));
    byte ^= 1;
    assert_true(fakedisk_poke(f.disk, FILE, 200, &byte, 1));
    for (int must_exist = 0; must_exist <= 1; must_exist++) {
        assert_int_equal(reopen(&f, must_exist != 0), ERR_CORRUPT);
        assert_non_null(strstr(f.msg.text, "is damaged"));
    }
    char same = 0;

    assert_true(fakedisk_peek(f.disk, FILE, 200, &same, 1));
    assert_int_equal(same, byte);
    assert_true(fakedisk_cut(f.disk, FILE, 0));
    assert_int_equal(reopen(&f, false), ERR_CORRUPT);
    fixture_finish(&f);
}

/* Any one call fails, once or from then on: there is an error with a sentence, and a later start
 * with a working disk is good. */
static void test_faults_open(void **state)
{
    (void)state;
    for (int for_ever = 0; for_ever <= 1; for_ever++) {
        for (uint64_t i = 0;; i++) {
            struct fixture f;

            fixture_init(&f);
            fakedisk_fail(f.disk, CALL_ANY, i, ERR_IO, for_ever != 0);
            int rc = reopen(&f, false);
            bool hit = fakedisk_fault_hit(f.disk);

            assert_true(rc == 0 || f.msg.text[0] != '\0');
            fakedisk_fail(f.disk, CALL_ANY, 0, 0, false);
            assert_int_equal(reopen(&f, rc == 0), 0);
            fixture_finish(&f);
            if (!hit) {
                assert_true(i > 8);
                break;
            }
        }
    }
}

/* Power is lost in any call of the first start: once it was answered the keys are there, and the
 * same; before, a start makes them. */
static void test_crash_open(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct fixture f;
        char kid[KEYS_KID_BYTES] = "";
        char again[KEYS_KID_BYTES];

        fixture_init(&f);
        fakedisk_crash_at(f.disk, seed % 12);
        int rc = reopen(&f, false);

        if (rc == 0) {
            keys_kid(f.keys, kid);
        }
        if (!fakedisk_crashed(f.disk)) {
            fakedisk_crash(f.disk, seed);
        }
        fakedisk_restart(f.disk);
        assert_int_equal(reopen(&f, rc == 0), 0);
        keys_kid(f.keys, again);
        assert_true(rc != 0 || strcmp(kid, again) == 0);
        fixture_finish(&f);
    }
}

/* A start that was killed before its keys were durable: the next one makes them so, before
 * anything can depend on them. */
static void test_made_durable(void **state)
{
    (void)state;
    struct fixture f;
    char kid[KEYS_KID_BYTES];
    char again[KEYS_KID_BYTES];

    for (uint64_t seed = 0; seed < 50; seed++) {
        fixture_init(&f);
        fakedisk_fail(f.disk, CALL_SYNC_DIR, 0, ERR_IO, true);
        assert_int_equal(reopen(&f, false), ERR_IO);
        fakedisk_fail(f.disk, CALL_SYNC_DIR, 0, 0, false);
        assert_int_equal(reopen(&f, false), 0);
        keys_kid(f.keys, kid);
        fakedisk_crash(f.disk, seed);
        fakedisk_restart(f.disk);
        assert_int_equal(reopen(&f, true), 0);
        keys_kid(f.keys, again);
        assert_string_equal(kid, again);
        fixture_finish(&f);
    }
}

/* A rotation fails or is cut off in any call: the old key is still there, and so is the token's;
 * the new one is there if the answer said so. */
static void test_faults_rotate(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 400; i++) {
        struct fixture f;
        struct keys_rotation rotation;
        char kid[KEYS_KID_BYTES];
        uint8_t token[KEYS_TOKEN_BYTES];

        fixture_init(&f);
        assert_int_equal(reopen(&f, false), 0);
        keys_kid(f.keys, kid);
        keys_token_key(f.keys, token);
        fakedisk_advance(f.disk, 1000);
        if (i % 2 == 0) {
            fakedisk_fail(f.disk, CALL_ANY, i / 4 % 14, ERR_NOSPC, i / 2 % 2 == 0);
        } else {
            fakedisk_crash_at(f.disk, i / 2 % 10);
        }
        int rc = keys_rotate(f.sys, DIR, &rotation, &f.msg);

        assert_true(rc == 0 || f.msg.text[0] != '\0');
        fakedisk_fail(f.disk, CALL_ANY, 0, 0, false);
        if (!fakedisk_crashed(f.disk)) {
            fakedisk_crash(f.disk, i);
        }
        fakedisk_restart(f.disk);
        assert_int_equal(reopen(&f, true), 0);
        struct keys_set set = file_of(&f);

        assert_memory_equal(set.token, token, sizeof(token));
        assert_string_equal(set.pairs[0].kid, kid);
        assert_true(rc != 0 || set.count == 2);
        assert_true(rc != 0 || strcmp(set.pairs[1].kid, rotation.kid_new) == 0);
        fixture_finish(&f);
    }
}

/* A running server takes a rotation up by itself, and signs with the new key once every receiver
 * can know it; the old one goes when nothing that it signed counts any more. */
static void test_rotation(void **state)
{
    (void)state;
    struct fixture f;
    struct keys_rotation rotation;
    struct keys_rotation second;
    char kid[KEYS_KID_BYTES];

    fixture_init(&f);
    assert_int_equal(reopen(&f, false), 0);
    fakedisk_advance(f.disk, 1000);
    assert_int_equal(keys_rotate(f.sys, DIR, &rotation, &f.msg), 0);
    assert_int_equal(rotation.signs_ms - f.sys->now_ms(f.sys->context), NOTICE_MS + CACHE_MS);
    assert_int_equal(rotation.retired_ms - rotation.signs_ms, RETIRE_MS);
    assert_false(is_shown(&f, rotation.kid_new));
    assert_int_equal(keys_refresh(f.keys, &f.msg), 0);
    assert_true(is_shown(&f, rotation.kid_new));
    assert_int_equal(keys_rotate(f.sys, DIR, &second, &f.msg), ERR_CONFLICT);
    assert_non_null(strstr(f.msg.text, "has not ended"));

    fakedisk_advance(f.disk, NOTICE_MS + CACHE_MS - 1);
    keys_kid(f.keys, kid);
    assert_string_equal(kid, rotation.kid_old);
    fakedisk_advance(f.disk, 1);
    keys_kid(f.keys, kid);
    assert_string_equal(kid, rotation.kid_new);
    fakedisk_advance(f.disk, RETIRE_MS - 1);
    assert_int_equal(keys_refresh(f.keys, &f.msg), 0);
    assert_true(is_shown(&f, rotation.kid_old));
    assert_int_equal(file_of(&f).count, 2);
    fakedisk_advance(f.disk, 1);
    assert_false(is_shown(&f, rotation.kid_old));
    assert_int_equal(keys_refresh(f.keys, &f.msg), 0);
    assert_int_equal(file_of(&f).count, 1); /* erased */
    assert_true(is_shown(&f, rotation.kid_new));
    assert_int_equal(keys_rotate(f.sys, DIR, &second, &f.msg), 0);
    assert_string_equal(second.kid_old, rotation.kid_new);
    fixture_finish(&f);
}

/* The wall clock jumps: a server neither signs with a key that receivers cannot know yet, nor goes
 * back to an older one, nor forgets one that it has just signed with. */
static void test_clock_jumps(void **state)
{
    (void)state;
    struct fixture f;
    struct keys_rotation rotation;
    char kid[KEYS_KID_BYTES];
    char signature[KEYS_SIGNATURE_BYTES];

    fixture_init(&f);
    assert_int_equal(reopen(&f, false), 0);
    fakedisk_advance(f.disk, 1000);
    int64_t start = f.sys->now_ms(f.sys->context);

    assert_int_equal(keys_rotate(f.sys, DIR, &rotation, &f.msg), 0);
    assert_int_equal(keys_refresh(f.keys, &f.msg), 0);
    fakedisk_set_now(f.disk, start + 1000000000);
    assert_int_equal(keys_sign(f.keys, SLICE("x"), signature), 0);
    assert_non_null(strstr(signature, rotation.kid_old));
    fakedisk_advance(f.disk, CACHE_MS);
    keys_kid(f.keys, kid);
    assert_string_equal(kid, rotation.kid_new);
    assert_int_equal(keys_refresh(f.keys, &f.msg), 0);
    assert_true(is_shown(&f, rotation.kid_old));
    fakedisk_set_now(f.disk, start);
    keys_kid(f.keys, kid);
    assert_string_equal(kid, rotation.kid_new);
    assert_int_equal(keys_refresh(f.keys, &f.msg), 0);
    keys_kid(f.keys, kid);
    assert_string_equal(kid, rotation.kid_new);
    fixture_finish(&f);
}

/* A server that starts in the middle or after the end of a rotation is where the others are. */
static void test_starts_within(void **state)
{
    (void)state;
    struct fixture f;
    struct keys_rotation rotation;
    char kid[KEYS_KID_BYTES];

    fixture_init(&f);
    assert_int_equal(reopen(&f, false), 0);
    fakedisk_advance(f.disk, 1000);
    keys_close(f.keys); /* stopped: that is no hindrance */
    f.keys = NULL;
    assert_int_equal(keys_rotate(f.sys, DIR, &rotation, &f.msg), 0);
    assert_int_equal(reopen(&f, true), 0);
    keys_kid(f.keys, kid);
    assert_string_equal(kid, rotation.kid_old);
    assert_true(is_shown(&f, rotation.kid_new));
    fakedisk_advance(f.disk, NOTICE_MS + CACHE_MS);
    assert_int_equal(reopen(&f, true), 0);
    keys_kid(f.keys, kid);
    assert_string_equal(kid, rotation.kid_new);
    assert_true(is_shown(&f, rotation.kid_old));
    fakedisk_advance(f.disk, RETIRE_MS);
    assert_int_equal(reopen(&f, true), 0);
    assert_false(is_shown(&f, rotation.kid_old));
    fixture_finish(&f);
}

/* What a receiver has in its cache: the JWKS of some moment. */
struct cache {
    char text[KEYS_JWKS_BYTES_MAX];
    uint64_t fetched_ms;
};

static void fetch(struct fixture *f, struct cache *cache)
{
    struct buf text;

    buf_init_fixed(&text, cache->text, sizeof(cache->text));
    keys_append_jwks(f->keys, &text);
    assert_false(text.failed);
    cache->text[text.len] = '\0';
    cache->fetched_ms = f->sys->mono_ms(f->sys->context);
}

static size_t decode_url(const char *text, size_t len, uint8_t *out)
{
    size_t out_len = 0;

    assert_true(base64url_decode((struct slice){text, len}, (char *)out, &out_len));
    return out_len;
}

/* Whether the header's signature over `body` is good by a key of the cached JWKS. */
static bool verifies(const struct cache *cache, const char *header, const char *body)
{
    const char *kid = strstr(header, ",kid=") + 5;
    const char *value = strstr(header, ",ed25519=") + 9;
    size_t kid_len = (size_t)(strchr(kid, ',') - kid);
    char wanted[64];
    uint8_t public[40];
    uint8_t signature[72];
    char message[256];

    (void)snprintf(wanted, sizeof(wanted), "\"%.*s\"", (int)kid_len, kid);
    const char *at = strstr(cache->text, wanted);

    if (at == NULL) {
        return false;
    }
    assert_int_equal(decode_url(strstr(at, "\"x\":\"") + 5, 43, public), 32);
    assert_int_equal(decode_url(value, strlen(value), signature), 64);
    int len = snprintf(message, sizeof(message), "%.*s.%s", (int)(strchr(header, ',') - header - 2),
                       header + 2, body);
    EVP_PKEY *key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, public, 32);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();

    assert_int_equal(EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, key), 1);
    int good = EVP_DigestVerify(ctx, signature, 64, (const uint8_t *)message, (size_t)len);

    EVP_MD_CTX_free(ctx);
    EVP_PKEY_free(key);
    return good == 1;
}

#define PENDING_MAX 40u

/* Signatures that a receiver has not looked at yet. */
struct pending {
    char header[KEYS_SIGNATURE_BYTES];
    uint64_t signed_ms;
};

/* Hours of load with a rotation whenever one may be, restarts, and a receiver that keeps its JWKS
 * for 300 s and takes up to 330 s to look at what came: it can verify everything. */
static void test_every_signature(void **state)
{
    (void)state;
    struct fixture f;
    struct cache cache = {.fetched_ms = 0};
    struct pending pending[PENDING_MAX] = {{.signed_ms = 0}};
    struct keys_rotation rotation;
    uint64_t random = 7;
    unsigned rotations = 0;
    unsigned verified = 0;

    fixture_init(&f);
    assert_int_equal(reopen(&f, false), 0);
    fetch(&f, &cache);
    for (unsigned step = 0; step < 6000; step++) {
        fakedisk_advance(f.disk, KEYS_REFRESH_MS);
        uint64_t now = f.sys->mono_ms(f.sys->context);

        if (fakedisk_below(&random, 20) == 0 && keys_rotate(f.sys, DIR, &rotation, &f.msg) == 0) {
            rotations++;
        }
        if (fakedisk_below(&random, 100) == 0) {
            assert_int_equal(reopen(&f, true), 0);
        } else {
            assert_int_equal(keys_refresh(f.keys, &f.msg), 0);
        }
        if (now - cache.fetched_ms >= 300000) {
            fetch(&f, &cache);
        }
        struct pending *slot = &pending[fakedisk_below(&random, PENDING_MAX)];

        if (slot->signed_ms == 0) {
            assert_int_equal(keys_sign(f.keys, SLICE("{\"a\":1}"), slot->header), 0);
            slot->signed_ms = now;
        }
        for (unsigned i = 0; i < PENDING_MAX; i++) {
            bool due = pending[i].signed_ms != 0 &&
                       (now - pending[i].signed_ms >= 325000 || fakedisk_below(&random, 40) == 0);

            if (due) {
                assert_true(verifies(&cache, pending[i].header, "{\"a\":1}"));
                assert_false(verifies(&cache, pending[i].header, "{\"a\":2}"));
                pending[i].signed_ms = 0;
                verified++;
            }
        }
    }
    assert_true(rotations > 40);
    assert_true(verified > 1000);
    assert_true(file_of(&f).count <= 4);
    fixture_finish(&f);
}

/* The file goes away or goes bad under a running server: it goes on, says so once, and again when
 * it is another trouble. */
static void test_refresh_errors(void **state)
{
    (void)state;
    struct fixture f;
    char kid[KEYS_KID_BYTES];
    char again[KEYS_KID_BYTES];
    char byte = 'X';

    fixture_init(&f);
    assert_int_equal(reopen(&f, false), 0);
    keys_kid(f.keys, kid);
    for (int i = 0; i < 2; i++) {
        assert_true(fakedisk_poke(f.disk, FILE, 3, &byte, 1));
        assert_int_equal(keys_refresh(f.keys, &f.msg), ERR_CORRUPT);
        assert_int_equal(f.msg.text[0] != '\0', i == 0);
    }
    assert_true(fakedisk_remove(f.disk, FILE));
    assert_int_equal(keys_refresh(f.keys, &f.msg), ERR_NOTFOUND);
    assert_true(f.msg.text[0] != '\0');
    keys_kid(f.keys, again);
    assert_string_equal(kid, again);
    assert_true(is_shown(&f, kid));
    fixture_finish(&f);
}

/* Another directory's file under a running server is left alone. */
static void test_foreign_file(void **state)
{
    (void)state;
    struct fixture f;
    char kid[KEYS_KID_BYTES];
    char again[KEYS_KID_BYTES];

    fixture_init(&f);
    assert_int_equal(reopen(&f, false), 0);
    keys_kid(f.keys, kid);
    assert_true(fakedisk_remove(f.disk, FILE));
    assert_int_equal(keys_replace(f.sys, DIR, &f.msg), 0);
    assert_int_equal(keys_refresh(f.keys, &f.msg), ERR_MISMATCH);
    keys_kid(f.keys, again);
    assert_string_equal(kid, again);
    fixture_finish(&f);
}

/* A disk that is full when a key is to be erased: nothing is lost, and it is tried again. */
static void test_erase_fails(void **state)
{
    (void)state;
    struct fixture f;
    struct keys_rotation rotation;

    fixture_init(&f);
    assert_int_equal(reopen(&f, false), 0);
    fakedisk_advance(f.disk, 1000);
    assert_int_equal(keys_rotate(f.sys, DIR, &rotation, &f.msg), 0);
    assert_int_equal(keys_refresh(f.keys, &f.msg), 0);
    fakedisk_advance(f.disk, NOTICE_MS + CACHE_MS);
    assert_int_equal(keys_refresh(f.keys, &f.msg), 0);
    fakedisk_advance(f.disk, RETIRE_MS);
    fakedisk_fail(f.disk, CALL_PWRITEV, 0, ERR_NOSPC, false);
    assert_int_equal(keys_refresh(f.keys, &f.msg), ERR_NOSPC);
    assert_int_equal(keys_refresh(f.keys, &f.msg), 0); /* not so soon */
    assert_int_equal(file_of(&f).count, 2);
    fakedisk_advance(f.disk, ERASE_RETRY_MS);
    assert_int_equal(keys_refresh(f.keys, &f.msg), 0);
    assert_int_equal(file_of(&f).count, 1);
    fixture_finish(&f);
}

/* No memory: said so, and nothing made. */
static void test_no_memory(void **state)
{
    (void)state;
    struct fixture f;
    uint64_t size = 0;

    fixture_init(&f);
    fault_countdown = 0;
    assert_int_equal(reopen(&f, false), ERR_NOMEM);
    fault_countdown = -1;
    assert_false(fakedisk_file_size(f.disk, FILE, &size));
    fixture_finish(&f);
}

/* One at a time, and none without keys. */
static void test_rotate_refused(void **state)
{
    (void)state;
    struct fixture f;
    struct keys_rotation rotation;

    fixture_init(&f);
    assert_int_equal(keys_rotate(f.sys, DIR, &rotation, &f.msg), ERR_NOTFOUND);
    assert_non_null(strstr(f.msg.text, "at its first start"));
    assert_int_equal(reopen(&f, false), 0);
    int lock = f.sys->lock(f.sys->context, DIR "/keys/lock");

    assert_true(lock >= 0);
    assert_int_equal(keys_rotate(f.sys, DIR, &rotation, &f.msg), ERR_LOCKED);
    f.sys->close(f.sys->context, lock);
    fixture_finish(&f);
}

/* Lost keys are replaced, a damaged file is kept aside, good ones stay; never under a server. */
static void test_replace(void **state)
{
    (void)state;
    struct fixture f;
    uint64_t size = 0;
    char byte = 'X';

    fixture_init(&f);
    assert_int_equal(keys_replace(f.sys, DIR, &f.msg), 0);
    assert_int_equal(keys_replace(f.sys, DIR, &f.msg), ERR_EXISTS);
    assert_int_equal(reopen(&f, true), 0);
    for (int i = 0; i < 2; i++) {
        assert_true(fakedisk_poke(f.disk, FILE, 3, &byte, 1));
        assert_int_equal(keys_replace(f.sys, DIR, &f.msg), 0);
        assert_int_equal(reopen(&f, true), 0);
    }
    assert_true(fakedisk_file_size(f.disk, FILE ".damaged", &size));
    assert_true(fakedisk_file_size(f.disk, FILE ".damaged.1", &size));
    int lock = f.sys->lock(f.sys->context, DIR "/lock");

    assert_true(lock >= 0);
    assert_int_equal(keys_replace(f.sys, DIR, &f.msg), ERR_LOCKED);
    assert_non_null(strstr(f.msg.text, "stop it first"));
    f.sys->close(f.sys->context, lock);
    fixture_finish(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rights),         cmocka_unit_test(test_made_once),
        cmocka_unit_test(test_refuses),        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_faults_open),    cmocka_unit_test(test_crash_open),
        cmocka_unit_test(test_made_durable),   cmocka_unit_test(test_faults_rotate),
        cmocka_unit_test(test_rotation),       cmocka_unit_test(test_clock_jumps),
        cmocka_unit_test(test_starts_within),  cmocka_unit_test(test_every_signature),
        cmocka_unit_test(test_refresh_errors), cmocka_unit_test(test_foreign_file),
        cmocka_unit_test(test_erase_fails),    cmocka_unit_test(test_rotate_refused),
        cmocka_unit_test(test_replace),
    };

    return UNIT_RUN(tests);
}
