/* The shared list of a client's tests, over HTTP and over the engine of this process. */
#include "app/engine_client.c"

#include "unit/app/transport_transcript.h"

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

/* Options are checked as stream_client_new checks them; what was made by then is given back. */
static void checks_options(void **state)
{
    struct stream_client_options options = rig_options();
    struct stream_client *client = NULL;
    struct stream_error error;

    (void)state;
    options.max_message_bytes = 0;
    EXPECT(STREAM_ERROR_ARGUMENT, engine_client_new(&rig.config, &options, &client, &error));
    EXPECT_WORDS("max_message_bytes is 0");
    assert_null(client);
    EXPECT(STREAM_OK, engine_client_new(&rig.config, NULL, &client, &error));
    stream_client_free(client);
}

int main(void)
{
    const struct CMUnitTest shared[] = {TRANSPORT_CALLS, TRANSPORT_READS,
                                        cmocka_unit_test(writes_transcript)};
    const struct CMUnitTest own[] = {cmocka_unit_test(checks_options)};
    const struct CMUnitTest both[] = {cmocka_unit_test(compares_transcripts)};
    int failed = cmocka_run_group_tests_name("HTTP", shared, open_http, close_http);

    failed += cmocka_run_group_tests_name("engine", shared, open_engine, close_engine);
    failed += cmocka_run_group_tests_name("engine alone", own, open_engine, close_engine);
    return failed + cmocka_run_group_tests_name("both", both, NULL, NULL);
}
