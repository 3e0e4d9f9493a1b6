/* An eventfd is the cheapest descriptor there is. */
#include "t3/rpc_scarce.h"

#include <assert.h>
#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

bool rpc_scarce_descriptors(int needed)
{
    int fds[RPC_SCARCE_MAX];
    int count = 0;

    assert(needed <= RPC_SCARCE_MAX);
    while (count < needed && (fds[count] = eventfd(0, EFD_CLOEXEC)) >= 0) {
        count++;
    }
    bool scarce = count < needed && (errno == EMFILE || errno == ENFILE);

    while (count > 0) {
        (void)close(fds[--count]); /* nothing was written to it */
    }
    return scarce;
}

const char *rpc_scarce_text(int needed)
{
    return rpc_scarce_descriptors(needed) ? RPC_NO_DESCRIPTOR : "out of memory";
}
