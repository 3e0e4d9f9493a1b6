/* Entries that somebody posts: judged, stamped, and their payload untouched. */
#include "app/drafts.c"

#include "unit/app/desk_rig.h"

struct test {
    struct desk desk;
    struct api_call call;
    struct draft draft;
    struct post_entry entry;
};

static int set_up(void **state)
{
    struct test *t = calloc(1, sizeof(*t));

    assert_non_null(t);
    desk_open(&t->desk);
    desk_call(&t->desk, &t->call, "agent-1");
    *state = t;
    return 0;
}

static int tear_down(void **state)
{
    struct test *t = *state;

    desk_end(&t->call);
    desk_close(&t->desk);
    free(t);
    return 0;
}

static int make(struct test *t, const char *json)
{
    struct authorship_question who = {.caller = CALLER_AGENT, .agent_id = SLICE("agent-1")};
    struct slice value;
    struct errmsg msg;

    assert_int_equal(json_text_read(slice_of(json), &value, &msg), 0);
    return draft_make(&t->call, value, &who, &t->draft, &t->entry);
}

static void refuse(struct test *t, const char *json, enum api_code code, const char *field)
{
    assert_int_equal(make(t, json), API_FAILED);
    assert_int_equal(t->call.error.code, code);
    assert_string_equal(t->call.error.field, field);
}

/* An id of the client's is kept, and is not fresh; the time is the server's, the author the caller,
 * and the payload's bytes are those that came. */
static void an_entry_is_stamped(void **state)
{
    struct test *t = *state;

    assert_int_equal(make(t, "{ \"id\":\"mine\", \"ts\":5, \"payload\" : { \"type\":\"chat\",  "
                             "\"text\":\"h\\u0069\","
                             "\"more\":[1, 2.50]} }"),
                     API_DONE);
    assert_false(t->entry.fresh);
    assert_true(slice_equal(t->entry.id, SLICE("mine")));
    assert_true(slice_equal(
        t->entry.json, SLICE("{\"id\":\"mine\",\"ts\":1000000,\"authorId\":\"agent-1\",\"payload\":"
                             "{ \"type\":\"chat\",  \"text\":\"h\\u0069\",\"more\":[1, 2.50]}}")));
    assert_int_equal(t->draft.type, PAYLOAD_CHAT);
}

/* Without one it gets a new id, each time another. */
static void an_id_is_made(void **state)
{
    struct test *t = *state;

    assert_int_equal(make(t, "{\"payload\":{\"type\":\"chat\",\"text\":\"a\"}}"), API_DONE);
    struct slice first = t->entry.id;

    assert_true(t->entry.fresh);
    assert_int_equal(first.len, UUID_TEXT_BYTES - 1);
    assert_int_equal(make(t, "{\"payload\":{\"type\":\"chat\",\"text\":\"a\"}}"), API_DONE);
    assert_false(slice_equal(first, t->entry.id));
}

/* What is wrong is named by its path. */
static void refusals_name_the_place(void **state)
{
    struct test *t = *state;

    refuse(t, "{\"payload\":{\"type\":\"chat\"}}", API_INVALID_INPUT, "payload.text");
    refuse(t, "{\"payload\":{\"type\":\"nothing\"}}", API_INVALID_INPUT, "payload.type");
    refuse(t, "{\"id\":\"arbe.x\",\"payload\":{\"type\":\"chat\",\"text\":\"a\"}}",
           API_INVALID_INPUT, "id");
    refuse(t, "{\"payload\":{\"type\":\"chat\",\"text\":\"a\"},\"x\":1}", API_INVALID_INPUT, "x");
    assert_int_equal(
        make(t, "{\"authorId\":\"other\",\"payload\":{\"type\":\"chat\",\"text\":\"a\"}}"),
        API_FAILED);
    assert_int_equal(t->call.error.code, API_FORBIDDEN);
}

/* A call whose memory is full refuses, whatever it was about to make. */
static void memory_runs_out(void **state)
{
    struct test *t = *state;
    unsigned failures = 0;
    int result = API_FAILED;

    for (size_t max = 0; result != API_DONE; max += 64) {
        arena_finish(&t->call.memory);
        arena_init(&t->call.memory, max);
        result = make(t, "{\"payload\":{\"type\":\"chat\",\"text\":\"a\"}}");
        failures += result != API_DONE;
        assert_true(result == API_DONE || t->call.error.message[0] != '\0');
        assert_true(max < 64 * KIB);
    }
    assert_true(failures > 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest draft_tests[] = {
        TEST(an_entry_is_stamped),
        TEST(an_id_is_made),
        TEST(refusals_name_the_place),
        TEST(memory_runs_out),
    };

    return UNIT_RUN(draft_tests);
}
