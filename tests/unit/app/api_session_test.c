/* A browser whose session has ended. */
#include "app/api_session.c"

#include "unit/app/app_rig.h"

#define STALE                                                              \
    "Cookie: arbe_session="                                                \
    "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\r\n" \
    "Origin: http://x\r\n"

static int ask(const struct app_rig *rig, const char *method, const char *path, const char *body,
               struct app_answer *a)
{
    int fd = app_rig_connect(rig);

    app_rig_send(rig, fd, method, path, STALE "Content-Type: application/json\r\n", body);
    assert_true(app_rig_receive(fd, a));
    (void)close(fd);
    return a->status;
}

/* It is told that it is nobody where somebody is wanted, and can sign in again, and out. */
static void an_ended_session_is_no_obstacle(void **state)
{
    struct app_rig rig = {.port = 0};
    struct app_answer *a = calloc(1, sizeof(*a));
    char body[256];

    (void)state;
    assert_non_null(a);
    app_rig_open(&rig);
    struct app_rig browser = rig;

    browser.key[0] = '\0';
    (void)snprintf(body, sizeof(body), "{\"key\":\"%s\"}", rig.key);
    assert_int_equal(ask(&browser, "GET", "/api/me", "", a), 401);
    assert_int_equal(ask(&browser, "DELETE", "/api/session", "", a), 204);
    assert_non_null(strstr(a->text, "Max-Age=0"));
    assert_int_equal(ask(&browser, "POST", "/api/session", body, a), 200);
    assert_non_null(strstr(a->text, "Set-Cookie: arbe_session="));
    assert_int_equal(ask(&browser, "POST", "/api/session", "{\"key\":\"arbe_x\"}", a), 401);
    app_rig_close(&rig);
    free(a);
}

int main(void)
{
    const struct CMUnitTest session_tests[] = {
        cmocka_unit_test(an_ended_session_is_no_obstacle),
    };

    return UNIT_RUN(session_tests);
}
