/* The part of the shared list that is about single calls. See transport_rig.h. */
#ifndef ARBE_TESTS_UNIT_APP_TRANSPORT_CALLS_H
#define ARBE_TESTS_UNIT_APP_TRANSPORT_CALLS_H

#include "unit/app/transport_rig.h"

#define TOKEN(digits) "0000000000000000_00000000000000" digits

/* What a creation, a second one, HEAD and a deletion say. */
static void creates_and_deletes(void **state)
{
    struct stream_client *client = rig_client(*state, NULL);
    struct stream_create_options options = {.content_type = "text/plain", .ttl_seconds = 600};
    struct stream_info info;
    struct stream_error error;

    EXPECT(STREAM_OK, stream_client_create(client, "create/a", &options, &info, &error));
    assert_int_equal(info.status, 201);
    assert_true(info.created && !info.closed);
    assert_string_equal(info.content_type, "text/plain");
    assert_string_equal(info.next_offset, TOKEN("00"));
    EXPECT(STREAM_OK, stream_client_create(client, "create/a", &options, &info, &error));
    assert_int_equal(info.status, 200);
    assert_false(info.created);
    EXPECT(STREAM_OK, stream_client_head(client, "create/a", &info, &error));
    assert_int_equal(info.status, 200);
    assert_int_equal(info.ttl_seconds, 600);
    assert_string_equal(info.expires_at, "");
    assert_string_equal(info.content_type, "text/plain");
    assert_int_equal(info.producer_epoch, -1);
    options.content_type = "text/csv";
    EXPECT(STREAM_ERROR_EXISTS, stream_client_create(client, "create/a", &options, &info, &error));
    assert_int_equal(error.status, 409);
    assert_false(error.outcome_unknown);
    EXPECT(STREAM_OK, stream_client_delete(client, "create/a", &error));
    EXPECT(STREAM_ERROR_NOT_FOUND, stream_client_delete(client, "create/a", &error));
    assert_int_equal(error.status, 404);
    EXPECT_WORDS("cannot delete \"create/a\": there is no such stream (status 404)");
    EXPECT(STREAM_ERROR_NOT_FOUND, stream_client_head(client, "create/a", &info, &error));
    stream_client_free(client);
}

/* First content, no content type, closed from the start, an end in time. */
static void creates_with_everything(void **state)
{
    struct stream_client *client = rig_client(*state, NULL);
    struct stream_create_options options = {
        .data = "first", .len = 5, .closed = 1, .expires_at = "2199-01-31T12:00:00+02:00"};
    struct stream_info info;
    struct stream_error error;

    EXPECT(STREAM_OK, stream_client_create(client, "full", &options, &info, &error));
    assert_true(info.closed);
    assert_string_equal(info.next_offset, TOKEN("05"));
    EXPECT(STREAM_OK, stream_client_head(client, "full", &info, &error));
    assert_true(info.closed);
    assert_string_equal(info.content_type, "application/octet-stream");
    assert_string_equal(info.expires_at, "2199-01-31T10:00:00.000Z");
    assert_int_equal(info.ttl_seconds, -1);
    rig_expect(client, "full", NULL, "first");
    EXPECT(STREAM_OK, stream_client_create(client, "bare", NULL, NULL, &error));
    EXPECT(STREAM_OK, stream_client_head(client, "bare", &info, &error));
    assert_string_equal(info.content_type, "application/octet-stream");
    stream_client_free(client);
}

/* A stream lives for its TTL and no longer. */
static void ends_in_time(void **state)
{
    struct stream_client *client = rig_client(*state, NULL);
    struct stream_create_options options = {.content_type = "text/plain", .ttl_seconds = 1};
    struct stream_error error;
    int code = STREAM_OK;

    EXPECT(STREAM_OK, stream_client_create(client, "brief", &options, NULL, &error));
    while (code == STREAM_OK) {
        (void)poll(NULL, 0, 20);
        code = stream_client_head(client, "brief", NULL, &error);
    }
    assert_int_equal(code, STREAM_ERROR_NOT_FOUND);
    stream_client_free(client);
}

/* Bytes come back as they were given, one append behind the other. */
static void appends_bytes(void **state)
{
    struct stream_client *client = rig_client(*state, NULL);
    struct stream_append_options seq = {.seq = "b"};
    struct stream_message messages[] = {{"x", 1}, {"", 0}, {"yz", 2}};
    struct stream_info info;
    struct stream_error error;

    rig_create(client, "bytes", "text/plain");
    EXPECT(STREAM_OK, stream_client_append(client, "bytes", "one\n", 4, NULL, &info, &error));
    assert_int_equal(info.status, 204);
    assert_string_equal(info.next_offset, TOKEN("04"));
    assert_int_equal(info.producer_epoch, -1);
    EXPECT(STREAM_OK, stream_client_append(client, "bytes", "\0two", 4, &seq, &info, &error));
    seq.seq = "a";
    EXPECT(STREAM_ERROR_SEQUENCE,
           stream_client_append(client, "bytes", "-", 1, &seq, &info, &error));
    assert_int_equal(error.expected_seq, -1);
    EXPECT_WORDS("cannot append to \"bytes\": Sequence conflict: Stream-Seq must be greater");
    EXPECT(STREAM_OK,
           stream_client_append_batch(client, "bytes", messages, 3, NULL, &info, &error));
    assert_string_equal(info.next_offset, TOKEN("11"));
    rig_expect(client, "bytes", TOKEN("05"), "twoxyz");
    stream_client_free(client);
}

/* JSON keeps every byte of a message; arrays are several; what is no JSON is refused. */
static void appends_json(void **state)
{
    static const char odd[] = "{ \"a\" : 1e400, \"a\":\"\\u00e9\\/\", \"n\":12345678901234567890 }";
    struct stream_client *client = rig_client(*state, NULL);
    struct stream_message messages[] = {{"{\"m\":1}", 7}, {" [2]", 4}, {"null", 4}};
    struct stream_append_options plain = {.content_type = "text/plain"};
    struct stream_error error;
    char expected[256];

    rig_create(client, "json", "application/json");
    rig_expect(client, "json", NULL, "[]");
    rig_append(client, "json", odd);
    rig_append(client, "json", " [1,\n[2, 3]] ");
    EXPECT(STREAM_OK, stream_client_append_batch(client, "json", messages, 3, NULL, NULL, &error));
    (void)snprintf(expected, sizeof(expected), "[%s,1,[2, 3],{\"m\":1},[2],null]", odd);
    rig_expect(client, "json", NULL, expected);
    EXPECT(STREAM_ERROR_REJECTED,
           stream_client_append(client, "json", "{\"a\":}", 6, NULL, NULL, &error));
    assert_int_equal(error.status, 400);
    EXPECT_WORDS("cannot append to \"json\": ");
    EXPECT(STREAM_ERROR_REJECTED,
           stream_client_append(client, "json", "[]", 2, NULL, NULL, &error));
    EXPECT(STREAM_ERROR_EXISTS, stream_client_append(client, "json", "1", 1, &plain, NULL, &error));
    assert_int_equal(error.status, 409);
    rig_expect(client, "json", NULL, expected);
    stream_client_free(client);
}

/* A type that is not given is asked for, and asked for anew when the stream was made anew. */
static void finds_types(void **state)
{
    struct stream_client *client = rig_client(*state, NULL);
    struct stream_client *other = rig_client(*state, NULL);
    struct stream_error error;

    rig_create(other, "type", "text/plain");
    rig_append(client, "type", "a");
    EXPECT(STREAM_OK, stream_client_delete(other, "type", &error));
    rig_create(other, "type", "application/json");
    rig_append(client, "type", "{}");
    rig_expect(client, "type", NULL, "[{}]");
    EXPECT(STREAM_ERROR_NOT_FOUND,
           stream_client_append(client, "type/none", "a", 1, NULL, NULL, &error));
    stream_client_free(client);
    stream_client_free(other);
}

/* A closed stream takes no more, and closing it again is fine. */
static void closes(void **state)
{
    struct stream_client *client = rig_client(*state, NULL);
    struct stream_append_options last = {.close = 1};
    struct stream_info info;
    struct stream_error error;

    rig_create(client, "close", "text/plain");
    EXPECT(STREAM_OK, stream_client_append(client, "close", "end", 3, &last, &info, &error));
    assert_int_equal(info.status, 204);
    assert_true(info.closed);
    assert_string_equal(info.next_offset, TOKEN("03"));
    EXPECT(STREAM_OK, stream_client_close(client, "close", &info, &error));
    assert_true(info.closed);
    EXPECT(STREAM_ERROR_CLOSED, stream_client_append(client, "close", "x", 1, NULL, NULL, &error));
    assert_int_equal(error.status, 409);
    EXPECT_WORDS("cannot append to \"close\": the stream is closed (status 409)");
    EXPECT(STREAM_ERROR_NOT_FOUND, stream_client_close(client, "close/none", NULL, &error));
    EXPECT_WORDS("cannot close \"close/none\": ");
    stream_client_free(client);
}

/* Claims of producers: new, known, a gap, an old epoch, a new one that does not begin at 0. */
static void claims(void **state)
{
    struct stream_client *client = rig_client(*state, NULL);
    struct stream_append_options p = {
        .content_type = "text/plain", .producer_id = "p \xc3\xa9", .producer_epoch = 3};
    struct stream_info info;
    struct stream_error error;

    rig_create(client, "claim", "text/plain");
    EXPECT(STREAM_OK, stream_client_append(client, "claim", "a", 1, &p, &info, &error));
    assert_int_equal(info.status, 200);
    assert_false(info.duplicate);
    assert_int_equal(info.producer_epoch, 3);
    assert_int_equal(info.producer_seq, 0);
    EXPECT(STREAM_OK, stream_client_append(client, "claim", "a", 1, &p, &info, &error));
    assert_int_equal(info.status, 204);
    assert_true(info.duplicate);
    p.producer_seq = 5;
    EXPECT(STREAM_ERROR_SEQUENCE, stream_client_append(client, "claim", "b", 1, &p, &info, &error));
    assert_int_equal(error.status, 409);
    assert_int_equal(error.expected_seq, 1);
    p.producer_epoch = 2;
    EXPECT(STREAM_ERROR_FENCED, stream_client_append(client, "claim", "b", 1, &p, &info, &error));
    assert_int_equal(error.status, 403);
    assert_int_equal(error.current_epoch, 3);
    p.producer_epoch = 4;
    EXPECT(STREAM_ERROR_REJECTED, stream_client_append(client, "claim", "b", 1, &p, &info, &error));
    assert_int_equal(error.status, 400);
    p = (struct stream_append_options){
        .producer_id = p.producer_id, .producer_epoch = 3, .producer_seq = 1, .close = 1};
    EXPECT(STREAM_OK, stream_client_append(client, "claim", NULL, 0, &p, &info, &error));
    assert_int_equal(info.status, 204);
    assert_true(info.closed && !info.duplicate);
    p.producer_id = "other";
    EXPECT(STREAM_ERROR_CLOSED, stream_client_append(client, "claim", "x", 1, &p, &info, &error));
    rig_expect(client, "claim", NULL, "a");
    stream_client_free(client);
}

/* Forks: at the tail, at an offset, some messages or bytes beyond it; their source may go. */
static void forks(void **state)
{
    struct stream_client *client = rig_client(*state, NULL);
    struct stream_create_options options = {.fork_of = "fork/source %2f?"};
    struct stream_info info;
    struct stream_error error;

    rig_create(client, "fork/source %2F?", "application/json");
    rig_append(client, "fork/source %2F?", "[1,2,3]");
    EXPECT(STREAM_OK, stream_client_create(client, "fork/tail", &options, &info, &error));
    assert_string_equal(info.content_type, "application/json");
    assert_string_equal(info.next_offset, TOKEN("06"));
    options.fork_offset = "-1";
    options.fork_sub_offset = 2;
    EXPECT(STREAM_OK, stream_client_create(client, "fork/two", &options, &info, &error));
    rig_append(client, "fork/two", "4");
    rig_expect(client, "fork/two", NULL, "[1,2,4]");
    options.fork_sub_offset = 9;
    EXPECT(STREAM_ERROR_REJECTED, stream_client_create(client, "fork/x", &options, NULL, &error));
    options = (struct stream_create_options){.fork_of = "fork/none"};
    EXPECT(STREAM_ERROR_NOT_FOUND, stream_client_create(client, "fork/x", &options, NULL, &error));
    options.fork_of = "";
    EXPECT(STREAM_ERROR_ARGUMENT, stream_client_create(client, "fork/x", &options, NULL, &error));
    EXPECT_WORDS("fork_of: a stream's name must not be empty");
    EXPECT(STREAM_OK, stream_client_delete(client, "fork/source %2f?", &error));
    rig_expect(client, "fork/tail", NULL, "[1,2,3]");
    EXPECT(STREAM_ERROR_GONE, stream_client_head(client, "fork/source %2F?", NULL, &error));
    EXPECT(STREAM_ERROR_EXISTS,
           stream_client_create(client, "fork/source %2F?", NULL, NULL, &error));
    assert_int_equal(error.status, 409);
    stream_client_free(client);
}

/* Names are what they are, whatever stands in them. */
static void takes_any_name(void **state)
{
    static const char *const names[] = {
        "name/a b",       "name/\xe2\x82\xac", "name/%",   "name/100%25",
        "name/a%2Fb",     "name/?q=1#f",       "name//x/", "name/a+b&c=d",
        "name/\"\\{}|^`", "name/...",          "name/%zz",
    };
    struct stream_client *client = rig_client(*state, NULL);
    struct stream_info info;
    struct stream_error error;
    char longest[520];

    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        struct stream_create_options options = {
            .content_type = "text/plain", .data = names[i], .len = strlen(names[i])};

        EXPECT(STREAM_OK, stream_client_create(client, names[i], &options, &info, &error));
        assert_true(info.created);
    }
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        rig_expect(client, names[i], NULL, names[i]);
    }
    rig_expect(client, "name/a%2fb", NULL, "name/a%2Fb");
    EXPECT(STREAM_ERROR_ARGUMENT, stream_client_head(client, "name/../x", NULL, &error));
    EXPECT(STREAM_ERROR_ARGUMENT, stream_client_head(client, "", NULL, &error));
    EXPECT(STREAM_ERROR_ARGUMENT, stream_client_head(client, "name/\n", NULL, &error));
    EXPECT(STREAM_ERROR_NOT_FOUND, stream_client_delete(client, "__ds/x", &error));
    memset(longest, 'n', sizeof(longest));
    longest[481] = '\0';
    EXPECT(STREAM_ERROR_REJECTED, stream_client_delete(client, longest, &error));
    assert_int_equal(error.status, 414);
    longest[480] = '\0';
    EXPECT(STREAM_ERROR_NOT_FOUND, stream_client_delete(client, longest, &error));
    stream_client_free(client);
}

/* Remembers what a listing shows. */
struct names {
    size_t count;
    size_t max; /* no more are wanted; 0: all */
    char last[600];
    struct stream_info info;
    bool in_order;
};

static int note_name(void *context, const char *name, const struct stream_info *info)
{
    struct names *names = context;

    names->in_order = (names->count == 0 || strcmp(names->last, name) < 0) &&
                      (names->count == 0 || names->in_order);
    (void)snprintf(names->last, sizeof(names->last), "%s", name);
    names->info = *info;
    names->count++;
    return names->count == names->max;
}

static void note_created(void *context, int code, const struct stream_info *info,
                         const struct stream_error *error)
{
    (void)info;
    (void)error;
    *(int *)context += code == STREAM_OK ? 1 : 1000000;
}

/* Runs callbacks until `*count` is `wanted`. */
static void step_until(struct stream_client *client, const int *count, int wanted)
{
    struct pollfd fd = {.fd = stream_client_fd(client), .events = POLLIN};

    while (*count < wanted) {
        assert_true(poll(&fd, 1, 30000) == 1);
        stream_client_step(client);
    }
    assert_int_equal(*count, wanted);
}

/* A listing goes over several pages, says what HEAD says, and stops where it is told to. */
static void lists(void **state)
{
    const int count = 1100;
    struct stream_client *client = rig_client(*state, NULL);
    struct stream_create_options options = {.content_type = "text/plain", .ttl_seconds = 6000};
    struct names names = {0};
    struct stream_error error;
    char longest[520];
    int created = 0;

    for (int i = 0; i < count; i++) {
        char name[32];

        (void)snprintf(name, sizeof(name), "list/%05d", i);
        EXPECT(STREAM_OK,
               stream_client_start_create(client, name, &options, note_created, &created, &error));
    }
    step_until(client, &created, count);
    rig_append(client, "list/01099", "12345");
    EXPECT(STREAM_OK, stream_client_close(client, "list/01099", NULL, &error));
    EXPECT(STREAM_OK, stream_client_list(client, "list/", note_name, &names, &error));
    assert_int_equal(names.count, count);
    assert_true(names.in_order);
    assert_string_equal(names.last, "list/01099");
    assert_string_equal(names.info.content_type, "text/plain");
    assert_string_equal(names.info.next_offset, TOKEN("05"));
    assert_int_equal(names.info.ttl_seconds, 6000);
    assert_true(names.info.closed);
    assert_int_equal(names.info.producer_seq, -1);
    names = (struct names){.max = 3};
    EXPECT(STREAM_OK, stream_client_list(client, "list/001", note_name, &names, &error));
    assert_int_equal(names.count, 3);
    assert_string_equal(names.last, "list/00102");
    names = (struct names){0};
    EXPECT(STREAM_OK, stream_client_list(client, "list/none", note_name, &names, &error));
    assert_int_equal(names.count, 0);
    memset(longest, 'n', sizeof(longest));
    longest[481] = '\0';
    EXPECT(STREAM_ERROR_REJECTED, stream_client_list(client, longest, note_name, &names, &error));
    EXPECT_WORDS("prefix has at most 480 bytes, as stream names have (status 400)");
    stream_client_free(client);
}

/* Values that no field may have: those that are not sent, and those that are refused. */
static void checks_values(void **state)
{
    struct stream_client *client = rig_client(*state, NULL);
    struct stream_create_options create = {.content_type = "text"};
    struct stream_append_options append = {.content_type = "text/plain", .seq = "a\nb"};
    struct stream_error error;
    char long_seq[300];

    EXPECT(STREAM_ERROR_REJECTED, stream_client_create(client, "value", &create, NULL, &error));
    EXPECT_WORDS("Content-Type must be a media type such as text/plain or application/json");
    create.content_type = "text/pl\tain\r\nX: y";
    EXPECT(STREAM_ERROR_ARGUMENT, stream_client_create(client, "value", &create, NULL, &error));
    EXPECT_WORDS("Content-Type must not be empty, very long, or hold control characters");
    create = (struct stream_create_options){.content_type = " text/plain ",
                                            .expires_at = "tomorrow"};
    EXPECT(STREAM_ERROR_REJECTED, stream_client_create(client, "value", &create, NULL, &error));
    EXPECT_WORDS("Stream-Expires-At must be an RFC 3339 time");
    create = (struct stream_create_options){.ttl_seconds = 3155760001};
    EXPECT(STREAM_ERROR_REJECTED, stream_client_create(client, "value", &create, NULL, &error));
    EXPECT_WORDS("Stream-TTL must be whole seconds");
    rig_create(client, "value", " text/plain ");
    EXPECT(STREAM_ERROR_ARGUMENT,
           stream_client_append(client, "value", "x", 1, &append, NULL, &error));
    memset(long_seq, 's', sizeof(long_seq));
    long_seq[257] = '\0';
    append.seq = long_seq;
    EXPECT(STREAM_ERROR_REJECTED,
           stream_client_append(client, "value", "x", 1, &append, NULL, &error));
    EXPECT_WORDS("Stream-Seq has 1 to 256 bytes (status 400)");
    append.seq = NULL;
    append.producer_id = long_seq;
    EXPECT(STREAM_ERROR_REJECTED,
           stream_client_append(client, "value", "x", 1, &append, NULL, &error));
    EXPECT_WORDS("Producer-Id has 1 to 256 bytes");
    append.producer_id = "p";
    append.producer_epoch = INT64_MAX;
    EXPECT(STREAM_ERROR_REJECTED,
           stream_client_append(client, "value", "x", 1, &append, NULL, &error));
    EXPECT_WORDS("Producer-Epoch must be a whole number from 0 to 9007199254740991");
    rig_expect(client, "value", NULL, "");
    stream_client_free(client);
}

/* A body above the cap is refused, one at the cap is not. */
static void bounds_bodies(void **state)
{
    struct stream_client *client = rig_client(*state, NULL);
    struct stream_error error;
    char *body = malloc(RIG_BODY_MAX + 1);

    assert_non_null(body);
    memset(body, 'b', RIG_BODY_MAX + 1);
    rig_create(client, "large", "text/plain");
    EXPECT(STREAM_ERROR_REJECTED,
           stream_client_append(client, "large", body, RIG_BODY_MAX + 1, NULL, NULL, &error));
    assert_int_equal(error.status, 413);
    EXPECT_WORDS("a request body has at most 1048576 bytes (status 413)");
    EXPECT(STREAM_OK,
           stream_client_append(client, "large", body, RIG_BODY_MAX, NULL, NULL, &error));
    free(body);
    stream_client_free(client);
}

/* Calls that are started come back in stream_client_step, each once. */
static void starts_calls(void **state)
{
    struct stream_client *client = rig_client(*state, NULL);
    struct stream_create_options options = {.content_type = "text/plain"};
    struct stream_append_options append = {.content_type = "text/plain"};
    struct stream_error error;
    int done = 0;

    EXPECT(STREAM_OK,
           stream_client_start_create(client, "start", &options, note_created, &done, &error));
    step_until(client, &done, 1);
    for (int i = 0; i < 50; i++) {
        EXPECT(STREAM_OK, stream_client_start_append(client, "start", "x", 1, &append, note_created,
                                                     &done, &error));
    }
    EXPECT(STREAM_OK, stream_client_start_head(client, "start", note_created, &done, &error));
    step_until(client, &done, 52);
    EXPECT(STREAM_OK, stream_client_start_delete(client, "start", note_created, &done, &error));
    step_until(client, &done, 53);
    done = 0;
    EXPECT(STREAM_OK, stream_client_start_head(client, "start", note_created, &done, &error));
    step_until(client, &done, 1000000);
    stream_client_free(client);
}

#define APPENDS_EACH 100

struct appender {
    struct stream_client *client;
    char id;
    int failures;
};

static void *append_many(void *context)
{
    struct appender *a = context;

    for (int i = 0; i < APPENDS_EACH; i++) {
        a->failures += stream_client_append(a->client, "crowd", &a->id, 1, NULL, NULL, NULL) !=
                       STREAM_OK;
    }
    return NULL;
}

/* One client serves several threads. */
static void serves_threads(void **state)
{
    struct stream_client *client = rig_client(*state, NULL);
    struct appender appenders[4];
    pthread_t threads[4];
    struct stream_error error;
    size_t counts[4] = {0};
    char *data = NULL;
    size_t len = 0;

    rig_create(client, "crowd", "text/plain");
    for (int i = 0; i < 4; i++) {
        appenders[i] = (struct appender){.client = client, .id = (char)('0' + i)};
        assert_int_equal(pthread_create(&threads[i], NULL, append_many, &appenders[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(appenders[i].failures, 0);
    }
    EXPECT(STREAM_OK,
           stream_client_read_all(client, "crowd", NULL, MIB, &data, &len, NULL, &error));
    assert_int_equal(len, 4 * APPENDS_EACH);
    for (size_t i = 0; i < len; i++) {
        counts[data[i] - '0']++;
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(counts[i], APPENDS_EACH);
    }
    free(data);
    stream_client_free(client);
}

/* An aborted client refuses everything until it is reset. */
static void aborts_calls(void **state)
{
    struct stream_client *client = rig_client(*state, NULL);
    struct stream_error error;

    rig_create(client, "abort", "text/plain");
    stream_client_abort(client);
    EXPECT(STREAM_ERROR_ABORTED, stream_client_head(client, "abort", NULL, &error));
    EXPECT_WORDS("cannot look at \"abort\": aborted");
    EXPECT(STREAM_ERROR_ABORTED, stream_client_append(client, "abort", "x", 1, NULL, NULL, &error));
    assert_false(error.outcome_unknown);
    stream_client_reset(client);
    rig_append(client, "abort", "y");
    rig_expect(client, "abort", NULL, "y");
    stream_client_free(client);
}

#define TRANSPORT_CALLS                                                                            \
    cmocka_unit_test(creates_and_deletes), cmocka_unit_test(creates_with_everything),              \
        cmocka_unit_test(ends_in_time), cmocka_unit_test(appends_bytes),                           \
        cmocka_unit_test(appends_json), cmocka_unit_test(finds_types), cmocka_unit_test(closes),   \
        cmocka_unit_test(claims), cmocka_unit_test(forks), cmocka_unit_test(takes_any_name),       \
        cmocka_unit_test(lists), cmocka_unit_test(checks_values), cmocka_unit_test(bounds_bodies), \
        cmocka_unit_test(starts_calls), cmocka_unit_test(serves_threads),                          \
        cmocka_unit_test(aborts_calls)

#endif
