/* Pages of lists: how they are asked for, and how they are answered. */
#include "app/paging.c"

#include "unit/app/desk_rig.h"

static struct desk desk;
static struct api_call call;

static int set_up(void **state)
{
    (void)state;
    desk_open(&desk);
    desk_call(&desk, &call, "a");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    desk_end(&call);
    desk_close(&desk);
    return 0;
}

/* 0, or the status of the refusal. */
static int read_query(const char *query, struct store_page *ret_page)
{
    struct params p;

    params_begin(&p, slice_of(query), &call.memory, &call.error);
    *ret_page = paging_read(&p);
    return params_end(&p) == 0 ? 0 : api_error_status(call.error.code);
}

static void queries(void **state)
{
    const char *const bad[] = {"limit=0",         "limit=201",         "limit=-1", "limit=x",
                               "limit=1&limit=2", "cursor=a&cursor=b", "limits=1"};
    struct store_page page;

    (void)state;
    assert_int_equal(read_query("", &page), 0);
    assert_int_equal(page.limit, PAGING_LIMIT_DEFAULT);
    assert_int_equal(page.after.len, 0);
    assert_int_equal(read_query("cursor=12.t%2D1&limit=200", &page), 0);
    assert_int_equal(page.limit, STORE_PAGE_MAX);
    assert_true(slice_equal(page.after, SLICE("12.t-1")));
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        assert_int_equal(read_query(bad[i], &page), 400);
    }
}

static void answers(void **state)
{
    (void)state;
    paging_begin(&call, "things");
    for (size_t i = 0; i < 3; i++) {
        paging_item(&call, i);
        buf_append_char(&call.answer, (char)('1' + i));
    }
    assert_int_equal(paging_end(&call, SLICE("n\"")), API_DONE);
    assert_int_equal(call.status, 200);
    assert_true(slice_starts_with(buf_slice(&call.answer),
                                  SLICE("{\"things\":[1,2,3],\"nextCursor\":\"n\\\"\"}")));
    buf_clear(&call.answer);
    paging_begin(&call, "things");
    assert_int_equal(paging_end(&call, (struct slice){NULL, 0}), API_DONE);
    assert_true(
        slice_starts_with(buf_slice(&call.answer), SLICE("{\"things\":[],\"nextCursor\":null}")));
}

/* A page that has no room is no page. */
static void room_runs_out(void **state)
{
    (void)state;
    buf_finish(&call.answer);
    buf_init(&call.answer, 16);
    paging_begin(&call, "things that are many");
    assert_int_equal(paging_end(&call, (struct slice){NULL, 0}), API_FAILED);
    assert_int_equal(call.error.code, API_BUSY);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest paging_tests[] = {TEST(queries), TEST(answers), TEST(room_runs_out)};

    return UNIT_RUN(paging_tests);
}
