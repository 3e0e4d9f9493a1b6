/* Damage to the log: each kind is named; what a crash leaves is not damage. */
#include "unit/base/fault.h"

#include "log/verify_log.c"

#include "base/crc32c.h"
#include "unit/log/verify_fixture.h"

#define SEGMENT "wal/wal-0000000000000000"

static uint64_t checkpoint_of(const struct site *s)
{
    struct edit e;
    edit_begin(s, &e);
    struct catalog_state state = edit_state(&e);
    edit_end(&e);
    return state.checkpoint;
}

/* Where the first record behind the checkpoint is in the file. */
static uint64_t first_record(const struct site *s)
{
    return SEGMENT_HEADER_BYTES + checkpoint_of(s);
}

static void flip_record(struct site *s)
{
    site_flip(s, SEGMENT, first_record(s) + RECORD_FRAME_BYTES + 3);
}

static void flip_frame(struct site *s)
{
    site_flip(s, SEGMENT, first_record(s) + 17);
}

static void flip_header(struct site *s)
{
    site_flip(s, SEGMENT, 33);
}

static void cut_file(struct site *s)
{
    site_cut(s, SEGMENT, first_record(s) + 20);
}

static void remove_file(struct site *s)
{
    site_unlink(s, SEGMENT);
}

static void rewrite_header(struct site *s, size_t at, uint8_t value)
{
    uint8_t page[SEGMENT_HEADER_BYTES];
    int fd = site_open(s, SEGMENT);
    assert_int_equal(pread(fd, page, sizeof(page), 0), sizeof(page));
    page[at] = value;
    bytes_put_u32(page + 52, crc32c(0, page, 52));
    assert_int_equal(pwrite(fd, page, sizeof(page), 0), sizeof(page));
    close(fd);
}

static void foreign_file(struct site *s)
{
    rewrite_header(s, 16, 0xee);
}

static void unknown_format(struct site *s)
{
    rewrite_header(s, 8, 9);
}

/* The file claims to begin behind the checkpoint. */
static void moved_file(struct site *s)
{
    rewrite_header(s, 34, 0x10);
}

/* The end of the log is zeroed as if it had never been written: the catalog knows better. */
static void lost_end(struct site *s)
{
    struct edit e;
    char zeros[8192] = {0};
    edit_begin(s, &e);
    struct catalog_state state = edit_state(&e);
    state.checkpoint = 0;
    edit_put_state(&e, &state);
    edit_end(&e);
    site_write(s, SEGMENT, SEGMENT_HEADER_BYTES, zeros, sizeof(zeros));
}

/* A stream that lost its last extent, so that the log goes on behind its end. */
static void append_behind_end(struct site *s)
{
    struct edit e;
    char bytes[CATALOG_STREAM_BYTES_MAX];
    edit_begin(s, &e);
    struct stream_meta m = edit_stream(&e, SITE_TEXT, bytes);
    m.tail = 5;
    edit_put_stream(&e, &m);
    edit_del(&e, TABLE_EXTENTS, pair_of(SITE_TEXT, 5));
    edit_end(&e);
}

static void append_to_deleted(struct site *s)
{
    struct edit e;
    char bytes[CATALOG_STREAM_BYTES_MAX];
    edit_begin(s, &e);
    struct stream_meta m = edit_stream(&e, SITE_TEXT, bytes);
    m.soft_deleted = true;
    edit_put_stream(&e, &m);
    edit_end(&e);
}

static void no_directory(struct site *s)
{
    char from[256];
    char to[256];
    site_path(s, "wal", from);
    site_path(s, "elsewhere", to);
    assert_int_equal(rename(from, to), 0);
}

static const struct damage damages[] = {
    {"a bit of a record", flip_record, "wal", "whole records are behind it"},
    {"a bit of a frame", flip_frame, "wal", "whole records are behind it"},
    {"a bit of a file's header", flip_header, SEGMENT, "at 0: its header does not prove itself"},
    {"the same, and so no log", flip_header, "wal", "no file holds it"},
    {"a file that was cut", cut_file, SEGMENT, "it was cut, and records may be missing"},
    {"no file", remove_file, "wal", "no file holds it, where the last checkpoint ended"},
    {"a file of another directory", foreign_file, SEGMENT, "it belongs to another data directory"},
    {"a file of an unknown format", unknown_format, SEGMENT, "its format is not known"},
    {"a file behind a gap", moved_file, SEGMENT, "the part of the log in front of it is missing"},
    {"the end of the log", lost_end, CATALOG_FILE, "acknowledged records are missing"},
    {"an append behind the end", append_behind_end, "wal",
     "it appends at 11, and the stream ends at 5: the next start is refused"},
    {"an append to what was deleted", append_to_deleted, "wal",
     "it appends to a stream that was deleted: the next start is refused"},
    {"no directory", no_directory, "wal", "it cannot be listed"},
};

static void test_damages(void **state)
{
    (void)state;
    site_try(damages, ARRAY_COUNT(damages));
}

/* What a crash leaves at the end of the log is no damage. */
static void test_torn_end(void **state)
{
    (void)state;
    struct site s;
    char frame[RECORD_FRAME_BYTES] = {0};
    site_build(&s);
    site_expect_good(&s);
    log_pos end = checkpoint_of(&s) + s.report.log_bytes;
    assert_int_equal(s.report.notes, 0);
    record_encode_frame(
        &(struct record_frame){
            .payload_len = 100, .epoch = 1, .lsn = end, .id = 1, .type = RECORD_APPEND},
        frame);
    site_write(&s, SEGMENT, SEGMENT_HEADER_BYTES + end, frame, sizeof(frame));
    site_expect_good(&s);
    assert_non_null(strstr(s.text, "a record was begun there and not finished"));
    char path[256];
    site_path(&s, "wal/wal-00000000000fffff", path); /* its making was cut short */
    int fd = open(path, O_CREAT | O_RDWR, 0600);
    assert_int_equal(ftruncate(fd, 65536), 0);
    close(fd);
    site_expect_good(&s);
    assert_non_null(strstr(s.text, "its making was cut short"));
    site_remove(&s);
}

/* From an older position on, everything is replayed once more and nothing twice. */
static void test_older_checkpoint(void **state)
{
    (void)state;
    struct site s;
    struct edit e;
    site_build(&s);
    edit_begin(&s, &e);
    struct catalog_state catalog = edit_state(&e);
    catalog.checkpoint = 0;
    edit_put_state(&e, &catalog);
    edit_end(&e);
    site_expect_good(&s);
    assert_true(s.report.log_records > 15);
    site_remove(&s);
}

static void test_no_memory(void **state)
{
    (void)state;
    site_try_memory();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_damages),
        cmocka_unit_test(test_torn_end),
        cmocka_unit_test(test_older_checkpoint),
        cmocka_unit_test(test_no_memory),
    };
    return UNIT_RUN(tests);
}
