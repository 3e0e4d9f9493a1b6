/* A reader whose right ends before it is live, and one who wakes when memory is out. */
#include "unit/base/fault.h"

#include "serve/longpoll.c"
#include "serve/work.c"

#include <stdlib.h>

#include "stream/stream.h"
#include "unit/base/unit.h"
#include "unit/serve/live_rig.h"

/* Expects the beginning of an answer, and ends the connection. */
static void expect_answer(int fd, const char *first)
{
    char got[64] = "";

    while (recv(fd, got, strlen(first), 0) <= 0) {
        loop_turn(worker.loop, 1000);
    }
    assert_string_equal(got, first);
    (void)close(fd);
    await_end();
}

/* What let it read is taken away while its first read is under way: it never follows. */
static void rights_that_end_early(void **state)
{
    int fd;
    struct exchange *x = connect_one(&fd);

    (void)state;
    session_end_read(x->session);
    assert_false(live_begin(x, &live_ops));
    assert_int_equal(atomic_load(&server.waiters), 0);
    expect_answer(fd, "HTTP/1.1 403");
}

/* A reader that waits has given back what a read takes. When there is none for it later, it is told
 * to come again. */
static void no_memory_when_woken(void **state)
{
    struct stream *stream = calloc(1, sizeof(*stream) + 1);
    int fd;
    struct exchange *x = connect_one(&fd);

    (void)state;
    x->live.stream = stream;
    x->live.waiting = true;
    fault_countdown = 0;
    wake(&x->live.waiter);
    fault_countdown = -1;
    expect_answer(fd, "HTTP/1.1 503");
    free(stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rights_that_end_early, begin, finish),
        cmocka_unit_test_setup_teardown(no_memory_when_woken, begin, finish),
    };

    return UNIT_RUN(tests);
}
