/* Members are looked for where they are needed; a command is asked for few of them. */
#include "client/adapter/command.h"

#include "base/base64.h"
#include "base/json_value.h"

#include <stdlib.h>

#define TEXT_BYTES_MAX ((size_t)256 << 20)

static char *keep(const struct command *c, struct slice text)
{
    char *copy = arena_try_copy(c->arena, text);

    if (copy == NULL) {
        abort();
    }
    return copy;
}

bool command_read(struct command *c, struct slice line, struct arena *arena)
{
    c->arena = arena;
    return json_text_read(line, &c->object, NULL) == 0 && json_kind(c->object) == JSON_OBJECT;
}

bool command_member(const struct command *c, const char *name, struct slice *ret_value)
{
    return json_object_find(c->object, slice_of(name), ret_value, NULL) == 1;
}

const char *command_decode(const struct command *c, struct slice value, size_t *ret_len)
{
    struct buf decoded;
    char *text = NULL;

    buf_init(&decoded, TEXT_BYTES_MAX);
    if (json_kind(value) == JSON_STRING && json_string_decode(value, &decoded) == 0) {
        text = keep(c, buf_slice(&decoded));
        *ret_len = decoded.len;
    }
    buf_finish(&decoded);
    return text;
}

struct slice command_bytes(const struct command *c, const char *name)
{
    struct slice value;
    struct slice bytes = {NULL, 0};

    if (command_member(c, name, &value)) {
        bytes.ptr = command_decode(c, value, &bytes.len);
    }
    return bytes;
}

const char *command_text(const struct command *c, const char *name)
{
    return command_bytes(c, name).ptr;
}

struct slice command_base64(const struct command *c, const char *name)
{
    struct slice text = command_bytes(c, name);
    char *decoded;
    char *url;
    size_t len = 0;

    if (text.ptr == NULL) {
        return text;
    }
    url = keep(c, text);
    decoded = arena_try_alloc(c->arena, text.len / 4 * 3 + 2);
    if (decoded == NULL) {
        abort();
    }
    while (text.len > 0 && url[text.len - 1] == '=') {
        text.len--;
    }
    for (size_t i = 0; i < text.len; i++) {
        url[i] = url[i] == '+' ? '-' : url[i] == '/' ? '_' : url[i];
    }
    if (!base64url_decode((struct slice){url, text.len}, decoded, &len)) {
        return (struct slice){NULL, 0};
    }
    return (struct slice){decoded, len};
}

double command_number(const struct command *c, const char *name, double otherwise)
{
    struct slice value;

    if (!command_member(c, name, &value) || json_kind(value) != JSON_NUMBER) {
        return otherwise;
    }
    return strtod(keep(c, value), NULL);
}

bool command_flag(const struct command *c, const char *name)
{
    struct slice value;

    return command_member(c, name, &value) && json_kind(value) == JSON_TRUE;
}

bool command_object(const struct command *c, const char *name, struct command *ret_object)
{
    *ret_object = (struct command){.arena = c->arena};
    return command_member(c, name, &ret_object->object) &&
           json_kind(ret_object->object) == JSON_OBJECT;
}
