/* arbe t3 list: no token is read, only looked for. */
#include "cli/t3_kept.h"

#include <unistd.h>

/* Bytes of the columns: host and URL, as they are shown. */
struct widths {
    size_t host;
    size_t url;
};

static void print_column(struct out *o, struct slice text, size_t width)
{
    out_add_shown(o, text);
    out_format(o, "%*s", (int)(width > text.len ? width - text.len : 0) + 2, "");
}

static void print_host(struct t3_call *call, const struct t3_kept *kept, struct widths widths)
{
    struct out *o = &call->out;
    bool token = kept->token[0] != '\0' && access(kept->token, R_OK) == 0;

    if (call->set.json) {
        out_add(o, SLICE("{\"host\":"));
        out_add_string(o, slice_of(kept->section->name));
        out_add(o, SLICE(",\"url\":"));
        out_add_string(o, t3_kept_shown_url(kept->section->url));
        out_add(o, token ? SLICE(",\"token\":true}\n") : SLICE(",\"token\":false}\n"));
    } else {
        print_column(o, slice_of(kept->section->name), widths.host);
        print_column(o, t3_kept_shown_url(kept->section->url), widths.url);
        out_add(o, token                    ? SLICE("with a token\n")
                   : kept->token[0] == '\0' ? SLICE("without a token\n")
                                            : SLICE("its token cannot be read\n"));
    }
    out_end_message(o);
}

static struct widths measure(const struct profiles *file)
{
    struct widths widths = {0, 0};

    for (size_t i = 0; i < file->count; i++) {
        size_t host = strlen(file->list[i].name);
        size_t url = t3_kept_shown_url(file->list[i].url).len;

        widths.host = host > widths.host ? host : widths.host;
        widths.url = url > widths.url ? url : widths.url;
    }
    return widths;
}

int t3_list(struct t3_call *call)
{
    struct t3_kept kept = {.path = ""};
    struct errmsg msg = {{0}};
    int code = t3_kept_open(call, &kept, &msg);

    struct widths widths = measure(&kept.file);

    for (size_t i = 0; code == 0 && i < kept.file.count; i++) {
        code = t3_kept_find(&kept, kept.file.list[i].name, &msg);
        if (code == 0) {
            print_host(call, &kept, widths);
        }
    }
    if (code == 0 && kept.file.count == 0) {
        t3_call_tell(call, "there is no host in the hosts' file %.200s; arbe t3 login URL adds one",
                     kept.path);
    }
    profiles_finish(&kept.file);
    return code == 0 ? 0 : t3_call_fail(call, code, &msg);
}
