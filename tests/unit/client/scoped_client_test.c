/* Making scoped clients: options, good and bad, and their life. */
#include "unit/base/fault.h"

#include "client/scoped_client.c"

#include "client/client.h"

#include "unit/base/unit.h"

static void assert_refused(const char *url, const struct scoped_client_options *options,
                           const char *message)
{
    struct scoped_client *client = NULL;
    struct scoped_error error;

    assert_int_equal(scoped_client_new(url, options, &client, &error), STREAM_ERROR_ARGUMENT);
    assert_string_equal(error.message, message);
    assert_string_equal(error.code, "client.argument");
    assert_int_equal(error.kind, STREAM_ERROR_ARGUMENT);
    assert_int_equal(error.retry_after_ms, -1);
    assert_null(client);
}

static void test_options(void **state)
{
    struct scoped_client_options o;

    (void)state;
    scoped_client_options_init(&o);
    assert_int_equal(o.tail_retry.max_retries, STREAM_RETRY_FOREVER);
    assert_true(o.retry.max_retries < 100);
    assert_refused("ftp://h", &o,
                   "the base URL is not good: it must begin with http:// or "
                   "https://");
    assert_refused("http://h?x", &o, "the base URL is not good: it must not have a query ('?')");
    o.bearer = "a\nb";
    assert_refused("http://h", &o, "bearer is empty or holds control characters");
    o.bearer = NULL;
    o.max_entry_bytes = 0;
    assert_refused("http://h", &o, "max_entry_bytes is 0; it must be 1 or more");
    o.max_entry_bytes = 1;
    o.max_answer_bytes = 0;
    assert_refused("http://h", &o, "max_answer_bytes is 0; it must be 1 or more");
    o.max_answer_bytes = 1;
    o.tail_retry.multiplier = 0;
    assert_refused("http://h", &o, "tail_retry.multiplier is 0; it must be 1 or more");
    o.tail_retry.multiplier = 1;
    o.retry.max_retries = -1;
    assert_refused("http://h", &o, "retry.max_retries is -1; it must be 0 or more");
}

static void test_life(void **state)
{
    struct scoped_client *client;
    struct scoped_error error;

    (void)state;
    scoped_client_free(NULL);
    assert_int_equal(scoped_client_new("http://h", NULL, &client, NULL), STREAM_OK);
    assert_true(scoped_client_fd(client) >= 0);
    scoped_client_step(client);
    scoped_client_abort(client);
    scoped_client_reset(client);
    assert_false(client_aborted(client->stream));
    scoped_client_free(client);
    fault_countdown = 0;
    int code = scoped_client_new("http://h", NULL, &client, &error);

    fault_countdown = -1;
    assert_int_equal(code, STREAM_ERROR_MEMORY);
    assert_string_equal(error.code, "client.memory");
}

static void test_ids(void **state)
{
    (void)state;
    assert_true(scoped_id_good("0198c0de-0000-7000-8000-000000000001"));
    assert_true(scoped_id_good("arbe.deleted.x"));
    assert_true(scoped_id_good("..."));
    assert_false(scoped_id_good(NULL));
    assert_false(scoped_id_good(""));
    assert_false(scoped_id_good("."));
    assert_false(scoped_id_good(".."));
    assert_false(scoped_id_good("a/b"));
    assert_false(scoped_id_good("a%2Fb"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_life),
        cmocka_unit_test(test_ids),
    };

    return UNIT_RUN(tests);
}
