/* Comparing, splitting and hashing of borrowed bytes. Empty slices may hold a NULL pointer, which
 * must not reach memcmp. */
#include "base/slice.h"

/* Folding constants: any odd numbers with well mixed bits serve. */
#define HASH_A UINT64_C(0x9e3779b97f4a7c15)
#define HASH_B UINT64_C(0xbf58476d1ce4e5b9)
#define HASH_C UINT64_C(0x94d049bb133111eb)

/* Folds by table-free arithmetic, since ctype depends on the locale. */
static unsigned char fold(char c)
{
    unsigned char u = (unsigned char)c;

    return (unsigned char)(u - 'A') < 26 ? (unsigned char)(u | 0x20) : u;
}

bool slice_equal_nocase(struct slice a, struct slice b)
{
    if (a.len != b.len) {
        return false;
    }
    for (size_t i = 0; i < a.len; i++) {
        if (fold(a.ptr[i]) != fold(b.ptr[i])) {
            return false;
        }
    }
    return true;
}

int slice_compare(struct slice a, struct slice b)
{
    size_t len = a.len < b.len ? a.len : b.len;
    int order = len == 0 ? 0 : memcmp(a.ptr, b.ptr, len);

    if (order != 0) {
        return order;
    }
    return (a.len > b.len) - (a.len < b.len);
}

bool slice_starts_with(struct slice s, struct slice prefix)
{
    if (s.len < prefix.len) {
        return false;
    }
    return prefix.len == 0 || memcmp(s.ptr, prefix.ptr, prefix.len) == 0;
}

static bool is_ows(char c)
{
    return c == ' ' || c == '\t';
}

struct slice slice_trim(struct slice s)
{
    while (s.len > 0 && is_ows(s.ptr[0])) {
        s.ptr++;
        s.len--;
    }
    while (s.len > 0 && is_ows(s.ptr[s.len - 1])) {
        s.len--;
    }
    return s;
}

bool slice_split(struct slice *rest, char separator, struct slice *ret_part)
{
    struct slice all = *rest;
    const char *at;

    if (all.ptr == NULL) {
        return false;
    }
    at = all.len == 0 ? NULL : memchr(all.ptr, separator, all.len);
    if (at == NULL) {
        *rest = (struct slice){NULL, 0};
        *ret_part = all;
        return true;
    }
    *ret_part = (struct slice){all.ptr, (size_t)(at - all.ptr)};
    /* After a trailing separator the rest is empty but not NULL: one last, empty part follows. */
    *rest = (struct slice){at + 1, all.len - ret_part->len - 1};
    return true;
}

bool slice_equal_constant_time(struct slice a, struct slice b)
{
    /* volatile, or the compiler may see that the answer is known at the first difference. */
    volatile unsigned char difference = 0;

    if (a.len != b.len) {
        return false;
    }
    for (size_t i = 0; i < a.len; i++) {
        difference = (unsigned char)(difference | (a.ptr[i] ^ b.ptr[i]));
    }
    return difference == 0;
}

/* Both halves of the 128-bit product, folded: every input bit reaches every output bit. */
static uint64_t fold_product(uint64_t a, uint64_t b)
{
    unsigned __int128 product = (unsigned __int128)a * b;

    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t load(const char *at, size_t len)
{
    uint64_t value = 0;

    memcpy(&value, at, len);
    return value;
}

uint64_t slice_hash(struct slice s, uint64_t seed)
{
    uint64_t hash = seed ^ fold_product(seed ^ HASH_A, (uint64_t)s.len ^ HASH_B);
    const char *at = s.ptr;
    size_t left = s.len;

    for (; left > 16; at += 16, left -= 16) {
        hash = fold_product(load(at, 8) ^ hash, load(at + 8, 8) ^ HASH_C);
    }
    if (left > 8) {
        hash = fold_product(load(at, 8) ^ hash, load(at + 8, left - 8) ^ HASH_C);
    } else if (left > 0) {
        hash = fold_product(load(at, left) ^ hash, HASH_C);
    }
    return fold_product(hash ^ HASH_B, HASH_A);
}
