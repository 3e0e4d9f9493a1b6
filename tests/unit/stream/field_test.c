/* Fields without HTTP around them; tests/unit/serve/fields_test.c has the long lists of good and
 * bad values, by the same code. */
#include "stream/field.c"

#include "unit/base/unit.h"

#define NOT_SENT ((struct slice){NULL, 0})

/* What was not sent is nothing; what is wrong changes nothing and gets a sentence. */
static void reads_groups(void **state)
{
    struct errmsg msg = {{0}};
    struct stream_expiry expiry = {.ttl_seconds = 7};
    struct slice type = SLICE("old");
    struct slice seq;
    bool has_seq = true;

    (void)state;
    assert_int_equal(field_expiry(SLICE("60"), SLICE("2030-01-01T00:00:00Z"), &expiry, &msg),
                     ERR_INVALID);
    assert_int_equal(expiry.ttl_seconds, 7);
    assert_string_equal(msg.text, "give Stream-TTL or Stream-Expires-At, not both");
    assert_int_equal(field_expiry(NOT_SENT, SLICE("1970-01-01T00:00:01Z"), &expiry, &msg), 0);
    assert_true(expiry.has_expires_at && !expiry.has_ttl);
    assert_int_equal(expiry.expires_at_ms, 1000);
    assert_int_equal(field_content_type(SLICE("text"), &type, &msg), ERR_INVALID);
    assert_true(slice_equal(type, SLICE("old")));
    assert_int_equal(field_content_type(NOT_SENT, &type, &msg), 0);
    assert_int_equal(type.len, 0);
    assert_int_equal(field_seq(NOT_SENT, &has_seq, &seq, &msg), 0);
    assert_false(has_seq);
    assert_int_equal(field_seq(SLICE(""), &has_seq, &seq, &msg), ERR_INVALID);
}

/* A claim is all of its three parts. */
static void reads_producers(void **state)
{
    struct errmsg msg = {{0}};
    struct record_producer producer;
    struct slice texts[3] = {SLICE("p"), SLICE("3"), NOT_SENT};

    (void)state;
    assert_int_equal(field_producer(texts, &producer, &msg), ERR_INVALID);
    texts[2] = SLICE("4");
    assert_int_equal(field_producer(texts, &producer, &msg), 0);
    assert_int_equal(producer.epoch, 3);
    assert_int_equal(producer.seq, 4);
    texts[1] = SLICE("9007199254740992");
    assert_int_equal(field_producer(texts, &producer, &msg), ERR_INVALID);
}

/* The source of a fork is a path; its canonical name is what comes out. */
static void reads_forks(void **state)
{
    struct errmsg msg = {{0}};
    char name[STREAM_NAME_BYTES_MAX];
    struct stream_create_request create = {.closed = true};
    struct field_fork fork = {.source = SLICE("/v1/stream/a%20b"), .sub_offset = SLICE("0")};

    (void)state;
    assert_int_equal(field_fork(&fork, name, &create, &msg), 0);
    assert_true(slice_equal(create.forked_from, SLICE("a b")));
    assert_true(create.closed && create.has_sub_offset && !create.has_fork_offset);
    fork.sub_offset = SLICE("1");
    assert_int_equal(field_fork(&fork, name, &create, &msg), ERR_INVALID);
    fork = (struct field_fork){.source = NOT_SENT, .offset = SLICE("-1")};
    assert_int_equal(field_fork(&fork, name, &create, &msg), ERR_INVALID);
}

/* Offsets, and the bounds of a listing. */
static void reads_places(void **state)
{
    struct errmsg msg = {{0}};
    struct offset offset;
    char longest[STREAM_NAME_BYTES_MAX + 1] = {0};

    (void)state;
    assert_int_equal(field_offset(SLICE("now"), &offset, &msg), 0);
    assert_int_equal(offset.kind, OFFSET_NOW);
    assert_int_equal(field_offset(SLICE("later"), &offset, &msg), ERR_INVALID);
    assert_int_equal(field_listed((struct slice){longest, STREAM_NAME_BYTES_MAX}, "prefix", &msg),
                     0);
    assert_int_equal(field_listed((struct slice){longest, sizeof(longest)}, "prefix", &msg),
                     ERR_INVALID);
    assert_string_equal(msg.text, "prefix has at most 480 bytes, as stream names have");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_groups),
        cmocka_unit_test(reads_producers),
        cmocka_unit_test(reads_forks),
        cmocka_unit_test(reads_places),
    };

    return UNIT_RUN(tests);
}
