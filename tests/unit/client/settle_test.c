/* When a thread has settled: scripts of entries, one a line of a table. */
#include "client/settle.c"

#include <stdio.h>

#include "unit/base/unit.h"

/* A script is words with spaces between them. "|" is the end of the backfill. Words are made of a
 * kind and what it is about:
 *
 *   c:ID          chat with that id
 *   d:A,B         the director decided on agents A and B
 *   x:ID          the director failed, over the entry ID
 *   s:D:A:T       dispatch D of agent A, triggered by T, started
 *   +:D:T  -:D:T  *:D:T   it completed, failed, was cancelled
 *   k:A:T         agent A skipped T
 *   t:STATUS      the thread's status
 *   p: o: u:      pi failed; its session is orphaned; a type that nobody knows
 *
 * The result has a letter for each that settles: F, C, D (done), S; "|" again, with a letter behind
 * it if the backfill ends at rest. */
static void compose(const char *word, char *json, size_t size)
{
    char a[64] = "";
    char b[64] = "";
    char c[64] = "";

    (void)sscanf(word + 2, "%63[^:]:%63[^:]:%63[^:]", a, b, c);
    const char *ended = word[0] == '+' ? "completed" : word[0] == '-' ? "failed" : "cancelled";

    switch (word[0]) {
    case 'c':
        (void)snprintf(json, size, "{\"id\":\"%s\",\"payload\":{\"type\":\"chat\"}}", a);
        break;
    case 'd': {
        char *comma = strchr(a, ',');

        if (comma != NULL) {
            *comma = '\0';
        }
        (void)snprintf(json, size,
                       "{\"payload\":{\"type\":\"signal.thread_director.decided\","
                       "\"agentIds\":[\"%s\",\"%s\",7]}}",
                       a, comma != NULL ? comma + 1 : a);
        break;
    }
    case 'x':
        (void)snprintf(json, size,
                       "{\"payload\":{\"type\":\"signal.thread_director.failed\",\"reason\":\"r\","
                       "\"entryId\":\"%s\"}}",
                       a);
        break;
    case 's':
        (void)snprintf(json, size,
                       "{\"payload\":{\"type\":\"signal.dispatch.started\",\"dispatchId\":\"%s\","
                       "\"agentId\":\"%s\",\"triggerEntryId\":\"%s\"}}",
                       a, b, c);
        break;
    case 'k':
        (void)snprintf(json, size,
                       "{\"payload\":{\"type\":\"signal.dispatch.skipped\",\"agentId\":\"%s\","
                       "\"triggerEntryId\":\"%s\",\"reason\":\"why\"}}",
                       a, b);
        break;
    case 't':
        (void)snprintf(json, size,
                       "{\"payload\":{\"type\":\"signal.thread.status_changed\","
                       "\"status\":\"%s\"}}",
                       a);
        break;
    case 'p':
        (void)snprintf(json, size, "{\"payload\":{\"type\":\"signal.thread.pi_failed\"}}");
        break;
    case 'o':
        (void)snprintf(json, size,
                       "{\"payload\":{\"type\":\"signal.thread.pi_session_orphaned\"}}");
        break;
    case 'u':
        (void)snprintf(json, size, "{\"payload\":{\"type\":\"signal.dispatch.paused\"}}");
        break;
    default:
        (void)snprintf(json, size,
                       "{\"id\":\"end-%s\",\"payload\":{\"type\":\"signal.dispatch.%s\","
                       "\"dispatchId\":\"%s\",\"triggerEntryId\":\"%s\",\"reason\":\"%s\"}}",
                       a, ended, a, b, ended);
        break;
    }
}

static char letter(enum scoped_outcome outcome)
{
    return "FCDS"[outcome];
}

static void play(struct settle *s, const char *script, char *told)
{
    char words[512];
    char json[512];
    char *rest = NULL;
    size_t len = 0;

    (void)snprintf(words, sizeof(words), "%s", script);
    for (char *word = strtok_r(words, " ", &rest); word != NULL;
         word = strtok_r(NULL, " ", &rest)) {
        struct scoped_entry entry;

        if (strcmp(word, "|") == 0) {
            const struct settle_end *at_rest = settle_backfilled(s);

            told[len++] = '|';
            if (at_rest != NULL) {
                told[len++] = letter(at_rest->outcome);
            }
            continue;
        }
        compose(word, json, sizeof(json));
        assert_int_equal(scoped_entry_read(json, strlen(json), &entry), STREAM_OK);
        if (settle_take(s, &entry)) {
            told[len++] = letter(s->end.outcome);
        }
    }
    told[len] = '\0';
}

static void assert_settles(const char *trigger, const char *script, const char *expected)
{
    struct settle s;
    char told[100];

    settle_init(&s, trigger);
    play(&s, script, told);
    if (strcmp(told, expected) != 0) {
        fail_msg("%s: \"%s\", not \"%s\"", script, told, expected);
    }
}

/* The end of a dispatch settles, unless another one that was seen to start is under way. */
static void test_dispatches(void **state)
{
    (void)state;
    assert_settles(NULL, "| c:1 s:d1:a:1 +:d1:1", "|D");
    assert_settles(NULL, "| c:1 s:d1:a:1 -:d1:1", "|F");
    assert_settles(NULL, "| c:1 s:d1:a:1 *:d1:1", "|C");
    assert_settles(NULL, "| +:d1:1", "|D"); /* its start was before we came */
    assert_settles(NULL, "| s:d1:a:1 s:d2:b:1 +:d1:1 +:d2:1", "|D");
    assert_settles(NULL, "| s:d1:a:1 s:d2:b:1 -:d1:1 +:d2:1", "|F"); /* the worst of them */
    assert_settles(NULL, "| s:d1:a:1 s:d2:b:1 +:d1:1 *:d2:1", "|C");
    assert_settles(NULL, "| s:d1:a:1 s:d1:a:1 +:d1:1", "|D"); /* told twice */
    assert_settles(NULL, "| s:d1:a:1 +:d1:1 s:d2:a:2 -:d2:2 s:d3:a:3 +:d3:3", "|DFD");
    assert_settles(NULL, "| u: c:1 u:", "|");
}

/* One that stands alone: nobody is at work, and nobody is going to be. */
static void test_skipped(void **state)
{
    (void)state;
    assert_settles(NULL, "| c:1 k:a:1", "|S");
    assert_settles(NULL, "| c:1 s:d1:a:1 k:b:1 +:d1:1", "|D");
    assert_settles(NULL, "| c:1 d:a,b k:a:1 s:d1:b:1 +:d1:1", "|D");
    assert_settles(NULL, "| c:1 d:a,b k:a:1 k:b:1", "|S");
    assert_settles(NULL, "| c:1 d:a,b s:d1:b:1 k:a:1 +:d1:1", "|D");
    /* Whoever was decided upon and never heard of does not hold up the end of a dispatch. */
    assert_settles(NULL, "| c:1 d:a,b s:d1:a:1 +:d1:1", "|D");
}

/* What the thread comes to outranks its dispatches; and nobody acts when the director failed. */
static void test_thread(void **state)
{
    (void)state;
    assert_settles(NULL, "| t:running s:d1:a:1 t:completed", "|D");
    assert_settles(NULL, "| t:failed", "|F");
    assert_settles(NULL, "| t:cancelled", "|C");
    assert_settles(NULL, "| t:idle t:open t:running t:unheard", "|");
    assert_settles(NULL, "| p:", "|F");
    assert_settles(NULL, "| o:", "|F");
    assert_settles(NULL, "| s:d1:a:1 -:d2:1 t:completed s:d3:a:3 +:d3:3", "|DD");
    assert_settles(NULL, "| c:1 x:1", "|F");
    assert_settles(NULL, "| s:d1:a:1 x:1 +:d1:1", "|F");
}

/* The past settles nothing, but may be seen to end at rest. */
static void test_backfill(void **state)
{
    (void)state;
    assert_settles(NULL, "|", "|");
    assert_settles(NULL, "c:1 s:d1:a:1 +:d1:1 |", "|D");
    assert_settles(NULL, "c:1 s:d1:a:1 -:d1:1 u: |", "|F");
    assert_settles(NULL, "c:1 s:d1:a:1 +:d1:1 c:2 |", "|");
    assert_settles(NULL, "c:1 s:d1:a:1 |", "|");
    assert_settles(NULL, "c:1 s:d1:a:1 | +:d1:1", "|D");
    assert_settles(NULL, "t:completed t:running |", "|");
    assert_settles(NULL, "t:completed |", "|D");
    assert_settles(NULL, "c:1 k:a:1 |", "|S");
    assert_settles(NULL, "c:1 x:1 |", "|F");
    /* A dispatch of the past whose server died is never heard of again: it holds up nothing. */
    assert_settles(NULL, "s:d0:a:0 | c:1 s:d1:a:1 +:d1:1", "|D");
}

/* With a trigger only its dispatches count, wherever they stand. */
static void test_trigger(void **state)
{
    (void)state;
    assert_settles("1", "c:1 s:d1:a:1 +:d1:1 |", "D|D");
    assert_settles("1", "c:0 s:d0:a:0 -:d0:0 c:1 | s:d1:a:1 +:d1:1", "|D");
    assert_settles("1", "c:1 | s:d2:b:2 -:d2:2 s:d1:a:1 +:d1:1", "|D");
    assert_settles("1", "c:1 | k:a:0 k:a:1", "|S");
    assert_settles("1", "c:1 x:0 x:1 |", "F|F");
    assert_settles("1", "t:failed c:1 t:running t:completed |", "D|D");
    assert_settles("1", "t:failed c:1 |", "|");
    /* Signals that tell of no trigger count from it on. */
    assert_settles("1", "d:z c:1 d:a,b | k:a:1 k:b:1", "|S");
    /* An agent that starts for somebody else is not waited for any more. */
    assert_settles("1", "c:1 d:a,b | s:d2:a:2 k:b:1", "|S");
    /* A trigger that stands before the beginning. */
    assert_settles("1", "c:2 | s:d1:a:1 +:d1:1 t:failed", "|DF");
}

/* Which entry settled it, and why. */
static void test_end(void **state)
{
    struct settle s;
    char told[100];

    (void)state;
    settle_init(&s, NULL);
    play(&s, "| s:d1:a:1 s:d2:b:1 -:d1:1 +:d2:1", told);
    assert_string_equal(s.end.entry_id, "end-d1");
    assert_string_equal(s.end.reason, "failed");
    settle_init(&s, NULL);
    play(&s, "+:d1:1", told);
    assert_string_equal(settle_backfilled(&s)->entry_id, "end-d1");
}

/* However many start, and whatever stands in their ids, it stays in bounds. */
static void test_many(void **state)
{
    struct settle s;
    char told[100];
    char script[100];

    (void)state;
    settle_init(&s, NULL);
    play(&s, "|", told);
    for (int i = 0; i < 1000; i++) {
        (void)snprintf(script, sizeof(script), "s:d%d:a:1 d:x%d,y%d", i, i, i);
        play(&s, script, told);
        assert_string_equal(told, "");
    }
    assert_int_equal(s.open_count, SETTLE_OPEN_MAX);
    play(&s, "s:::", told);
    play(&s, "+:d999:1", told); /* those that are known are still waited for */
    assert_string_equal(told, "");
    play(&s, "t:completed", told);
    assert_string_equal(told, "D");
    assert_int_equal(s.open_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dispatches), cmocka_unit_test(test_skipped),
        cmocka_unit_test(test_thread),     cmocka_unit_test(test_backfill),
        cmocka_unit_test(test_trigger),    cmocka_unit_test(test_end),
        cmocka_unit_test(test_many),
    };

    return UNIT_RUN(tests);
}
