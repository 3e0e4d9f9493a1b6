/* The first start: the key is told before it is stored, and who cannot be told is not made. */
#include "arbe/stream_client.h"

#include <stdbool.h>

/* Whether the streams that stand in here have one of a thread, and can be listed. */
static struct {
    bool has_thread;
    bool silent;
} world;

static int list_of_world(struct stream_client *client, const char *prefix, stream_list_fn each,
                         void *context, struct stream_error *ret_error)
{
    (void)client;
    (void)prefix;
    (void)ret_error;
    if (world.silent) {
        return STREAM_ERROR_NETWORK;
    }
    return world.has_thread ? each(context, "arbe-thread-x", NULL) : STREAM_OK;
}

#define stream_client_list list_of_world
#include "app/first_owner.c"
#undef stream_client_list

#include "thread/store_outbox.h"
#include "unit/app/desk_rig.h"

struct teller {
    struct desk desk;
    bool deaf;
    bool stored_before; /* there was somebody already when the key was told */
    unsigned times;
    char key[API_KEY_BYTES];
};

static bool tell(void *context, const char *owner, const char *house, const char *key)
{
    struct teller *t = context;

    assert_string_equal(owner, "Owner");
    assert_string_equal(house, "Home");
    FINE(store_agent_any(t->desk.app.store, &t->stored_before, msg));
    (void)snprintf(t->key, sizeof(t->key), "%s", key);
    t->times++;
    return !t->deaf;
}

static int set_up(void **state)
{
    struct teller *t = calloc(1, sizeof(*t));

    assert_non_null(t);
    desk_open(&t->desk);
    t->desk.app.config.tell_key = tell;
    t->desk.app.config.tell_context = t;
    *state = t;
    return 0;
}

static int tear_down(void **state)
{
    struct teller *t = *state;

    desk_close(&t->desk);
    free(t);
    return 0;
}

static bool anybody(struct teller *t)
{
    bool any = false;

    FINE(store_agent_any(t->desk.app.store, &any, msg));
    return any;
}

static void one_is_made_once(void **state)
{
    struct teller *t = *state;
    char hash[API_KEY_HASH_BYTES];
    struct caller_record caller;
    struct house_list houses;
    struct outbox_list owed;
    struct arena arena;
    const struct store_page page = {.limit = 10};

    FINE(first_owner_make(&t->desk.app, msg));
    assert_false(t->stored_before);
    arena_init(&arena, MIB);
    assert_true(api_key_hash(slice_of(t->key), hash));
    FINE(store_key_find(t->desk.app.store, slice_of(hash), &arena, &caller, msg));
    FINE(store_house_list(t->desk.app.store, caller.agent.id, &page, &arena, &houses, msg));
    assert_int_equal(houses.count, 1);
    assert_int_equal(houses.items[0].role, ROLE_OWNER);
    FINE(store_outbox_list(t->desk.app.store, 0, 10, &arena, &owed, msg));
    assert_int_equal(owed.count, 3);
    assert_int_equal(owed.items[0].kind, OUTBOX_CREATE);
    assert_true(slice_equal(owed.items[2].thread_id, houses.items[0].primary_thread_id));
    arena_finish(&arena);
    FINE(first_owner_make(&t->desk.app, msg));
    assert_int_equal(t->times, 1);
}

static void who_cannot_be_told_is_not_made(void **state)
{
    struct teller *t = *state;
    struct errmsg why;

    t->deaf = true;
    assert_int_equal(first_owner_make(&t->desk.app, &why), ERR_IO);
    assert_non_null(strstr(why.text, "cannot be told"));
    assert_false(anybody(t));
    char first[API_KEY_BYTES];

    memcpy(first, t->key, sizeof(first));
    t->deaf = false;
    FINE(first_owner_make(&t->desk.app, msg));
    assert_true(anybody(t));
    assert_string_not_equal(first, t->key);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* Streams of threads without any record are no first start: nobody is made, and it is said why.
 * Where the streams cannot be asked, they are not in the way. */
static void lost_records_are_no_first_start(void **state)
{
    struct teller *t = *state;
    struct errmsg why = {{0}};

    world.has_thread = true;
    assert_int_equal(first_owner_make(&t->desk.app, &why), ERR_MISMATCH);
    world.has_thread = false;
    assert_non_null(strstr(why.text, "app.db has no records: it was lost"));
    assert_false(anybody(t));
    assert_int_equal(t->times, 0);
    world.silent = true;
    FINE(first_owner_make(&t->desk.app, msg));
    world.silent = false;
    assert_true(anybody(t));
}

int main(void)
{
    const struct CMUnitTest owner_tests[] = {
        TEST(one_is_made_once),
        TEST(who_cannot_be_told_is_not_made),
        TEST(lost_records_are_no_first_start),
    };

    return UNIT_RUN(owner_tests);
}
