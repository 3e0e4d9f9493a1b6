/* Listings: a page is fetched whole on the client's thread, and then shown on the caller's, which
 * may call into the client meanwhile. */
#include "arbe/stream_client.h"

#include "client/operation.h"

#include <stdlib.h>

struct listed {
    char *name;
    struct stream_info info;
};

/* What one call brought; a try that failed half way may have left something. */
struct page {
    struct listed *entries; /* owned, as their names */
    size_t count;
    size_t cap;
    bool no_memory;
};

static void on_listed(struct call *call, struct slice name, const struct stream_info *info)
{
    struct page *page = call->context;

    if (page->count == page->cap) {
        size_t cap = page->cap > 0 ? page->cap * 2 : 64;
        struct listed *entries = realloc(page->entries, cap * sizeof(*entries));

        if (entries == NULL) {
            page->no_memory = true;
            return;
        }
        page->entries = entries;
        page->cap = cap;
    }
    char *copy = malloc(name.len + 1);

    if (copy == NULL) {
        page->no_memory = true;
        return;
    }
    memcpy(copy, name.ptr, name.len);
    copy[name.len] = '\0';
    page->entries[page->count++] = (struct listed){copy, *info};
}

static void clear(struct page *page)
{
    for (size_t i = 0; i < page->count; i++) {
        free(page->entries[i].name);
    }
    page->count = 0;
}

/* Shows the page; true when the caller wants no more. */
static bool show(const struct page *page, stream_list_fn each, void *context)
{
    for (size_t i = 0; i < page->count; i++) {
        if (each(context, page->entries[i].name, &page->entries[i].info) != 0) {
            return true;
        }
    }
    return false;
}

/* Fetches the page that follows `after`, and moves it on: empty when that was the last one. */
static int fetch(struct stream_client *client, const char *prefix, struct page *page,
                 char after[CALL_AFTER_BYTES], struct stream_error *ret_error)
{
    const struct call call = {.verb = CALL_LIST,
                              .name = slice_of(prefix),
                              .after = after,
                              .on_listed = on_listed,
                              .context = page};
    char next[CALL_AFTER_BYTES];
    int code = operation_block(client, &call, NULL, next, ret_error);

    if (code != STREAM_OK) {
        return code;
    }
    if (page->no_memory) {
        return call_error_set(ret_error, STREAM_ERROR_MEMORY, "out of memory");
    }
    /* A server that goes in a circle would keep us for ever. */
    if (next[0] != '\0' && strcmp(next, after) <= 0) {
        return call_error_set(ret_error, STREAM_ERROR_FORMAT,
                              "cannot list streams: the listing does not go forward");
    }
    memcpy(after, next, sizeof(next));
    return STREAM_OK;
}

int stream_client_list(struct stream_client *client, const char *prefix, stream_list_fn each,
                       void *context, struct stream_error *ret_error)
{
    struct page page = {0};
    char after[CALL_AFTER_BYTES] = "";
    bool more = true;
    int code = STREAM_OK;

    while (more && code == STREAM_OK) {
        code = fetch(client, prefix, &page, after, ret_error);
        more = code == STREAM_OK && !show(&page, each, context) && after[0] != '\0';
        clear(&page);
    }
    free(page.entries);
    return code;
}
