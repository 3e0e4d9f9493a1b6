/* Members in a fixed order, so that scripts and tests may compare lines. */
#include "t3/row_json.h"

#include "base/json.h"

struct member {
    struct slice name;
    struct t3_board_text text;
};

/* An object's members, without its end. */
static void add_members(struct buf *out, const struct member *members, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        buf_append_char(out, i == 0 ? '{' : ',');
        json_append_string(out, members[i].name);
        buf_append_char(out, ':');
        if (members[i].text.data == NULL) {
            buf_append(out, SLICE("null"));
        } else {
            json_append_string(out, (struct slice){members[i].text.data, members[i].text.len});
        }
    }
}

void t3_row_json(struct buf *out, const struct t3_board_row *row)
{
    const struct member members[] = {
        {SLICE("thread_id"), row->thread_id},
        {SLICE("title"), row->title},
        {SLICE("state"), row->state},
        {SLICE("last_turn_at"), row->last_turn_at},
        {SLICE("last_message_snippet"), row->last_message_snippet},
        {SLICE("host"), row->host},
    };

    add_members(out, members, sizeof(members) / sizeof(members[0]));
    buf_append(out, row->asks ? SLICE(",\"asks\":true}") : SLICE("}"));
}

void t3_row_key_json(struct buf *out, const struct t3_board_row *row)
{
    const struct member members[] = {
        {SLICE("thread_id"), row->thread_id},
        {SLICE("host"), row->host},
    };

    add_members(out, members, sizeof(members) / sizeof(members[0]));
    buf_append_char(out, '}');
}
