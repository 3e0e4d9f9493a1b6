/* Pages of entries, decoded: one answer of the API, and an array that points into it. */
#include "client/scoped_exchange.h"

#include "base/json_value.h"

#include <stdio.h>
#include <stdlib.h>

#define PAGE_ENTRIES_MAX 10000u /* of one answer; an API gives 1,000 */

static int page_format(const char *what, struct scoped_error *ret_error)
{
    return scoped_error_set(ret_error, STREAM_ERROR_FORMAT, "the answer is no page of entries: %s",
                            what);
}

/* Decodes the elements of `list`. */
static int read_entries(struct slice list, struct scoped_page *page, struct scoped_error *ret_error)
{
    struct json_walk walk;
    struct slice value;
    size_t count = 0;

    json_walk_begin(&walk, list);
    while (json_walk_element(&walk, &value)) {
        if (json_kind(value) != JSON_OBJECT || ++count > PAGE_ENTRIES_MAX) {
            return page_format(count > PAGE_ENTRIES_MAX ? "it has too many" : "one is no object",
                               ret_error);
        }
    }
    page->entries = calloc(count > 0 ? count : 1, sizeof(*page->entries));
    if (page->entries == NULL) {
        return scoped_error_set(ret_error, STREAM_ERROR_MEMORY, "out of memory");
    }
    json_walk_begin(&walk, list);
    while (json_walk_element(&walk, &value)) {
        scoped_entry_decode(value, &page->entries[page->count++]);
    }
    return STREAM_OK;
}

/* Reads the page in page->answer. */
static int read_page(struct scoped_page *page, struct scoped_error *ret_error)
{
    struct slice object;
    struct slice list;
    struct slice value;

    if (json_text_read((struct slice){page->answer.body, page->answer.len}, &object, NULL) != 0 ||
        json_kind(object) != JSON_OBJECT ||
        json_object_find(object, SLICE("entries"), &list, NULL) != 1 ||
        json_kind(list) != JSON_ARRAY) {
        return page_format("it has no \"entries\"", ret_error);
    }
    scoped_read_text(object, SLICE("nextAfter"), page->next_after, sizeof(page->next_after));
    page->up_to_date = json_object_find(object, SLICE("upToDate"), &value, NULL) == 1 &&
                       json_kind(value) == JSON_TRUE;
    /* Whoever goes on from nowhere begins anew, and would never come to an end. */
    if (page->next_after[0] == '\0' && !page->up_to_date) {
        return page_format("it neither ends nor tells where to go on", ret_error);
    }
    return read_entries(list, page, ret_error);
}

static int compose_page(struct scoped_client *client, const char *thread_id, const char *after,
                        int limit, struct scoped_exchange *x, struct scoped_error *ret_error)
{
    int code = scoped_check_id("a thread", thread_id, ret_error);
    char number[16];

    scoped_exchange_init(x, client);
    if (code == STREAM_OK && limit < 0) {
        code = scoped_error_set(ret_error, STREAM_ERROR_ARGUMENT, "limit must not be below 0");
    }
    if (code != STREAM_OK) {
        return code;
    }
    (void)snprintf(x->what, sizeof(x->what), "cannot read thread \"%s\"", thread_id);
    memcpy(x->method, "GET", 4);
    x->repeatable = true;
    scoped_exchange_set_entries(x, thread_id);
    if (after != NULL && after[0] != '\0') {
        scoped_exchange_add_query(x, "after", after);
    }
    if (limit > 0) {
        (void)snprintf(number, sizeof(number), "%d", limit);
        scoped_exchange_add_query(x, "limit", number);
    }
    return STREAM_OK;
}

int scoped_client_page(struct scoped_client *client, const char *thread_id, const char *after,
                       int limit, struct scoped_page *ret_page, struct scoped_error *ret_error)
{
    struct scoped_page page = {.entries = NULL};
    struct scoped_exchange x;
    int code = compose_page(client, thread_id, after, limit, &x, ret_error);

    if (code == STREAM_OK) {
        code = scoped_exchange_run(&x, client, &page.answer, ret_error);
    }
    scoped_exchange_finish(&x);
    if (code == STREAM_OK) {
        code = read_page(&page, ret_error);
    }
    if (code == STREAM_OK) {
        *ret_page = page;
    } else {
        scoped_page_finish(&page);
    }
    return code;
}

void scoped_page_finish(struct scoped_page *page)
{
    free(page->entries);
    scoped_answer_finish(&page->answer);
    *page = (struct scoped_page){.entries = NULL};
}
