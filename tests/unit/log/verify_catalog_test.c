/* Damage to the entries of the catalog, by LMDB itself: each kind is named. */
#include "log/verify_catalog.c"

#include "unit/log/verify_fixture.h"

/* Values. */

static void flip_value(struct site *s, enum catalog_table table, struct slice key, size_t at)
{
    struct edit e;
    char value[CATALOG_STREAM_BYTES_MAX];
    edit_begin(s, &e);
    size_t len = edit_get(&e, table, key, value, sizeof(value));
    value[at] ^= 4;
    edit_put(&e, table, key, (struct slice){value, len});
    edit_end(&e);
}

static void flip_stream(struct site *s)
{
    flip_value(s, TABLE_STREAMS, key_of(SITE_LATE), 30);
}

static void flip_note(struct site *s)
{
    flip_value(s, TABLE_NOTES, SLICE("first"), 2);
}

static void flip_state(struct site *s)
{
    flip_value(s, TABLE_META, SLICE(CATALOG_STATE_KEY), 33);
}

static void change_stream(struct site *s, stream_id id, void (*change)(struct stream_meta *m))
{
    struct edit e;
    char bytes[CATALOG_STREAM_BYTES_MAX];
    edit_begin(s, &e);
    struct stream_meta m = edit_stream(&e, id, bytes);
    change(&m);
    edit_put_stream(&e, &m);
    edit_end(&e);
}

static void longer(struct stream_meta *m)
{
    m->tail += 3;
}

static void ahead(struct stream_meta *m)
{
    m->applied += 1 << 20;
}

static void other_name(struct stream_meta *m)
{
    m->name = SLICE("text");
}

static void stream_longer(struct site *s)
{
    change_stream(s, SITE_LATE, longer);
}

static void stream_ahead_of_log(struct site *s)
{
    change_stream(s, SITE_LATE, ahead);
}

static void two_of_a_name(struct site *s)
{
    change_stream(s, SITE_LATE, other_name);
}

/* Extents. */

static void del_extent(struct site *s, stream_id id, uint64_t start)
{
    struct edit e;
    edit_begin(s, &e);
    edit_del(&e, TABLE_EXTENTS, pair_of(id, start));
    edit_end(&e);
}

static void gap_at_start(struct site *s)
{
    del_extent(s, SITE_TEXT, 0);
}

static void gap_at_end(struct site *s)
{
    del_extent(s, SITE_TEXT, 5);
}

static void overlap(struct site *s)
{
    struct edit e;
    edit_begin(s, &e);
    struct extent x = edit_extent(&e, SITE_TEXT, 5);
    edit_del(&e, TABLE_EXTENTS, pair_of(SITE_TEXT, 5));
    x.start = 3;
    edit_put_extent(&e, SITE_TEXT, &x);
    edit_end(&e);
}

static void orphan_extent(struct site *s)
{
    struct edit e;
    edit_begin(s, &e);
    struct extent x = edit_extent(&e, SITE_TEXT, 0);
    edit_put_extent(&e, SITE_NEXT + 7, &x);
    edit_end(&e);
}

static void broken_extent(struct site *s)
{
    struct edit e;
    edit_begin(s, &e);
    edit_put(&e, TABLE_EXTENTS, pair_of(SITE_TEXT, 0), SLICE("short"));
    edit_end(&e);
}

static void extent_in_no_pack(struct site *s)
{
    struct edit e;
    edit_begin(s, &e);
    struct extent x = edit_extent(&e, SITE_TEXT, 0);
    x.pack = 77;
    edit_put_extent(&e, SITE_TEXT, &x);
    edit_end(&e);
}

static void index_lacks_extent(struct site *s)
{
    struct edit e;
    edit_begin(s, &e);
    struct extent x = edit_extent(&e, SITE_TEXT, 0);
    edit_del(&e, TABLE_PACK_EXTENTS, pair_of(x.pack, x.at));
    edit_end(&e);
}

static void index_names_other(struct site *s)
{
    struct edit e;
    char value[16];
    edit_begin(s, &e);
    struct extent x = edit_extent(&e, SITE_TEXT, 0);
    catalog_encode_pair(SITE_JSON, 0, value);
    edit_put(&e, TABLE_PACK_EXTENTS, pair_of(x.pack, x.at), (struct slice){value, 16});
    edit_end(&e);
}

/* Names. */

static void put_name(struct site *s, const char *name, stream_id id)
{
    struct edit e;
    char value[8];
    edit_begin(s, &e);
    bytes_put_u64(value, id);
    edit_put(&e, TABLE_NAMES, slice_of(name), (struct slice){value, 8});
    edit_end(&e);
}

static void name_of_nothing(struct site *s)
{
    put_name(s, "phantom", SITE_NEXT + 3);
}

static void name_of_another(struct site *s)
{
    put_name(s, "alias", SITE_TEXT);
}

static void name_missing(struct site *s)
{
    struct edit e;
    edit_begin(s, &e);
    edit_del(&e, TABLE_NAMES, SLICE("late"));
    edit_end(&e);
}

static void broken_name(struct site *s)
{
    struct edit e;
    edit_begin(s, &e);
    edit_put(&e, TABLE_NAMES, SLICE("late"), SLICE("x"));
    edit_end(&e);
}

static void stream_gone(struct site *s)
{
    struct edit e;
    edit_begin(s, &e);
    edit_del(&e, TABLE_STREAMS, key_of(SITE_LATE));
    edit_end(&e);
}

/* Producers, expiry, state. */

static void producer_of_nothing(struct site *s)
{
    struct edit e;
    char key[8 + 5];
    char value[CATALOG_PRODUCER_BYTES];
    catalog_encode_producer(&(struct producer_meta){.epoch = 1}, value);
    bytes_put_u64_be(key, SITE_NEXT + 9);
    memcpy(key + 8, "ghost", 5);
    edit_begin(s, &e);
    edit_put(&e, TABLE_PRODUCERS, (struct slice){key, sizeof(key)},
             (struct slice){value, sizeof(value)});
    edit_end(&e);
}

static void broken_producer(struct site *s)
{
    struct edit e;
    char key[8 + 5];
    bytes_put_u64_be(key, SITE_PRODUCED);
    memcpy(key + 8, "maker", 5);
    edit_begin(s, &e);
    edit_put(&e, TABLE_PRODUCERS, (struct slice){key, sizeof(key)}, SLICE("short"));
    edit_end(&e);
}

static void expiry_missing(struct site *s)
{
    struct edit e;
    char bytes[CATALOG_STREAM_BYTES_MAX];
    edit_begin(s, &e);
    struct stream_meta m = edit_stream(&e, SITE_TTL, bytes);
    edit_del(&e, TABLE_EXPIRY, pair_of((uint64_t)catalog_deadline(&m), SITE_TTL));
    edit_end(&e);
}

static void put_expiry(struct site *s, uint64_t deadline, stream_id id, struct slice value)
{
    struct edit e;
    edit_begin(s, &e);
    edit_put(&e, TABLE_EXPIRY, pair_of(deadline, id), value);
    edit_end(&e);
}

static void expiry_of_nothing(struct site *s)
{
    put_expiry(s, 1000, SITE_NEXT + 1, SLICE(""));
}

static void expiry_of_the_lasting(struct site *s)
{
    put_expiry(s, 1000, SITE_TEXT, SLICE(""));
}

static void broken_expiry(struct site *s)
{
    put_expiry(s, 1000, SITE_TTL, SLICE("what"));
}

static void change_state(struct site *s, void (*change)(struct catalog_state *state))
{
    struct edit e;
    edit_begin(s, &e);
    struct catalog_state state = edit_state(&e);
    change(&state);
    edit_put_state(&e, &state);
    edit_end(&e);
}

static void low_next(struct catalog_state *state)
{
    state->next_stream = SITE_TTL;
}

static void more_bytes(struct catalog_state *state)
{
    state->own_bytes += 9;
}

static void other_format(struct catalog_state *state)
{
    state->format = 99;
}

static void next_stream_too_low(struct site *s)
{
    change_state(s, low_next);
}

static void bytes_miscounted(struct site *s)
{
    change_state(s, more_bytes);
}

static void format_unknown(struct site *s)
{
    change_state(s, other_format);
}

static void drop_table(struct site *s, enum catalog_table table)
{
    struct edit e;
    edit_begin(s, &e);
    assert_int_equal(mdb_drop(e.txn, e.tables[table], 1), 0);
    edit_end(&e);
}

static void expiry_dropped(struct site *s)
{
    drop_table(s, TABLE_EXPIRY);
}

static void notes_dropped(struct site *s)
{
    drop_table(s, TABLE_NOTES);
}

static const struct damage damages[] = {
    {"a bit of a stream's value", flip_stream, CATALOG_FILE,
     "stream 9: its entry does not match its checksum"},
    {"a bit of a note", flip_note, CATALOG_FILE, "table notes: \"first\" does not match"},
    {"a bit of the state", flip_state, CATALOG_FILE, "table meta: the state of the directory"},
    {"a stream that ends behind its extents", stream_longer, CATALOG_FILE,
     "stream 9 (\"late\"): it ends at 7, its extents at 4"},
    {"a stream ahead of the log", stream_ahead_of_log, CATALOG_FILE,
     "acknowledged records are missing from the log"},
    {"two streams of a name", two_of_a_name, CATALOG_FILE, "and stream 9 bears it too"},
    {"no first extent", gap_at_start, CATALOG_FILE, "the bytes before 5 are in no extent"},
    {"no last extent", gap_at_end, CATALOG_FILE, "it ends at 11, its extents at 5"},
    {"extents that overlap", overlap, CATALOG_FILE, "the bytes before 3 are in two extents"},
    {"an extent of no stream", orphan_extent, CATALOG_FILE,
     "has extents and is not in table streams"},
    {"a broken extent", broken_extent, CATALOG_FILE, "table extents: an entry does not decode"},
    {"an extent in no pack", extent_in_no_pack, CATALOG_FILE, "the extent at 0 is in pack 77 at"},
    {"no index entry for an extent", index_lacks_extent, CATALOG_FILE,
     "the index of that pack does not say so"},
    {"an index entry of another stream", index_names_other, CATALOG_FILE,
     "the index of that pack does not say so"},
    {"a name of nothing", name_of_nothing, CATALOG_FILE,
     "\"phantom\" is said to be stream 15, which does not exist"},
    {"a name of another stream", name_of_another, CATALOG_FILE,
     "\"alias\" is said to be stream 1, which bears another name"},
    {"no name", name_missing, CATALOG_FILE, "stream 9 (\"late\") is not there: nobody finds it"},
    {"a broken name", broken_name, CATALOG_FILE, "table names: an entry does not decode"},
    {"a stream's value gone", stream_gone, CATALOG_FILE,
     "stream 9 has extents and is not in table streams"},
    {"a producer of no stream", producer_of_nothing, CATALOG_FILE,
     "producer \"ghost\" is of stream 21, which does not exist"},
    {"a broken producer", broken_producer, CATALOG_FILE,
     "table producers: an entry does not decode"},
    {"no expiry", expiry_missing, CATALOG_FILE, "stream 3 (\"ttl\") is not there at"},
    {"expiry of no stream", expiry_of_nothing, CATALOG_FILE,
     "stream 13 is there at 1000, and does not exist"},
    {"expiry of a stream that stays", expiry_of_the_lasting, CATALOG_FILE,
     "stream 1 is there at 1000, and expires at another time or never"},
    {"a broken expiry", broken_expiry, CATALOG_FILE, "table expiry: an entry does not decode"},
    {"a next stream that is taken", next_stream_too_low, CATALOG_FILE,
     "the next stream is to be 3, and stream 3"},
    {"bytes miscounted", bytes_miscounted, CATALOG_FILE, "--max-bytes counts wrongly"},
    {"an unknown format", format_unknown, CATALOG_FILE, "the format is 99"},
    {"a table gone", expiry_dropped, CATALOG_FILE, "table expiry is missing"},
    {"the table of notes gone", notes_dropped, CATALOG_FILE, "table notes is missing"},
};

static void test_damages(void **state)
{
    (void)state;
    site_try(damages, ARRAY_COUNT(damages));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_damages),
    };
    return UNIT_RUN(tests);
}
