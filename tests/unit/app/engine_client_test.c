/* The shared list of a client's tests, over HTTP and over the engine of this process. */
#include "app/engine_client.c"

#include "unit/app/transport_reads.h"

static struct rig rig;

static int open_http(void **state)
{
    rig_open_http(&rig);
    *state = &rig;
    return 0;
}

static int close_http(void **state)
{
    (void)state;
    rig_close_http(&rig);
    return 0;
}

static int open_engine(void **state)
{
    rig_open_engine(&rig);
    *state = &rig;
    return 0;
}

static int close_engine(void **state)
{
    (void)state;
    rig_close_engine(&rig);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {TRANSPORT_CALLS, TRANSPORT_READS};
    int failed = cmocka_run_group_tests_name("HTTP", tests, open_http, close_http);

    return failed + cmocka_run_group_tests_name("engine", tests, open_engine, close_engine);
}
