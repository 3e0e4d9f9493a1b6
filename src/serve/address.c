/* IPv4: what is listed is refused, the rest of the space is public. IPv6 the other way round: only
 * 2000::/3 is handed out to be reached by everybody, so all else is refused, and of that what the
 * table lists. After the registries of special-purpose addresses that IANA keeps (RFC 6890). */
#include "serve/address.h"

#include "base/bytes.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

static const char loopback[] = "this machine itself";
static const char private[] = "a private network";
static const char link_local[] = "link-local";
static const char shared[] = "an address that a carrier shares out";
static const char documentation[] = "an address for documentation";
static const char benchmark[] = "an address for benchmarks";
static const char multicast[] = "multicast";
static const char special[] = "reserved for special purposes";
static const char transition[] = "a tunnel into IPv4";

struct range4 {
    uint32_t base;
    unsigned bits; /* of the prefix, 1 to 32 */
    const char *what;
};

#define IP4(a, b, c, d) \
    ((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 | (uint32_t)(d))

/* The first that fits is told. */
static const struct range4 ranges4[] = {
    {IP4(0, 0, 0, 0), 8, special},          /* "this network"; Linux connects 0.0.0.0 to itself */
    {IP4(10, 0, 0, 0), 8, private},         /* RFC 1918 */
    {IP4(100, 64, 0, 0), 10, shared},       /* RFC 6598 */
    {IP4(127, 0, 0, 0), 8, loopback},       /* RFC 1122 */
    {IP4(169, 254, 0, 0), 16, link_local},  /* RFC 3927, clouds' metadata among it */
    {IP4(172, 16, 0, 0), 12, private},      /* RFC 1918 */
    {IP4(192, 0, 0, 0), 24, special},       /* RFC 6890 */
    {IP4(192, 0, 2, 0), 24, documentation}, /* RFC 5737 */
    {IP4(192, 31, 196, 0), 24, special},    /* RFC 7535, AS112 */
    {IP4(192, 52, 193, 0), 24, special},    /* RFC 7450, AMT */
    {IP4(192, 88, 99, 0), 24, transition},  /* RFC 7526 */
    {IP4(192, 168, 0, 0), 16, private},     /* RFC 1918 */
    {IP4(192, 175, 48, 0), 24, special},    /* RFC 7534, AS112 */
    {IP4(198, 18, 0, 0), 15, benchmark},    /* RFC 2544 */
    {IP4(198, 51, 100, 0), 24, documentation},
    {IP4(203, 0, 113, 0), 24, documentation},
    {IP4(224, 0, 0, 0), 4, multicast},
    {IP4(255, 255, 255, 255), 32, "broadcast"},
    {IP4(240, 0, 0, 0), 4, special}, /* RFC 1112, never given out */
};

struct range6 {
    uint8_t base[16];
    unsigned bits; /* of the prefix, 1 to 128 */
    const char *what;
};

/* The first that fits is told. What is not in 2000::/3 stands here for its name alone. */
static const struct range6 ranges6[] = {
    {{[15] = 1}, 128, loopback},
    {{0}, 96, transition},                                  /* ::, and IPv4-compatible, RFC 4291 */
    {{0x00, 0x64, 0xff, 0x9b, 0x00, 0x01}, 48, transition}, /* NAT64 of one's own, RFC 8215 */
    {{0x01}, 64, special},                                  /* discard, RFC 6666 */
    {{0x20, 0x01, 0x00, 0x00}, 32, transition},             /* Teredo, RFC 4380 */
    {{0x20, 0x01, 0x00, 0x02}, 48, benchmark},              /* RFC 5180 */
    {{0x20, 0x01, 0x0d, 0xb8}, 32, documentation},          /* RFC 3849 */
    {{0x20, 0x01, 0x00}, 23, special},                      /* the rest of RFC 2928 */
    {{0x20, 0x02}, 16, transition},                         /* 6to4, RFC 7526 */
    {{0x26, 0x20, 0x00, 0x4f, 0x80}, 48, special},          /* AS112, RFC 7534 */
    {{0x3f, 0xff}, 20, documentation},                      /* RFC 9637 */
    {{0xfc}, 7, private},                                   /* unique local, RFC 4193 */
    {{0xfe, 0x80}, 10, link_local},                         /* RFC 4291 */
    {{0xfe, 0xc0}, 10, private},                            /* site-local, RFC 3879 */
    {{0xff}, 8, multicast},                                 /* RFC 4291 */
};

static const char *refusal4(uint32_t address, bool allow_loopback)
{
    for (size_t i = 0; i < ARRAY_COUNT(ranges4); i++) {
        const struct range4 *range = &ranges4[i];

        if ((address ^ range->base) >> (32 - range->bits) == 0) {
            return allow_loopback && range->what == loopback ? NULL : range->what;
        }
    }
    return NULL;
}

static bool has_prefix(const uint8_t address[static 16], const uint8_t base[static 16],
                       unsigned bits)
{
    unsigned whole = bits / 8;
    unsigned rest = bits % 8;

    return memcmp(address, base, whole) == 0 &&
           (rest == 0 || (address[whole] ^ base[whole]) >> (8 - rest) == 0);
}

static const char *refusal6(const uint8_t address[static 16], bool allow_loopback)
{
    static const uint8_t mapped[16] = {[10] = 0xff, [11] = 0xff};
    static const uint8_t nat64[16] = {0x00, 0x64, 0xff, 0x9b};
    static const uint8_t global[16] = {0x20};

    /* A mapped address leaves as IPv4; a translator that the network's DNS points to (RFC 6052)
     * does the same further on, and behind one every public host looks like that. */
    if (has_prefix(address, mapped, 96) || has_prefix(address, nat64, 96)) {
        return refusal4(IP4(address[12], address[13], address[14], address[15]),
                        allow_loopback && address[1] == 0);
    }
    for (size_t i = 0; i < ARRAY_COUNT(ranges6); i++) {
        if (has_prefix(address, ranges6[i].base, ranges6[i].bits)) {
            return allow_loopback && ranges6[i].what == loopback ? NULL : ranges6[i].what;
        }
    }
    return has_prefix(address, global, 3) ? NULL : special;
}

const char *address_refusal(const struct sockaddr *address, bool allow_loopback)
{
    struct sockaddr_in ip4;
    struct sockaddr_in6 ip6;

    switch (address->sa_family) {
    case AF_INET:
        memcpy(&ip4, address, sizeof(ip4));
        return refusal4(ntohl(ip4.sin_addr.s_addr), allow_loopback);
    case AF_INET6:
        memcpy(&ip6, address, sizeof(ip6));
        return refusal6(ip6.sin6_addr.s6_addr, allow_loopback);
    default:
        return "of a family that is neither IPv4 nor IPv6";
    }
}
