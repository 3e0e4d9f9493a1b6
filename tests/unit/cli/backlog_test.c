/* What is held back, and what is known of it when it is released. */
#include "cli/backlog.c"

#include "unit/base/unit.h"

#include <stdio.h>

#define CHAT(id) "{\"id\":\"" id "\",\"payload\":{\"type\":\"chat\",\"text\":\"x\"}}"
#define GONE(id) \
    "{\"id\":\"t\",\"payload\":{\"type\":\"signal.entry.deleted\",\"entryId\":\"" id "\"}}"

static bool add(struct backlog *b, const char *json)
{
    struct scoped_entry entry;

    assert_int_equal(scoped_entry_read(json, strlen(json), &entry), STREAM_OK);
    return backlog_add(b, &entry);
}

/* Writes the ids, with a "-" before those of what is deleted. */
static void write_id(void *context, const struct scoped_entry *entry, bool deleted)
{
    char *text = context;

    size_t len = strlen(text);

    (void)snprintf(text + len, 200 - len, "%s%s", deleted ? "-" : "", entry->id);
}

/* In order, and marked by what came later. */
static void knows_what_is_deleted(void **state)
{
    struct backlog b = {.entries = NULL};
    char text[200] = "";

    (void)state;
    assert_true(add(&b, CHAT("a")));
    assert_true(add(&b, CHAT("b")));
    assert_true(add(&b, GONE("a")));
    assert_true(add(&b, GONE("z")));
    backlog_release(&b, write_id, text);
    assert_string_equal(text, "-abtt");
    text[0] = '\0';
    assert_true(add(&b, CHAT("c")));
    assert_true(add(&b, CHAT("z")));
    backlog_release(&b, write_id, text);
    assert_string_equal(text, "c-z");
    backlog_finish(&b);
}

/* Many are no trouble; too many bytes are refused until room is made. */
static void has_a_cap(void **state)
{
    static char json[1024 * 1024];
    struct backlog b = {.entries = NULL};
    size_t count = 0;

    (void)state;
    for (int i = 0; i < 1000; i++) {
        assert_true(add(&b, GONE("y")));
    }
    (void)memset(json, ' ', sizeof(json) - 1);
    memcpy(json, "{\"id\":\"a\"", 9);
    json[sizeof(json) - 2] = '}';
    while (add(&b, json)) {
        count++;
    }
    assert_int_equal(count, 63); /* of 64 MiB, with the small ones before */
    backlog_release(&b, NULL, NULL);
    assert_true(add(&b, json));
    backlog_finish(&b);
    backlog_finish(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_what_is_deleted),
        cmocka_unit_test(has_a_cap),
    };

    return UNIT_RUN(tests);
}
