/* The board, sentence by sentence: each test is named after what it holds. */
#include "unit/t3/board.h"

#include "unit/base/fault.h"

#include "base/buf.c"
#include "base/map.c"
#include "t3/board.c"
#include "t3/item_projection.c"
#include "t3/row.c"

#include "unit/t3/board_model.h"

#include <malloc.h>

/* The cache is keyed by host and thread: hosts do not see each other. */
static void test_hosts(void **state)
{
    struct t3_board *b = new_board();
    struct t3_board_row row;

    (void)state;
    (void)fold_host(b, "b", SHELL("{'id':'t','title':'barn','status':'running'}"), NULL);
    (void)fold_host(b, "a", SHELL("{'id':'t','title':'mill','status':'idle'}"), NULL);
    assert_rows(b, "t|mill|idle|~|~\nt|barn|running|~|~\n");
    (void)fold_host(b, "b", SHELL(""), NULL); /* replaces the rows of the matching host only */
    assert_rows(b, "t|mill|idle|~|~\n");
    (void)fold_host(b, "a", REMOVED("t"), NULL);
    (void)fold_host(b, "b", UPDATED("'title':'yard','status':'waiting'},'location':'active'"),
                    NULL);
    assert_rows(b, "t|yard|waiting|~|~\n");
    assert_int_equal(t3_board_count(b), 1);
    assert_int_equal(t3_board_find(b, "a", "t", &row), 0);
    assert_int_equal(t3_board_find(b, "c", "t", &row), 0);
    assert_int_equal(t3_board_find(b, "b", "t", &row), 1);
    assert_string_equal(row.host.data, "b");
    assert_string_equal(row.title.data, "yard");
    t3_board_free(b);
}

/* Shell status is retained as a string, whatever it says. */
static void test_status(void **state)
{
    (void)state;
    ASSERT_FOLDS("t|T|of_tomorrow|~|~\n", SHELL("{'id':'t','title':'T','status':'of_tomorrow'}"));
}

/* Archived rows use "archived": by list, location, time or event; the run's state comes back. */
static void test_archived(void **state)
{
    (void)state;
    ASSERT_FOLDS("t|T|archived|~|~\n", SHELL_BOTH("", "{'id':'t','title':'T','status':'idle'}"));
    ASSERT_FOLDS("t|T|archived|~|~\n", SHELL("{'id':'t','title':'T','archivedAt':@01:00}"));
    ASSERT_FOLDS("t|T|archived|~|~\n",
                 UPDATED("'title':'T','status':'idle'},'location':'archive'"));
    ASSERT_FOLDS("t|T|archived|~|~\n", SHELL("{'id':'t','title':'T','status':'failed'}"),
                 EVENT("thread.archived", "{'id':'t','archivedAt':@01:00}"),
                 EVENT("thread.metadata-updated", "{'id':'t','archivedAt':null}"),
                 EVENT("run.updated", "{'id':'r','ordinal':1,'status':'completed'}"));
    ASSERT_FOLDS("t|T|completed|~|~\n",
                 SHELL("{'id':'t','title':'T','status':'failed','archivedAt':@01:00}"),
                 EVENT("run.updated", "{'id':'r','ordinal':1,'status':'completed'}"),
                 EVENT("thread.unarchived", "{'id':'t','archivedAt':null}"));
    ASSERT_FOLDS("t|T|idle|~|~\n", SHELL_BOTH("", "{'id':'t','title':'T','status':'idle'}"),
                 UPDATED("'status':'idle'},'location':'active'"));
}

/* A projection uses its newest run by ordinal, not by order or time. */
static void test_newest_by_ordinal(void **state)
{
    (void)state;
    ASSERT_FOLDS(
        "t|P|running|@02:01|~\n",
        PROJECTION("'runs':[{'id':'r9','ordinal':9,'status':'failed','requestedAt':@09:00},"
                   "{'id':'r10','ordinal':10,'status':'running','requestedAt':@02:00,"
                   "'startedAt':@02:01},{'id':'r2','ordinal':2,'status':'failed'}]"));
}

/* Or "idle" when no run exists, also where a run was known before. */
static void test_idle(void **state)
{
    (void)state;
    ASSERT_FOLDS("t|P|idle|~|~\n", PROJECTION("'runs':[],'messages':[]"));
    ASSERT_FOLDS("t|P|idle|~|~\n", PROJECTION("'messages':[]"));
    ASSERT_FOLDS(
        "t|P|idle|~|~\n",
        EVENT("run.created", "{'id':'r','ordinal':1,'status':'running','startedAt':@01:00}"),
        PROJECTION("'runs':[]"));
}

/* Thread metadata events preserve the existing run state. */
static void test_metadata(void **state)
{
    (void)state;
    ASSERT_FOLDS("t|After|waiting|@01:00|m\n",
                 PROJECTION("'runs':[{'id':'r','ordinal':1,'status':'waiting',"
                            "'requestedAt':@01:00}],'messages':[{'id':'m','text':'m'}]"),
                 EVENT("thread.metadata-updated", "{'id':'t','title':'After'}"),
                 EVENT("thread.of-tomorrow", "{'id':'t','title':null}"));
}

#define RUN(id, ordinal, rest) "{'id':'" id "','ordinal':" ordinal "," rest "}"

/* last_turn_at is the latest of requested, work-started, started, completed, and of the turns. */
static void test_activity(void **state)
{
    (void)state;
    ASSERT_FOLDS("t|~|running|@04:00|~\n",
                 EVENT("run.created", RUN("r", "1",
                                          "'status':'running','requestedAt':@01:00,"
                                          "'workStartedAt':@04:00,'startedAt':@02:00")));
    ASSERT_FOLDS(
        "t|~|running|@05:00|~\n",
        EVENT("run.created", RUN("r", "1", "'status':'running','requestedAt':@01:00")),
        EVENT("provider-turn.updated", "{'id':'p','startedAt':@04:00,'completedAt':@05:00}"),
        EVENT("provider-turn.updated", "{'id':'p','startedAt':@04:00}"));
    /* compared as instants: 02:30+02:00 is before 01:00Z */
    ASSERT_FOLDS("t|~|~|@01:00|~\n",
                 EVENT("run.updated", RUN("r", "1",
                                          "'requestedAt':'2026-11-05T00:30:00+02:00',"
                                          "'startedAt':@01:00,'completedAt':'soon'")));
    ASSERT_FOLDS("t|~|~|2026-11-05T00:01:00.0000001Z|~\n",
                 EVENT("run.updated", RUN("r", "1",
                                          "'startedAt':'2026-11-05T00:01:00.0000001Z',"
                                          "'completedAt':@01:00")));
}

/* An older run's turn never counts, whichever way it is told from the newest one's. */
static void test_turns_of_older_runs(void **state)
{
#define TWO_RUNS                                                                        \
    EVENT("run.created", RUN("r1", "1", "'requestedAt':@01:00")),                       \
        EVENT("run.created", RUN("r2", "2",                                             \
                                 "'status':'running','requestedAt':@05:00,'startedAt':" \
                                 "@05:01,'activeAttemptId':'a2'"))
    (void)state;
    ASSERT_FOLDS("t|~|running|@05:01|~\n", TWO_RUNS,
                 EVENT("provider-turn.updated", "{'runId':'r1','startedAt':@06:00}"));
    ASSERT_FOLDS("t|~|running|@05:01|~\n", TWO_RUNS,
                 EVENT("provider-turn.updated", "{'startedAt':@04:00,'completedAt':@09:00}"));
    ASSERT_FOLDS("t|~|running|@09:00|~\n", TWO_RUNS,
                 EVENT("provider-turn.updated",
                       "{'runAttemptId':'a2','startedAt':@04:00,'completedAt':@09:00}"));
    ASSERT_FOLDS("t|~|running|@09:00|~\n", TWO_RUNS,
                 EVENT("provider-turn.updated", "{'runId':'r2','completedAt':@09:00}"));
    ASSERT_FOLDS("t|P|running|@06:00|~\n",
                 PROJECTION("'runs':[{'id':'r1','ordinal':1},{'id':'r2','ordinal':2,'status':"
                            "'running','requestedAt':@05:00}],'attempts':[{'id':'a1','runId':'r1'},"
                            "{'id':'a2','runId':'r2'}],'providerTurns':[{'runAttemptId':'a1',"
                            "'completedAt':@09:00},{'runAttemptId':'a2','completedAt':@06:00},"
                            "{'runId':'r1','completedAt':@08:00}]"));
    /* a run that waits in the queue has no turn yet */
    ASSERT_FOLDS("t|~|queued|@05:00|~\n",
                 EVENT("run.created", RUN("r", "2", "'status':'queued','requestedAt':@05:00")),
                 EVENT("provider-turn.updated", "{'startedAt':@06:00}"));
}

/* Shell rows use the corresponding latest-run summary timestamps, and no others. */
static void test_shell_times(void **state)
{
    (void)state;
    ASSERT_FOLDS("t|T|failed|@03:00|~\n",
                 SHELL("{'id':'t','title':'T','status':'failed','latestRunId':'r',"
                       "'latestRunRequestedAt':@01:00,'latestRunStartedAt':@02:00,"
                       "'latestRunCompletedAt':@03:00,'updatedAt':@09:00}"));
}

/* A whole record clears with null; in a sparse event null is as absent. */
static void test_null(void **state)
{
#define FULL                                                                                   \
    SHELL("{'id':'t','title':'T','status':'running','latestRunId':'r','latestRunRequestedAt':" \
          "@01:00,'latestRunStartedAt':@02:00,'latestVisibleMessage':{'id':'m','text':'m'}}")
    (void)state;
    ASSERT_FOLDS("t|T|running|@02:00|m\n", FULL,
                 EVENT("run.updated", "{'id':'r','status':null,'startedAt':null}"),
                 EVENT("message.updated", "{'id':'m','text':null}"),
                 EVENT("thread.visited", "{'id':'t','title':null,'archivedAt':null}"));
    ASSERT_FOLDS("t|~|~|@01:00|~\n", FULL,
                 UPDATED("'title':null,'status':null,'latestRunId':'r','latestRunStartedAt':null,"
                         "'latestVisibleMessage':null}"));
    ASSERT_FOLDS("t|T|idle|~|m\n", FULL, UPDATED("'status':'idle','latestRunId':null}"));
    /* what a snapshot does not say is not there, but for what it cannot say of the same run */
    ASSERT_FOLDS("t|~|~|~|~\n", FULL, SHELL("{'id':'t'}"));
    ASSERT_FOLDS("t|~|waiting|@09:00|~\n", FULL,
                 EVENT("run.updated", "{'id':'r','workStartedAt':@09:00}"),
                 SHELL("{'id':'t','status':'waiting','latestRunId':'r'}"));
}

/* Values absent from sparse events are preserved. */
static void test_sparse(void **state)
{
    (void)state;
    ASSERT_FOLDS("t|T|completed|@02:00|m\n", FULL,
                 EVENT("run.updated", "{'id':'r','status':'completed'}"),
                 EVENT("message.updated", "{'id':'m','updatedAt':@09:00}"),
                 EVENT("thread.visited", "{'id':'t'}"));
    /* a row may begin with anything */
    ASSERT_FOLDS("t|~|~|~|x\n", EVENT("message.updated", "{'id':'m','text':'x'}"));
}

/* Deleted threads are removed, by event, by time, by removal wherever they were. */
static void test_deleted(void **state)
{
    (void)state;
    ASSERT_FOLDS("", FULL, EVENT("thread.deleted", "{'id':'t'}"));
    ASSERT_FOLDS("", FULL, EVENT("thread.metadata-updated", "{'id':'t','deletedAt':@01:00}"));
    ASSERT_FOLDS("", FULL, UPDATED("'status':'idle','deletedAt':@01:00}"));
    ASSERT_FOLDS("", FULL, SHELL("{'id':'t','status':'idle','deletedAt':@01:00}"));
    ASSERT_FOLDS("", FULL, "{'thread':{'id':'t','deletedAt':@01:00},'runs':[]}");
    ASSERT_FOLDS("", FULL, "[{'kind':'thread.removed','threadId':'t','location':'archive'}]");
    ASSERT_FOLDS("", FULL, "[{'kind':'thread.removed','threadId':'t'}]");
}

/* After a deletion events are dropped until the thread is created or listed again. */
static void test_after_deletion(void **state)
{
#define LATE                                                               \
    REMOVED("t"), EVENT("run.updated", "{'id':'r','status':'completed'}"), \
        EVENT("thread.visited", "{'id':'t','title':'late'}")
    (void)state;
    ASSERT_FOLDS("", FULL, LATE);
    ASSERT_FOLDS("", LATE);
    ASSERT_FOLDS("t|new|~|~|~\n", FULL, LATE, EVENT("thread.created", "{'id':'t','title':'new'}"));
    ASSERT_FOLDS("t|~|idle|~|~\n", FULL, LATE, UPDATED("'status':'idle'}"));
    ASSERT_FOLDS("t|~|idle|~|~\n", FULL, LATE, SHELL("{'id':'t','status':'idle'}"));
    ASSERT_FOLDS("t|P|idle|~|~\n", FULL, LATE, PROJECTION("'runs':[]"));
    /* one that a snapshot does not list any more was not deleted */
    ASSERT_FOLDS("t|late|~|~|~\n", FULL, SHELL(""),
                 EVENT("thread.visited", "{'id':'t','title':'late'}"));
}

/* A late completion of an older run cannot replace the current summary. */
static void test_late_run(void **state)
{
    (void)state;
    ASSERT_FOLDS("t|~|queued|@05:00|~\n",
                 EVENT("run.created", RUN("r1", "1", "'status':'running','requestedAt':@01:00")),
                 EVENT("run.created", RUN("r2", "2", "'status':'queued','requestedAt':@05:00")),
                 EVENT("run.updated", RUN("r1", "1", "'status':'completed','completedAt':@09:00")));
}

/* Nor can an edit to a historical message. */
static void test_historical_message(void **state)
{
#define MESSAGE(id, created, updated, text) \
    "{'id':'" id "','createdAt':" created ",'updatedAt':" updated ",'text':'" text "'}"
    (void)state;
    ASSERT_FOLDS(
        "t|P|idle|~|two\n",
        PROJECTION("'runs':[],'messages':[" MESSAGE("m2", "@02:00", "@02:00", "two") "," MESSAGE(
            "m1", "@01:00", "@01:00", "one") "]"),
        EVENT("message.updated", MESSAGE("m1", "@01:00", "@09:00", "one, edited")));
    ASSERT_FOLDS("t|~|~|~|three\n",
                 EVENT("message.updated", MESSAGE("m2", "@02:00", "@02:00", "two")),
                 EVENT("message.updated", MESSAGE("m3", "@03:00", "@03:00", "three")));
}

/* Shells have no ordinals: the known run's stays, and a request later than its is newer. */
static void test_shell_fallback(void **state)
{
#define SHELL_RUN(id, at, status) \
    UPDATED("'status':'" status "','latestRunId':'" id "','latestRunRequestedAt':" at "}")
#define KNOWN EVENT("run.created", RUN("r2", "2", "'status':'running','requestedAt':@05:00"))
    (void)state;
    ASSERT_FOLDS("t|~|waiting|@05:00|~\n", KNOWN, SHELL_RUN("r2", "@05:00", "waiting"),
                 EVENT("run.updated", RUN("r1", "1", "'status':'failed','requestedAt':@09:00")));
    ASSERT_FOLDS("t|~|queued|@06:00|~\n", KNOWN, SHELL_RUN("r3", "@06:00", "queued"));
    ASSERT_FOLDS("t|~|running|@05:00|~\n", KNOWN, SHELL_RUN("r1", "@01:00", "failed"));
    ASSERT_FOLDS("t|~|completed|@08:00|~\n", SHELL_RUN("r2", "@05:00", "running"),
                 EVENT("run.updated", RUN("r1", "1", "'status':'failed','requestedAt':@01:00")),
                 EVENT("run.updated", RUN("r2", "2", "'status':'completed','completedAt':@08:00")),
                 EVENT("run.updated", RUN("r1", "1", "'status':'failed','completedAt':@09:00")));
    /* early servers do not say when a run was asked for */
    ASSERT_FOLDS("t|~|queued|~|~\n", KNOWN, UPDATED("'status':'queued','latestRunId':'r3'}"));
}

/* Nor do they have times of creation of messages: those of the last change stand in for them. */
static void test_shell_message_fallback(void **state)
{
#define SHELL_MESSAGE(id, at, text) \
    UPDATED("'latestVisibleMessage':{'id':'" id "','text':'" text "','updatedAt':" at "}}")
    (void)state;
    ASSERT_FOLDS("t|~|~|~|two\n", SHELL_MESSAGE("m2", "@05:00", "two"),
                 EVENT("message.updated", MESSAGE("m1", "@01:00", "@09:00", "one")));
    ASSERT_FOLDS("t|~|~|~|three\n", SHELL_MESSAGE("m2", "@05:00", "two"),
                 EVENT("message.updated", MESSAGE("m3", "@06:00", "@06:00", "three")));
    ASSERT_FOLDS("t|~|~|~|two\n", EVENT("message.updated", MESSAGE("m2", "@02:00", "@02:00", "2")),
                 SHELL_MESSAGE("m2", "@09:00", "two"), SHELL_MESSAGE("m1", "@01:00", "one"),
                 EVENT("message.updated", MESSAGE("m1", "@01:00", "@08:00", "one")));
    ASSERT_FOLDS("t|~|~|~|three\n",
                 EVENT("message.updated", MESSAGE("m2", "@02:00", "@09:00", "two")),
                 SHELL_MESSAGE("m3", "@05:00", "three"));
}

#define ASKED    "'pendingRuntimeRequest':{'id':'q','kind':'command','createdAt':@03:00}"
#define PROPOSED "'hasActionableProposedPlan':true"
#define REQUEST(id, status) \
    EVENT("runtime-request.updated", "{'id':'" id "','status':'" status "'}")

/* The shell says who is asked: by a request that is pending, or a plan that is to be accepted. */
static void test_asks(void **state)
{
    (void)state;
    ASSERT_FOLDS("a|~|running|~|~|asks\nb|~|completed|~|~|asks\nc|~|running|~|~\n",
                 SHELL("{'id':'a','status':'running'," ASKED ",'hasActionableProposedPlan':false},"
                       "{'id':'b','status':'completed','pendingRuntimeRequest':null," PROPOSED "},"
                       "{'id':'c','status':'running','pendingRuntimeRequest':null,"
                       "'hasActionableProposedPlan':false}"));
    ASSERT_FOLDS("t|~|running|~|~|asks\n", UPDATED("'status':'running'," ASKED "}"));
    ASSERT_FOLDS("t|~|~|~|~|asks\n", UPDATED("'pendingRuntimeRequest':{}}"));
    ASSERT_FOLDS("t|~|~|~|~\n", UPDATED("'pendingRuntimeRequest':'q'," /* of a wrong kind */
                                        "'hasActionableProposedPlan':'true'}"));
}

/* A whole record of the shell without the two members says that nobody is. */
static void test_asks_no_more(void **state)
{
    (void)state;
    ASSERT_FOLDS("t|~|running|~|~\n", UPDATED(ASKED "}"), UPDATED("'status':'running'}"));
    ASSERT_FOLDS("t|~|running|~|~\n", UPDATED(PROPOSED "}"), UPDATED("'status':'running'}"));
    ASSERT_FOLDS("t|~|~|~|~\n", UPDATED(ASKED "," PROPOSED "}"), SHELL("{'id':'t'}"));
    ASSERT_FOLDS("", UPDATED(ASKED "}"), REMOVED("t"));
    ASSERT_FOLDS("t|~|~|~|~\n", UPDATED(ASKED "," PROPOSED "}"), REMOVED("t"),
                 EVENT("thread.created", "{'id':'t'}"));
}

/* One that is archived asks nobody, until it is back. */
static void test_asks_archived(void **state)
{
    (void)state;
    ASSERT_FOLDS("t|~|archived|~|~\n",
                 SHELL_BOTH("", "{'id':'t','status':'running'," ASKED "," PROPOSED "}"));
    ASSERT_FOLDS("t|~|archived|~|~\n", UPDATED("'status':'running'," ASKED "}"),
                 EVENT("thread.archived", "{'id':'t'}"));
    ASSERT_FOLDS("t|~|running|~|~|asks\n", UPDATED("'status':'running'," ASKED "}"),
                 EVENT("thread.archived", "{'id':'t'}"), EVENT("thread.unarchived", "{'id':'t'}"));
}

/* A projection says which requests are pending, and nothing of plans; without a list nothing. */
static void test_asks_projected(void **state)
{
#define REQUESTS(list) PROJECTION("'runs':[],'runtimeRequests':[" list "]")
    (void)state;
    ASSERT_FOLDS("t|P|idle|~|~|asks\n",
                 REQUESTS("{'id':'p','status':'resolved'},{'id':'q','status':'pending'},"
                          "{'id':'r','status':'expired'},{'id':'s','status':'cancelled'}"));
    ASSERT_FOLDS("t|P|idle|~|~\n", UPDATED(ASKED "}"), REQUESTS("{'id':'q','status':'resolved'}"));
    ASSERT_FOLDS("t|P|idle|~|~\n", UPDATED(ASKED "}"), REQUESTS(""));
    ASSERT_FOLDS("t|P|idle|~|~|asks\n", UPDATED(PROPOSED "}"), REQUESTS(""));
    ASSERT_FOLDS("t|P|idle|~|~|asks\n", UPDATED(ASKED "}"), PROJECTION("'runs':[]"));
    /* the newest of several counts, whatever their order */
    ASSERT_FOLDS("t|P|idle|~|~|asks\n",
                 REQUESTS("{'id':'q','status':'pending','createdAt':@02:00},"
                          "{'id':'p','status':'pending','createdAt':@01:00}"),
                 REQUEST("p", "resolved"));
    ASSERT_FOLDS("t|P|idle|~|~\n",
                 REQUESTS("{'id':'q','status':'pending','createdAt':@02:00},"
                          "{'id':'p','status':'pending','createdAt':@01:00}"),
                 REQUEST("q", "resolved"));
}

/* Events of requests tell who is asked, by their ids; other events do not. */
static void test_asks_events(void **state)
{
    (void)state;
    ASSERT_FOLDS("t|~|~|~|~|asks\n", REQUEST("q", "pending"));
    ASSERT_FOLDS("t|~|~|~|~\n", REQUEST("q", "pending"), REQUEST("q", "resolved"));
    ASSERT_FOLDS("t|~|~|~|~\n", UPDATED(ASKED "}"), REQUEST("q", "expired"));
    ASSERT_FOLDS("t|~|~|~|~\n", UPDATED(ASKED "}"), REQUEST("q", "cancelled"));
    ASSERT_FOLDS("t|~|~|~|~|asks\n", UPDATED(ASKED "}"), REQUEST("p", "resolved"),
                 EVENT("runtime-request.updated", "{'id':'q','status':null}"));
    ASSERT_FOLDS("t|~|~|~|~|asks\n", UPDATED(PROPOSED "}"), REQUEST("q", "pending"),
                 REQUEST("q", "resolved"));
    ASSERT_FOLDS("t|T|running|~|x|asks\n", UPDATED(ASKED "}"),
                 EVENT("thread.metadata-updated", "{'id':'t','title':'T'}"),
                 EVENT("run.updated", RUN("r", "1", "'status':'running'")),
                 EVENT("message.updated", "{'id':'m','text':'x'}"),
                 EVENT("plan.updated", "{'id':'p','status':'superseded'}"));
}

/* A run that ends asks nothing any more; an older one's end, and one that goes on, say nothing. */
static void test_asks_until_over(void **state)
{
    static const char *const ends[] = {"completed", "interrupted", "failed", "cancelled",
                                       "rolled_back"};
    char text[300];
    char want[100];

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(ends); i++) {
        (void)snprintf(text, sizeof(text), EVENT("run.updated", "{'id':'r','status':'%s'}"),
                       ends[i]);
        (void)snprintf(want, sizeof(want), "t|~|%s|~|~\n", ends[i]);
        ASSERT_FOLDS(want, UPDATED(ASKED ",'latestRunId':'r'}"), text);
    }
    ASSERT_FOLDS("t|P|failed|~|~\n", UPDATED(ASKED "}"),
                 PROJECTION("'runs':[{'id':'r','ordinal':1,'status':'failed'}]"));
    ASSERT_FOLDS("t|~|waiting|~|~|asks\n", UPDATED(ASKED ",'latestRunId':'r'}"),
                 EVENT("run.updated", "{'id':'r','status':'waiting'}"));
    ASSERT_FOLDS("t|~|running|@05:00|~|asks\n",
                 UPDATED(ASKED ",'status':'running','latestRunId':'r2','latestRunRequestedAt':"
                               "@05:00}"),
                 EVENT("run.updated", RUN("r1", "1", "'status':'failed','requestedAt':@01:00")));
    /* a plan is what many a run ends with */
    ASSERT_FOLDS("t|~|completed|~|~|asks\n", UPDATED(PROPOSED ",'latestRunId':'r'}"),
                 EVENT("run.updated", "{'id':'r','status':'completed'}"));
}

/* That somebody is asked is a change of the row, told once. */
static void test_asks_told_once(void **state)
{
    struct t3_board *b = new_board();

    (void)state;
    assert_changes(b, UPDATED("'status':'running'}"), "+t|~|running|~|~\n");
    assert_changes(b, UPDATED("'status':'running'," ASKED "}"), "+t|~|running|~|~|asks\n");
    assert_changes(b, UPDATED("'status':'running'," ASKED "}"), "");
    assert_changes(b, UPDATED("'status':'running'," PROPOSED "}"), "");
    assert_changes(b, UPDATED("'status':'running'}"), "+t|~|running|~|~\n");
    assert_changes(b, UPDATED("'status':'running'}"), "");
    t3_board_free(b);
}

/* A marked snapshot is ignored whole, and so is what nobody knows. */
static void test_ignored(void **state)
{
    (void)state;
    ASSERT_FOLDS("t|T|running|@02:00|m\n", FULL,
                 "[{'kind':'snapshot','resolvedRepositoryIdentityRoots':['/r'],'snapshot':"
                 "{'schemaVersion':2,'projects':[],'threads':[],'archivedThreads':[]}}]",
                 "[{'kind':'synchronized'},{'kind':'project.updated','project':{'id':'t'}},"
                 "{'kind':'of.tomorrow','thread':{'id':'t','status':'x'}}]",
                 EVENT("node.updated", "{'id':'n','status':'failed'}"),
                 EVENT("run-attempt.updated", "{'id':'a','completedAt':@09:00}"));
    /* as a server began that counts its schema otherwise, and had nothing yet */
    ASSERT_FOLDS("",
                 "[{'kind':'snapshot','snapshot':{'schemaVersion':1,'snapshotSequence':3,"
                 "'projects':[],'threads':[],'archivedThreads':[]}}]",
                 "[{'kind':'synchronized'},{'kind':'thread.removed','sequence':4,'location':"
                 "'active','threadId':'never'}]");
}

/* The three examples of the seed, as they stand. */
static void test_examples(void **state)
{
#define EXAMPLE_THREAD                                                                             \
    "[{'kind':'snapshot','snapshotSequence':123,'projection':{'thread':{'id':'redacted','title':"  \
    "'Example','archivedAt':null,'deletedAt':null},'runs':[],'messages':[{'id':'redacted','role':" \
    "'user','text':'Example message','createdAt':@00:00,'updatedAt':@00:00}],'providerTurns':[],"  \
    "'attempts':[],'nodes':[],'subagents':[],'providerSessions':[],'providerThreads':[],"          \
    "'runtimeRequests':[],'plans':[],'turnItems':[],'visibleTurnItems':[],'checkpointScopes':[],"  \
    "'checkpoints':[],'contextHandoffs':[],'contextTransfers':[],'updatedAt':@00:00}}]"
    (void)state;
    ASSERT_FOLDS("redacted|Example|idle|~|Example message\n", EXAMPLE_THREAD);
    ASSERT_FOLDS("redacted|Example|idle|~|Updated message\n", EXAMPLE_THREAD,
                 "{'kind':'event','sequence':124,'event':{'id':'redacted','threadId':'redacted',"
                 "'occurredAt':@01:00,'type':'message.updated','payload':{'id':'redacted',"
                 "'threadId':'redacted','text':'Updated message','updatedAt':@01:00}}}");
    ASSERT_FOLDS("redacted|Example|idle|~|~\n",
                 "[{'kind':'snapshot','snapshot':{'schemaVersion':2,'snapshotSequence':123,"
                 "'projects':[],'threads':[{'id':'redacted','title':'Example','status':'idle',"
                 "'latestVisibleMessage':null}],'archivedThreads':[]}},{'kind':'snapshot',"
                 "'resolvedRepositoryIdentityRoots':['/redacted'],'snapshot':{'schemaVersion':2,"
                 "'snapshotSequence':123,'projects':[],'threads':[],'archivedThreads':[]}}]");
}

/* Each row that differs is told once an apply, whatever happened in between. */
static void test_changes(void **state)
{
    struct t3_board *b = new_board();

    (void)state;
    assert_changes(b, SHELL("{'id':'a','status':'x'},{'id':'b','status':'y'}"),
                   "+a|~|x|~|~\n+b|~|y|~|~\n");
    assert_changes(b, SHELL("{'id':'a','status':'x'},{'id':'b','status':'z'}"), "+b|~|z|~|~\n");
    assert_changes(b, SHELL("{'id':'b','status':'z'},{'id':'c'}"), "+c|~|~|~|~\n-a|~|x|~|~\n");
    assert_changes(b,
                   "[{'kind':'thread.updated','thread':{'id':'b','status':'1'}},"
                   "{'kind':'thread.removed','threadId':'c'},"
                   "{'kind':'thread.updated','thread':{'id':'b','status':'2'}}]",
                   "+b|~|2|~|~\n-c|~|~|~|~\n");
    assert_changes(b,
                   "[{'kind':'thread.updated','thread':{'id':'b','status':'3'}},"
                   "{'kind':'thread.updated','thread':{'id':'b','status':'2'}},"
                   "{'kind':'thread.updated','thread':{'id':'n'}},"
                   "{'kind':'thread.removed','threadId':'n'},"
                   "{'kind':'thread.removed','threadId':'b'},"
                   "{'kind':'thread.updated','thread':{'id':'b','status':'2'}}]",
                   "");
    t3_board_free(b);
}

/* Items that are broken are skipped and counted, and what is around them is folded. */
static void test_hostile(void **state)
{
    static const struct {
        const char *text;
        size_t skipped;
    } cases[] = {
        {"[1,null,'x',[],{},{'kind':7},{'kind':'snapshot'},{'kind':'event'}]", 8},
        {"[{'kind':'snapshot','snapshot':{'schemaVersion':2,'archivedThreads':[]}}]", 1},
        {"[{'kind':'snapshot','snapshot':{'schemaVersion':2,'threads':{},'archivedThreads':[]}}]",
         1},
        {"[{'kind':'snapshot','snapshot':{'schemaVersion':2,'threads':[],'archivedThreads':7}}]",
         1},
        {"[{'kind':'thread.updated'},{'kind':'thread.updated','thread':{'id':''}}]", 2},
        {"[{'kind':'thread.removed','threadId':'\\ud800'}]", 1},
        {"[{'kind':'thread.removed','threadId':'x','threadId':'t'}]", 1},
        {"[{'kind':'event','event':{'type':'run.updated','threadId':'t','payload':{}}}]", 1},
        {"[{'kind':'event','event':{'type':'run.updated','payload':{'id':'r'}}}]", 1},
        {"[{'kind':'event','event':{'type':'thread.visited','threadId':'t'}}]", 1},
        {"[{'kind':'event','event':{'type':'runtime-request.updated','threadId':'t','payload':"
         "{'status':'pending'}}}]",
         1},
        {"{}", 1},
    };
    struct t3_board *b = new_board();

    (void)state;
    feed(b, FULL);
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        if (fold_host(b, HOST, cases[i].text, NULL) != cases[i].skipped) {
            fail_msg("%s: not %zu were skipped", cases[i].text, cases[i].skipped);
        }
        assert_rows(b, "t|T|running|@02:00|m\n");
    }
    assert_int_equal(fold_host(b, HOST, SHELL("{'id':7},{'id':'t','title':'T'},3"), NULL), 2);
    assert_rows(b, "t|T|~|~|~\n");
    assert_int_equal(fold_host(b, HOST,
                               PROJECTION("'runs':[3,{'id':'r','ordinal':'x','status':'s'}],"
                                          "'messages':[{}],'providerTurns':[[]],"
                                          "'runtimeRequests':[{'status':'pending'}]"),
                               NULL),
                     4);
    assert_rows(b, "t|P|s|~|~\n");
    t3_board_free(b);
}

static enum t3_board_code code_of(struct t3_board *board, const char *host, const char *text,
                                  struct t3_board_error *error)
{
    struct buf json;

    buf_init(&json, 1u << 20);
    spell(text, &json);
    int code = t3_board_apply(board, host, json.ptr, json.len, NULL, NULL, NULL, error);

    buf_finish(&json);
    return (enum t3_board_code)code;
}

/* A server of the first protocol is named as one, and changes nothing. */
static void test_v1(void **state)
{
    static const char *const cases[] = {
        "[{'kind':'snapshot','snapshot':{'threads':[],'updatedAt':@01:00}}]",
        "[{'kind':'snapshot','snapshot':{'snapshotSequence':1,'thread':{'id':'t'}}}]",
        "[{'kind':'thread-upserted','thread':{'id':'t'}}]",
        "[{'kind':'thread-removed','threadId':'t'}]",
        "[{'kind':'project-upserted'}]",
        "[{'kind':'event','event':{'type':'thread.session-set','threadId':'t'}}]",
    };
    struct t3_board *b = new_board();
    struct t3_board_error error;

    (void)state;
    feed(b, FULL);
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        assert_int_equal(code_of(b, HOST, cases[i], &error), T3_BOARD_ERROR_VERSION);
        assert_non_null(strstr(error.message, "first version of T3's orchestration protocol"));
        assert_rows(b, "t|T|running|@02:00|m\n");
    }
    t3_board_free(b);
}

/* What is no call, no JSON or no chunk is refused with a sentence, and nothing happens. */
static void test_refusals(void **state)
{
    struct t3_board *b = new_board();
    struct t3_board *other = NULL;
    struct t3_board_options options;
    struct t3_board_error error;
    char label[T3_HOST_BYTES_MAX + 2];

    (void)state;
    assert_int_equal(code_of(b, HOST, "[{'kind':'thr", &error), T3_BOARD_ERROR_FORMAT);
    assert_int_equal(code_of(b, HOST, "", &error), T3_BOARD_ERROR_FORMAT);
    assert_int_equal(code_of(b, HOST, "'x'", &error), T3_BOARD_ERROR_FORMAT);
    assert_string_equal(error.message,
                        "a string is neither a chunk (an array of stream items) nor a projection");
    assert_int_equal(code_of(b, "", "[]", &error), T3_BOARD_ERROR_ARGUMENT);
    memset(label, 'x', sizeof(label));
    label[sizeof(label) - 1] = '\0';
    assert_int_equal(code_of(b, label, "[]", &error), T3_BOARD_ERROR_ARGUMENT);
    t3_board_options_init(&options);
    options.snippet_graphemes = 0;
    assert_int_equal(t3_board_new(&options, &other, &error), T3_BOARD_ERROR_ARGUMENT);
    options = (struct t3_board_options){.snippet_graphemes = 1};
    assert_int_equal(t3_board_new(&options, &other, NULL), T3_BOARD_ERROR_ARGUMENT);
    assert_null(other);
    assert_string_equal(t3_board_code_name(error.code), "ARGUMENT");
    assert_string_equal(t3_board_code_name((enum t3_board_code)99), "UNKNOWN");
    t3_board_free(b);
    t3_board_free(NULL);
}

/* Rows, hosts, texts and what is remembered of deletions are bounded. */
static void test_limits(void **state)
{
    struct t3_board *b;
    struct t3_board_options options;
    struct t3_board_error error;
    char text[200];

    (void)state;
    t3_board_options_init(&options);
    options.max_rows = 2;
    assert_int_equal(t3_board_new(&options, &b, NULL), T3_BOARD_OK);
    assert_int_equal(code_of(b, HOST, SHELL("{'id':'a'},{'id':'b'},{'id':'c'}"), &error),
                     T3_BOARD_ERROR_LIMIT);
    assert_rows(b, "a|~|~|~|~\nb|~|~|~|~\n");
    feed(b, REMOVED("a"));
    feed(b, UPDATED("'title':'T'}"));
    for (unsigned i = 0; i < T3_HOSTS_MAX - 1; i++) {
        (void)snprintf(text, sizeof(text), "host %u", i);
        assert_int_equal(code_of(b, text, "[]", &error), T3_BOARD_OK);
    }
    assert_int_equal(code_of(b, "one more", "[]", &error), T3_BOARD_ERROR_LIMIT);
    for (unsigned i = 0; i < T3_DELETED_MAX + 10; i++) {
        (void)snprintf(text, sizeof(text), "[{'kind':'thread.removed','threadId':'x%u'}]", i);
        feed(b, text);
    }
    assert_int_equal(b->deleted_count, T3_DELETED_MAX);
    assert_int_equal(b->map.count, T3_DELETED_MAX + 2);
    t3_board_free(b);
}

/* Rows that a snapshot replaces take no room from those that it lists, also where those that stay
 * come last; other hosts' rows do, and what the snapshot deletes does not. */
static void test_full_board_replaced(void **state)
{
    struct t3_board *b;
    struct t3_board_options options;
    struct t3_board_error error;

    (void)state;
    t3_board_options_init(&options);
    options.max_rows = 3;
    assert_int_equal(t3_board_new(&options, &b, NULL), T3_BOARD_OK);
    feed(b, SHELL("{'id':'a'},{'id':'b'},{'id':'c'}"));
    assert_int_equal(code_of(b, HOST, SHELL("{'id':'x'},{'id':'y'},{'id':'z'}"), &error),
                     T3_BOARD_OK);
    assert_rows(b, "x|~|~|~|~\ny|~|~|~|~\nz|~|~|~|~\n");
    assert_int_equal(code_of(b, HOST, SHELL("{'id':'a'},{'id':'x'},{'id':'y'},{'id':'z'}"), &error),
                     T3_BOARD_ERROR_LIMIT);
    assert_rows(b, "a|~|~|~|~\nx|~|~|~|~\ny|~|~|~|~\n");
    assert_int_equal(
        code_of(b, HOST, SHELL("{'id':'x'},{'id':'x'},{'id':'y','deletedAt':@01:00},{'id':'v'}"),
                &error),
        T3_BOARD_OK);
    assert_rows(b, "v|~|~|~|~\nx|~|~|~|~\n");
    assert_int_equal(code_of(b, "other", SHELL("{'id':'o'},{'id':'p'}"), &error),
                     T3_BOARD_ERROR_LIMIT);
    assert_int_equal(t3_board_count(b), 3);
    t3_board_free(b);
}

/* A text that is too long is cut between characters. */
static void test_cut(void **state)
{
    struct t3_board *b = new_board();
    struct t3_board_row row;
    struct buf text;

    (void)state;
    buf_init(&text, 1u << 20);
    buf_append(&text, SLICE("[{'kind':'thread.updated','thread':{'id':'t','status':'"));
    for (unsigned i = 0; i < T3_STATE_BYTES_MAX; i++) {
        buf_append(&text, SLICE("\u20ac"));
    }
    buf_append(&text, SLICE("','title':'"));
    for (unsigned i = 0; i < 2 * T3_TITLE_BYTES_MAX; i++) {
        buf_append_char(&text, 'x');
    }
    buf_append(&text, (struct slice){"'}}]", 5}); /* with its NUL */
    feed(b, text.ptr);
    assert_int_equal(t3_board_find(b, HOST, "t", &row), 1);
    assert_int_equal(row.title.len, T3_TITLE_BYTES_MAX);
    assert_int_equal(row.state.len, 63);
    buf_finish(&text);
    t3_board_free(b);
}

/* Operations alone: partial upserts with absent values, deletions, no replacement. */
static void test_normalize(void **state)
{
    static const char text[] =
        "[{'kind':'event','event':{'type':'run.updated','threadId':'t','payload':{'id':'r',"
        "'status':'running','startedAt':@01:00}}},{'kind':'event','event':{'type':"
        "'thread.metadata-updated','threadId':'t','payload':{'title':'T'}}},"
        "{'kind':'thread.removed','threadId':'u'},{'kind':'snapshot','snapshot':{'schemaVersion':2,"
        "'threads':[{'id':'a','status':'idle'}],'archivedThreads':[{'id':'b'}]}},"
        "{'kind':'event','event':{'type':'message.updated','threadId':'t','payload':{'id':'m',"
        "'text':' a  b '}}},{'kind':'event','event':{'type':'provider-turn.updated','threadId':'t',"
        "'payload':{'completedAt':@02:00}}},{'kind':'event','event':{'type':"
        "'runtime-request.updated','threadId':'t','payload':{'id':'q','status':'pending'}}},3]";
    struct buf json;
    struct buf shown;
    struct t3_board_counts counts;

    (void)state;
    buf_init(&json, 1u << 20);
    buf_init(&shown, 1u << 20);
    spell(text, &json);
    assert_int_equal(
        t3_board_normalize(NULL, json.ptr, json.len, show_change, &shown, &counts, NULL),
        T3_BOARD_OK);
    assert_shown(&shown, "+t|~|running|@01:00|~\n+t|T|~|~|~\n-u|~|~|~|~\n+a|~|idle|~|~\n"
                         "+b|~|archived|~|~\n+t|~|~|~|a b\n+t|~|~|@02:00|~\n+t|~|~|~|~|asks\n");
    assert_int_equal(counts.applied, 7);
    assert_int_equal(counts.skipped, 1);
    buf_finish(&json);
}

/* Without memory nothing is half done: a row is as before or after, and a later fold is whole. */
static void test_out_of_memory(void **state)
{
    struct buf json;
    int code = T3_BOARD_ERROR_MEMORY;

    (void)state;
    buf_init(&json, 1u << 20);
    spell(
        "[{'kind':'thread.updated','thread':{'id':'t','title':'T','status':'running','latestRunId':"
        "'r','latestVisibleMessage':{'id':'m','text':'m'}," ASKED
        "}},{'kind':'thread.removed','threadId':'u'"
        "},{'kind':'snapshot','projection':{'thread':{'id':'t','title':'T'},'runs':[{'id':'s',"
        "'ordinal':2,'status':'running'}],'attempts':[{'id':'a','runId':'s'}],'providerTurns':"
        "[{'runAttemptId':'a','completedAt':@01:00}]}}]",
        &json);
    for (long i = 0; code != T3_BOARD_OK; i++) {
        struct t3_board *b = new_board();

        assert_true(i < 200);
        fault_countdown = i;
        code = t3_board_apply(b, HOST, json.ptr, json.len, NULL, NULL, NULL, NULL);
        fault_countdown = -1;
        if (code == T3_BOARD_ERROR_MEMORY && t3_board_count(b) == 0) {
            assert_rows(b, "");
        } else {
            assert_rows(b, code == T3_BOARD_OK ? "t|T|running|@01:00|m|asks\n"
                                               : "t|T|running|~|m|asks\n");
        }
        assert_int_equal(t3_board_apply(b, HOST, json.ptr, json.len, NULL, NULL, NULL, NULL), 0);
        assert_rows(b, "t|T|running|@01:00|m|asks\n");
        t3_board_free(b);
    }
    buf_finish(&json);
}

/* ------------------------------------------------------------------ the memory of a long life */

#define LIFE_EVENTS 200000u
#define LIFE_SLACK  (64u * KIB) /* far below what a few bytes for each event would be */

static size_t memory_in_use(void)
{
    struct mallinfo2 all = mallinfo2();

    return all.uordblks + all.hblkhd;
}

/* The n-th event of few threads: metadata, runs and messages, each of its own id, and removals;
 * now and then a thread that nobody sees again comes and goes. # stands for a number, two events
 * long the same. */
static void live_on(struct t3_board *b, unsigned n)
{
    static const char *const events[] = {
        EVENT("thread.metadata-updated", "{'id':'t','title':'title #'}"),
        EVENT("run.updated", "{'id':'r#','status':'running','ordinal':#}"),
        EVENT("message.updated", "{'id':'m#','text':'text #','createdAt':@01:00}"),
        EVENT_OF("u", "run.created", "{'id':'r#','status':'running','ordinal':#}"),
        REMOVED("t"),
        EVENT("thread.created", "{'id':'t','title':'again #'}"),
        EVENT_OF("x#", "thread.created", "{'id':'x#','title':'x'}"),
        REMOVED("x#"),
    };
    char text[512];
    size_t len = 0;

    for (const char *at = events[n % ARRAY_COUNT(events)]; *at != '\0'; at++) {
        if (*at == '#') {
            len += (size_t)snprintf(text + len, sizeof(text) - len, "%u", 100000 + n / 2);
        } else {
            text[len++] = *at;
        }
    }
    text[len] = '\0';
    feed(b, text);
}

/* Memory goes with the rows, and with so many deleted threads, not with what has happened. */
static void test_memory(void **state)
{
    struct t3_board *b = new_board();
    size_t level = 0;

    (void)state;
    for (unsigned n = 0; n < LIFE_EVENTS; n++) {
        if (n == LIFE_EVENTS / 2) { /* as many as are remembered have been deleted */
            level = memory_in_use();
        }
        live_on(b, n);
    }
    assert_true(memory_in_use() <= level + LIFE_SLACK);
    assert_true(t3_board_count(b) <= 3);
    t3_board_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_status),
        cmocka_unit_test(test_archived),
        cmocka_unit_test(test_newest_by_ordinal),
        cmocka_unit_test(test_idle),
        cmocka_unit_test(test_metadata),
        cmocka_unit_test(test_activity),
        cmocka_unit_test(test_turns_of_older_runs),
        cmocka_unit_test(test_shell_times),
        cmocka_unit_test(test_null),
        cmocka_unit_test(test_sparse),
        cmocka_unit_test(test_deleted),
        cmocka_unit_test(test_after_deletion),
        cmocka_unit_test(test_late_run),
        cmocka_unit_test(test_historical_message),
        cmocka_unit_test(test_shell_fallback),
        cmocka_unit_test(test_shell_message_fallback),
        cmocka_unit_test(test_asks),
        cmocka_unit_test(test_asks_no_more),
        cmocka_unit_test(test_asks_archived),
        cmocka_unit_test(test_asks_projected),
        cmocka_unit_test(test_asks_events),
        cmocka_unit_test(test_asks_until_over),
        cmocka_unit_test(test_asks_told_once),
        cmocka_unit_test(test_ignored),
        cmocka_unit_test(test_examples),
        cmocka_unit_test(test_changes),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_v1),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_full_board_replaced),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_normalize),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_model),
    };

    return UNIT_RUN(tests);
}
