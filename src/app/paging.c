/* Cursors are the store's own words. */
#include "app/paging.h"

#include "app/record_json.h"

#define CURSOR_BYTES_MAX 512u

struct store_page paging_read(struct params *p)
{
    return (struct store_page){
        .after = params_text(p, "cursor", CURSOR_BYTES_MAX),
        .limit = (size_t)params_number(p, "limit", 1, STORE_PAGE_MAX, PAGING_LIMIT_DEFAULT),
    };
}

void paging_begin(struct api_call *c, const char *name)
{
    buf_append_format(&c->answer, "{\"%s\":[", name);
}

void paging_item(struct api_call *c, size_t index)
{
    if (index > 0) {
        buf_append_char(&c->answer, ',');
    }
}

bool paging_is_full(const struct api_call *c)
{
    return c->answer.len >= API_PAGE_BYTES_MAX;
}

int paging_end(struct api_call *c, struct slice next)
{
    buf_append_char(&c->answer, ']');
    json_put_text(&c->answer, "nextCursor", next);
    buf_append_char(&c->answer, '}');
    return api_answer(c, 200);
}
