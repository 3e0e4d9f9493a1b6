/* Datagrams to a socket of our own. */
#include "serve/notify.c"

#include "base/attr.h"
#include "unit/base/unit.h"

#include <stdio.h>

static int bound(const char *path)
{
    struct sockaddr_un address;
    socklen_t len = address_of(path, &address);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, len), 0);
    return fd;
}

static void arrives_at(const char *path)
{
    char text[64] = "";
    int fd = bound(path);

    assert_int_equal(setenv("NOTIFY_SOCKET", path, 1), 0);
    notify_send("READY=1\nSTATUS=x");
    assert_int_equal(recv(fd, text, sizeof(text), 0), 16);
    assert_string_equal(text, "READY=1\nSTATUS=x");
    assert_int_equal(close(fd), 0);
}

/* A socket in the file system, and one in the abstract namespace. */
static void reaches_both_kinds(void **state)
{
    char dir[] = "/tmp/arbe-notify-XXXXXX";
    char path[64];

    (void)state;
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof(path), "%s/socket", dir);
    arrives_at(path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(dir), 0);
    (void)snprintf(path, sizeof(path), "@arbe-notify-%d", (int)getpid());
    arrives_at(path);
}

/* No manager, a strange name, nobody there: nothing happens. */
static void bears_nobody(void **state)
{
    char path[200];
    const char *odd[] = {"", "@", "/", "relative", "vsock:2:1", "/nowhere/socket", path};

    (void)state;
    memset(path, '/', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    for (size_t i = 0; i < ARRAY_COUNT(odd); i++) {
        assert_int_equal(setenv("NOTIFY_SOCKET", odd[i], 1), 0);
        notify_send("READY=1");
    }
    assert_int_equal(unsetenv("NOTIFY_SOCKET"), 0);
    notify_send("READY=1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reaches_both_kinds),
        cmocka_unit_test(bears_nobody),
    };

    return UNIT_RUN(tests);
}
