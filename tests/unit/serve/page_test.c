/* Pages as bodies: their length, small ones, and characters at their end. */
#include "serve/page.c"

#include "unit/base/unit.h"

/* A page in memory over `text`, cut into pieces at `cut`. */
struct made {
    struct block block; /* nobody counts it */
    struct stream_piece pieces[2];
    struct stream_page page;
};

static struct stream_page *make(struct made *m, const char *text, size_t cut, bool json)
{
    size_t len = strlen(text);

    m->pieces[0] = (struct stream_piece){.block = &m->block, .ptr = text, .len = cut};
    m->pieces[1] = (struct stream_piece){.block = &m->block, .ptr = text + cut, .len = len - cut};
    m->page = (struct stream_page){.next = 100 + len,
                                   .start = 100,
                                   .json = json,
                                   .pieces = m->pieces,
                                   .piece_count = 2,
                                   .bytes = len};
    return &m->page;
}

static void assert_body(struct stream_page *page, const char *body)
{
    struct buf out;

    buf_init(&out, 64 * KIB);
    assert_int_equal(page_body_bytes(page), strlen(body));
    assert_true(page_append_small(&out, page));
    assert_int_equal(out.len, strlen(body));
    assert_memory_equal(out.ptr, body, out.len);
    buf_finish(&out);
}

/* JSON pages are arrays without the last comma, others are the bytes. */
static void makes_bodies(void **state)
{
    struct made m;

    (void)state;
    assert_body(make(&m, "abc", 1, false), "abc");
    assert_body(make(&m, "1,{},", 2, true), "[1,{}]");
    assert_body(make(&m, "1,", 1, true), "[1]");
    m.page = (struct stream_page){.json = true};
    assert_body(&m.page, "[]");
    m.page = (struct stream_page){.json = false};
    assert_body(&m.page, "");
}

/* What is large, or in a file, is not copied. */
static void leaves_large_ones(void **state)
{
    struct made m;
    struct buf out;

    (void)state;
    buf_init(&out, 64 * KIB);
    make(&m, "abc", 1, false)->bytes = SMALL_BYTES_MAX + 1;
    assert_false(page_append_small(&out, &m.page));
    make(&m, "abc", 1, false);
    m.pieces[1].block = NULL;
    assert_false(page_append_small(&out, &m.page));
    assert_int_equal(out.len, 0);
    buf_finish(&out);
}

/* A character that is cut apart waits for the next page, in whatever pieces it stands; a CR waits
 * when it is known that more follows. */
static void trims_text(void **state)
{
    static const struct {
        const char *text;
        size_t kept;      /* at the tail */
        size_t kept_more; /* when more follows */
    } cases[] = {
        {"abc", 3, 3},
        {"ab\xc3\xa9", 4, 4},
        {"ab\xc3", 2, 2},
        {"ab\xe2\x82\xac", 5, 5},
        {"ab\xe2\x82", 2, 2},
        {"ab\xe2", 2, 2},
        {"ab\xf0\x9f\x92\xa9", 6, 6},
        {"ab\xf0\x9f\x92", 2, 2},
        {"ab\xf0\x9f", 2, 2},
        {"ab\x80\x80\x80\x80", 6, 6},
        {"ab\r\xf0\x9f", 3, 3},
        {"\xe2\x82", 0, 2}, /* a page must move its reader on */
        {"\x82", 1, 1},
        {"\xff", 1, 1}, /* begins nothing */
        {"ab\xc1", 3, 3},
        {"ab\r", 3, 2},
        {"ab\r\n", 4, 4},
        {"ab\r\r", 4, 3},
        {"\r", 1, 1},
        {"", 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < 2 * ARRAY_COUNT(cases); i++) {
        const char *text = cases[i / 2].text;
        bool more = i % 2 != 0;
        size_t kept = more ? cases[i / 2].kept_more : cases[i / 2].kept;

        for (size_t cut = 0; cut <= strlen(text); cut++) {
            struct made m;
            struct stream_page *page = make(&m, text, cut, false);

            page_trim_text(page, more);
            assert_int_equal(page->bytes, kept);
            assert_int_equal(page->next, 100 + kept);
            assert_int_equal(m.pieces[0].len + m.pieces[1].len, kept);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(makes_bodies),
        cmocka_unit_test(leaves_large_ones),
        cmocka_unit_test(trims_text),
    };

    return UNIT_RUN(tests);
}
