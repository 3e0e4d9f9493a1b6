/* A reader of events that wakes when memory is out. */
#include "unit/base/fault.h"

#include "serve/sse.c"
#include "serve/work.c"

#include "stream/stream.h"
#include "unit/base/unit.h"
#include "unit/serve/live_rig.h"

/* It has given back what a read takes. When there is none for it later, its connection ends, and
 * that is counted. */
static void no_memory_when_woken(void **state)
{
    struct stream *stream = calloc(1, sizeof(*stream) + 1);
    int fd;
    struct exchange *x = connect_one(&fd);
    char got;

    (void)state;
    x->live.stream = stream;
    fault_countdown = 0;
    look(x);
    fault_countdown = -1;
    await_end();
    assert_int_equal(recv(fd, &got, 1, 0), 0);
    assert_int_equal(counter_get(&worker.tally.errors[-ERR_NOMEM - 1]), 1);
    (void)close(fd);
    free(stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(no_memory_when_woken, begin, finish),
    };

    return UNIT_RUN(tests);
}
