/* The list of store_cases.h over SQLite, and what is SQLite's own: files, other processes, ends by
 * SIGKILL. */
#include "thread/store_sqlite.c"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "unit/thread/store_cases.h"
#include "unit/thread/store_sqlite_fixture.h"

/* Answers of a store_open that is to fail. */
static void refused(struct store_rig *rig, const struct sqlite_fixture *f, int code,
                    const char *part)
{
    struct thread_store *store = NULL;
    struct thread_store_config config = fixture_config(f);
    EXPECT(code, store_open(&config, &store, &rig->msg));
    assert_null(store);
    SAYS(part);
}

static void run_sql(const struct sqlite_fixture *f, const char *sql)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void mode_is_private(const struct sqlite_fixture *f, const char *suffix)
{
    char path[128];
    struct stat st;
    (void)snprintf(path, sizeof(path), "%s%s", f->path, suffix);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777u, 0600);
}

/* Nobody else may read the files, whatever the umask and whatever the mode was before. */
static void files_are_private(void **state)
{
    struct store_rig *rig = *state;
    const struct sqlite_fixture *f = rig->back_end;
    const char *suffixes[] = {"", "-wal", "-shm", ".lock"};
    mode_t mask = umask(0);
    for (int round = 0; round < 2; round++) {
        store_close(rig->store);
        assert_int_equal(round == 0 ? unlink(f->path) : chmod(f->path, 0666), 0);
        fixture_open(rig);
        add_house(rig, (unsigned)round + 1);
        for (size_t i = 0; i < ARRAY_COUNT(suffixes); i++) {
            mode_is_private(f, suffixes[i]);
        }
    }
    (void)umask(mask);
}

/* One store at a time has the file: in this process and in another. */
static void one_process_has_it(void **state)
{
    struct store_rig *rig = *state;
    const struct sqlite_fixture *f = rig->back_end;
    int status = 0;
    refused(rig, f, ERR_LOCKED, "another arbe uses");
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct thread_store *store = NULL;
        struct thread_store_config config = fixture_config(f);
        _exit(store_open(&config, &store, NULL) == ERR_LOCKED ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    add_agent(rig, 1);
    rig_reopen(rig);
}

/* A tool may read meanwhile, and what it has begun to read does not change below it. */
static void tools_may_read(void **state)
{
    struct store_rig *rig = *state;
    const struct sqlite_fixture *f = rig->back_end;
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    add_agent(rig, 1);
    add_agent(rig, 2);
    assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT id FROM agents ORDER BY id", -1, &stmt, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    for (unsigned i = 3; i < 10; i++) {
        add_agent(rig, i);
    }
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    assert_int_equal(sqlite3_step(stmt), SQLITE_DONE);
    assert_int_equal(sqlite3_finalize(stmt), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* What is not ours is refused, and not a byte of it is changed. */
static void strangers_are_refused(void **state)
{
    struct store_rig *rig = *state;
    const struct sqlite_fixture *f = rig->back_end;
    char other[128];
    struct sqlite_fixture foreign = *f;
    (void)snprintf(foreign.path, sizeof(foreign.path), "%s/foreign.db", f->dir);
    run_sql(&foreign, "PRAGMA application_id = 7; CREATE TABLE t (x)");
    refused(rig, &foreign, ERR_MISMATCH, "not one of arbe's");
    (void)snprintf(other, sizeof(other), "%s-wal", foreign.path);
    assert_int_not_equal(access(other, F_OK), 0);
    (void)snprintf(foreign.path, sizeof(foreign.path), "%s/text", f->dir);
    FILE *file = fopen(foreign.path, "w");
    assert_non_null(file);
    for (int i = 0; i < 1000; i++) {
        assert_true(fputs("this is no database\n", file) >= 0);
    }
    assert_int_equal(fclose(file), 0);
    refused(rig, &foreign, ERR_MISMATCH, "not a database");
    (void)snprintf(foreign.path, sizeof(foreign.path), "%s/nowhere/app.db", f->dir);
    refused(rig, &foreign, ERR_NOTFOUND, "nowhere/app.db");
    (void)snprintf(foreign.path, sizeof(foreign.path), "%s/link", f->dir);
    assert_int_equal(symlink("app.db", foreign.path), 0);
    refused(rig, &foreign, ERR_FILEKIND, "link");
}

/* A file of a newer program is refused with both numbers. */
static void newer_files_are_refused(void **state)
{
    struct store_rig *rig = *state;
    const struct sqlite_fixture *f = rig->back_end;
    add_house(rig, 1);
    store_close(rig->store);
    rig->store = NULL;
    run_sql(f, "PRAGMA user_version = 999");
    refused(rig, f, ERR_MISMATCH, "newer arbe (schema 999, this one knows 2)");
    run_sql(f, "PRAGMA user_version = 2");
    fixture_open(rig);
    assert_int_equal(role_in(rig, 1, 1), ROLE_OWNER);
}

/* Each promise that verification looks after, broken. */
static void verification_finds(void **state)
{
    struct store_rig *rig = *state;
    static const char *const harm[][2] = {
        {"UPDATE members SET role = 'member'", "without an owner"},
        {"UPDATE threads SET deleted_at = 1", "primary thread"},
        {"UPDATE agents SET deleted_at = 1 WHERE name = 'Agent 2'", "a member that was deleted"},
        {"UPDATE houses SET deleted_at = 1; DELETE FROM members", "deleted house"},
        {"UPDATE agents SET deleted_at = 1 WHERE name = 'Agent 3'", "a good key"},
        {"UPDATE thread_tags SET activity_at = 1", "a tag"},
        {"UPDATE usage_totals SET cost_nusd = 1", "usage"},
        {"PRAGMA foreign_keys = OFF; DELETE FROM agents", "not there"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(harm); i++) {
        struct slice tag = SLICE("tag");
        struct thread_record thread = thread_of(rig, 1, 1);
        struct key_record key = key_of(rig, 3, 3);
        thread.tags = &tag;
        thread.tag_count = 1;
        add_house(rig, 1);
        add_agent(rig, 2);
        add_agent(rig, 3);
        add_member(rig, 1, 2, ROLE_MEMBER);
        struct usage_record event = {
            .house_id = HOUSE(1), .capability = SLICE("llm"), .cost_usd = 1};
        size_t added = 0;
        OK(store_usage_add(rig->store, &event, 1, &added, &rig->msg));
        OK(store_key_create(rig->store, &key, &rig->msg));
        OK(store_thread_create(rig->store, &thread, NONE, NULL, 0, &rig->msg));
        OK(store_verify(rig->store, &rig->msg));
        run_sql(rig->back_end, harm[i][0]);
        EXPECT(ERR_CORRUPT, store_verify(rig->store, &rig->msg));
        SAYS(harm[i][1]);
        store_close(rig->store);
        assert_int_equal(unlink(((struct sqlite_fixture *)rig->back_end)->path), 0);
        fixture_open(rig);
    }
}

static unsigned failures_told;
static char failure_told[256];

static void tell_failure(void *context, const char *sentence)
{
    (void)context;
    failures_told++;
    (void)snprintf(failure_told, sizeof(failure_told), "%s", sentence);
}

/* A page that is damaged is an error with a sentence, not an answer, and is told once; what is
 * elsewhere is still to be had, and changes nothing about that. */
static void damage_is_found(void **state)
{
    struct store_rig *rig = *state;
    const struct sqlite_fixture *f = rig->back_end;
    static const char zeros[4096];
    struct thread_record none;
    struct agent_record got;
    struct txn t;
    add_house(rig, 1);
    store_read(&t, rig->store, NULL, NULL);
    sqlite3_stmt *query = txn_query(&t, "SELECT rootpage FROM sqlite_schema WHERE name = 'agents'",
                                    NULL, 0);
    assert_true(txn_step(&t, query));
    off_t at = (sqlite3_column_int64(query, 0) - 1) * 4096;
    OK(store_end(&t, rig->store));
    store_close(rig->store);
    rig->store = NULL;
    int fd = open(f->path, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, zeros, sizeof(zeros), at), sizeof(zeros));
    assert_int_equal(close(fd), 0);
    struct thread_store_config config = fixture_config(f);
    config.failed = tell_failure;
    OK(store_open(&config, &rig->store, &rig->msg));
    EXPECT(ERR_NOTFOUND, store_thread_get(rig->store, THREAD(9), &rig->arena, &none, &rig->msg));
    assert_int_equal(store_failure(rig->store), 0);
    for (int i = 0; i < 3; i++) {
        EXPECT(ERR_CORRUPT, store_agent_get(rig->store, AGENT(1), &rig->arena, &got, &rig->msg));
        assert_int_equal(store_failure(rig->store), ERR_CORRUPT);
        assert_int_equal(failures_told, 1);
    }
    assert_non_null(strstr(failure_told, "app.db: database disk image is malformed"));
    EXPECT(ERR_CORRUPT, store_verify(rig->store, &rig->msg));
    assert_int_equal(role_in(rig, 1, 1), ROLE_OWNER);
    assert_int_equal(store_failure(rig->store), ERR_CORRUPT);
    rig_reopen(rig);
    assert_int_equal(store_failure(rig->store), 0);
}

/* A real limit on the size of files: refused with the code of a full disk, nothing of it happened,
 * and reading goes on. */
static void files_may_not_grow(void **state)
{
    struct store_rig *rig = *state;
    struct rlimit before;
    struct agent_record got;
    unsigned number = 0;
    int code = 0;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    struct rlimit tight = {.rlim_cur = 600000, .rlim_max = before.rlim_max};
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    while (code == 0 && number < 10000) {
        struct agent_record agent = agent_of(rig, ++number);
        code = store_agent_create(rig->store, &agent, NULL, &rig->msg);
    }
    assert_int_equal(code, ERR_NOSPC);
    OK(store_agent_get(rig->store, AGENT(number - 1), &rig->arena, &got, &rig->msg));
    EXPECT(ERR_NOTFOUND, store_agent_get(rig->store, AGENT(number), &rig->arena, &got, &rig->msg));
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    (void)signal(SIGXFSZ, handler);
    assert_int_equal(store_failure(rig->store), 0); /* it passes by itself */
    add_agent(rig, number);
    rig_reopen(rig);
    OK(store_agent_get(rig->store, AGENT(number), &rig->arena, &got, &rig->msg));
    OK(store_verify(rig->store, &rig->msg));
}

/* ---- ends by kill */

#define KILL_WORKERS 4
#define KILL_ROUNDS  8
#define KILL_ACKS    40 /* changes that are acknowledged before the end of a round */

struct kill_worker {
    struct store_rig rig;
    unsigned first; /* its numbers are first, first + 1, ... */
    int fd;         /* where it tells of what is done */
};

/* A house with two owners, of which one leaves, a thread that moves, a house that goes again. */
static void work_once(struct store_rig *rig, unsigned number)
{
    struct slice tags[] = {SLICE("a"), SLICE("b")};
    struct thread_record thread = thread_of(rig, number, number);
    struct outbox_item item = item_of(rig, number);
    struct recency_row row = {.thread_id = THREAD(number), .ts = 9999999, .offset = SLICE("1")};
    thread.tags = tags;
    thread.tag_count = 2;
    add_house(rig, number);
    add_agent(rig, number + 500000);
    add_member(rig, number, number + 500000, ROLE_OWNER);
    OK(store_thread_create(rig->store, &thread, SLICE("{}"), &item, 1, &rig->msg));
    OK(store_recency_write(rig->store, &row, 1, &rig->msg));
    OK(store_agent_delete(rig->store, AGENT(number), 5, &item, 1, &rig->msg));
    if (number % 3 == 0) {
        OK(store_house_delete(rig->store, HOUSE(number), 5, &item, 1, &rig->msg));
    }
}

static void *work(void *context)
{
    struct kill_worker *worker = context;
    for (unsigned number = worker->first;; number++) {
        arena_init(&worker->rig.arena, RIG_ARENA_BYTES);
        work_once(&worker->rig, number);
        arena_finish(&worker->rig.arena);
        if (write(worker->fd, &number, sizeof(number)) != sizeof(number)) {
            return NULL;
        }
    }
}

/* The child: works until it is killed. */
static void work_until_killed(const struct sqlite_fixture *f, unsigned first, int fd)
{
    struct kill_worker workers[KILL_WORKERS];
    pthread_t threads[KILL_WORKERS];
    struct store_rig own = {0};
    struct thread_store_config config = fixture_config(f);
    if (store_open(&config, &own.store, &own.msg)) {
        _exit(1);
    }
    for (unsigned i = 0; i < KILL_WORKERS; i++) {
        workers[i] = (struct kill_worker){.rig = own, .first = first + i * 10000, .fd = fd};
        if (pthread_create(&threads[i], NULL, work, &workers[i])) {
            _exit(1);
        }
    }
    for (unsigned i = 0; i < KILL_WORKERS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    _exit(1);
}

/* All of what was acknowledged is there. */
static void check_work(struct store_rig *rig, unsigned number)
{
    struct thread_record thread;
    struct agent_record agent;
    OK(store_agent_get(rig->store, AGENT(number), &rig->arena, &agent, &rig->msg));
    assert_int_equal(agent.deleted_ms, 5);
    if (number % 3 == 0) {
        EXPECT(ERR_NOTFOUND,
               store_thread_get(rig->store, THREAD(number), &rig->arena, &thread, &rig->msg));
        assert_int_equal(items_of(rig, PRIMARY(number)), 1);
        assert_int_equal(items_of(rig, THREAD(number)), 4);
        return;
    }
    OK(store_thread_get(rig->store, THREAD(number), &rig->arena, &thread, &rig->msg));
    assert_int_equal(thread.last_entry_ts, 9999999);
    assert_int_equal(thread.tag_count, 2);
    assert_int_equal(items_of(rig, THREAD(number)), 2);
    assert_int_equal(role_in(rig, number, number + 500000), ROLE_OWNER);
}

/* A process is killed in the middle of changes, time and again: whatever it was told is done is
 * there, of everything else there is all or nothing, and no promise is broken. */
static void survives_kills(void **state)
{
    struct store_rig *rig = *state;
    for (unsigned round = 0; round < KILL_ROUNDS; round++) {
        int pipes[2];
        unsigned done[KILL_ACKS];
        store_close(rig->store);
        assert_int_equal(pipe(pipes), 0);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            work_until_killed(rig->back_end, 1 + round * 50000, pipes[1]);
        }
        assert_int_equal(close(pipes[1]), 0);
        for (size_t i = 0; i < KILL_ACKS; i++) {
            assert_int_equal(read(pipes[0], &done[i], sizeof(done[i])), sizeof(done[i]));
        }
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(waitpid(child, NULL, 0), child);
        assert_int_equal(close(pipes[0]), 0);
        fixture_open(rig);
        OK(store_verify(rig->store, &rig->msg));
        for (size_t i = 0; i < KILL_ACKS; i++) {
            check_work(rig, done[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_CASES,
        STORE_CASE(files_are_private),
        STORE_CASE(one_process_has_it),
        STORE_CASE(tools_may_read),
        STORE_CASE(strangers_are_refused),
        STORE_CASE(newer_files_are_refused),
        STORE_CASE(verification_finds),
        STORE_CASE(damage_is_found),
        STORE_CASE(files_may_not_grow),
        STORE_CASE(survives_kills),
    };
    return UNIT_RUN(tests);
}
