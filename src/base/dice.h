/* Numbers that look random, for jitter, the shape of trees and tests: splitmix64. Who knows the
 * state knows them all, so no secret may depend on them. */
#ifndef ARBE_BASE_DICE_H
#define ARBE_BASE_DICE_H

#include <stdint.h>

/* The next one; any value of `*state` is good to begin with. */
static inline uint64_t dice_roll(uint64_t *state)
{
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

#endif
