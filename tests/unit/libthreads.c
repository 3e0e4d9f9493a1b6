/* Linked to every unit test. cmocka ends the program without a word when an assertion fails on
 * a thread that is not the test's, as it cannot jump from there: this makes it say which it was. */
#include <stdlib.h>
#include <unistd.h>

#include "unit/base/unit.h"

static void tell(int status, void *context)
{
    (void)context;
    if (status != 0 && gettid() != getpid()) {
        (void)setenv("CMOCKA_TEST_ABORT", "1", 1); /* prints what this thread has failed with */
        fail_msg("on a thread that is not the test's:");
    }
}

__attribute__((constructor)) static void watch(void)
{
    (void)on_exit(tell, NULL);
}
