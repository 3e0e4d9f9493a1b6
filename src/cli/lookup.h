/* Finds the records that references mean (ref.h), by asking the API. A reference to a thread is
 * looked for in one house: that of --house, else the selected one, else the only one there is. A
 * whole id is taken as it is. */
#ifndef ARBE_CLI_LOOKUP_H
#define ARBE_CLI_LOOKUP_H

#include "cli/app_call.h"

#define LOOKUP_ID_BYTES 40u

enum lookup_kind {
    LOOKUP_HOUSE = 1,  /* "house" is the selected one */
    LOOKUP_AGENT = 2,  /* "me" is the caller */
    LOOKUP_THREAD = 4, /* of one house */
};

struct lookup {
    unsigned kind; /* enum lookup_kind; for a whole id the kinds that it may be */
    char id[LOOKUP_ID_BYTES];
};

/* Finds what `ref` means among records of these kinds (a set of enum lookup_kind). 0, or an exit
 * code after having said why: COMMAND_NOT_FOUND, COMMAND_USAGE for an ambiguous one. */
int lookup_ref(struct app_call *call, const char *ref, unsigned kinds,
               struct lookup *ret_found) MUST_USE;

/* The house that a command is about. As above. */
int lookup_house(struct app_call *call, char ret_id[static LOOKUP_ID_BYTES]) MUST_USE;

/* The caller's own id. As above. */
int lookup_me(struct app_call *call, char ret_id[static LOOKUP_ID_BYTES]) MUST_USE;

#endif
