/* One exchange: how its path is made, what is concluded from its end, and memory that runs out. The
 * rest is in scoped_request_test.c. */
#include "unit/base/fault.h"

#include "base/buf.c"
#include "client/scoped_exchange.c"

#include "unit/base/unit.h"

static struct scoped_client some_client = {.max_answer_bytes = 100};

static void setup(struct scoped_exchange *x, const char *answer)
{
    scoped_exchange_init(x, &some_client);
    memcpy(x->method, "POST", 5);
    memcpy(x->what, "cannot do it", 13);
    assert_int_equal(compose(x, NULL), STREAM_OK);
    buf_append(&x->answer, slice_of(answer));
}

static void test_path(void **state)
{
    struct scoped_exchange x;

    (void)state;
    scoped_exchange_init(&x, &some_client);
    scoped_exchange_set_entries(&x, "t-1");
    scoped_exchange_add_query(&x, "after", "a/b");
    scoped_exchange_add_query(&x, "limit", "5");
    assert_true(
        slice_equal(buf_slice(&x.path), SLICE("api/threads/t-1/entries?after=a%2Fb&limit=5")));
    scoped_exchange_finish(&x);
}

/* The answer becomes the caller's; or what was wrong with it is told, and nothing is handed out. */
static void test_conclude(void **state)
{
    static const struct {
        const char *answer;
        const char *message; /* NULL: it is good */
    } answers[] = {
        {"{\"id\":\"e1\"}", NULL},
        {"{\"id\":\"e2\"}", "cannot do it: the answer is another entry than \"e1\""},
        {"{\"id\":\"\"}", "cannot do it: the answer is no entry"},
        {"{}", "cannot do it: the answer is no entry"},
        {"7", "cannot do it: the answer is no entry"},
        {"", "cannot do it: the answer is no entry"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(answers); i++) {
        struct scoped_answer answer = {.status = 0};
        struct scoped_error error;
        struct scoped_exchange x;

        setup(&x, answers[i].answer);
        x.wants_entry = true;
        memcpy(x.entry_id, "e1", 3);
        int code = conclude(&x, STREAM_OK, 201, NULL, &answer, &error);

        if (answers[i].message == NULL) {
            assert_int_equal(code, STREAM_OK);
            assert_string_equal(answer.body, answers[i].answer);
            assert_null(x.answer.ptr);
        } else {
            assert_int_equal(code, STREAM_ERROR_FORMAT);
            assert_string_equal(error.message, answers[i].message);
            assert_int_equal(error.status, 201);
            assert_int_equal(error.outcome_unknown, 1);
            assert_null(answer.body);
        }
        free(answer.body);
        scoped_exchange_finish(&x);
    }
}

static void never(void *context, int code, struct scoped_answer *answer,
                  const struct scoped_error *error)
{
    (void)code;
    (void)answer;
    (void)error;
    *(bool *)context = true;
}

/* Even an answer of no bytes needs one; and what cannot be started has freed what it was given. */
static void test_without_memory(void **state)
{
    struct scoped_answer answer = {.status = 0};
    struct scoped_error error;
    struct scoped_exchange x;
    bool called = false;

    (void)state;
    setup(&x, "");
    fault_countdown = 0;
    int code = conclude(&x, STREAM_OK, 204, NULL, &answer, &error);

    fault_countdown = -1;
    assert_int_equal(code, STREAM_ERROR_MEMORY);
    assert_null(answer.body);
    scoped_exchange_finish(&x);

    scoped_exchange_init(&x, &some_client);
    buf_append(&x.path, SLICE("api/a"));
    fault_countdown = 0;
    code = scoped_exchange_start(&x, &some_client, never, &called, &error);
    fault_countdown = -1;
    assert_int_equal(code, STREAM_ERROR_MEMORY);

    scoped_exchange_init(&x, &some_client);
    fault_countdown = 0;
    buf_append(&x.path, SLICE("api/a"));
    fault_countdown = -1;
    assert_int_equal(scoped_exchange_run(&x, &some_client, &answer, &error), STREAM_ERROR_MEMORY);
    assert_int_equal(scoped_exchange_start(&x, &some_client, never, &called, &error),
                     STREAM_ERROR_MEMORY);
    assert_string_equal(error.code, "client.memory");
    assert_false(called);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_path),
        cmocka_unit_test(test_conclude),
        cmocka_unit_test(test_without_memory),
    };

    return UNIT_RUN(tests);
}
