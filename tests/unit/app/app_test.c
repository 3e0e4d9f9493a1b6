/* What is taken away ends the reads it was the right of, and no others; who asks too much at once
 * is told to come again. */
#include "app/app.c"

#include <sched.h>

#include "unit/app/app_rig.h"

struct test {
    struct app_rig rig;
    struct app_answer answer;
};

static int set_up(void **state)
{
    struct test *t = calloc(1, sizeof(*t));

    assert_non_null(t);
    app_rig_open(&t->rig);
    *state = t;
    return 0;
}

static int tear_down(void **state)
{
    struct test *t = *state;

    app_rig_close(&t->rig);
    free(t);
    return 0;
}

/* Waits until so many readers wait in the server. */
static void await_readers(struct test *t, uint64_t count)
{
    while (atomic_load(&t->rig.app->server->waiters) != count) {
        (void)sched_yield();
    }
}

/* Makes a thread and begins to wait for what comes there. */
static int wait_in_new_thread(struct test *t, char id[static 64])
{
    char body[128];
    char path[256];
    int fd = app_rig_connect(&t->rig);

    (void)snprintf(body, sizeof(body), "{\"parentId\":\"%s\"}", t->rig.house_id);
    assert_int_equal(app_rig_ask(&t->rig, "POST", "/api/threads", body, &t->answer), 201);
    app_rig_member(t->answer.body, "threadId", id, 64);
    (void)snprintf(path, sizeof(path), "/api/threads/%s/stream?offset=now&live=long-poll", id);
    app_rig_send(&t->rig, fd, "GET", path, "", "");
    return fd;
}

static void revocations_fit(void **state)
{
    struct test *t = *state;
    char ids[2][64];
    char path[256];
    int fds[2];

    for (int i = 0; i < 2; i++) {
        fds[i] = wait_in_new_thread(t, ids[i]);
    }
    await_readers(t, 2);
    app_revoke(t->rig.app, &(struct revocation){.agent_id = SLICE("somebody else")});
    app_revoke(t->rig.app, &(struct revocation){.house_id = slice_of(t->rig.house_id),
                                                .thread_id = SLICE("another")});
    app_revoke(t->rig.app, &(struct revocation){.thread_id = slice_of(ids[0])});
    assert_true(app_rig_receive(fds[0], &t->answer));
    assert_int_equal(t->answer.status, 204);
    (void)snprintf(path, sizeof(path), "/api/threads/%s/entries", ids[1]);
    assert_int_equal(app_rig_ask(&t->rig, "POST", path,
                                 "{\"payload\":{\"type\":\"chat\",\"text\":\"still here\"}}",
                                 &t->answer),
                     201);
    assert_true(app_rig_receive(fds[1], &t->answer));
    assert_int_equal(t->answer.status, 200);
    assert_non_null(strstr(t->answer.body, "still here"));
    (void)close(fds[0]);
    (void)close(fds[1]);
}

/* A key that is revoked is known no more, at once, though it was known by heart. */
static void a_revoked_key_is_forgotten(void **state)
{
    struct test *t = *state;
    struct app_rig other = t->rig;
    char path[256];
    char id[64];

    assert_int_equal(app_rig_ask(&t->rig, "POST", "/api/agents/keys", "{}", &t->answer), 201);
    app_rig_member(t->answer.body, "id", id, sizeof(id));
    app_rig_member(t->answer.body, "key", other.key, sizeof(other.key));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(app_rig_ask(&other, "GET", app_rig_path(&other, ""), "", &t->answer), 200);
    }
    (void)snprintf(path, sizeof(path), "/api/agents/keys/%s", id);
    assert_int_equal(app_rig_ask(&t->rig, "DELETE", path, "", &t->answer), 204);
    assert_int_equal(app_rig_ask(&other, "GET", app_rig_path(&other, ""), "", &t->answer), 401);
    assert_int_equal(app_rig_ask(&other, "POST", app_rig_path(&other, "/entries"),
                                 "{\"payload\":{\"type\":\"chat\",\"text\":\"x\"}}", &t->answer),
                     401);
}

/* When too much waits for the application's threads, more is turned away, and may come again. */
static void a_full_pool_says_so(void **state)
{
    struct test *t = *state;

    (void)atomic_fetch_add(&t->rig.app->pool_calls, APP_CALLS_MAX);
    assert_int_equal(app_rig_ask(&t->rig, "GET", "/api/me", "", &t->answer), 503);
    assert_non_null(strstr(t->answer.text, "\r\nRetry-After: 1\r\n"));
    assert_non_null(strstr(t->answer.body, "\"server.busy\""));
    (void)atomic_fetch_sub(&t->rig.app->pool_calls, APP_CALLS_MAX);
    assert_int_equal(app_rig_ask(&t->rig, "GET", "/api/me", "", &t->answer), 200);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest app_tests[] = {
        TEST(revocations_fit),
        TEST(a_revoked_key_is_forgotten),
        TEST(a_full_pool_says_so),
    };

    return UNIT_RUN(app_tests);
}
