/* What servers say, and what is said to them. */
#include "unit/base/fault.h"

#include "base/buf.c"
#include "t3/frame.c"

#include "unit/base/unit.h"

static struct t3_frame frame;
static struct t3_rpc_error error;

static int read_frame(const char *text)
{
    frame = (struct t3_frame){.kind = T3_FRAME_OTHER};
    error = (struct t3_rpc_error){.code = T3_RPC_OK};
    return t3_frame_read(slice_of(text), JSON_DEPTH_MAX, &frame, &error);
}

static void assert_json(const char *text)
{
    if (!slice_equal(frame.json, slice_of(text))) {
        print_error("%.*s\n", (int)frame.json.len, frame.json.ptr);
    }
    assert_true(slice_equal(frame.json, slice_of(text)));
}

/* Members may come in any order, with others among them, and with white space. */
static void test_chunk(void **state)
{
    (void)state;
    assert_int_equal(
        read_frame("{\"_tag\":\"Chunk\",\"requestId\":\"1\",\"values\":[{\"a\":1},2]}"), T3_RPC_OK);
    assert_int_equal(frame.kind, T3_FRAME_CHUNK);
    assert_int_equal(frame.id, 1);
    assert_json("[{\"a\":1},2]");
    assert_int_equal(
        read_frame(" {\"values\" : [ 1 ], \"x\":{\"_tag\":[]}, \"requestId\":1844674407,"
                   "\"_t\\u0061g\":\"Ch\\u0075nk\"}\n"),
        T3_RPC_OK);
    assert_int_equal(frame.kind, T3_FRAME_CHUNK);
    assert_int_equal(frame.id, 1844674407);
    assert_json("[ 1 ]");
}

/* Ids come back as the string or the number that they were. */
static void test_ids(void **state)
{
    static const struct {
        const char *text;
        uint64_t id; /* 0: none */
    } cases[] = {
        {"\"7\"", 7},       {"7", 7},     {"\"18446744073709551615\"", UINT64_MAX},
        {"7.0", 7},         {"0", 0},     {"\"0\"", 0},
        {"-1", 0},          {"1.5", 0},   {"\"18446744073709551616\"", 0},
        {"\"07\"", 0},      {"\"a\"", 0}, {"\"\"", 0},
        {"\"1 \"", 0},      {"null", 0},  {"[1]", 0},
        {"{}", 0},          {"true", 0},  {"1e400", 0},
        {"\"\\u0031\"", 0},
    };
    char text[128];

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        (void)snprintf(text, sizeof(text), "{\"_tag\":\"Chunk\",\"requestId\":%s,\"values\":[1]}",
                       cases[i].text);
        if (read_frame(text) != (cases[i].id > 0 ? T3_RPC_OK : T3_RPC_ERROR_PROTOCOL)) {
            fail_msg("%s: %s", cases[i].text, error.message);
        }
        assert_int_equal(frame.id, cases[i].id);
    }
}

/* What breaks the protocol is refused with its own sentence. */
static void test_refused(void **state)
{
    static const struct {
        const char *text;
        const char *says;
    } cases[] = {
        {"", "no JSON"},
        {"{", "no JSON"},
        {"{\"_tag\":\"Pong\"}{\"_tag\":\"Pong\"}", "no JSON"},
        {"{\"_tag\":\"Pong\"}\n{\"_tag\":\"Pong\"}\n", "no JSON"},
        {"\xef\xbb\xbf{\"_tag\":\"Pong\"}", "no JSON"},
        {"{\"_tag\":\"\xff\"}", "no JSON"},
        {"null", "no object with one _tag"},
        {"[{\"_tag\":\"Pong\"}]", "no object with one _tag"},
        {"{\"tag\":\"Pong\"}", "no object with one _tag"},
        {"{\"_tag\":7}", "no object with one _tag"},
        {"{\"_tag\":\"Pong\",\"_tag\":\"Pong\"}", "no object with one _tag"},
        {"{\"_tag\":\"Chunk\",\"values\":[1]}", "by an id"},
        {"{\"_tag\":\"Chunk\",\"requestId\":\"1\"}", "without values"},
        {"{\"_tag\":\"Chunk\",\"requestId\":\"1\",\"values\":[ ]}", "without values"},
        {"{\"_tag\":\"Chunk\",\"requestId\":\"1\",\"values\":{\"a\":1}}", "without values"},
        {"{\"_tag\":\"Chunk\",\"requestId\":\"1\",\"values\":null}", "without values"},
        {"{\"_tag\":\"Exit\",\"exit\":{\"_tag\":\"Success\"}}", "by an id"},
        {"{\"_tag\":\"Exit\",\"requestId\":\"1\"}", "without an exit"},
        {"{\"_tag\":\"Exit\",\"requestId\":\"1\",\"exit\":[]}", "without an exit"},
        {"{\"_tag\":\"Exit\",\"requestId\":\"1\",\"exit\":{}}", "neither well nor with a cause"},
        {"{\"_tag\":\"Exit\",\"requestId\":\"1\",\"exit\":{\"_tag\":\"Maybe\"}}", "neither well"},
        {"{\"_tag\":\"Exit\",\"requestId\":\"1\",\"exit\":{\"_tag\":\"Failure\"}}", "neither well"},
        {"{\"_tag\":\"Exit\",\"requestId\":\"1\",\"exit\":{\"_tag\":\"Failure\",\"cause\":{}}}",
         "neither well"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        int code = read_frame(cases[i].text);

        if (code != T3_RPC_ERROR_PROTOCOL || strstr(error.message, cases[i].says) == NULL) {
            print_error("%s: %s\n", cases[i].text, error.message);
        }
        assert_int_equal(code, T3_RPC_ERROR_PROTOCOL);
        assert_int_equal(error.code, T3_RPC_ERROR_PROTOCOL);
        assert_non_null(strstr(error.message, cases[i].says));
        assert_int_equal(frame.kind, T3_FRAME_OTHER);
    }
}

/* What nobody here knows is no error. */
static void test_others(void **state)
{
    (void)state;
    assert_int_equal(read_frame("{\"_tag\":\"Pong\",\"x\":1}"), T3_RPC_OK);
    assert_int_equal(frame.kind, T3_FRAME_PONG);
    assert_int_equal(read_frame("{\"_tag\":\"Request\",\"id\":\"1\",\"tag\":\"x\"}"), T3_RPC_OK);
    assert_int_equal(frame.kind, T3_FRAME_OTHER);
    assert_int_equal(read_frame("{\"_tag\":\"\"}"), T3_RPC_OK);
    assert_int_equal(frame.kind, T3_FRAME_OTHER);
}

static void exit_with(const char *exit)
{
    static char text[4096]; /* the frame borrows from it */

    (void)snprintf(text, sizeof(text), "{\"_tag\":\"Exit\",\"requestId\":\"3\",\"exit\":%s}", exit);
    assert_int_equal(read_frame(text), T3_RPC_OK);
    assert_int_equal(frame.kind, T3_FRAME_EXIT);
    assert_int_equal(frame.id, 3);
}

static void test_success(void **state)
{
    (void)state;
    exit_with("{\"_tag\":\"Success\",\"value\":{\"thread\":{}}}");
    assert_int_equal(frame.error.code, T3_RPC_OK);
    assert_true(slice_equal(frame.json, SLICE("{\"thread\":{}}")));
    exit_with("{\"_tag\":\"Success\"}");
    assert_int_equal(frame.error.code, T3_RPC_OK);
    assert_json("null");
}

/* Each cause has its code and its sentence. */
static void test_causes(void **state)
{
    static const struct {
        const char *cause;
        enum t3_rpc_code code;
        const char *message;
    } cases[] = {
        {"[{\"_tag\":\"Fail\",\"error\":{\"_tag\":\"EnvironmentAuthorizationError\",\"message\":"
         "\"m\","
         "\"requiredScope\":\"orchestration:read\"}}]",
         T3_RPC_ERROR_SCOPE, "the token may not do this; it needs the scope orchestration:read"},
        {"[{\"_tag\":\"Fail\",\"error\":{\"_tag\":\"EnvironmentAuthorizationError\"}}]",
         T3_RPC_ERROR_SCOPE, "the token may not do this; it needs the right scope"},
        {"[{\"_tag\":\"Fail\",\"error\":{\"_tag\":\"NotFound\",\"message\":\"no thread\"}}]",
         T3_RPC_ERROR_FAILED, "the request failed: NotFound: no thread"},
        {"[{\"_tag\":\"Fail\",\"error\":{\"message\":\"no thread\"}}]", T3_RPC_ERROR_FAILED,
         "the request failed: no thread"},
        {"[{\"_tag\":\"Fail\",\"error\":{\"_tag\":\"NotFound\"}}]", T3_RPC_ERROR_FAILED,
         "the request failed: NotFound"},
        {"[{\"_tag\":\"Fail\",\"error\":7}]", T3_RPC_ERROR_FAILED,
         "the request failed: it does not say why"},
        {"[{\"_tag\":\"Fail\"}]", T3_RPC_ERROR_FAILED, "the request failed: it does not say why"},
        {"[{\"_tag\":\"Die\",\"defect\":\"Unknown request tag: a.b\"}]", T3_RPC_ERROR_METHOD,
         "the server does not know the method a.b"},
        {"[{\"_tag\":\"Die\",\"defect\":\"Missing key\\n  at [\\\"threadId\\\"]\"}]",
         T3_RPC_ERROR_DIED, "the server broke at the request: Missing key   at [\"threadId\"]"},
        {"[{\"_tag\":\"Die\",\"defect\":{\"name\":\"TypeError\",\"message\":\"boom\"}}]",
         T3_RPC_ERROR_DIED, "the server broke at the request: TypeError: boom"},
        {"[{\"_tag\":\"Interrupt\",\"fiberId\":8}]", T3_RPC_ERROR_INTERRUPTED,
         "the server interrupted the request"},
        {"[{\"_tag\":\"Interrupt\"},{\"_tag\":\"Die\",\"defect\":\"x\"},{\"_tag\":\"Fail\","
         "\"error\":"
         "{\"_tag\":\"A\"}}]",
         T3_RPC_ERROR_FAILED, "the request failed: A"},
        {"[{\"_tag\":\"Interrupt\"},{\"_tag\":\"Die\",\"defect\":\"x\"}]", T3_RPC_ERROR_DIED,
         "the server broke at the request: x"},
        {"[]", T3_RPC_ERROR_DIED, "the request failed without a reason"},
        {"[7,null,{\"_tag\":\"New\"},{\"_tag\":\"Fail\",\"_tag\":\"Fail\"}]", T3_RPC_ERROR_DIED,
         "the request failed without a reason"},
    };
    char exit[2048];

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        (void)snprintf(exit, sizeof(exit), "{\"_tag\":\"Failure\",\"cause\":%s}", cases[i].cause);
        exit_with(exit);
        assert_int_equal(frame.error.code, cases[i].code);
        assert_string_equal(frame.error.message, cases[i].message);
        assert_true(slice_equal(frame.json, slice_of(cases[i].cause)));
    }
}

/* A server's text is cut, between two characters, and commands no terminal. */
static void test_quotes(void **state)
{
    char text[601];
    char exit[1024];

    (void)state;
    for (size_t i = 0; i < sizeof(text) - 1; i += 2) {
        memcpy(text + i, "\xc3\xa4", 2);
    }
    text[sizeof(text) - 1] = '\0';
    (void)snprintf(exit, sizeof(exit),
                   "{\"_tag\":\"Failure\",\"cause\":[{\"_tag\":\"Die\",\"defect\":\"a%s\"}]}",
                   text);
    exit_with(exit);
    assert_int_equal(strlen(frame.error.message),
                     strlen("the server broke at the request: ") + 199);
    assert_int_equal((unsigned char)frame.error.message[strlen(frame.error.message) - 1], 0xa4);
    exit_with("{\"_tag\":\"Failure\",\"cause\":[{\"_tag\":\"Die\",\"defect\":"
              "\"\\u001b[31m\\u0000\\u009b\\ud800\\n\\\\\"}]}");
    assert_string_equal(frame.error.message,
                        "the server broke at the request:  [31m   \xef\xbf\xbd \\");
}

static void test_defect(void **state)
{
    (void)state;
    assert_int_equal(
        read_frame("{\"_tag\":\"Defect\",\"defect\":{\"name\":\"E\",\"message\":\"m\"}}"),
        T3_RPC_OK);
    assert_int_equal(frame.kind, T3_FRAME_DEFECT);
    assert_int_equal(frame.error.code, T3_RPC_ERROR_DEFECT);
    assert_string_equal(frame.error.message, "the server broke: E: m");
    assert_json("{\"name\":\"E\",\"message\":\"m\"}");
    assert_int_equal(read_frame("{\"_tag\":\"Defect\",\"defect\":\"no tag: Pang\"}"), T3_RPC_OK);
    assert_non_null(strstr(frame.error.message, "no tag: Pang"));
    assert_int_equal(read_frame("{\"_tag\":\"Defect\"}"), T3_RPC_OK);
    assert_json("null");
}

/* Deeper than the limit is LIMIT, also deeper than any JSON here may be. */
static void test_depth(void **state)
{
    static char text[4 * JSON_DEPTH_MAX];
    size_t len = 0;

    (void)state;
    assert_int_equal(t3_frame_read(SLICE("{\"_tag\":\"P\",\"a\":[[]]}"), 3, &frame, &error),
                     T3_RPC_OK);
    assert_int_equal(t3_frame_read(SLICE("{\"_tag\":\"P\",\"a\":[[]]}"), 2, &frame, &error),
                     T3_RPC_ERROR_LIMIT);
    assert_non_null(strstr(error.message, "deeper than 2"));
    for (unsigned i = 0; i <= JSON_DEPTH_MAX; i++) {
        text[len++] = '[';
    }
    for (unsigned i = 0; i <= JSON_DEPTH_MAX; i++) {
        text[len++] = ']';
    }
    assert_int_equal(t3_frame_read((struct slice){text, len}, JSON_DEPTH_MAX, &frame, &error),
                     T3_RPC_ERROR_LIMIT);
}

/* What is said is said so, to the byte. */
static void test_said(void **state)
{
    char memory[512];
    struct buf out;

    (void)state;
    buf_init_fixed(&out, memory, sizeof(memory));
    t3_frame_request(&out, 18446744073709551615u, SLICE("a\"b"), SLICE("{\"x\":1}"));
    buf_append_char(&out, '\n');
    t3_frame_ack(&out, 1);
    buf_append_char(&out, '\n');
    t3_frame_interrupt(&out, 2);
    buf_append_char(&out, '\n');
    t3_frame_ping(&out);
    assert_false(out.failed);
    memory[out.len] = '\0';
    assert_string_equal(memory, "{\"_tag\":\"Request\",\"id\":\"18446744073709551615\",\"tag\":"
                                "\"a\\\"b\",\"payload\":{\"x\":1},\"headers\":[]}\n"
                                "{\"_tag\":\"Ack\",\"requestId\":\"1\"}\n"
                                "{\"_tag\":\"Interrupt\",\"requestId\":\"2\"}\n"
                                "{\"_tag\":\"Ping\"}");
}

static void test_payload(void **state)
{
    struct slice payload = SLICE("as it was");

    (void)state;
    assert_int_equal(t3_frame_payload(SLICE(" {\"a\":1}\n"), &payload, &error), T3_RPC_OK);
    assert_true(slice_equal(payload, SLICE("{\"a\":1}")));
    assert_int_equal(t3_frame_payload(SLICE("[]"), &payload, &error), T3_RPC_ERROR_ARGUMENT);
    assert_string_equal(error.message, "the payload is an array; it must be an object");
    assert_int_equal(t3_frame_payload(SLICE("{\"a\":}"), &payload, &error), T3_RPC_ERROR_ARGUMENT);
    assert_true(slice_equal(payload, SLICE("{\"a\":1}")));
}

/* Without memory a message is not half there: the buffer says so. */
static void test_no_memory(void **state)
{
    struct buf out;

    (void)state;
    for (long i = 0;; i++) {
        buf_init(&out, 1024);
        fault_countdown = i;
        t3_frame_request(&out, 1, SLICE("a.b"),
                         SLICE("{\"text\":\"xxxxxxxxxxxxxxxxxxxxxxxxxxxx\"}"));
        fault_countdown = -1;
        bool failed = out.failed;

        buf_finish(&out);
        if (!failed) {
            assert_true(i > 0);
            break;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chunk),   cmocka_unit_test(test_ids),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_others),
        cmocka_unit_test(test_success), cmocka_unit_test(test_causes),
        cmocka_unit_test(test_quotes),  cmocka_unit_test(test_defect),
        cmocka_unit_test(test_depth),   cmocka_unit_test(test_said),
        cmocka_unit_test(test_payload), cmocka_unit_test(test_no_memory),
    };

    return UNIT_RUN(tests);
}
