/* Payloads: every row of the table is met, good and bad; what is good comes out byte for byte. */
#include "thread/payload.c"

#include <stdio.h>

#include "unit/base/unit.h"
#include "unit/thread/json_gen.h"

#define ROUNDS 200 /* payloads of each type */

static struct api_error last;
static enum payload_type last_type;
static struct buf last_out;

static int check(struct slice text)
{
    struct slice value;
    struct errmsg msg = {.text = ""};
    if (json_text_read(text, &value, &msg) < 0) {
        fail_msg("%.*s: %s", (int)text.len, text.ptr, msg.text);
    }
    memset(&last, 0, sizeof(last));
    last_type = PAYLOAD_UNKNOWN;
    buf_finish(&last_out);
    buf_init(&last_out, 4u << 20);
    return payload_check(value, &last_type, &last_out, &last);
}

static void assert_kept(struct slice text)
{
    if (check(text) != 0) {
        fail_msg("%.*s: %s", (int)text.len, text.ptr, last.message);
    }
    if (!slice_equal(buf_slice(&last_out), text)) {
        fail_msg("%.*s became %.*s", (int)text.len, text.ptr, (int)last_out.len, last_out.ptr);
    }
}

static void assert_refused(const char *text, const char *field, const char *message)
{
    if (check(slice_of(text)) == 0) {
        fail_msg("%s was taken", text);
    }
    assert_int_equal(last.code, API_INVALID_INPUT);
    assert_string_equal(last.field, field);
    assert_string_equal(last.message, message);
    assert_int_equal(last_out.len, 0);
}

/* ----------------------------------------------------------------------------- random payloads */

static void gen_object(struct gen *g, unsigned shape, const char *type);

static void gen_word(struct gen *g, const char *const *words)
{
    size_t count = 0;
    while (words[count]) {
        count++;
    }
    buf_append_format(&g->out, "\"%s\"", words[gen_below(g, count)]);
}

static void gen_block(struct gen *g, const char *const *words)
{
    size_t count = 0;
    while (words[count]) {
        count++;
    }
    const char *type = words[gen_below(g, count)];
    for (size_t i = 0; i < ARRAY_COUNT(block_shapes); i++) {
        if (strcmp(type, block_shapes[i].type) == 0) {
            gen_object(g, block_shapes[i].shape, type);
        }
    }
}

static void gen_field(struct gen *g, const struct field *f)
{
    static const char *const wholes[] = {"0", "7", "12.0", "9007199254740991", "1e3"};
    size_t count = gen_below(g, 4);
    switch (f->kind) {
    case FIELD_STRING:
        gen_string(g, 0, 6, false);
        break;
    case FIELD_TEXT:
    case FIELD_ID:
        gen_string(g, 1, 6, true);
        break;
    case FIELD_ENTRY_ID:
        gen_text(g, gen_below(g, 2) ? "\"017f22e2-79b0-7cc3-98c4-dc0c0c07398f\"" : "\"a._~-Z9\"");
        break;
    case FIELD_WORD:
        gen_word(g, f->words);
        break;
    case FIELD_WHOLE:
        gen_text(g, wholes[gen_below(g, ARRAY_COUNT(wholes))]);
        break;
    case FIELD_NUMBER:
        gen_text(g, gen_below(g, 2) ? "0.125" : wholes[gen_below(g, ARRAY_COUNT(wholes))]);
        break;
    case FIELD_BOOL:
        gen_text(g, gen_below(g, 2) ? "true" : "false");
        break;
    case FIELD_ANY:
        gen_value(g, 3);
        break;
    case FIELD_MAP:
        gen_container(g, true, 3);
        break;
    case FIELD_OBJECT:
        gen_object(g, f->of, NULL);
        break;
    case FIELD_IDS:
    case FIELD_LIST:
    case FIELD_BLOCKS:
        gen_text(g, "[");
        for (size_t i = 0; i < count; i++) {
            gen_text(g, i > 0 ? "," : "");
            gen_space(g);
            if (f->kind == FIELD_LIST) {
                gen_object(g, f->of, NULL);
            } else if (f->kind == FIELD_BLOCKS) {
                gen_block(g, f->words);
            } else {
                gen_string(g, 1, 4, true);
            }
        }
        gen_text(g, "]");
        break;
    }
}

/* The member of a row, or "type", or one that no row has. */
static void gen_named(struct gen *g, const struct field *f, const char *type)
{
    gen_space(g);
    buf_append_format(&g->out, "\"%s\"", f ? f->name : "type");
    gen_space(g);
    gen_text(g, ":");
    gen_space(g);
    if (!f) {
        buf_append_format(&g->out, "\"%s\"", type);
    } else if (f->presence != NEEDED && gen_below(g, 8) == 0) {
        gen_text(g, "null");
    } else {
        gen_field(g, f);
    }
    gen_space(g);
}

/* An object of a shape: what is needed, some of the rest, strange members, in any order. */
static void gen_object(struct gen *g, unsigned shape, const char *type)
{
    struct rows rows = rows_of(shape);
    size_t count = rows.count + 1;
    size_t start = gen_below(g, count);
    bool first = true;
    gen_text(g, "{");
    for (size_t i = 0; i < count; i++) {
        size_t at = (start + i) % count;
        const struct field *f = at < rows.count ? &rows.first[at] : NULL;
        if (gen_below(g, 4) == 0) {
            gen_text(g, first ? "" : ",");
            gen_member(g, 3);
            first = false;
        }
        if (f ? f->presence == NEEDED || gen_below(g, 2) : type != NULL) {
            gen_text(g, first ? "" : ",");
            gen_named(g, f, type);
            first = false;
        }
    }
    gen_text(g, "}");
}

/* Every type, with whatever it may hold and what nobody knows, is stored byte for byte. */
static void test_round_trip(void **state)
{
    struct gen g;
    (void)state;
    gen_init(&g);
    for (enum payload_type type = 0; type < PAYLOAD_TYPE_COUNT; type++) {
        for (int i = 0; i < ROUNDS; i++) {
            buf_clear(&g.out);
            gen_object(&g, type, payload_type_text(type));
            assert_false(g.out.failed);
            assert_kept(buf_slice(&g.out));
            assert_int_equal(last_type, type);
        }
    }
    buf_finish(&g.out);
}

/* ------------------------------------------------------------------------------------- each row */

/* A good object of a shape whose row `except` has `value` (NULL: is left out), or stands twice. */
static void write_with(struct gen *g, const struct field *except, const char *value, bool twice)
{
    struct rows rows = rows_of(except->shape);
    bool typed = except->shape < PAYLOAD_TYPE_COUNT;
    buf_clear(&g->out);
    buf_append_format(&g->out, "{\"type\":\"%s\"",
                      typed ? payload_type_text((enum payload_type)except->shape) : "x");
    for (size_t i = 0; i < rows.count; i++) {
        const struct field *f = &rows.first[i];
        if (f == except && !value && !twice) {
            continue;
        }
        for (int times = f == except && twice ? 2 : 1; times > 0; times--) {
            buf_append_format(&g->out, ",\"%s\":", f->name);
            if (f == except && value) {
                gen_text(g, value);
            } else {
                gen_field(g, f);
            }
        }
    }
    gen_text(g, "}");
}

/* As a payload, or by itself where it stands inside of one. */
static int check_written(const struct gen *g, unsigned shape)
{
    struct slice text = buf_slice(&g->out);
    if (shape < PAYLOAD_TYPE_COUNT) {
        return check(text);
    }
    memset(&last, 0, sizeof(last));
    buf_clear(&last_out);
    buf_append(&last_out, text);
    return check_object(NULL, shape, text, NULL, &last);
}

static bool of_kind(const struct field *f, const char *value)
{
    switch (f->kind) {
    case FIELD_ANY:
        return true;
    case FIELD_STRING:
    case FIELD_TEXT:
    case FIELD_ID:
        return value[0] == '"' && value[1] != '"';
    case FIELD_WHOLE:
    case FIELD_NUMBER:
        return value[0] == '5';
    case FIELD_BOOL:
        return value[0] == 't';
    case FIELD_IDS:
    case FIELD_LIST:
    case FIELD_BLOCKS:
        return strcmp(value, "[]") == 0;
    case FIELD_MAP:
        return value[0] == '{';
    case FIELD_OBJECT: /* each but a cost has something that is needed */
        return f->of == SHAPE_COST && value[0] == '{';
    case FIELD_ENTRY_ID:
    case FIELD_WORD:
        break;
    }
    return false;
}

static void check_row(struct gen *g, const struct field *f)
{
    static const char *const values[] = {"\"p q\"", "5", "true", "[]", "{}", "-1", "[{}]"};
    char path[API_FIELD_BYTES];
    (void)snprintf(path, sizeof(path), "payload.%s", f->name); /* fits */
    write_with(g, f, NULL, false);
    assert_int_equal(check_written(g, f->shape), f->presence == NEEDED ? -1 : 0);
    assert_string_equal(last.field, f->presence == NEEDED ? path : "");
    write_with(g, f, "null", false);
    assert_int_equal(check_written(g, f->shape), f->presence == NEEDED ? -1 : 0);
    write_with(g, f, NULL, true);
    assert_int_equal(check_written(g, f->shape), f->presence == TRACE ? 0 : -1);
    for (size_t j = 0; j < ARRAY_COUNT(values); j++) {
        struct slice value;
        write_with(g, f, values[j], false);
        int code = check_written(g, f->shape);
        bool good = of_kind(f, values[j]);
        if (code != (good || f->presence == TRACE ? 0 : -1)) {
            fail_msg("%.*s: %s", (int)g->out.len, g->out.ptr, last.message);
        }
        assert_memory_equal(last.field, path, code < 0 ? strlen(path) : 0);
        bool there = code == 0 &&
                     json_object_find(buf_slice(&last_out), slice_of(f->name), &value, NULL) == 1;
        assert_int_equal(there, good);
    }
}

/* Each row of each shape: left out, twice, null, and of every other kind of JSON. What is needed or
 * optional is refused with its path; a trace field goes, and nothing else does. */
static void test_each_row(void **state)
{
    struct gen g;
    (void)state;
    gen_init(&g);
    for (size_t i = 0; i < ARRAY_COUNT(fields); i++) {
        check_row(&g, &fields[i]);
    }
    buf_finish(&g.out);
}

/* --------------------------------------------------------------------------------- particulars */

/* What is wrong is said with its path. */
static void test_messages(void **state)
{
    (void)state;
    assert_refused("[1]", "payload", "payload must be an object, not an array");
    assert_refused("{}", "payload.type", "payload.type is missing");
    assert_refused("{\"type\":\"chat\",\"type\":\"chat\"}", "payload.type",
                   "payload.type is given twice");
    assert_refused("{\"type\":\"chat\",\"text\":\"a\",\"t\\u0079pe\":\"chat\"}", "payload.type",
                   "payload.type is given twice");
    assert_refused("{\"type\":\"chat\",\"text\":7,\"type\":\"chat\"}", "payload.type",
                   "payload.type is given twice");
    assert_refused("{\"type\":7}", "payload.type", "payload.type must be a string, not a number");
    assert_refused("{\"type\":\"user.message\"}", "payload.type",
                   "payload.type is of no type that is known");
    assert_non_null(strstr(last.suggestion, "chat"));
    assert_refused("{\"type\":\"chat\"}", "payload.text", "payload.text is missing");
    assert_refused("{\"type\":\"chat\",\"text\":\"\"}", "payload.text",
                   "payload.text must not be empty");
    assert_refused("{\"type\":\"chat\",\"text\":\"a\",\"te\\u0078t\":\"b\"}", "payload.text",
                   "payload.text is given twice");
    assert_refused("{\"type\":\"chat\",\"text\":\"\\ud83d\"}", "payload.text",
                   "payload.text has half of a surrogate pair, which is no character");
    assert_refused("{\"type\":\"chat\",\"text\":\"a\",\"replyTo\":\"a b\"}", "payload.replyTo",
                   "payload.replyTo must be an entry's id: letters, digits and . _ ~ -");
    assert_refused("{\"type\":\"chat\",\"text\":\"a\",\"attachments\":[{\"name\":\"n\","
                   "\"mediaType\":\"m\",\"url\":\"u\",\"size\":1},{\"name\":\"n\","
                   "\"mediaType\":\"m\",\"url\":\"u\",\"size\":1.5}]}",
                   "payload.attachments[1].size",
                   "payload.attachments[1].size must be a whole number that is not negative, "
                   "not 1.5");
    assert_refused("{\"type\":\"pi.tool_result\",\"toolCallId\":\"\",\"toolName\":\"\","
                   "\"isError\":false,\"content\":[{\"type\":\"text\",\"text\":5}]}",
                   "payload.content[0].text",
                   "payload.content[0].text must be a string, not a "
                   "number");
    assert_refused("{\"type\":\"pi.tool_result\",\"content\":[{\"type\":\"thinking\"}]}",
                   "payload.content[0].type",
                   "payload.content[0].type must be text or image, not \"thinking\"");
    assert_refused("{\"type\":\"pi.tool_result\",\"content\":[{}]}", "payload.content[0].type",
                   "payload.content[0].type is missing");
    assert_refused("{\"type\":\"pi.chunk\",\"block\":\"image\"}", "payload.block",
                   "payload.block must be text, thinking or toolCall, not \"image\"");
    assert_refused("{\"type\":\"pi.assistant\",\"usage\":{\"input\":1,\"output\":2,\"cost\":"
                   "{\"total\":-0.5}}}",
                   "payload.usage.cost.total",
                   "payload.usage.cost.total must be a number that is not negative, not -0.5");
    assert_refused("{\"type\":\"signal.thread_director.decided\",\"agentIds\":[\"a\",null]}",
                   "payload.agentIds[1]", "payload.agentIds[1] must be a string, not null");
    assert_refused("{\"type\":\"signal.house.member_added\",\"agentId\":\"a\",\"role\":\"guest\"}",
                   "payload.role", "payload.role must be owner or member, not \"guest\"");
}

/* A word that is quoted is cut between characters. */
static void test_long_word(void **state)
{
    char text[400] = "{\"type\":\"pi.chunk\",\"block\":\"a";
    (void)state;
    for (size_t i = 0; i < 60; i++) {
        memcpy(text + strlen(text), "\xc3\xa9", 3);
    }
    memcpy(text + strlen(text), "\"}", 3);
    assert_int_equal(check(slice_of(text)), -1);
    assert_true(utf8_valid(slice_of(last.message)));
    assert_in_range(strlen(last.message), 80, 140);
}

static int check_chat(size_t len, const char *piece)
{
    size_t size = strlen(piece) * len + 100;
    char *text = malloc(size);
    struct buf b;
    assert_non_null(text);
    buf_init_fixed(&b, text, size);
    buf_append(&b, SLICE("{\"type\":\"chat\",\"text\":\""));
    for (size_t i = 0; i < len; i++) {
        buf_append(&b, slice_of(piece));
    }
    buf_append(&b, SLICE("\"}"));
    int code = check(buf_slice(&b));
    free(text);
    return code;
}

/* A chat's text has 64 KiB at the most, counted as decoded. */
static void test_text_cap(void **state)
{
    (void)state;
    assert_int_equal(check_chat(CHAT_TEXT_BYTES_MAX, "a"), 0);
    assert_int_equal(check_chat(CHAT_TEXT_BYTES_MAX, "\\u0041"), 0);
    assert_int_equal(check_chat(CHAT_TEXT_BYTES_MAX + 1, "a"), -1);
    assert_int_equal(last.code, API_TOO_LARGE);
    assert_string_equal(last.field, "payload.text");
    assert_string_equal(last.message, "payload.text has 65537 bytes; at most 65536 are taken");
    assert_int_equal(check_chat(CHAT_TEXT_BYTES_MAX + 1, "\\n"), -1);
    assert_int_equal(last.code, API_TOO_LARGE);
}

/* Ids have 256 bytes at the most, lists of attachments 64 elements, nesting 64 levels. */
static void test_other_caps(void **state)
{
    char text[8192];
    struct buf b;
    (void)state;
    for (size_t over = 0; over <= 1; over++) {
        buf_init_fixed(&b, text, sizeof(text));
        buf_append(&b, SLICE("{\"type\":\"signal.house.member_removed\",\"agentId\":\""));
        for (size_t i = 0; i < PAYLOAD_ID_BYTES_MAX + over; i++) {
            buf_append_char(&b, 'a');
        }
        buf_append(&b, SLICE("\"}"));
        assert_int_equal(check(buf_slice(&b)), over ? -1 : 0);

        buf_init_fixed(&b, text, sizeof(text));
        buf_append(&b, SLICE("{\"type\":\"chat\",\"text\":\"a\",\"attachments\":["));
        for (size_t i = 0; i < CHAT_ATTACHMENTS_MAX + over; i++) {
            buf_append(&b, i > 0 ? SLICE(",") : SLICE(""));
            buf_append(&b, SLICE("{\"name\":\"\",\"mediaType\":\"\",\"url\":\"\",\"size\":0}"));
        }
        buf_append(&b, SLICE("]}"));
        assert_int_equal(check(buf_slice(&b)), over ? -1 : 0);

        buf_init_fixed(&b, text, sizeof(text));
        buf_append(&b, SLICE("{\"type\":\"chat\",\"text\":\"a\",\"x\":"));
        for (size_t i = 1; i < PAYLOAD_DEPTH_MAX + over; i++) {
            buf_append_char(&b, '[');
        }
        for (size_t i = 1; i < PAYLOAD_DEPTH_MAX + over; i++) {
            buf_append_char(&b, ']');
        }
        buf_append_char(&b, '}');
        assert_int_equal(check(buf_slice(&b)), over ? -1 : 0);
        assert_string_equal(last.field, over ? "payload" : "");
    }
}

static void assert_becomes(const char *text, const char *want)
{
    assert_int_equal(check(slice_of(text)), 0);
    if (!slice_equal(buf_slice(&last_out), slice_of(want))) {
        fail_msg("%.*s is not %s", (int)last_out.len, last_out.ptr, want);
    }
}

/* A bad trace field goes with its comma, first, last or alone; what stays keeps its bytes. */
static void test_trace(void **state)
{
#define REST "\"type\" : \"pi.chunk\",\"contentIndex\":0,\"block\":\"text\",\"delta\":\"\\u0061\""
    (void)state;
    assert_becomes("{ \"invocationId\":7, " REST " }", "{" REST "}");
    assert_becomes("{" REST " , \"invocationId\" : \"\" }", "{" REST "}");
    assert_becomes("{" REST ",\"message\":-1,\"x\":[ 1 ]}", "{" REST ",\"x\":[ 1 ]}");
    assert_becomes("{" REST ",\"message\":1,\"x\":2,\"message\":1}", "{" REST ",\"x\":2}");
    assert_becomes("{" REST ",\"invoc\\u0061tionId\":[],\"message\":\"1\"}", "{" REST "}");
    assert_becomes("{ " REST ",\"message\":null }", "{ " REST ",\"message\":null }");
    assert_becomes("{ " REST ",\"invocationId\":\"i\" }", "{ " REST ",\"invocationId\":\"i\" }");
#undef REST
}

/* Valid spend is stored whatever its times look like. */
static void test_spend(void **state)
{
#define REST                                                                                 \
    "\"type\":\"pi.assistant\",\"content\":[],\"provider\":\"p\",\"model\":\"m\",\"usage\":" \
    "{\"input\":1,\"output\":2,\"cost\":{\"total\":0.5}},\"stopReason\":\"stop\""
    (void)state;
    assert_becomes("{" REST ",\"timestamp\":\"now\",\"durationMs\":-1,\"invocationId\":{}}",
                   "{" REST "}");
    assert_becomes("{" REST ",\"timestamp\":1e999,\"durationMs\":0.25}",
                   "{" REST ",\"durationMs\":0.25}");
#undef REST
}

/* Types have names that are read as they are written; a set holds what was put in. */
static void test_types(void **state)
{
    struct payload_types set = {0};
    enum payload_type type;
    struct slice value;
    (void)state;
    for (enum payload_type i = 0; i < PAYLOAD_TYPE_COUNT; i++) {
        assert_int_equal(payload_type_parse(slice_of(payload_type_text(i))), i);
        assert_false(payload_types_has(set, i));
        payload_types_add(&set, i);
        assert_true(payload_types_has(set, i));
    }
    assert_false(payload_types_has(set, PAYLOAD_UNKNOWN));
    assert_int_equal(payload_type_parse(SLICE("chat ")), PAYLOAD_UNKNOWN);
    assert_int_equal(payload_type_parse(SLICE("unknown")), PAYLOAD_UNKNOWN);
    assert_int_equal(json_text_read(SLICE("{\"type\":\"p\\u0069.chunk\"}"), &value, NULL), 0);
    assert_int_equal(payload_type_of(value, &type), 0);
    assert_int_equal(type, PAYLOAD_PI_CHUNK);
    assert_int_equal(payload_type_of(SLICE("{\"type\":\"later.kind\"}"), &type), 0);
    assert_int_equal(type, PAYLOAD_UNKNOWN);
    assert_int_equal(payload_type_of(SLICE("{\"type\":1}"), &type), -1);
    assert_int_equal(payload_type_of(SLICE("{}"), &type), -1);
    assert_int_equal(payload_type_of(SLICE("{\"type\":\"a\",\"type\":\"a\"}"), &type), -1);
    assert_int_equal(payload_type_of(SLICE("[]"), &type), -1);
}

/* The rows of a shape stand together, few enough for a mask; every shape that is named has some. */
static void test_table(void **state)
{
    size_t total = 0;
    (void)state;
    for (unsigned shape = 0; shape <= SHAPE_COST; shape++) {
        struct rows rows = rows_of(shape);
        assert_true(rows.count > 0 || shape < PAYLOAD_TYPE_COUNT);
        total += rows.count;
    }
    assert_int_equal(total, ARRAY_COUNT(fields));
    for (size_t i = 0; i < ARRAY_COUNT(fields); i++) {
        const struct field *f = &fields[i];
        assert_int_equal(f->words != NULL, f->kind == FIELD_WORD || f->kind == FIELD_BLOCKS);
        assert_int_equal(f->of != 0, f->kind == FIELD_OBJECT || f->kind == FIELD_LIST);
        assert_int_equal(f->max != 0, f->kind == FIELD_TEXT || f->kind == FIELD_LIST);
        assert_true(f->presence != TRACE || f->shape < PAYLOAD_TYPE_COUNT);
    }
}

/* Where the buffer is full, nothing is said to be good. */
static void test_full(void **state)
{
    char memory[8];
    struct buf out;
    enum payload_type type = PAYLOAD_UNKNOWN;
    struct api_error e = {.code = API_BUSY};
    (void)state;
    buf_init_fixed(&out, memory, sizeof(memory));
    assert_int_equal(payload_check(SLICE("{\"type\":\"signal.house.created\"}"), &type, &out, &e),
                     -1);
    assert_int_equal(e.code, API_INTERNAL);
    assert_int_equal(type, PAYLOAD_UNKNOWN);
    assert_int_equal(payload_check(SLICE("[]"), &type, &out, NULL), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_each_row),
        cmocka_unit_test(test_messages),   cmocka_unit_test(test_long_word),
        cmocka_unit_test(test_text_cap),   cmocka_unit_test(test_other_caps),
        cmocka_unit_test(test_trace),      cmocka_unit_test(test_spend),
        cmocka_unit_test(test_types),      cmocka_unit_test(test_table),
        cmocka_unit_test(test_full),
    };
    int failed = UNIT_RUN(tests);
    buf_finish(&last_out);
    return failed;
}
