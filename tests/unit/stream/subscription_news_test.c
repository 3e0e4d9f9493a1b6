/* What streams do, and that none of it is missed: not in the moment of linking, not where there is
 * no room for news, not where memory is out. */
#include "stream/subscription_news.c"

#include "unit/stream/subscription_rig.h"

/* Several growths of a stream are one piece of news; of two streams of a name the newer counts. */
static void test_put_together(void **state)
{
    (void)state;
    on_grew(subs, SLICE("a"), 5, 10);
    on_grew(subs, SLICE("a"), 5, 20);
    on_grew(subs, SLICE("a"), 5, 15);
    on_grew(subs, SLICE("b"), 6, 1);
    assert_int_equal(subs->news_count, 2);
    struct news *n = container_of(list_first(&subs->news), struct news, link);
    assert_int_equal(n->tail, 20);
    on_dropped(subs, SLICE("a"), 5);
    assert_true(n->dropped);
    on_grew(subs, SLICE("a"), 7, 3);
    assert_false(n->dropped);
    assert_int_equal(n->id, 7);
    assert_int_equal(n->tail, 3);
    on_dropped(subs, SLICE("a"), 5);
    assert_false(n->dropped);
    sub_run();
    assert_int_equal(subs->news_count, 0);
}

/* When too much waits, all streams are listed instead, and nothing is missed: neither what grew nor
 * what went. */
static void test_no_room(void **state)
{
    (void)state;
    make("events/gone", "[1]");
    assert_int_equal(sub_put("s", HOOK("events/*", "")), 201);
    make("events/a", "[1]");
    call_answer(0, 200, "{\"done\":true}");
    subs->news_count = SUBSCRIPTION_GREW_MAX;
    assert_int_equal(rig_post_body(&rig, "events/a", JSON, "[2]"), 0);
    assert_int_equal(rig_put(&rig, "events/b", JSON, "[1]"), 0);
    assert_int_equal(rig_delete(&rig, "events/gone"), 0);
    assert_true(list_empty(&subs->news));
    assert_true(subs->missed);
    sub_run();
    assert_int_equal(find_link("s", "events/a")->tail, 4);
    assert_true(find_link("s", "events/b")->acked == SUBSCRIPTION_START);
    assert_null(find_link("s", "events/gone"));
    assert_int_equal(call_count, 1);
}

/* A listing of more than a page. */
static void test_many_pages(void **state)
{
    (void)state;
    char name[32];
    assert_int_equal(sub_put("s", HOOK("events/*", "")), 201);
    engine_observe(rig.engine, NULL);
    for (unsigned i = 0; i < 2 * WALK_PAGE + 10; i++) {
        (void)snprintf(name, sizeof(name), "events/%u", i);
        assert_int_equal(rig_put(&rig, name, JSON, "[1]"), 0);
    }
    walk_begin(subs);
    sub_run();
    assert_int_equal(find("s")->link_count, 2 * WALK_PAGE + 10);
    assert_int_equal(find("s")->pending_count, 2 * WALK_PAGE + 10);
    news_observe(subs);
}

/* A listing that the end of the server cuts short says nothing about what lies behind: those links
 * keep their cursors, also where a last change takes old notes along. */
static void test_cut_short(void **state)
{
    (void)state;
    char name[32];
    for (unsigned i = 0; i < WALK_PAGE; i++) {
        (void)snprintf(name, sizeof(name), "events/%04u", i);
        assert_int_equal(rig_put(&rig, name, JSON, ""), 0);
    }
    make("events/last", "[1]");
    assert_int_equal(sub_put("s", HOOK("events/*", "")), 201);
    say("events/0000", "[1]");
    start(subs);
    subs->walk.active = true;
    list_page(subs);
    assert_true(subs->walk.end.more);
    subscriptions_stop(subs);
    walk_paged(&subs->walk.task);
    call_answer(0, 200, "{\"done\":true}");
    sub_crash(false);
    assert_int_equal(find_link("s", "events/last")->acked, 2);
    assert_int_equal(find_link("s", "events/0000")->acked, 2);
    assert_int_equal(call_count, 0);
}

/* A stream that went after the listing found it, and before that was told, stays gone; also when
 * another one of its name has come, which nothing was appended to. */
static void test_gone_while_listed(void **state)
{
    (void)state;
    assert_int_equal(sub_put("s", HOOK("events/*", "")), 201);
    make("events/a", "[1]");
    make("events/b", "[1]");
    make("events/c", "[1]");
    start(subs);
    subs->walk.active = true;
    list_page(subs);
    assert_int_equal(rig_delete(&rig, "events/a"), 0);
    assert_int_equal(rig_delete(&rig, "events/b"), 0);
    assert_int_equal(rig_put(&rig, "events/b", JSON, ""), 0);
    sub_run();
    assert_null(find_link("s", "events/a"));
    tell_page(subs);
    walk_ended(subs);
    sub_run();
    assert_null(find_link("s", "events/a"));
    assert_null(find_link("s", "events/b"));
    assert_int_equal(find_link("s", "events/c")->tail, 2);
    make("events/a", "[1]");
    assert_true(find_link("s", "events/a")->acked == SUBSCRIPTION_START);
}

/* What happens to streams while a subscription is being made is told to it afterwards: the tails
 * it begins at were read after the index knew of it. */
static void test_while_linking(void **state)
{
    (void)state;
    make("events/a", "[1]");
    make("events/gone", "[1]");
    struct subscription_op op;
    op_init(&op, SUBSCRIPTION_PUT, "s", HOOK("events/*", ""));
    answered_yet = false;
    subscription_start(subs, &op);
    (void)subscriptions_step(subs); /* its batch is staged and not durable */
    assert_false(answered_yet);
    assert_non_null(find("s")->linking);
    assert_int_equal(rig_post_body(&rig, "events/a", JSON, "[2]"), 0);
    assert_int_equal(rig_put(&rig, "events/new", JSON, "[1]"), 0);
    assert_int_equal(rig_delete(&rig, "events/gone"), 0);
    sub_run();
    assert_true(answered_yet);
    assert_int_equal(op.status, 201);
    buf_finish(&op.answer);
    assert_int_equal(find_link("s", "events/a")->acked, 2);
    assert_int_equal(find_link("s", "events/a")->tail, 4);
    assert_true(find_link("s", "events/new")->acked == SUBSCRIPTION_START);
    assert_null(find_link("s", "events/gone"));
    assert_int_equal(call_count, 1);
}

/* A listing that ends while a subscription is being made knows that a stream went, and nobody else
 * does: it is looked at once more. */
static void test_listed_while_linking(void **state)
{
    (void)state;
    make("events/a", "[1]");
    make("events/gone", "[1]");
    struct subscription_op op;
    op_init(&op, SUBSCRIPTION_PUT, "s", HOOK("events/*", ""));
    subscription_start(subs, &op);
    (void)subscriptions_step(subs);
    assert_non_null(find("s")->linking);
    engine_observe(rig.engine, NULL);
    assert_int_equal(rig_delete(&rig, "events/gone"), 0);
    start(subs);
    subs->walk.active = true;
    list_page(subs);
    tell_page(subs);
    walk_ended(subs);
    news_observe(subs);
    sub_run();
    assert_int_equal(op.status, 201);
    buf_finish(&op.answer);
    assert_null(find_link("s", "events/gone"));
    assert_non_null(find_link("s", "events/a"));
    assert_int_equal(find("s")->link_count, 1);
}

/* News of a stream that came before the present one of its name change nothing. */
static void test_old_news(void **state)
{
    (void)state;
    assert_int_equal(sub_put("s", HOOK("events/*", "")), 201);
    make("events/a", "[1]");
    stream_id id = find_link("s", "events/a")->stream;
    on_grew(subs, SLICE("events/a"), id - 1, 100);
    sub_run();
    assert_int_equal(find_link("s", "events/a")->tail, 2);
    on_dropped(subs, SLICE("events/a"), id - 1);
    sub_run();
    assert_non_null(find_link("s", "events/a"));
}

/* A wake event is about the stream that it was written to, not about one of its name before or
 * after. */
static void test_event_of_another(void **state)
{
    (void)state;
    make("events/a", "[1]");
    assert_int_equal(sub_put("s", HOOK("events/*", "")), 201);
    stream_id id = find_link("s", "events/a")->stream;
    const struct subscription_link *l = find_link("s", "events/a");
    news_quiet(subs, SLICE("events/a"), id - 1, 2, 10);
    assert_int_equal(l->tail, 2);
    assert_int_equal(l->skip, 0);
    news_quiet(subs, SLICE("events/a"), id, 2, 10);
    assert_int_equal(l->tail, 10);
    assert_int_equal(l->skip, 10);
}

/* A wake event that is written while a subscription to the wake stream is being made wakes it
 * neither then nor after a start. */
static void test_event_while_linking(void **state)
{
    (void)state;
    make("wake/pool", "[]");
    assert_int_equal(sub_put("pull", PULL("events/*", "")), 201);
    assert_int_equal(rig_put(&rig, "events/a", JSON, "[1]"), 0);
    (void)subscriptions_step(subs);
    rig_commit(&rig); /* the wake is durable */
    struct subscription_op op;
    op_init(&op, SUBSCRIPTION_PUT, "s", HOOK("wake/*", ""));
    subscription_start(subs, &op);
    (void)subscriptions_step(subs);
    assert_true(find("pull")->event_active);
    assert_non_null(find("s")->linking);
    sub_run();
    assert_int_equal(op.status, 201);
    buf_finish(&op.answer);
    assert_int_equal(find_link("s", "wake/pool")->acked, 0);
    assert_true(find_link("s", "wake/pool")->tail > 0);
    assert_int_equal(find("s")->pending_count, 0);
    sub_crash(false);
    assert_int_equal(call_count, 0);
}

/* A fork is made under a name that is followed already: what it inherits wakes nobody, not after a
 * start either, and is pending with the first bytes of its own. */
static void test_fork_of_followed_name(void **state)
{
    (void)state;
    make("source", "[1,2]");
    assert_int_equal(sub_put("s", HOOK("events/*", ",\"streams\":[\"fork\",\"events/f\"]")), 201);
    assert_int_equal(rig_fork(&rig, "fork", "source"), 0);
    assert_int_equal(rig_fork(&rig, "events/f", "source"), 0);
    sub_run();
    for (int i = 0; i < 3; i++) {
        assert_int_equal(find_link("s", "fork")->tail, 4);
        assert_int_equal(find_link("s", "events/f")->tail, 4);
        assert_int_equal(find("s")->pending_count, 0);
        sub_crash(i == 1);
    }
    assert_int_equal(call_count, 0);
    say("fork", "[3]");
    assert_int_equal(call_count, 1);
    assert_int_equal(find("s")->pending_count, 1);
    assert_int_equal(find_link("s", "fork")->acked, 0);
}

/* A fork has bytes of its own before it is told that it was made. */
static void test_fork_grows_at_once(void **state)
{
    (void)state;
    make("source", "[1,2]");
    assert_int_equal(sub_put("s", HOOK("events/*", ",\"streams\":[\"fork\"]")), 201);
    assert_int_equal(rig_fork(&rig, "fork", "source"), 0);
    assert_int_equal(rig_post_body(&rig, "fork", JSON, "[3]"), 0);
    assert_int_equal(rig_fork(&rig, "events/f", "source"), 0);
    assert_int_equal(rig_post_body(&rig, "events/f", JSON, "[3]"), 0);
    sub_run();
    assert_int_equal(find("s")->pending_count, 2);
    assert_true(find_link("s", "events/f")->acked == SUBSCRIPTION_START);
    assert_int_equal(call_count, 1);
}

/* A stream is deleted, its name is linked, and only then it is told that the stream went: the link
 * is for the next one. */
static void test_late_deletion(void **state)
{
    (void)state;
    assert_int_equal(sub_put("s", HOOK("events/*", ",\"streams\":[\"later\"]")), 201);
    on_dropped(subs, SLICE("later"), 1);
    sub_run();
    assert_non_null(find_link("s", "later"));
    make("later", "[1]");
    assert_true(find_link("s", "later")->is_explicit);
    assert_int_equal(find_link("s", "later")->acked, 0);
    assert_int_equal(call_count, 1);
    assert_int_equal(rig_delete(&rig, "later"), 0);
    sub_run();
    assert_null(find_link("s", "later"));
}

/* A subscription that follows as many streams as one may is not woken for more; the operator is
 * told once, and each is counted. */
static void test_full(void **state)
{
    (void)state;
    assert_int_equal(sub_put("s", HOOK("events/*", "")), 201);
    struct subscription *sub = core_find(subs, SLICE("s"));
    sub->link_count += SUBSCRIPTION_LINKS_MAX;
    make("events/a", "[1]");
    make("events/b", "[1]");
    assert_int_equal(call_count, 0);
    assert_int_equal(subs->counts.links_refused, 2);
    assert_int_equal(troubles, 1);
    sub->link_count -= SUBSCRIPTION_LINKS_MAX;
    sub_crash(false); /* whoever makes room finds them at the next start at the latest */
    assert_int_equal(call_count, 1);
    assert_int_equal(find("s")->link_count, 2);
}

/* All of them together follow no more either, whatever comes at once. */
static void test_all_full(void **state)
{
    (void)state;
    assert_int_equal(sub_put("s", HOOK("events/*", "")), 201);
    assert_int_equal(sub_put("t", HOOK("events/*", "")), 201);
    subs->counts.links += SUBSCRIPTION_LINKS_ALL_MAX - 1;
    assert_int_equal(rig_put(&rig, "events/a", JSON, "[1]"), 0);
    assert_int_equal(rig_put(&rig, "events/b", JSON, "[1]"), 0);
    sub_run();
    assert_int_equal(find("s")->link_count + find("t")->link_count, 1);
    assert_int_equal(subs->counts.links, SUBSCRIPTION_LINKS_ALL_MAX);
    assert_int_equal(subs->counts.links_refused, 3);
    subs->counts.links -= SUBSCRIPTION_LINKS_ALL_MAX - 1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_put_together),
        TEST(test_no_room),
        TEST(test_many_pages),
        TEST(test_cut_short),
        TEST(test_gone_while_listed),
        TEST(test_while_linking),
        TEST(test_listed_while_linking),
        TEST(test_old_news),
        TEST(test_event_of_another),
        TEST(test_event_while_linking),
        TEST(test_fork_of_followed_name),
        TEST(test_fork_grows_at_once),
        TEST(test_late_deletion),
        TEST(test_full),
        TEST(test_all_full),
    };
    return UNIT_RUN(tests);
}
