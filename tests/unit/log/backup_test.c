/* Backups of free and of working directories, brought back and compared; every call fails once, and
 * once for ever. */
#include "log/backup.c"

#include "log/hold.h"
#include "unit/log/verify_fixture.h"

struct copying {
    struct site site; /* what is backed up */
    char out[64];     /* the backup */
    char back[64];    /* what was restored */
    struct backup_report report;
    struct errmsg msg;
    void (*stir)(struct copying *c); /* what happens meanwhile; NULL: nothing */
    unsigned calls;
    bool bare;                        /* there are no records */
    void (*first)(struct copying *c); /* what happens before they are made; NULL: nothing */
};

#define RECORDS "what is known of threads"

static int on_records(void *context, const char *path, struct errmsg *msg)
{
    struct copying *c = context;
    (void)msg;
    if (c->first) {
        c->first(c);
    }
    if (c->bare) {
        return ERR_NOTFOUND;
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, RECORDS, strlen(RECORDS)), strlen(RECORDS));
    assert_int_equal(close(fd), 0);
    return 0;
}

static void expect_records(const char *dir)
{
    char path[256];
    char text[64] = "";
    struct stat st;
    (void)snprintf(path, sizeof(path), "%s/app.db", dir);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(read(fd, text, sizeof(text)), strlen(RECORDS));
    assert_int_equal(close(fd), 0);
    assert_string_equal(text, RECORDS);
}

static void on_progress(void *context, uint64_t done, uint64_t total)
{
    struct copying *c = context;
    assert_true(done <= total);
    c->calls++;
    if (c->stir) {
        c->stir(c);
    }
}

static void make_names(struct copying *c)
{
    (void)snprintf(c->out, sizeof(c->out), "%.56s.out", c->site.rig.dir);
    (void)snprintf(c->back, sizeof(c->back), "%.56s.back", c->site.rig.dir);
}

static struct backup_config config_of(struct copying *c, const char *from, const char *to)
{
    return (struct backup_config){.sys = &c->site.rig.sys,
                                  .from = from,
                                  .to = to,
                                  .context = c,
                                  .records = on_records,
                                  .progress = on_progress};
}

static int backup(struct copying *c)
{
    const struct backup_config config = config_of(c, c->site.rig.dir, c->out);
    return backup_make(&config, &c->report, &c->msg);
}

static int restore(struct copying *c)
{
    const struct backup_config config = config_of(c, c->out, c->back);
    c->stir = NULL;
    return backup_restore(&config, &c->report, &c->msg);
}

static void remove_dir(const char *dir)
{
    if (access(dir, F_OK) == 0) {
        assert_int_equal(nftw(dir, rig_remove, 8, FTW_DEPTH | FTW_PHYS), 0);
    }
}

static void expect_whole(struct copying *c, const char *dir)
{
    char own[sizeof(c->site.rig.dir)];
    memcpy(own, c->site.rig.dir, sizeof(own));
    (void)snprintf(c->site.rig.dir, sizeof(c->site.rig.dir), "%s", dir);
    site_expect_good(&c->site);
    assert_int_equal(c->site.report.notes, 0);
    memcpy(c->site.rig.dir, own, sizeof(own));
}

/* Opens what was restored as a server does, and looks. */
static void open_restored(struct copying *c, struct rig *rig)
{
    *rig = c->site.rig;
    (void)snprintf(rig->dir, sizeof(rig->dir), "%s", c->back);
    list_init(&rig->tasks);
    rig->config.store.dir = rig->dir;
    rig->config.store.sys = &rig->sys;
    assert_int_equal(pool_create(0, &rig->pool), 0);
    rig->config.pool = rig->pool;
    rig_attach(rig);
}

static void expect_contents(struct copying *c)
{
    struct rig rig;
    open_restored(c, &rig);
    rig_expect(&rig, "text", "hello world, again");
    rig_expect(&rig, "fork", "hello");
    rig_expect(&rig, "heir", "kept for the heir");
    rig_expect(&rig, "logged", "in the log");
    rig_expect(&rig, "logged-fork", "in the log");
    rig_expect(&rig, "produced", "made");
    assert_int_equal(rig_head(&rig, "soft"), ERR_GONE);
    assert_int_equal(rig_post_body(&rig, "text", "text/plain", "!"), 0);
    site_save(&rig);
    rig_expect(&rig, "text", "hello world, again!");
    rig_detach(&rig, true);
    pool_destroy(rig.pool);
}

static void test_free_directory(void **state)
{
    (void)state;
    struct copying c = {.calls = 0};
    site_build(&c.site);
    make_names(&c);
    char keys[256];
    site_path(&c.site, "keys", keys);
    assert_int_equal(mkdir(keys, 0700), 0);
    site_path(&c.site, "keys/keys.pem", keys);
    close(open(keys, O_CREAT | O_RDWR, 0600));
    site_path(&c.site, "keys/lock", keys);
    close(open(keys, O_CREAT | O_RDWR, 0600));
    if (backup(&c) != 0) {
        fail_msg("%s", c.msg.text);
    }
    assert_int_equal(c.report.records, 4);
    assert_true(c.calls > 3);
    expect_whole(&c, c.out);
    if (restore(&c) != 0) {
        fail_msg("%s", c.msg.text);
    }
    (void)snprintf(keys, sizeof(keys), "%s/keys/keys.pem", c.back);
    struct stat st;
    assert_int_equal(stat(keys, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    (void)snprintf(keys, sizeof(keys), "%s/keys/lock", c.back);
    assert_int_equal(access(keys, F_OK), -1);
    assert_int_equal(stat(c.back, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    expect_whole(&c, c.back);
    expect_records(c.out);
    expect_records(c.back);
    expect_contents(&c);
    expect_whole(&c, c.back);
    remove_dir(c.out);
    remove_dir(c.back);
    site_remove(&c.site);
}

static struct hold *held;

/* A little of everything, at each step of the copy. */
static void stir(struct copying *c)
{
    static unsigned round;
    struct rig *rig = &c->site.rig;
    char name[32];
    round++;
    (void)snprintf(name, sizeof(name), "stir%u", round % 9);
    (void)rig_put(rig, name, "text/plain", "something new");
    (void)rig_post_body(rig, "text", "text/plain", ", and again");
    if (round % 4 == 0) {
        (void)rig_delete(rig, name);
    }
    if (round % 3 == 0) {
        site_save(rig);
    }
    if (round == 5) {
        (void)rig_delete(rig, "logged"); /* kept for its fork */
        (void)rig_delete(rig, "heir");
    }
}

static int on_durable(void *context, log_pos *ret_durable, struct errmsg *msg)
{
    (void)context;
    (void)msg;
    *ret_durable = hold_renew(held);
    return 0;
}

static void on_log_done(void *context)
{
    (void)context;
    hold_log_done(held);
}

static void on_catalog_done(void *context)
{
    (void)context;
    hold_catalog_done(held);
}

/* Of the working directory that `held` holds. */
static int backup_held(struct copying *c)
{
    struct backup_config config = config_of(c, c->site.rig.dir, c->out);
    config.running = true;
    config.durable = on_durable;
    config.log_done = on_log_done;
    config.catalog_done = on_catalog_done;
    return backup_make(&config, &c->report, &c->msg);
}

/* What happens after the backup began is not in it, and does it no harm. Without records, so that
 * it begins with the streams. */
static void test_working_directory(void **state)
{
    (void)state;
    struct copying c = {.stir = stir, .bare = true};
    rig_open(&c.site.rig);
    make_names(&c);
    site_fill(&c.site.rig);
    assert_int_equal(hold_begin(engine_holds(c.site.rig.engine), &held), 0);
    if (backup_held(&c) != 0) {
        fail_msg("%s", c.msg.text);
    }
    assert_int_equal(c.report.position, hold_durable(held));
    assert_false(hold_broken(held));
    hold_end(held);
    site_down(&c.site);
    site_expect_good(&c.site);
    expect_whole(&c, c.out);
    assert_int_equal(restore(&c), 0);
    expect_contents(&c);
    expect_whole(&c, c.back);
    remove_dir(c.out);
    remove_dir(c.back);
    site_remove(&c.site);
}

/* What is appended to a restored directory is there after a crash. */
static void expect_lasting(struct copying *c)
{
    struct rig rig;
    open_restored(c, &rig);
    rig_expect(&rig, "text", "hello world, again, and, late");
    rig_expect(&rig, "late", "late and later");
    assert_int_equal(rig_post_body(&rig, "text", "text/plain", "!"), 0);
    assert_int_equal(rig_post_body(&rig, "late", "text/plain", "!"), 0);
    rig_reopen(&rig, false);
    rig_expect(&rig, "text", "hello world, again, and, late!");
    rig_expect(&rig, "late", "late and later!");
    rig_detach(&rig, false);
    pool_destroy(rig.pool);
}

/* A checkpoint between the hold and the look at the catalog, which is then ahead of the position
 * that was durable first. */
static void test_checkpoint_between(void **state)
{
    (void)state;
    struct copying c = {.calls = 0};
    rig_open(&c.site.rig);
    make_names(&c);
    site_fill(&c.site.rig);
    assert_int_equal(hold_begin(engine_holds(c.site.rig.engine), &held), 0);
    assert_int_equal(rig_post_body(&c.site.rig, "text", "text/plain", ", and"), 0);
    assert_int_equal(rig_post_body(&c.site.rig, "late", "text/plain", " and later"), 0);
    site_save_while_appending(&c.site.rig);
    if (backup_held(&c) != 0) {
        fail_msg("%s", c.msg.text);
    }
    hold_end(held);
    site_down(&c.site);
    expect_whole(&c, c.out);
    assert_int_equal(restore(&c), 0);
    expect_whole(&c, c.back);
    expect_lasting(&c);
    expect_whole(&c, c.back);
    remove_dir(c.out);
    remove_dir(c.back);
    site_remove(&c.site);
}

static void say_more(struct copying *c)
{
    assert_int_equal(rig_post_body(&c->site.rig, "text", "text/plain", ", and more"), 0);
}

/* What the streams get until the records are there is in the backup. */
static void test_records_come_first(void **state)
{
    (void)state;
    struct copying c = {.first = say_more};
    struct rig rig;
    rig_open(&c.site.rig);
    make_names(&c);
    site_fill(&c.site.rig);
    assert_int_equal(hold_begin(engine_holds(c.site.rig.engine), &held), 0);
    assert_int_equal(backup_held(&c), 0);
    hold_end(held);
    site_down(&c.site);
    assert_int_equal(restore(&c), 0);
    expect_records(c.back);
    open_restored(&c, &rig);
    rig_expect(&rig, "text", "hello world, again, and more");
    rig_detach(&rig, true);
    pool_destroy(rig.pool);
    remove_dir(c.out);
    remove_dir(c.back);
    site_remove(&c.site);
}

static void test_no_records(void **state)
{
    (void)state;
    struct copying c = {.bare = true};
    char path[256];
    site_build(&c.site);
    make_names(&c);
    assert_int_equal(backup(&c), 0);
    assert_int_equal(restore(&c), 0);
    (void)snprintf(path, sizeof(path), "%s/app.db", c.back);
    assert_int_equal(access(path, F_OK), -1);
    expect_contents(&c);
    remove_dir(c.out);
    remove_dir(c.back);
    site_remove(&c.site);
}

static int half_of_them(void *context, const char *path, struct errmsg *msg)
{
    (void)on_records(context, path, msg);
    return err_set(msg, ERR_CORRUPT, "they are damaged");
}

/* Records that cannot be copied are told in their own words, and nothing is left of them. */
static void test_records_fail(void **state)
{
    (void)state;
    struct copying c = {.calls = 0};
    char path[256];
    site_build(&c.site);
    make_names(&c);
    struct backup_config config = config_of(&c, c.site.rig.dir, c.out);
    config.records = half_of_them;
    assert_int_equal(backup_make(&config, &c.report, &c.msg), ERR_CORRUPT);
    assert_string_equal(c.msg.text, "they are damaged");
    assert_int_equal(restore(&c), ERR_INVALID);
    (void)snprintf(path, sizeof(path), "%s/app.db.part", c.out);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(backup(&c), 0); /* what is left is as good as empty */
    remove_dir(c.out);
    site_remove(&c.site);
}

/* The server that should tell how far its log is durable let go. */
static int no_durable(void *context, log_pos *ret_durable, struct errmsg *msg)
{
    (void)context;
    (void)ret_durable;
    return err_set(msg, ERR_AGAIN, "nothing is held");
}

static void test_hold_lost_at_once(void **state)
{
    (void)state;
    struct copying c = {.calls = 0};
    site_build(&c.site);
    make_names(&c);
    struct backup_config config = config_of(&c, c.site.rig.dir, c.out);
    config.running = true;
    config.durable = no_durable;
    assert_int_equal(backup_make(&config, &c.report, &c.msg), ERR_AGAIN);
    assert_string_equal(c.msg.text, "nothing is held");
    assert_int_equal(c.calls, 0);
    assert_int_equal(restore(&c), ERR_INVALID);
    remove_dir(c.out);
    site_remove(&c.site);
}

/* Refusals. */

static void touch_file(const char *dir, const char *name)
{
    char path[256];
    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    close(open(path, O_CREAT | O_RDWR, 0600));
}

static void test_targets(void **state)
{
    (void)state;
    struct copying c = {.calls = 0};
    site_build(&c.site);
    make_names(&c);
    assert_int_equal(mkdir(c.out, 0700), 0);
    touch_file(c.out, "anything");
    assert_int_equal(backup(&c), ERR_EXISTS);
    assert_non_null(strstr(c.msg.text, "is not empty"));
    char path[256];
    (void)snprintf(path, sizeof(path), "%s/anything", c.out);
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(backup(&c), 0); /* empty is good */
    assert_int_equal(backup(&c), ERR_EXISTS);
    assert_int_equal(mkdir(c.back, 0700), 0);
    touch_file(c.back, "wal");
    assert_int_equal(restore(&c), ERR_EXISTS);
    (void)snprintf(path, sizeof(path), "%s/wal", c.back);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(restore(&c), 0);
    assert_int_equal(restore(&c), ERR_EXISTS);
    expect_contents(&c);
    remove_dir(c.back);
    (void)snprintf(path, sizeof(path), "%s/manifest", c.out);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(restore(&c), ERR_INVALID);
    assert_non_null(strstr(c.msg.text, "is no backup"));
    assert_int_equal(access(c.back, F_OK), -1);
    remove_dir(c.out);
    site_remove(&c.site);
}

static void test_memory_mode(void **state)
{
    (void)state;
    struct copying c = {.calls = 0};
    rig_open(&c.site.rig);
    make_names(&c);
    rig_detach(&c.site.rig, false);
    site_remove(&c.site);
    assert_int_equal(mkdir(c.site.rig.dir, 0700), 0);
    c.site.rig.config.store.durability = DURABILITY_MEMORY;
    rig_attach(&c.site.rig);
    site_down(&c.site);
    assert_int_equal(backup(&c), ERR_MISMATCH);
    assert_non_null(strstr(c.msg.text, "memory mode"));
    remove_dir(c.out);
    site_remove(&c.site);
}

/* Damage of the source that a copy meets is refused, not copied. */
static void test_damaged_source(void **state)
{
    static const struct {
        const char *file;
        uint64_t at; /* of the bit; UINT64_MAX: the last byte is cut off */
        const char *text;
    } cases[] = {
        {"wal/wal-0000000000000000", 33, "run arbe streams verify"},
        {"packs/pack-0000000000000001", UINT64_MAX, "it is damaged"},
        {"catalog/data.mdb", 0, ""},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct copying c = {.calls = 0};
        site_build(&c.site);
        make_names(&c);
        if (cases[i].at == UINT64_MAX) {
            site_cut(&c.site, cases[i].file, site_size(&c.site, cases[i].file) - 1);
        } else if (i < 2) {
            site_flip(&c.site, cases[i].file, cases[i].at);
        } else {
            site_unlink(&c.site, cases[i].file);
        }
        assert_true(backup(&c) < 0);
        assert_non_null(strstr(c.msg.text, cases[i].text));
        assert_int_equal(restore(&c), ERR_INVALID);
        remove_dir(c.out);
        site_remove(&c.site);
    }
}

/* A record in the middle of the log is damaged: what is behind would be missing. */
static void test_damaged_log(void **state)
{
    (void)state;
    struct copying c = {.calls = 0};
    struct edit e;
    site_build(&c.site);
    make_names(&c);
    edit_begin(&c.site, &e);
    uint64_t at = SEGMENT_HEADER_BYTES + edit_state(&e).checkpoint + RECORD_FRAME_BYTES;
    edit_end(&e);
    site_flip(&c.site, "wal/wal-0000000000000000", at);
    assert_int_equal(backup(&c), ERR_CORRUPT);
    assert_non_null(strstr(c.msg.text, "run arbe streams verify"));
    remove_dir(c.out);
    site_remove(&c.site);
}

/* Each file of a backup that was changed, cut or lost is found out, by verify too, and nothing is
 * left behind. */
static void test_damaged_backup(void **state)
{
    static const char *const files[] = {"packs/pack-0000000000000002", "catalog/data.mdb",
                                        "manifest", "app.db",
                                        NULL /* the log's, whose name varies */};
    (void)state;
    struct copying c = {.calls = 0};
    site_build(&c.site);
    make_names(&c);
    assert_int_equal(backup(&c), 0);
    struct edit e;
    char log[64];
    char name[SEGMENT_PATH_MAX];
    edit_begin(&c.site, &e);
    segment_format_name(edit_state(&e).checkpoint, name);
    edit_end(&e);
    (void)snprintf(log, sizeof(log), "wal/%.40s", name);
    for (size_t i = 0; i < 3 * ARRAY_COUNT(files); i++) {
        struct copying d = c;
        struct site out = c.site;
        const char *file = files[i / 3] ? files[i / 3] : log;
        (void)snprintf(d.out, sizeof(d.out), "%s", c.out);
        (void)snprintf(out.rig.dir, sizeof(out.rig.dir), "%s", c.out);
        uint64_t size = site_size(&out, file);
        char path[256];
        char aside[256];
        site_path(&out, file, path);
        (void)snprintf(aside, sizeof(aside), "%.200s.aside", path);
        if (i % 3 == 0) {
            site_flip(&out, file, size / 2);
        } else if (i % 3 == 1) {
            site_cut(&out, file, size - 1);
        } else {
            assert_int_equal(rename(path, aside), 0);
        }
        assert_true(restore(&d) < 0);
        bool no_backup = i % 3 == 2 && strcmp(file, "manifest") == 0;
        site_verify(&out);
        assert_int_equal(site_says(&out, file, "restore refuses this backup"), !no_backup);
        if (i % 3 == 0) {
            site_flip(&out, file, size / 2);
        } else if (i % 3 == 1) {
            remove_dir(c.out);
            assert_int_equal(backup(&c), 0);
        } else {
            assert_int_equal(rename(aside, path), 0);
        }
        (void)snprintf(path, sizeof(path), "%.100s/catalog/data.mdb", c.back);
        assert_int_equal(access(path, F_OK), -1);
    }
    if (restore(&c) != 0) {
        fail_msg("%s", c.msg.text);
    }
    expect_contents(&c);
    remove_dir(c.out);
    remove_dir(c.back);
    site_remove(&c.site);
}

/* Faults. */

static struct sys real;
static unsigned countdown; /* calls until one fails; 0: none does */
static bool for_ever;      /* all later ones too: as if killed */
static int fault;
static unsigned hits;

static bool due(void)
{
    if (countdown == 0) {
        return false;
    }
    if (countdown > 1) {
        countdown--;
        return false;
    }
    countdown = for_ever ? 1 : 0;
    hits++;
    return true;
}

static int faulty_open(void *context, const char *path, bool create)
{
    return due() ? fault : real.open(context, path, create);
}

static int faulty_open_read(void *context, const char *path)
{
    return due() ? fault : real.open_read(context, path);
}

static int faulty_pwritev(void *context, int fd, const struct iovec *iov, int n, uint64_t at)
{
    return due() ? fault : real.pwritev(context, fd, iov, n, at);
}

static int64_t faulty_pread(void *context, int fd, void *buf, size_t len, uint64_t at)
{
    return due() ? fault : real.pread(context, fd, buf, len, at);
}

static int faulty_fdatasync(void *context, int fd)
{
    return due() ? fault : real.fdatasync(context, fd);
}

static int64_t faulty_size(void *context, int fd)
{
    return due() ? fault : real.size(context, fd);
}

static int faulty_rename(void *context, const char *from, const char *to)
{
    return due() ? fault : real.rename(context, from, to);
}

static int faulty_mkdir(void *context, const char *path)
{
    return due() ? fault : real.mkdir(context, path);
}

static int faulty_sync_dir(void *context, const char *path)
{
    return due() ? fault : real.sync_dir(context, path);
}

static int faulty_list_dir(void *context, const char *path, sys_entry_fn each, void *each_context)
{
    return due() ? fault : real.list_dir(context, path, each, each_context);
}

static int faulty_unlink(void *context, const char *path)
{
    return for_ever && countdown == 1 ? fault : real.unlink(context, path);
}

static int faulty_lock(void *context, const char *path)
{
    return due() ? fault : real.lock(context, path);
}

static void set_faults(struct sys *sys)
{
    real = *sys;
    sys->open = faulty_open;
    sys->open_read = faulty_open_read;
    sys->pwritev = faulty_pwritev;
    sys->pread = faulty_pread;
    sys->fdatasync = faulty_fdatasync;
    sys->size = faulty_size;
    sys->rename = faulty_rename;
    sys->mkdir = faulty_mkdir;
    sys->sync_dir = faulty_sync_dir;
    sys->list_dir = faulty_list_dir;
    sys->unlink = faulty_unlink;
    sys->lock = faulty_lock;
}

static bool exists(const char *dir, const char *name)
{
    char path[256];
    (void)snprintf(path, sizeof(path), "%s/%s", dir, name);
    return access(path, F_OK) == 0;
}

/* The i-th call of a backup fails, for every i: it says so, and there is none, or, when that was
 * all but the last sync, a whole one. */
static void try_backup(struct copying *c, unsigned i, bool *ret_hit)
{
    set_faults(&c->site.rig.sys);
    countdown = i;
    hits = 0;
    int rc = backup(c);
    *ret_hit = hits > 0;
    countdown = 0;
    c->site.rig.sys = real;
    if (rc == 0) {
        assert_int_equal(hits, 0);
        return;
    }
    assert_true(c->msg.text[0] != '\0');
    assert_true(for_ever || !exists(c->out, "manifest"));
    if (restore(c) == 0) {
        assert_true(for_ever);
        expect_whole(c, c->back);
    }
}

static void test_backup_faults(void **state)
{
    static const int faults[] = {ERR_IO, ERR_NOSPC};
    (void)state;
    struct copying c = {.calls = 0};
    site_build(&c.site);
    make_names(&c);
    for (unsigned kind = 0; kind < 4; kind++) {
        bool hit = true;
        fault = faults[kind % 2];
        for_ever = kind >= 2;
        for (unsigned i = 1; hit; i++) {
            assert_true(i < 1000);
            try_backup(&c, i, &hit);
            remove_dir(c.out);
            remove_dir(c.back);
        }
    }
    site_remove(&c.site);
}

/* The same for bringing it back: there is no directory that a server would take. */
static void test_restore_faults(void **state)
{
    (void)state;
    struct copying c = {.calls = 0};
    site_build(&c.site);
    make_names(&c);
    assert_int_equal(backup(&c), 0);
    fault = ERR_NOSPC;
    for (unsigned kind = 0; kind < 2; kind++) {
        bool hit = true;
        for_ever = kind == 1;
        for (unsigned i = 1; hit; i++) {
            assert_true(i < 1000);
            set_faults(&c.site.rig.sys);
            countdown = i;
            int rc = restore(&c);
            countdown = 0;
            c.site.rig.sys = real;
            hit = rc != 0;
            if (hit && exists(c.back, "catalog/data.mdb")) {
                assert_true(for_ever); /* nothing but the last sync is missing */
                expect_whole(&c, c.back);
                expect_records(c.back);
            }
            remove_dir(c.back);
        }
    }
    remove_dir(c.out);
    site_remove(&c.site);
}

/* A server begins in the directory just before it is locked; it stays, or went again. */

static struct copying *late;
static struct rig early;
static bool stays;

static int lock_too_late(void *context, const char *path)
{
    late->site.rig.sys = real;
    open_restored(late, &early);
    assert_int_equal(rig_put(&early, "own", "text/plain", "of the server"), 0);
    if (!stays) {
        rig_detach(&early, true);
    }
    return real.lock(context, path);
}

static void test_server_is_faster(void **state)
{
    (void)state;
    struct copying c = {.calls = 0};
    site_build(&c.site);
    make_names(&c);
    assert_int_equal(backup(&c), 0);
    late = &c;
    for (unsigned i = 0; i < 2; i++) {
        stays = i == 0;
        real = c.site.rig.sys;
        c.site.rig.sys.lock = lock_too_late;
        assert_int_equal(restore(&c), stays ? ERR_LOCKED : ERR_EXISTS);
        assert_non_null(strstr(c.msg.text, stays ? "cannot lock" : "is not empty"));
        if (stays) {
            rig_expect(&early, "own", "of the server");
            rig_detach(&early, false);
        }
        expect_whole(&c, c.back);
        rig_attach(&early);
        rig_expect(&early, "own", "of the server");
        rig_detach(&early, false);
        pool_destroy(early.pool);
        remove_dir(c.back);
    }
    remove_dir(c.out);
    site_remove(&c.site);
}

static int64_t no_room(void *context, const char *path)
{
    (void)context;
    (void)path;
    return 1000;
}

static void test_no_room(void **state)
{
    (void)state;
    struct copying c = {.calls = 0};
    site_build(&c.site);
    make_names(&c);
    c.site.rig.sys.free_bytes = no_room;
    assert_int_equal(backup(&c), ERR_NOSPC);
    assert_non_null(strstr(c.msg.text, "no room: the backup takes"));
    assert_int_equal(c.calls, 0);
    remove_dir(c.out);
    site_remove(&c.site);
}

static int refuse(void *context, struct errmsg *msg)
{
    (void)context;
    return err_set(msg, ERR_AGAIN, "it was not held");
}

static void test_hold_lost(void **state)
{
    (void)state;
    struct copying c = {.calls = 0};
    site_build(&c.site);
    make_names(&c);
    struct backup_config config = config_of(&c, c.site.rig.dir, c.out);
    config.confirm = refuse;
    assert_int_equal(backup_make(&config, &c.report, &c.msg), ERR_AGAIN);
    assert_string_equal(c.msg.text, "it was not held");
    assert_int_equal(restore(&c), ERR_INVALID);
    remove_dir(c.out);
    site_remove(&c.site);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_free_directory),
        cmocka_unit_test(test_working_directory),
        cmocka_unit_test(test_targets),
        cmocka_unit_test(test_memory_mode),
        cmocka_unit_test(test_damaged_source),
        cmocka_unit_test(test_damaged_log),
        cmocka_unit_test(test_damaged_backup),
        cmocka_unit_test(test_backup_faults),
        cmocka_unit_test(test_restore_faults),
        cmocka_unit_test(test_no_room),
        cmocka_unit_test(test_hold_lost),
        cmocka_unit_test(test_checkpoint_between),
        cmocka_unit_test(test_hold_lost_at_once),
        cmocka_unit_test(test_server_is_faster),
        cmocka_unit_test(test_records_come_first),
        cmocka_unit_test(test_no_records),
        cmocka_unit_test(test_records_fail),
    };
    return UNIT_RUN(tests);
}
