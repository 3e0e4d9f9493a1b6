/* The error envelope of the app's API: {"error": {code, message, suggestion?, recoverable?,
 * context?: {field?}}}. Pure. */
#ifndef ARBE_CLIENT_REFUSAL_H
#define ARBE_CLIENT_REFUSAL_H

#include "base/slice.h"

/* What an envelope says; texts that are not there are empty, too long ones cut. Each is one line
 * that may be shown on a terminal. */
struct refusal {
    bool present; /* there was an envelope, with a code */
    bool recoverable;
    char code[64];
    char message[512];
    char suggestion[256];
    char field[160];
};

/* Reads the body of a refusal; anything that is no envelope leaves *ret_refusal zeroed. */
void refusal_read(struct slice body, struct refusal *ret_refusal);

#endif
