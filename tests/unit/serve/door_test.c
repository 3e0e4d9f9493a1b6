/* The operator's door: what is asked and answered, and what ends a hold. */
#include "serve/door.c"

#include <sys/resource.h>

#include "unit/stream/rig.h"

struct scene {
    struct rig rig;
    struct logger logger;
    struct door *door; /* running, or a still one without a thread */
    int peer;          /* of the first caller of a still door */
};

/* A door whose steps the test makes. */
static void still(struct scene *s)
{
    int pair[2];
    *s = (struct scene){.logger = {.fd = STDERR_FILENO, .level = LOGGER_ERROR}};
    rig_open(&s->rig);
    s->door = calloc(1, sizeof(*s->door));
    assert_non_null(s->door);
    *s->door = (struct door){.holds = engine_holds(s->rig.engine),
                             .logger = &s->logger,
                             .dir_fd = -1,
                             .listener = -1,
                             .stop = -1};
    for (unsigned i = 0; i < HOLDS_MAX; i++) {
        s->door->callers[i].fd = -1;
    }
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    s->peer = pair[1];
    s->door->callers[0] = (struct caller){
        .fd = pair[0], .began_ms = now_ms(), .heard_ms = now_ms()};
}

static void end_still(struct scene *s)
{
    close_all(s->door);
    close(s->peer);
    rig_close(&s->rig);
}

/* Says `text` and compares the answer; NULL: the line goes dead. */
static void talk(struct scene *s, const char *text, const char *wanted)
{
    char answer[200] = "";
    assert_int_equal(send(s->peer, text, strlen(text), MSG_NOSIGNAL), strlen(text));
    hear(s->door, &s->door->callers[0]);
    ssize_t n = recv(s->peer, answer, sizeof(answer) - 1, MSG_DONTWAIT);
    if (!wanted) {
        assert_int_equal(n, 0);
        assert_int_equal(s->door->callers[0].fd, -1);
        return;
    }
    assert_true(n > 0);
    assert_int_equal(answer[n - 1], '\n');
    answer[n - 1] = '\0';
    assert_string_equal(answer, wanted);
}

static void test_words(void **state)
{
    (void)state;
    struct scene s;
    char held[64];
    still(&s);
    talk(&s, "keep\n", "nothing is held");
    talk(&s, "hold\n", "held 0");
    assert_int_equal(s.door->holds->count, 1);
    talk(&s, "keep\n", "ok");
    assert_int_equal(rig_put(&s.rig, "news", "text/plain", "meanwhile"), 0);
    (void)snprintf(held, sizeof(held), "held %llu",
                   (unsigned long long)s.rig.engine->store->ops->durable(s.rig.engine->store));
    talk(&s, "hold\n", held);
    assert_int_equal(s.door->holds->count, 1);
    talk(&s, "log done\n", "ok");
    talk(&s, "catalog done\n", "ok");
    talk(&s, "what\n", "this server does not know what is asked");
    end_still(&s);
}

/* Parts of lines are put together, and several come one after the other. */
static void test_pieces(void **state)
{
    (void)state;
    struct scene s;
    still(&s);
    assert_int_equal(send(s.peer, "ho", 2, 0), 2);
    hear(s.door, &s.door->callers[0]);
    talk(&s, "ld\nkeep\n", "held 0\nok");
    end_still(&s);
}

static void test_endings(void **state)
{
    static const char long_line[LINE_BYTES + 1] = {[0 ... LINE_BYTES - 1] = 'x'};
    (void)state;
    struct scene s;
    still(&s);
    talk(&s, "hold\n", "held 0");
    talk(&s, long_line, NULL);
    assert_int_equal(s.door->holds->count, 0);
    end_still(&s);
    still(&s);
    talk(&s, "hold\n", "held 0");
    assert_int_equal(shutdown(s.peer, SHUT_WR), 0);
    hear(s.door, &s.door->callers[0]);
    assert_int_equal(s.door->holds->count, 0);
    end_still(&s);
}

static void test_broken(void **state)
{
    (void)state;
    struct scene s;
    still(&s);
    talk(&s, "hold\n", "held 0");
    holds_break(s.door->holds);
    talk(&s, "keep\n", "the disk ran short of space or failed, and what was held was needed");
    talk(&s, "hold\n", "the disk ran short of space or failed, and what was held was needed");
    end_still(&s);
}

/* Who falls silent, or never ends, is given up. */
static void test_time(void **state)
{
    (void)state;
    struct scene s;
    for (unsigned i = 0; i < 2; i++) {
        still(&s);
        struct caller *c = &s.door->callers[0];
        talk(&s, "hold\n", "held 0");
        drop_silent(s.door);
        assert_true(c->fd >= 0);
        c->heard_ms -= i == 0 ? HOLD_SILENCE_MS + 1 : 0;
        c->began_ms -= i == 1 ? HOLD_MS_MAX + 1ull : 0;
        drop_silent(s.door);
        assert_int_equal(c->fd, -1);
        assert_int_equal(s.door->holds->count, 0);
        end_still(&s);
    }
}

static int knock(const char *dir)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/control", dir);
    assert_int_equal(connect(fd, (const struct sockaddr *)(const void *)&address, sizeof(address)),
                     0);
    return fd;
}

/* Without a descriptor for who knocks the door is not watched for a while, or it would wake its
 * thread again and again; then they are let in. */
static void test_no_descriptors(void **state)
{
    (void)state;
    struct scene s;
    struct errmsg msg = {{0}};
    struct pollfd places[PLACES];
    struct rlimit before;
    still(&s);
    hang_up(&s.door->callers[0]);
    s.door->dir_fd = open(s.rig.dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(open_door(s.door, &msg), 0);
    assert_int_equal(set_places(s.door, places), -1);
    assert_int_equal(places[PLACE_DOOR].fd, s.door->listener);
    int peer = knock(s.rig.dir);
    int next = dup(peer);
    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    const struct rlimit none = {.rlim_cur = (rlim_t)next, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    let_in(s.door);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(s.door->callers[0].fd, -1);
    assert_true(s.door->deaf_until_ms > 0);
    s.door->deaf_until_ms = now_ms() + HOLD_MS_MAX; /* however slow this machine is */
    assert_int_equal(set_places(s.door, places), RETRY_MS);
    assert_int_equal(places[PLACE_DOOR].fd, -1);
    s.door->deaf_until_ms = now_ms();
    assert_int_equal(set_places(s.door, places), -1);
    assert_int_equal(poll(places, PLACES, -1), 1);
    assert_int_equal(places[PLACE_DOOR].revents, POLLIN);
    let_in(s.door);
    assert_true(s.door->callers[0].fd >= 0);
    close(peer);
    end_still(&s);
}

/* The real one, with its thread: as many as may, one more, and closing with holds open. */
static void test_thread(void **state)
{
    (void)state;
    struct scene s = {.logger = {.fd = STDERR_FILENO, .level = LOGGER_ERROR}};
    struct errmsg msg = {{0}};
    int fds[HOLDS_MAX];
    char byte = 0;
    char path[128];
    struct stat info;
    rig_open(&s.rig);
    struct holds *holds = engine_holds(s.rig.engine);
    assert_int_equal(door_open(s.rig.dir, holds, &s.logger, &s.door, &msg), 0);
    (void)snprintf(path, sizeof(path), "%s/control", s.rig.dir);
    assert_int_equal(stat(path, &info), 0);
    assert_true(S_ISSOCK(info.st_mode));
    assert_int_equal(info.st_mode & 0777, 0600);
    for (unsigned i = 0; i < HOLDS_MAX; i++) {
        fds[i] = knock(s.rig.dir);
        assert_int_equal(send(fds[i], "hold\n", 5, 0), 5);
        assert_int_equal(recv(fds[i], &byte, 1, 0), 1);
        assert_int_equal(byte, 'h');
    }
    int more = knock(s.rig.dir);
    assert_int_equal(recv(more, &byte, 1, 0), 0);
    close(more);
    door_close(s.door);
    door_close(NULL);
    assert_int_equal(stat(path, &info), -1);
    for (unsigned i = 0; i < HOLDS_MAX; i++) {
        close(fds[i]);
    }
    assert_int_equal(holds->count, 0);
    assert_true(door_open("/nowhere/at/all", holds, &s.logger, &s.door, &msg) < 0);
    assert_true(msg.text[0] != '\0');
    rig_close(&s.rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),          cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_endings),        cmocka_unit_test(test_broken),
        cmocka_unit_test(test_time),           cmocka_unit_test(test_thread),
        cmocka_unit_test(test_no_descriptors),
    };
    return UNIT_RUN(tests);
}
