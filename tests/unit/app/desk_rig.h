/* An application without a server, for what is about records alone: a store in a directory of its
 * own, what is known by heart, and calls that came from nowhere. */
#ifndef ARBE_TESTS_UNIT_APP_DESK_RIG_H
#define ARBE_TESTS_UNIT_APP_DESK_RIG_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/api_call.h"
#include "app/app.h"
#include "app/grants.h"
#include "base/limits.h"
#include "unit/base/unit.h"

struct desk {
    char dir[64];
    struct logger logger;
    struct app app;
};

#define FINE(call)                                                     \
    do {                                                               \
        struct errmsg msg_ = {.text = ""};                             \
        struct errmsg *msg = &msg_;                                    \
        int code_ = (call);                                            \
        if (code_ != 0) {                                              \
            fail_msg("%s: %s: %s", #call, err_name(code_), msg->text); \
        }                                                              \
    } while (0)

static inline void desk_open(struct desk *desk)
{
    char path[80];

    memset(desk, 0, sizeof(*desk));
    (void)snprintf(desk->dir, sizeof(desk->dir), "/tmp/arbe-desk-XXXXXX");
    assert_non_null(mkdtemp(desk->dir));
    (void)snprintf(path, sizeof(path), "%s/app.db", desk->dir);
    const struct thread_store_config config = {.path = path, .reader_count = 1, .lazy = true};

    desk->logger = (struct logger){.fd = STDERR_FILENO, .level = LOGGER_ERROR};
    desk->app.config = (struct app_config){
        .data_dir = desk->dir, .public_url = "", .logger = &desk->logger};
    FINE(store_open(&config, &desk->app.store, msg));
    assert_int_equal(grants_create(&desk->app.grants), 0);
}

static inline int desk_remove(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st;
    (void)kind;
    (void)ftw;
    return remove(path);
}

static inline void desk_close(struct desk *desk)
{
    grants_destroy(desk->app.grants);
    store_close(desk->app.store);
    assert_int_equal(nftw(desk->dir, desk_remove, 8, FTW_DEPTH | FTW_PHYS), 0);
}

/* A call of that agent. */
static inline void desk_call(struct desk *desk, struct api_call *c, const char *agent_id)
{
    static const struct route route = {.pattern = "/api/test"};

    memset(c, 0, sizeof(*c));
    c->app = &desk->app;
    c->route = &route;
    c->now_ms = 1000000;
    c->caller.proof = CALLER_KEY;
    (void)snprintf(c->caller.agent_id, sizeof(c->caller.agent_id), "%s", agent_id);
    arena_init(&c->memory, 16 * MIB);
    buf_init(&c->answer, API_ANSWER_BYTES_MAX);
    buf_init(&c->cookie, 512);
}

static inline void desk_end(struct api_call *c)
{
    arena_finish(&c->memory);
    buf_finish(&c->answer);
    buf_finish(&c->cookie);
}

/* Agent "a" owns house "h", whose primary thread is "p"; "m" is a member of it, "o" of nothing. */
static inline void desk_fill(struct desk *desk)
{
    const char *const names[] = {"a", "m", "o"};
    const struct house_create house = {.id = SLICE("h"),
                                       .name = SLICE("H"),
                                       .primary_thread_id = SLICE("p"),
                                       .owner_id = SLICE("a"),
                                       .now_ms = 1};
    const struct member_record member = {
        .agent_id = SLICE("m"), .role = ROLE_MEMBER, .added_ms = 1};
    enum member_role before = ROLE_NONE;

    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        const struct agent_record agent = {
            .id = slice_of(names[i]), .name = slice_of(names[i]), .handle = slice_of(names[i])};

        FINE(store_agent_create(desk->app.store, &agent, NULL, msg));
    }
    FINE(store_house_create(desk->app.store, &house, NULL, 0, msg));
    FINE(store_member_put(desk->app.store, house.id, &member, NULL, 0, &before, msg));
}

#endif
