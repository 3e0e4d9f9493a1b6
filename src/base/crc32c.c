/* The instruction is used where the processor has it; tables serve elsewhere, and check it in the
 * tests. Both keep the register inverted between steps, as RFC 3720 wants it. */
#include "base/crc32c.h"

#include "base/bytes.h"

#include <stdbool.h>

#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

/* A CRC is linear: the entry of a byte is the sum of the entries of its bits. So eight numbers for
 * each table say all 256, and the compiler does the sums. */
#define BIT(byte, n, entry) (((byte) >> (n)&1) != 0 ? (entry) : 0u)
#define ENTRY(byte, b0, b1, b2, b3, b4, b5, b6, b7)                                                \
    BIT(byte, 0, b0) ^ BIT(byte, 1, b1) ^ BIT(byte, 2, b2) ^ BIT(byte, 3, b3) ^ BIT(byte, 4, b4) ^ \
        BIT(byte, 5, b5) ^ BIT(byte, 6, b6) ^ BIT(byte, 7, b7)
#define ROW4(byte, ...)                                                                       \
    ENTRY(byte, __VA_ARGS__), ENTRY((byte) + 1, __VA_ARGS__), ENTRY((byte) + 2, __VA_ARGS__), \
        ENTRY((byte) + 3, __VA_ARGS__)
#define ROW16(byte, ...)                                                                   \
    ROW4(byte, __VA_ARGS__), ROW4((byte) + 4, __VA_ARGS__), ROW4((byte) + 8, __VA_ARGS__), \
        ROW4((byte) + 12, __VA_ARGS__)
#define ROW64(byte, ...)                                                                        \
    ROW16(byte, __VA_ARGS__), ROW16((byte) + 16, __VA_ARGS__), ROW16((byte) + 32, __VA_ARGS__), \
        ROW16((byte) + 48, __VA_ARGS__)
#define ROW(...)                                                               \
    ROW64(0u, __VA_ARGS__), ROW64(64u, __VA_ARGS__), ROW64(128u, __VA_ARGS__), \
        ROW64(192u, __VA_ARGS__)

/* tables[k][b] is the register after byte b and k zero bytes ("slicing by eight"). The numbers are
 * the polynomial 0x82f63b78 (bit-reversed), shifted one bit further at each step to the left. */
/* clang-format off */
static const uint32_t tables[8][256] = {
    {ROW(0xf26b8303, 0xe13b70f7, 0xc79a971f, 0x8ad958cf,
         0x105ec76f, 0x20bd8ede, 0x417b1dbc, 0x82f63b78)},
    {ROW(0x13a29877, 0x274530ee, 0x4e8a61dc, 0x9d14c3b8,
         0x3fc5f181, 0x7f8be302, 0xff17c604, 0xfbc3faf9)},
    {ROW(0xa541927e, 0x4f6f520d, 0x9edea41a, 0x38513ec5,
         0x70a27d8a, 0xe144fb14, 0xc76580d9, 0x8b277743)},
    {ROW(0xdd45aab8, 0xbf672381, 0x7b2231f3, 0xf64463e6,
         0xe964b13d, 0xd725148b, 0xaba65fe7, 0x52a0c93f)},
    {ROW(0x38116fac, 0x7022df58, 0xe045beb0, 0xc5670b91,
         0x8f2261d3, 0x1ba8b557, 0x37516aae, 0x6ea2d55c)},
    {ROW(0xef306b19, 0xdb8ca0c3, 0xb2f53777, 0x6006181f,
         0xc00c303e, 0x85f4168d, 0x0e045beb, 0x1c08b7d6)},
    {ROW(0x68032cc8, 0xd0065990, 0xa5e0c5d1, 0x4e2dfd53,
         0x9c5bfaa6, 0x3d5b83bd, 0x7ab7077a, 0xf56e0ef4)},
    {ROW(0x493c7d27, 0x9278fa4e, 0x211d826d, 0x423b04da,
         0x847609b4, 0x0d006599, 0x1a00cb32, 0x34019664)},
};
/* clang-format on */

static uint32_t update_by_table(uint32_t state, const unsigned char *at, size_t len)
{
    for (; len >= 8; at += 8, len -= 8) {
        uint64_t word = bytes_get_u64(at) ^ state;

        state = 0;
        for (unsigned i = 0; i < 8; i++) {
            state ^= tables[7 - i][word >> (8 * i) & 0xff];
        }
    }
    for (; len > 0; at++, len--) {
        state = tables[0][(state ^ *at) & 0xff] ^ (state >> 8);
    }
    return state;
}

#if defined(__x86_64__)

static bool has_instruction(void)
{
    return __builtin_cpu_supports("sse4.2") != 0;
}

__attribute__((target("sse4.2"))) static uint32_t update_by_instruction(uint32_t state,
                                                                        const unsigned char *at,
                                                                        size_t len)
{
    uint64_t wide = state;

    for (; len >= 8; at += 8, len -= 8) {
        wide = __builtin_ia32_crc32di(wide, bytes_get_u64(at));
    }
    state = (uint32_t)wide;
    for (; len > 0; at++, len--) {
        state = __builtin_ia32_crc32qi(state, *at);
    }
    return state;
}

#elif defined(__aarch64__)

static bool has_instruction(void)
{
    return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
}

/* In assembler, since gcc and clang name the target and the builtins differently. */
static uint32_t update_by_instruction(uint32_t state, const unsigned char *at, size_t len)
{
    for (; len >= 8; at += 8, len -= 8) {
        uint64_t word = bytes_get_u64(at);

        __asm__(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(state) : "r"(word));
    }
    for (; len > 0; at++, len--) {
        uint32_t byte = *at;

        __asm__(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(state) : "r"(byte));
    }
    return state;
}

#else

static bool has_instruction(void)
{
    return false;
}

static uint32_t update_by_instruction(uint32_t state, const unsigned char *at, size_t len)
{
    return update_by_table(state, at, len);
}

#endif

uint32_t crc32c(uint32_t crc, const void *bytes, size_t len)
{
    if (has_instruction()) {
        return ~update_by_instruction(~crc, bytes, len);
    }
    return ~update_by_table(~crc, bytes, len);
}
