/* Damage to packs and to what the catalog says of them: each kind is named. */
#include "unit/base/fault.h"

#include "log/verify_packs.c"

#include "unit/log/verify_fixture.h"

/* The first extent of SITE_TEXT, in the first pack. */
static struct extent first(const struct site *s)
{
    return site_extent(s, SITE_TEXT, 0);
}

static void flip_data(struct site *s)
{
    struct extent e = first(s);
    site_flip(s, site_pack(e.pack), e.at + 1);
}

static void flip_marks(struct site *s)
{
    struct extent e = first(s);
    site_flip(s, site_pack(e.pack), e.at + e.len);
}

static void flip_extent_header(struct site *s)
{
    struct extent e = first(s);
    site_flip(s, site_pack(e.pack), e.at - 20);
}

static void flip_pack_header(struct site *s)
{
    site_flip(s, site_pack(first(s).pack), 20);
}

static void remove_pack(struct site *s)
{
    site_unlink(s, site_pack(first(s).pack));
}

static void cut_pack(struct site *s)
{
    const char *pack = site_pack(first(s).pack);
    site_cut(s, pack, site_size(s, pack) - 1);
}

static void cut_pack_short(struct site *s)
{
    site_cut(s, site_pack(first(s).pack), PACK_HEADER_BYTES + 10);
}

static void lengthen_pack(struct site *s)
{
    const char *pack = site_pack(first(s).pack);
    site_cut(s, pack, site_size(s, pack) + 7);
}

/* Puts the second pack in the place of the first. */
static void swap_packs(struct site *s)
{
    char from[256];
    char to[256];
    site_path(s, site_pack(site_extent(s, SITE_LATE, 0).pack), from);
    site_path(s, site_pack(first(s).pack), to);
    assert_int_equal(rename(from, to), 0);
}

static void pack_is_directory(struct site *s)
{
    char path[256];
    const char *pack = site_pack(first(s).pack);
    site_unlink(s, pack);
    site_path(s, pack, path);
    assert_int_equal(mkdir(path, 0700), 0);
}

/* Marks that prove themselves and are wrong all the same. */
static void false_marks(struct site *s)
{
    struct edit edit;
    struct extent e = first(s);
    char data[64];
    char header[PACK_EXTENT_HEADER_BYTES];
    struct pack_extent_header h;
    int fd = site_open(s, site_pack(e.pack));
    assert_int_equal(pread(fd, data, e.len + e.marks_len, (off_t)e.at), e.len + e.marks_len);
    assert_int_equal(pread(fd, header, sizeof(header), (off_t)(e.at - sizeof(header))),
                     sizeof(header));
    assert_int_equal(pack_decode_extent_header(header, &h), 0);
    data[e.len] ^= 8; /* another length */
    h.marks_crc = crc32c(0, data + e.len, e.marks_len);
    h.crc = crc32c(0, data, e.len + e.marks_len);
    pack_encode_extent_header(&h, header);
    assert_int_equal(pwrite(fd, data, e.len + e.marks_len, (off_t)e.at), e.len + e.marks_len);
    assert_int_equal(pwrite(fd, header, sizeof(header), (off_t)(e.at - sizeof(header))),
                     sizeof(header));
    close(fd);
    edit_begin(s, &edit);
    e.crc = h.crc;
    edit_put_extent(&edit, SITE_TEXT, &e);
    edit_end(&edit);
}

static void change_extent(struct site *s, void (*change)(struct extent *e))
{
    struct edit edit;
    edit_begin(s, &edit);
    struct extent e = edit_extent(&edit, SITE_TEXT, 0);
    change(&e);
    edit_put_extent(&edit, SITE_TEXT, &e);
    edit_end(&edit);
}

static void other_crc(struct extent *e)
{
    e->crc++;
}

static void other_marks_len(struct extent *e)
{
    e->marks_len++;
}

static void extent_crc(struct site *s)
{
    change_extent(s, other_crc);
}

static void extent_marks(struct site *s)
{
    change_extent(s, other_marks_len);
}

static void change_pack(struct site *s, int64_t live_more, int64_t total_more)
{
    struct edit edit;
    char value[CATALOG_PACK_BYTES];
    uint64_t live = 0;
    uint64_t total = 0;
    pack_id id = first(s).pack;
    edit_begin(s, &edit);
    size_t len = edit_get(&edit, TABLE_PACKS, key_of(id), value, sizeof(value));
    assert_int_equal(catalog_decode_pair((struct slice){value, len}, &live, &total), 0);
    catalog_encode_pair(live + (uint64_t)live_more, total + (uint64_t)total_more, value);
    edit_put(&edit, TABLE_PACKS, key_of(id), (struct slice){value, len});
    edit_end(&edit);
}

static void live_too_low(struct site *s)
{
    change_pack(s, -10, 0);
}

static void live_too_high(struct site *s)
{
    change_pack(s, 10, 0);
}

static void total_too_low(struct site *s)
{
    change_pack(s, 0, -10);
}

static void forget_pack(struct site *s)
{
    struct edit edit;
    pack_id id = first(s).pack;
    edit_begin(s, &edit);
    edit_del(&edit, TABLE_PACKS, key_of(id));
    edit_end(&edit);
}

static void stray_index(struct site *s)
{
    struct edit edit;
    char value[16];
    struct extent e = first(s);
    edit_begin(s, &edit);
    catalog_encode_pair(SITE_NEXT + 5, 0, value);
    edit_put(&edit, TABLE_PACK_EXTENTS, pair_of(e.pack, e.at + 1), (struct slice){value, 16});
    edit_end(&edit);
}

static void index_elsewhere(struct site *s)
{
    struct edit edit;
    char value[16];
    struct extent e = first(s);
    edit_begin(s, &edit);
    catalog_encode_pair(SITE_TEXT, 0, value);
    edit_put(&edit, TABLE_PACK_EXTENTS, pair_of(e.pack, e.at + 1), (struct slice){value, 16});
    edit_end(&edit);
}

static void broken_index(struct site *s)
{
    struct edit edit;
    struct extent e = first(s);
    edit_begin(s, &edit);
    edit_put(&edit, TABLE_PACK_EXTENTS, pair_of(e.pack, e.at), SLICE("short"));
    edit_end(&edit);
}

static void broken_pack_entry(struct site *s)
{
    struct edit edit;
    pack_id id = first(s).pack;
    edit_begin(s, &edit);
    edit_put(&edit, TABLE_PACKS, key_of(id), SLICE("short"));
    edit_end(&edit);
}

static void next_pack_too_low(struct site *s)
{
    struct edit edit;
    edit_begin(s, &edit);
    struct catalog_state state = edit_state(&edit);
    state.next_pack = 1;
    edit_put_state(&edit, &state);
    edit_end(&edit);
}

#define FIRST_PACK "packs/pack-0000000000000001"

static const struct damage damages[] = {
    {"a bit of data", flip_data, FIRST_PACK, "stream 1, bytes 0 to 5: they do not match their"},
    {"a bit of marks", flip_marks, FIRST_PACK, "their marks do not match their checksum"},
    {"a bit of an extent's header", flip_extent_header, FIRST_PACK,
     "the header in front of them does not prove itself"},
    {"a bit of the pack's header", flip_pack_header, FIRST_PACK, "at 0: its header is not that of"},
    {"no pack", remove_pack, FIRST_PACK, "it cannot be read"},
    {"a pack that lacks a byte", cut_pack, FIRST_PACK, "what was behind is lost"},
    {"a pack that is cut", cut_pack_short, FIRST_PACK,
     "the header in front of them does not prove itself"},
    {"a pack that grew", lengthen_pack, FIRST_PACK, "somebody has changed it"},
    {"another pack in its place", swap_packs, FIRST_PACK, "at 0: its header is not that of"},
    {"a directory in its place", pack_is_directory, FIRST_PACK, "at 0: its header is not that of"},
    {"marks that do not add up", false_marks, FIRST_PACK, "their marks do not add up to them"},
    {"another checksum in the catalog", extent_crc, FIRST_PACK, "speaks of something else"},
    {"another length in the catalog", extent_marks, FIRST_PACK, "speaks of something else"},
    {"live bytes too low", live_too_low, CATALOG_FILE, "table packs: pack 1: "},
    {"live bytes too high", live_too_high, CATALOG_FILE, "are said to be live, and extents hold"},
    {"a pack said to be shorter", total_too_low, FIRST_PACK, "behind the end of the pack"},
    {"a pack forgotten", forget_pack, CATALOG_FILE,
     "table packs: pack 1 is missing, and extents are in it"},
    {"an index entry of nothing", stray_index, CATALOG_FILE, "that is in no extent"},
    {"an index entry of what is elsewhere", index_elsewhere, CATALOG_FILE, "that is elsewhere"},
    {"a broken index entry", broken_index, CATALOG_FILE,
     "table pack_extents: an entry does not decode"},
    {"a broken pack entry", broken_pack_entry, CATALOG_FILE,
     "table packs: an entry does not decode"},
    {"a next pack that is taken", next_pack_too_low, CATALOG_FILE, "it would be written over"},
};

static void test_damages(void **state)
{
    (void)state;
    site_try(damages, ARRAY_COUNT(damages));
}

/* What a crash leaves behind is told and is no damage. */
static void test_leftovers(void **state)
{
    (void)state;
    struct site s;
    site_build(&s);
    char path[256];
    site_path(&s, "packs/pack-00000000000000ff", path);
    close(open(path, O_CREAT | O_RDWR, 0600));
    site_path(&s, "packs/pack-0000000000000001.damaged", path);
    close(open(path, O_CREAT | O_RDWR, 0600));
    site_expect_good(&s);
    assert_int_equal(s.report.notes, 2);
    assert_non_null(strstr(s.text, "note packs/pack-00000000000000ff: the catalog does not name"));
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
        cmocka_unit_test(test_leftovers),
        cmocka_unit_test(test_no_memory),
    };
    return UNIT_RUN(tests);
}
