/* Tools beside a store that is open, closed, or was left by a crash: what they copy, what they
 * find, and that they leave no trace. */
#include "thread/store_sqlite_tool.c"

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "unit/thread/store_sqlite_fixture.h"

#define TEXTS_MAX 4096u

/* A tool at work, and what it is told. */
struct work {
    struct store_rig *rig;
    struct store_tool tool;
    char to[128];
    void (*stir)(struct work *w); /* what happens meanwhile; NULL: nothing */
    unsigned questions;           /* whether to go on */
    unsigned stop_at;             /* the question that is answered with no; 0: none */
    unsigned findings;
    char texts[TEXTS_MAX]; /* of the findings, a line each */
};

static bool go_on(void *context)
{
    struct work *w = context;
    w->questions++;
    if (w->stir) {
        w->stir(w);
    }
    return w->questions != w->stop_at;
}

static void found(void *context, const char *text)
{
    struct work *w = context;
    size_t len = strlen(w->texts);
    (void)snprintf(w->texts + len, sizeof(w->texts) - len, "%s\n", text);
    w->findings++;
}

static struct work work_on(struct store_rig *rig)
{
    const struct sqlite_fixture *f = rig->back_end;
    struct work w = {.rig = rig, .tool = {.path = f->path, .go_on = go_on}};
    (void)snprintf(w.to, sizeof(w.to), "%s/copy", f->dir);
    return w;
}

static int copy(struct work *w)
{
    w->tool.context = w;
    return store_copy(&w->tool, w->to, &w->rig->msg);
}

static int examine(struct work *w)
{
    w->tool.context = w;
    w->findings = 0;
    w->texts[0] = '\0';
    return store_check(&w->tool, found, &w->rig->msg);
}

/* Opens the copy as a store in a rig of its own. */
static struct store_rig open_copy(struct work *w)
{
    struct store_rig own = {.back_end = NULL};
    struct store_rig *rig = w->rig;
    const struct thread_store_config config = {.path = w->to, .lazy = true};
    OK(store_open(&config, &own.store, &rig->msg));
    arena_init(&own.arena, RIG_ARENA_BYTES);
    return own;
}

static void close_copy(struct work *w, struct store_rig *own)
{
    char lock[160];
    store_close(own->store);
    arena_finish(&own->arena);
    (void)snprintf(lock, sizeof(lock), "%s.lock", w->to);
    assert_int_equal(unlink(lock), 0);
    assert_int_equal(unlink(w->to), 0);
}

static void expect_agent(struct store_rig *rig, unsigned number, int code)
{
    struct agent_record agent;
    EXPECT(code, store_agent_get(rig->store, AGENT(number), &rig->arena, &agent, &rig->msg));
}

static void close_store(struct store_rig *rig)
{
    store_close(rig->store);
    rig->store = NULL;
}

static void add_another(struct work *w)
{
    add_agent(w->rig, 10000 + w->questions);
}

/* Of a store that is open and goes on: everything before the call, and nothing of what came
 * later. */
static void a_copy_is_of_one_moment(void **state)
{
    struct store_rig *rig = *state;
    struct work w = work_on(rig);
    struct stat st;
    mode_t mask = umask(0);
    add_house(rig, 1);
    for (unsigned i = 2; i < 3000; i++) { /* several steps of pages */
        add_agent(rig, i);
    }
    w.stir = add_another;
    OK(copy(&w));
    (void)umask(mask);
    assert_true(w.questions > 1);
    expect_agent(rig, 10001, 0);
    assert_int_equal(stat(w.to, &st), 0);
    assert_int_equal(st.st_mode & 07777u, 0600);
    struct store_rig own = open_copy(&w);
    OK(store_verify(own.store, &rig->msg));
    assert_int_equal(role_in(&own, 1, 1), ROLE_OWNER);
    expect_agent(&own, 2999, 0);
    expect_agent(&own, 10001, ERR_NOTFOUND);
    close_copy(&w, &own);
}

/* What stands in the directory, with times, sizes and modes. For root SQLite sets owners anew, to
 * what they are, and with them the time of that. */
struct trace {
    unsigned files;
    uint64_t sum;
};

static struct trace look_around(const struct sqlite_fixture *f)
{
    struct trace trace = {.files = 0};
    DIR *dir = opendir(f->dir);
    assert_non_null(dir);
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        char path[384];
        struct stat st;
        (void)snprintf(path, sizeof(path), "%s/%s", f->dir, entry->d_name);
        assert_int_equal(stat(path, &st), 0);
        if (S_ISREG(st.st_mode)) {
            const uint64_t facts[] = {st.st_ino, (uint64_t)st.st_size, st.st_mode,
                                      (uint64_t)st.st_mtim.tv_nsec};
            trace.files++;
            trace.sum += slice_hash((struct slice){(const char *)facts, sizeof(facts)}, 0);
        }
    }
    assert_int_equal(closedir(dir), 0);
    return trace;
}

static void try_to_open(struct work *w)
{
    struct thread_store *store = NULL;
    struct thread_store_config config = fixture_config(w->rig->back_end);
    struct store_rig *rig = w->rig;
    EXPECT(ERR_LOCKED, store_open(&config, &store, &rig->msg));
}

static void without_a_trace(struct store_rig *rig)
{
    struct work w = work_on(rig);
    struct trace before = look_around(rig->back_end);
    w.stir = try_to_open;
    OK(examine(&w));
    assert_int_equal(w.findings, 0);
    OK(copy(&w));
    assert_true(w.questions > 0);
    struct store_rig own = open_copy(&w);
    expect_agent(&own, 1, 0);
    close_copy(&w, &own);
    struct trace after = look_around(rig->back_end);
    assert_int_equal(after.files, before.files);
    assert_true(after.sum == before.sum);
}

/* Nobody has the store: nothing is made beside it, and nobody may open it meanwhile. */
static void closed_stores_stay_as_they_are(void **state)
{
    struct store_rig *rig = *state;
    add_agent(rig, 1);
    close_store(rig);
    without_a_trace(rig);
    fixture_open(rig);
    expect_agent(rig, 1, 0);
}

/* What only the log of a store has that was killed is read, and left there. */
static void crashed_stores_stay_as_they_are(void **state)
{
    struct store_rig *rig = *state;
    int status = 0;
    close_store(rig);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        fixture_open(rig);
        add_agent(rig, 1);
        (void)kill(getpid(), SIGKILL);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    without_a_trace(rig);
    fixture_open(rig);
    expect_agent(rig, 1, 0);
}

/* Characters that mean something in a URI of SQLite's. */
static void paths_are_taken_as_they_are(void **state)
{
    struct store_rig *rig = *state;
    const struct sqlite_fixture *f = rig->back_end;
    struct work w = work_on(rig);
    char dir[128];
    char path[160];
    add_agent(rig, 1);
    close_store(rig);
    (void)snprintf(dir, sizeof(dir), "%s/a%%41?mode=memory#&b", f->dir);
    (void)snprintf(path, sizeof(path), "%s/app.db", dir);
    assert_int_equal(mkdir(dir, 0700), 0);
    assert_int_equal(rename(f->path, path), 0);
    w.tool.path = path;
    OK(copy(&w));
    struct store_rig own = open_copy(&w);
    expect_agent(&own, 1, 0);
    close_copy(&w, &own);
    assert_int_equal(rename(path, f->path), 0);
    fixture_open(rig);
}

static void run_sql(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* There is none, the place is taken, it is too new, it is not ours. */
static void refusals(void **state)
{
    struct store_rig *rig = *state;
    const struct sqlite_fixture *f = rig->back_end;
    struct work w = work_on(rig);
    add_agent(rig, 1);
    OK(copy(&w));
    EXPECT(ERR_EXISTS, copy(&w));
    SAYS("cannot make");
    assert_int_equal(unlink(w.to), 0);
    run_sql(f->path, "PRAGMA user_version = 999");
    EXPECT(ERR_MISMATCH, copy(&w));
    SAYS("newer arbe (schema 999");
    assert_int_not_equal(access(w.to, F_OK), 0);
    OK(examine(&w));
    assert_string_equal(w.texts, "it was written by a newer arbe (schema 999, this one knows 2)\n");
    run_sql(f->path, "PRAGMA user_version = 2");
    w.tool.path = f->dir;
    EXPECT(ERR_FILEKIND, copy(&w));
    w.tool.path = "/nowhere/app.db";
    EXPECT(ERR_NOTFOUND, copy(&w));
    EXPECT(ERR_NOTFOUND, examine(&w));
}

/* Whoever works for the tool may end it at any question. */
static void works_can_be_ended(void **state)
{
    struct store_rig *rig = *state;
    struct work w = work_on(rig);
    for (unsigned i = 1; i < 1000; i++) {
        add_agent(rig, i);
    }
    w.stop_at = 1;
    EXPECT(ERR_AGAIN, copy(&w));
    assert_int_equal(unlink(w.to), 0);
    w.questions = 0;
    EXPECT(ERR_AGAIN, examine(&w));
    assert_int_equal(w.findings, 0);
    w.stop_at = 0;
    OK(copy(&w));
    OK(examine(&w));
}

/* A real limit on the size of files. */
static void no_room(void **state)
{
    struct store_rig *rig = *state;
    struct work w = work_on(rig);
    struct rlimit before;
    add_agent(rig, 1);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    struct rlimit tight = {.rlim_cur = 20000, .rlim_max = before.rlim_max};
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    EXPECT(ERR_NOSPC, copy(&w));
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    (void)signal(SIGXFSZ, handler);
}

static void change_byte(const char *path, off_t at)
{
    unsigned char byte;
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= 0xff;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    assert_int_equal(close(fd), 0);
}

/* The first bytes of each page that holds something, changed one after the other: each is found,
 * and told in words. */
static void damage_is_found(void **state)
{
    struct store_rig *rig = *state;
    const struct sqlite_fixture *f = rig->back_end;
    struct work w = work_on(rig);
    struct stat st;
    unsigned silent = 0;
    unsigned ended = 0; /* at a page that leads to others */
    add_house(rig, 1);
    close_store(rig);
    assert_int_equal(stat(f->path, &st), 0);
    for (off_t page = 0; page < st.st_size / 4096; page++) {
        change_byte(f->path, page * 4096);
        OK(examine(&w));
        silent += w.findings == 0;
        ended += strstr(w.texts, ": it cannot be read any further\n") != NULL;
        assert_true(w.findings == 0 || strlen(w.texts) > 10);
        assert_null(strstr(w.texts, "***"));
        change_byte(f->path, page * 4096);
    }
    assert_int_equal(silent, 0);
    assert_true(ended > 0);
    OK(examine(&w));
    assert_int_equal(w.findings, 0);
    fixture_open(rig);
}

/* Whatever byte is changed, no work dies of it, and there is always an answer. */
static void no_damage_is_fatal(void **state)
{
    struct store_rig *rig = *state;
    const struct sqlite_fixture *f = rig->back_end;
    struct work w = work_on(rig);
    struct stat st;
    for (unsigned i = 1; i < 20; i++) {
        add_house(rig, i);
        add_thread(rig, i, i);
    }
    close_store(rig);
    assert_int_equal(stat(f->path, &st), 0);
    for (off_t at = 0; at < st.st_size; at += at < 200 ? 1 : 977) {
        change_byte(f->path, at);
        OK(examine(&w));
        (void)copy(&w); /* page by page: what is in them is verified later */
        (void)unlink(w.to);
        change_byte(f->path, at);
    }
    fixture_open(rig);
    OK(store_verify(rig->store, &rig->msg));
}

/* All that is wrong is told, not the first of it. */
static void all_findings_are_told(void **state)
{
    struct store_rig *rig = *state;
    const struct sqlite_fixture *f = rig->back_end;
    struct work w = work_on(rig);
    add_house(rig, 1);
    add_house(rig, 2);
    run_sql(f->path, "PRAGMA foreign_keys = OFF; DELETE FROM agents; UPDATE members SET role ="
                     " 'member'");
    OK(examine(&w));
    assert_true(w.findings >= 3);
    assert_non_null(strstr(w.texts, "members refer to agents that are not there\n"));
    assert_non_null(strstr(w.texts, "it has a house without an owner\n"));
    close_store(rig);
    assert_int_equal(unlink(f->path), 0);
    fixture_open(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_copy_is_of_one_moment, rig_open, rig_close),
        cmocka_unit_test_setup_teardown(closed_stores_stay_as_they_are, rig_open, rig_close),
        cmocka_unit_test_setup_teardown(crashed_stores_stay_as_they_are, rig_open, rig_close),
        cmocka_unit_test_setup_teardown(paths_are_taken_as_they_are, rig_open, rig_close),
        cmocka_unit_test_setup_teardown(refusals, rig_open, rig_close),
        cmocka_unit_test_setup_teardown(works_can_be_ended, rig_open, rig_close),
        cmocka_unit_test_setup_teardown(no_room, rig_open, rig_close),
        cmocka_unit_test_setup_teardown(damage_is_found, rig_open, rig_close),
        cmocka_unit_test_setup_teardown(no_damage_is_fatal, rig_open, rig_close),
        cmocka_unit_test_setup_teardown(all_findings_are_told, rig_open, rig_close),
    };
    return UNIT_RUN(tests);
}
