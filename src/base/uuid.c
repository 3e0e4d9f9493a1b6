/* What orders the UUIDs of a source are 60 bits: the milliseconds and, below them, the 12 bits that
 * RFC 9562 calls rand_a, used as a counter (its section 6.2, method 1). A millisecond's counter
 * begins at a random number in its lower half, so that 2048 at the least fit above it. When the
 * counter is used up it carries into the milliseconds, which then run ahead of the clock. */
#include "base/uuid.h"

#include <assert.h>
#include <sys/random.h>

#include "base/err.h"

#define COUNTER_BITS 12
#define COUNTER_MASK 0xfffu

/* From the bits that order and those that do not. */
static struct uuid assemble(uint64_t order, const unsigned char rest[static 8])
{
    struct uuid u;
    uint64_t ms = order >> COUNTER_BITS;
    for (int i = 0; i < 6; i++) {
        u.bytes[i] = (unsigned char)(ms >> (40 - 8 * i));
    }
    u.bytes[6] = (unsigned char)(0x70 | (order >> 8 & 0x0f));
    u.bytes[7] = (unsigned char)order;
    memcpy(u.bytes + 8, rest, 8);
    u.bytes[8] = (unsigned char)((rest[0] & 0x3f) | 0x80);
    return u;
}

struct uuid uuid_make_v7(uint64_t ms, const unsigned char random[static UUID_RANDOM_BYTES])
{
    uint64_t counter = (uint64_t)(random[0] << 8 | random[1]) & COUNTER_MASK;
    return assemble(ms << COUNTER_BITS | counter, random + 2);
}

/* Where a hyphen stands before byte `i`. */
static bool hyphen_before(size_t i)
{
    return i == 4 || i == 6 || i == 8 || i == 10;
}

void uuid_format(const struct uuid *u, char out[static UUID_TEXT_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    char *at = out;
    for (size_t i = 0; i < sizeof(u->bytes); i++) {
        if (hyphen_before(i)) {
            *at++ = '-';
        }
        *at++ = digits[u->bytes[i] >> 4];
        *at++ = digits[u->bytes[i] & 15];
    }
    *at = '\0';
    assert(at == out + UUID_TEXT_BYTES - 1);
}

/* The value of a digit in lower case, or -1. */
static int digit_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool uuid_parse(struct slice text, struct uuid *ret_uuid)
{
    struct uuid u;
    const char *at = text.ptr;
    if (text.len != UUID_TEXT_BYTES - 1) {
        return false;
    }
    for (size_t i = 0; i < sizeof(u.bytes); i++) {
        if (hyphen_before(i) && *at++ != '-') {
            return false;
        }
        int high = digit_value(at[0]);
        int low = digit_value(at[1]);
        if (high < 0 || low < 0) {
            return false;
        }
        u.bytes[i] = (unsigned char)(high << 4 | low);
        at += 2;
    }
    *ret_uuid = u;
    return true;
}

/* Takes the next place in the order for a UUID made at `ms`. */
static uint64_t take_order(struct uuid_source *s, uint64_t ms, unsigned random)
{
    uint64_t wanted = ms << COUNTER_BITS | (random & (COUNTER_MASK >> 1));
    uint64_t last = atomic_load_explicit(&s->last, memory_order_relaxed);
    uint64_t order;
    do {
        order = wanted > last ? wanted : last + 1;
    } while (!atomic_compare_exchange_weak_explicit(&s->last, &last, order, memory_order_relaxed,
                                                    memory_order_relaxed));
    return order;
}

int uuid_source_next(struct uuid_source *s, uint64_t ms, struct uuid *ret_uuid)
{
    unsigned char random[UUID_RANDOM_BYTES];
    /* So few bytes come whole, or not at all where the system call is forbidden. */
    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
        return ERR_IO;
    }
    uint64_t order = take_order(s, ms, (unsigned)(random[0] << 8 | random[1]));
    *ret_uuid = assemble(order, random + 2);
    return 0;
}
