/* Records of lists: one walk over pages, one form of a line. */
#include "cli/listing.h"

#include "cli/record.h"

struct listing {
    struct app_call *call;
    listing_line_fn line;
};

void listing_record(struct app_call *call, struct slice record, listing_line_fn line)
{
    if (call->set.json) {
        app_call_print_json(call, record);
        return;
    }
    line(call, record);
    out_add(&call->out, SLICE("\n"));
    out_end_message(&call->out);
}

static int print(void *context, struct slice record)
{
    const struct listing *l = context;

    listing_record(l->call, record, l->line);
    return 0;
}

int listing_print(struct app_call *call, const char *path, const char *const *query,
                  const char *member, listing_line_fn line)
{
    struct listing l = {.call = call, .line = line};

    return app_call_each(call, path, query, member, print, &l);
}

void listing_cell(struct app_call *call, struct slice record, const char *name, size_t width)
{
    app_call_print_cell(call, record_text(record, name, &call->memory), width);
}

void listing_who(struct app_call *call, struct slice record)
{
    out_add_shown(&call->out, record_text(record, "name", &call->memory));
    out_add(&call->out, SLICE(" @"));
    out_add_shown(&call->out, record_text(record, "handle", &call->memory));
}
