/* The board's stream, asked for by somebody whose key goes before it has begun. */
#include "app/params.h"

static int fake_params_end(struct params *p);

#define params_end fake_params_end
#include "app/api_board.c"
#undef params_end

#include "unit/app/app_rig.h"

#include <semaphore.h>
#include <stdatomic.h>

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

int main(void)
{
    const struct CMUnitTest board_tests[] = {
        cmocka_unit_test(revoked_meanwhile),
    };

    return UNIT_RUN(board_tests);
}
