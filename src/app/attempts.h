/* How often an address has failed to sign in of late: so many a minute, then it waits. Bounded;
 * addresses that share a place share their attempts. Any thread. */
#ifndef ARBE_APP_ATTEMPTS_H
#define ARBE_APP_ATTEMPTS_H

#include "base/attr.h"

#include <stdint.h>

#define ATTEMPTS_PER_MINUTE 10u

struct attempts;

/* ERR_NOMEM. */
int attempts_create(struct attempts **ret_attempts) MUST_USE;

/* Accepts NULL. */
void attempts_destroy(struct attempts *a);

/* Whether `address`, a hash of it, may try now: 0, or after how many seconds it may. */
uint64_t attempts_wait_s(struct attempts *a, uint64_t address, int64_t now_ms) MUST_USE;

/* It has tried, and failed. Who is told to wait is not counted again. */
void attempts_failed(struct attempts *a, uint64_t address, int64_t now_ms);

/* A hash of the address that the socket is connected to, an IPv6 one by its first 64 bits; under a
 * secret seed, so that nobody can choose whose place to share. */
uint64_t attempts_address(const struct attempts *a, int fd);

#endif
