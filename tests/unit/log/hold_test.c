/* Holds: what is held stays, goes when it may, and is a whole for who reads it. */
#include "log/hold.c"

#include "unit/log/verify_fixture.h"

static bool exists(const struct site *s, const char *file)
{
    char path[256];
    site_path(s, file, path);
    return access(path, F_OK) == 0;
}

static struct holds *holds_of(struct site *s)
{
    return engine_holds(s->rig.engine);
}

static struct hold *asked;

static int on_durable(void *context, log_pos *ret_durable, struct errmsg *msg)
{
    (void)context;
    (void)msg;
    *ret_durable = hold_renew(asked);
    return 0;
}

/* Checks what is held, as a tool does. */
static void verify_held(struct site *s, struct hold *hold)
{
    asked = hold;
    struct errmsg msg = {{0}};
    const struct verify_config config = {.sys = &s->rig.sys,
                                         .dir = s->rig.dir,
                                         .running = true,
                                         .context = s,
                                         .durable = on_durable,
                                         .found = site_found};
    s->len = 0;
    s->text[0] = '\0';
    assert_int_equal(verify_run(&config, &s->report, &msg), 0);
    if (s->report.damages != 0) {
        fail_msg("held files:\n%s", s->text);
    }
}

/* Much happens: bytes, deletions, checkpoints, compactions, log files that fill. */
static void stir(struct site *s, unsigned round)
{
    static char large[300 * 1024];
    memset(large, 'l', sizeof(large) - 1);
    for (unsigned i = 0; i < 20; i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "stir%u", i);
        (void)rig_put(&s->rig, name, "text/plain", large);
        if ((i + round) % 3 == 0) {
            assert_int_equal(rig_delete(&s->rig, name), 0);
        }
        if (i % 5 == 4) {
            site_save(&s->rig);
        }
    }
}

static void open_site(struct site *s)
{
    *s = (struct site){0};
    rig_open(&s->rig);
    rig_detach(&s->rig, false);
    s->rig.config.store.segment_bytes = 2 * MIB; /* the first file, of one, is never kept */
    rig_attach(&s->rig);
    site_fill(&s->rig);
}

static void test_everything_stays(void **state)
{
    (void)state;
    struct site s;
    struct hold *hold = NULL;
    open_site(&s);
    assert_int_equal(hold_begin(holds_of(&s), &hold), 0);
    for (unsigned i = 0; i < 5; i++) {
        stir(&s, i);
    }
    assert_true(exists(&s, "wal/wal-0000000000000000"));
    assert_true(exists(&s, site_pack(1)));
    assert_false(hold_broken(hold));
    hold_log_done(hold);
    hold_log_done(hold);
    assert_false(exists(&s, "wal/wal-0000000000000000"));
    hold_catalog_done(hold);
    hold_catalog_done(hold);
    assert_false(hold_broken(hold));
    hold_end(hold);
    hold_end(NULL);
    site_down(&s);
    site_expect_good(&s);
    site_remove(&s);
}

static void count_packs(const struct site *s, unsigned *ret_count)
{
    *ret_count = 0;
    for (pack_id id = 1; id < 400; id++) {
        *ret_count += exists(s, site_pack(id));
    }
}

/* Packs that died while they were held go when the hold ends, or is broken. */
static void test_packs_go_later(void **state)
{
    (void)state;
    for (unsigned broken = 0; broken < 2; broken++) {
        struct site s;
        struct hold *hold = NULL;
        unsigned held = 0;
        unsigned left = 0;
        open_site(&s);
        assert_int_equal(hold_begin(holds_of(&s), &hold), 0);
        for (unsigned i = 0; i < 5; i++) {
            stir(&s, i);
        }
        count_packs(&s, &held);
        if (broken) {
            holds_break(holds_of(&s));
            assert_true(hold_broken(hold));
            hold_log_done(hold);
            hold_catalog_done(hold);
        }
        hold_end(hold);
        count_packs(&s, &left);
        assert_true(left < held);
        site_down(&s);
        site_expect_good(&s);
        site_remove(&s);
    }
}

/* A tool that looks at the moment of its hold finds a whole, however much has happened since. */
static void test_snapshot_is_whole(void **state)
{
    (void)state;
    struct site s;
    struct hold *hold = NULL;
    open_site(&s);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(hold_begin(holds_of(&s), &hold), 0);
        verify_held(&s, hold);
        stir(&s, i);
        verify_held(&s, hold);
        hold_end(hold);
    }
    site_down(&s);
    site_remove(&s);
}

/* The position is that of the moment at which it is asked for. */
static void test_renewed(void **state)
{
    (void)state;
    struct site s;
    struct hold *hold = NULL;
    open_site(&s);
    assert_int_equal(hold_begin(holds_of(&s), &hold), 0);
    log_pos first = hold_durable(hold);
    assert_int_equal(rig_post_body(&s.rig, "text", "text/plain", "more"), 0);
    assert_int_equal(hold_durable(hold), first);
    assert_true(hold_renew(hold) > first);
    assert_true(hold_durable(hold) > first);
    hold_end(hold);
    site_down(&s);
    site_remove(&s);
}

/* A checkpoint between the hold and the look at it: the catalog is ahead of the first position. */
static void test_checkpoint_between(void **state)
{
    (void)state;
    struct site s;
    struct hold *hold = NULL;
    open_site(&s);
    assert_int_equal(hold_begin(holds_of(&s), &hold), 0);
    assert_int_equal(rig_post_body(&s.rig, "late", "text/plain", " and later"), 0);
    site_save_while_appending(&s.rig);
    verify_held(&s, hold);
    hold_end(hold);
    site_down(&s);
    site_remove(&s);
}

static void test_limit(void **state)
{
    (void)state;
    struct site s;
    struct hold *hold[HOLDS_MAX];
    struct hold *more = NULL;
    open_site(&s);
    for (unsigned i = 0; i < HOLDS_MAX; i++) {
        assert_int_equal(hold_begin(holds_of(&s), &hold[i]), 0);
    }
    assert_int_equal(hold_begin(holds_of(&s), &more), ERR_LIMIT);
    for (unsigned i = 0; i < HOLDS_MAX; i++) {
        hold_end(hold[i]);
    }
    assert_int_equal(hold_begin(holds_of(&s), &more), 0);
    hold_end(more);
    site_down(&s);
    site_remove(&s);
}

/* The environment is closed and opened anew after a failed commit: the pages are not held then. */
static void test_lost_pin(void **state)
{
    (void)state;
    struct site s;
    struct hold *hold = NULL;
    open_site(&s);
    assert_int_equal(hold_begin(holds_of(&s), &hold), 0);
    catalog_lose_pins(holds_of(&s)->catalog);
    assert_true(hold_broken(hold));
    hold_end(hold);
    site_down(&s);
    site_remove(&s);
}

static int64_t no_room(void *context, const char *path)
{
    (void)context;
    (void)path;
    return 4096;
}

/* A store whose disk runs short comes first. */
static void test_short_of_space(void **state)
{
    (void)state;
    struct site s;
    struct hold *hold = NULL;
    open_site(&s);
    static char large[MIB];
    memset(large, 'l', sizeof(large) - 1);
    assert_int_equal(hold_begin(holds_of(&s), &hold), 0);
    s.rig.sys.free_bytes = no_room;
    int rc = 0;
    for (unsigned i = 0; i < 20 && rc == 0; i++) {
        rc = rig_post_body(&s.rig, "text", "text/plain", large);
    }
    assert_int_equal(rc, ERR_NOSPC);
    assert_false(hold_broken(hold));
    site_save(&s.rig);
    assert_true(hold_broken(hold));
    hold_end(hold);
    site_down(&s);
    site_remove(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_everything_stays),  cmocka_unit_test(test_packs_go_later),
        cmocka_unit_test(test_snapshot_is_whole), cmocka_unit_test(test_limit),
        cmocka_unit_test(test_lost_pin),          cmocka_unit_test(test_short_of_space),
        cmocka_unit_test(test_renewed),           cmocka_unit_test(test_checkpoint_between),
    };
    return UNIT_RUN(tests);
}
