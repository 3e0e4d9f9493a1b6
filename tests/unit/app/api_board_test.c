/* The board's stream, asked for by somebody whose key goes before it has begun. */
#include "app/params.h"

static int fake_params_end(struct params *p);

#define params_end fake_params_end
#include "app/api_board.c"
#undef params_end

#include "base/limits.h"
#include "unit/app/app_rig.h"

#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>

static struct {
    atomic_bool armed;
    sem_t begun; /* the handler runs, and is held */
    sem_t go;
} hold;

static int fake_params_end(struct params *p)
{
    if (atomic_exchange(&hold.armed, false)) {
        (void)sem_post(&hold.begun);
        (void)sem_wait(&hold.go);
    }
    return params_end(p);
}

/* What was taken away while the handler ran is found out before the answer begins. */
static void revoked_meanwhile(void **state)
{
    (void)state;
    struct app_rig rig = {.port = 0};
    struct app_answer *a = calloc(1, sizeof(*a));
    char path[128];
    char id[64];

    assert_non_null(a);
    (void)sem_init(&hold.begun, 0, 0);
    (void)sem_init(&hold.go, 0, 0);
    app_rig_open(&rig);
    assert_int_equal(app_rig_ask(&rig, "POST", "/api/agents", "{\"name\":\"Guest\"}", a), 201);
    struct app_rig guest = rig;

    app_rig_member(a->body, "id", id, sizeof(id));
    app_rig_member(a->body, "apiKey", guest.key, sizeof(guest.key));
    int fd = app_rig_connect(&guest);

    /* Who was never seen is looked up in the records: the handler is not on the worker. */
    atomic_store(&hold.armed, true);
    app_rig_send(&guest, fd, "GET", "/api/board/stream", "", "");
    (void)sem_wait(&hold.begun);
    (void)snprintf(path, sizeof(path), "/api/agents/%s", id);
    assert_int_equal(app_rig_ask(&rig, "DELETE", path, "", a), 204);
    (void)sem_post(&hold.go);
    assert_true(app_rig_receive(fd, a));
    assert_int_equal(a->status, 401);
    (void)close(fd);
    app_rig_close(&rig);
    free(a);
}

#define HOSTS 1024u /* as many as a board has, with labels as long as they may be */
#define ROWS  200u

static struct board_state *crowded(void)
{
    struct board_state *s = NULL;
    char label[256];
    char json[320];
    char id[16];

    const struct board_state_config config = {.tombs_max = 4, .seed = 1};

    assert_int_equal(board_state_create(&config, &s), 0);
    memset(label, 'h', sizeof(label));
    for (unsigned i = 0; i < HOSTS; i++) {
        struct slice name = {label, sizeof(label) - 1};
        int len = snprintf(json, sizeof(json), "{\"host\":\"%.*s\"}", (int)name.len, name.ptr);

        assert_int_equal(board_state_put_host(s, i, name, (struct slice){json, (size_t)len}), 0);
    }
    for (unsigned i = 0; i < ROWS; i++) {
        int len = snprintf(id, sizeof(id), "%u", i);
        const struct t3_board_row row = {.host = {"h", 1}, .thread_id = {id, (size_t)len}};

        assert_int_equal(board_state_put(s, &row), 0);
    }
    return s;
}

/* However many hosts there are, and they stand in each page, a page has as many rows. */
static void page_of_many_hosts(void **state)
{
    (void)state;
    struct board_state *s = crowded();
    struct api_call c = {.x = NULL};

    buf_init(&c.answer, API_ANSWER_BYTES_MAX);
    put_hosts(&c, s);
    assert_true(c.answer.len > API_PAGE_BYTES_MAX);
    size_t hosts = c.answer.len;

    put_rows(&c, s, NULL, ROWS);
    assert_false(c.answer.failed);
    assert_true(c.answer.len - hosts < API_PAGE_BYTES_MAX);
    assert_memory_equal(c.answer.ptr + c.answer.len - 16, "\"nextAfter\":null", 16);
    buf_finish(&c.answer);
    board_state_destroy(s);
}

int main(void)
{
    const struct CMUnitTest board_tests[] = {
        cmocka_unit_test(revoked_meanwhile),
        cmocka_unit_test(page_of_many_hosts),
    };

    return UNIT_RUN(board_tests);
}
