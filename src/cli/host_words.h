/* What is said to people of a T3 host that is watched: how it stands, why, and what they can do, on
 * the live board and on stderr alike. Pure. */
#ifndef ARBE_CLI_HOST_WORDS_H
#define ARBE_CLI_HOST_WORDS_H

#include "cli/t3_hosts.h"
#include "t3/watch.h"

#define HOST_WORDS_BYTES 8192u /* with the NUL; what is longer is cut */

/* Where it is said, as far as that decides what can be done. */
struct host_place {
    const struct t3_hosts *hosts; /* how they sign in; NULL: nobody knows */
    bool keys;                    /* there is a key that connects again, r */
};

/* Writes one line, which begins with the state and does not name the host. It may hold anything
 * that a server said: cells_clean or cells_put make it harmless. */
void host_words(char out[static HOST_WORDS_BYTES], const struct t3_watch_host *host,
                const struct host_place *place);

#endif
