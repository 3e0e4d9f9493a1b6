/* How a command begins and ends, and its requests. What it says is in app_talk.c. */
#include "cli/app_call.h"

#include "base/json.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/record.h"

#include <errno.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

#define MEMORY_BYTES_MAX (256u * MIB)
#define BODY_BYTES_MAX   (2u * MIB) /* the API takes less, and says how much */
#define STREAM_ROUTE     "/v1/stream"
#define RETRIES          3 /* usually: somebody waits for the answer */

static const char *environment(const char *name)
{
    const char *value = getenv(name);

    return value == NULL || value[0] == '\0' ? NULL : value;
}

void app_call_set_url(struct app_call *call, const char *url)
{
    size_t len = strlen(url);
    const size_t route = sizeof(STREAM_ROUTE) - 1;

    while (len > 0 && url[len - 1] == '/') {
        len--;
    }
    if (len > route && memcmp(url + len - route, STREAM_ROUTE, route) == 0) {
        len -= route; /* ARBE_URL may be that of `arbe stream` */
    }
    (void)snprintf(call->url, sizeof(call->url), "%.*s", (int)len, url);
}

static bool begins_as_url(const char *text)
{
    return strncasecmp(text, "http://", 7) == 0 || strncasecmp(text, "https://", 8) == 0;
}

int app_call_refuse_url(const struct app_call *call, const char *url)
{
    return begins_as_url(url)
               ? 0
               : app_call_refuse(call, COMMAND_USAGE, "client.usage", NULL,
                                 "a URL begins with http:// or https://, not \"%.100s\"", url);
}

int app_call_choose(struct app_call *call)
{
    const char *url = call->set.url != NULL ? call->set.url : environment("ARBE_URL");
    const char *key = environment("ARBE_API_KEY");
    struct errmsg msg = {{0}};
    int code = login_locate(call->login_path, &msg);

    if (code == 0) {
        code = login_read(call->login_path, &call->login, &msg);
    } else if (key != NULL) {
        code = 0; /* nothing is kept, and nothing needed */
    }
    if (code != 0) {
        return app_call_cannot(call, &msg);
    }
    if (url != NULL && strlen(url) >= sizeof(call->url)) {
        return app_call_refuse(call, COMMAND_USAGE, "client.usage", NULL,
                               "a URL has at most %zu bytes", sizeof(call->url) - 1);
    }
    code = url == NULL ? 0 : app_call_refuse_url(call, url);
    if (code != 0) {
        return code;
    }
    if (key != NULL && strlen(key) >= sizeof(call->key)) {
        return app_call_refuse(call, COMMAND_USAGE, "client.usage", NULL,
                               "ARBE_API_KEY is longer than any key");
    }
    app_call_set_url(call, url != NULL                  ? url
                           : call->login.url[0] != '\0' ? call->login.url
                                                        : APP_URL_DEFAULT);
    if (key == NULL && strcmp(call->url, call->login.url) == 0) {
        key = call->login.key;
    }
    (void)snprintf(call->key, sizeof(call->key), "%s", key == NULL ? "" : key);
    return 0;
}

static void abort_client(void *client)
{
    scoped_client_abort(client);
}

int app_call_connect(struct app_call *call)
{
    struct scoped_client_options options;
    struct scoped_error error = {.code = ""};

    scoped_client_options_init(&options);
    options.bearer = call->key[0] == '\0' ? NULL : call->key;
    options.ca_file = call->set.ca_file != NULL ? call->set.ca_file : environment("ARBE_CA_FILE");
    options.retry.max_retries = call->set.retries == UINT64_MAX ? RETRIES : (int)call->set.retries;
    if (call->set.timeout_ms != 0) {
        options.request_timeout_ms = (int)call->set.timeout_ms;
    }
    if (scoped_client_new(call->url, &options, &call->client, &error) != STREAM_OK) {
        return app_call_fail(call, &error);
    }
    interrupt_watch(abort_client, call->client);
    return 0;
}

int app_call_open(struct app_call *call)
{
    int code = app_call_choose(call);

    if (code == 0 && call->key[0] == '\0') {
        return app_call_refuse(call, COMMAND_FORBIDDEN, "client.not_signed_in",
                               "arbe auth login, or set ARBE_API_KEY", "not signed in to %.200s",
                               call->url);
    }
    return code == 0 ? app_call_connect(call) : code;
}

static void finish(struct app_call *call)
{
    interrupt_forget(call->client);
    scoped_client_free(call->client);
    arena_finish(&call->memory);
    explicit_bzero(call->key, sizeof(call->key));
    explicit_bzero(&call->login, sizeof(call->login));
}

/* Whether all words that are stored as they come can be: JSON strings are UTF-8. Names of
 * files may be anything. */
static int check_texts(const struct app_call *call)
{
    const struct app_settings *set = &call->set;
    const char *const texts[] = {set->name, set->description, set->model, set->environment,
                                 set->tags, set->patch,       set->id,    set->reply_to};
    bool good = true;

    for (int i = 0; i < call->operand_count; i++) {
        good = good && utf8_valid(slice_of(call->operands[i]));
    }
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        good = good && (texts[i] == NULL || utf8_valid(slice_of(texts[i])));
    }
    return good ? 0
                : app_call_refuse(call, COMMAND_USAGE, "client.usage", NULL,
                                  "a word is not UTF-8, which a text must be");
}

int app_call_run(const struct group *group, int argc, char **argv)
{
    struct app_call call = {.group = group->name, .name = "", .set.retries = UINT64_MAX};
    struct group_choice choice;
    struct errmsg msg = {{0}};
    int code = group_choose(group, argc, argv, &call.set, &choice, &msg);

    if (msg.text[0] != '\0') {
        return app_call_refuse(&call, COMMAND_USAGE, "client.usage", NULL, "%s", msg.text);
    }
    if (choice.row == NULL) {
        return code;
    }
    call.name = choice.row->name;
    call.operands = choice.operands;
    call.operand_count = choice.operand_count;
    code = check_texts(&call);
    if (code != 0) {
        return code;
    }
    interrupt_begin();
    out_init(&call.out);
    arena_init(&call.memory, MEMORY_BYTES_MAX);
    code = choice.row->run.app(&call);
    bool written = out_finish(&call.out);

    finish(&call);
    return written || code != 0 ? code : COMMAND_FAILED;
}

/* ------------------------------------------------------------------------------------- requests */

/* Moves the answer's body into the call's memory, where it has been read as JSON. */
static int keep(struct app_call *call, struct scoped_answer *answer, struct slice *ret_answer)
{
    const char *copy = arena_try_copy(&call->memory, (struct slice){answer->body, answer->len});
    struct slice value = {"", 0};
    struct errmsg msg = {{0}};

    size_t len = answer->len;

    scoped_answer_finish(answer);
    if (copy == NULL) {
        return app_call_refuse(call, COMMAND_FAILED, "client.memory", NULL, "%s",
                               err_text(ERR_NOMEM));
    }
    if (len > 0 && json_text_read((struct slice){copy, len}, &value, &msg) != 0) {
        return app_call_refuse(call, COMMAND_FAILED, "client.response_invalid", NULL,
                               "the answer is no JSON: %s", msg.text);
    }
    *ret_answer = value;
    return 0;
}

int app_call_send(struct app_call *call, const char *method, const char *path,
                  const char *const *query, const struct buf *body, struct slice *ret_answer)
{
    struct scoped_answer answer = {.status = 0};
    struct scoped_error error = {.code = ""};
    struct scoped_request request = {.method = method, .path = path, .query = query};
    struct slice ignored;

    if (body != NULL && body->failed) {
        return app_call_refuse(call, COMMAND_FAILED, "validation.too_large", NULL,
                               "so much is more than any request may hold");
    }
    if (body != NULL) {
        request.body = body->ptr;
        request.len = body->len;
    }
    if (scoped_client_request(call->client, &request, &answer, &error) != STREAM_OK) {
        return app_call_fail(call, &error);
    }
    return keep(call, &answer, ret_answer == NULL ? &ignored : ret_answer);
}

int app_call_probe(struct app_call *call, const char *path, struct slice *ret_answer,
                   struct scoped_error *ret_error)
{
    const struct scoped_request request = {.method = "GET", .path = path};
    struct scoped_answer answer = {.status = 0};
    int code = scoped_client_request(call->client, &request, &answer, ret_error);

    if (code == STREAM_OK && keep(call, &answer, ret_answer) != 0) {
        return STREAM_ERROR_FORMAT;
    }
    return code;
}

/* The query of a page: that of the list, its size, and where it begins. */
static void compose_query(const char *const *query, const char *limit, const char *cursor,
                          const char *out[static APP_QUERY_MAX + 5])
{
    size_t count = 0;

    for (; query != NULL && query[count] != NULL && count < APP_QUERY_MAX; count += 2) {
        out[count] = query[count];
        out[count + 1] = query[count + 1];
    }
    out[count++] = "limit";
    out[count++] = limit;
    out[count++] = "cursor";
    out[count++] = cursor;
    out[count] = NULL;
}

int app_call_each(struct app_call *call, const char *path, const char *const *query,
                  const char *member, app_record_fn each, void *context)
{
    uint64_t left = call->set.limit == 0 ? UINT64_MAX : call->set.limit;
    struct slice cursor = {NULL, 0};
    int code = 0;

    do {
        const char *all[APP_QUERY_MAX + 5];
        char limit[8];
        struct json_walk walk;
        struct slice page;
        struct slice record;

        (void)snprintf(limit, sizeof(limit), "%u", left < 200 ? (unsigned)left : 200u);
        compose_query(query, limit, cursor.ptr, all);
        code = app_call_send(call, "GET", path, all, NULL, &page);
        if (code != 0) {
            return code;
        }
        record_walk(&walk, page, member);
        while (code == 0 && left > 0 && json_walk_element(&walk, &record)) {
            code = each(context, record);
            left--;
        }
        cursor = record_text(page, "nextCursor", &call->memory);
    } while (code == 0 && left > 0 && cursor.len > 0 && interrupt_signal() == 0);
    return code;
}

/* --------------------------------------------------------------------------------------- bodies */

void app_body_begin(struct buf *body)
{
    buf_init(body, BODY_BYTES_MAX);
    buf_append_char(body, '{');
}

void app_body_json(struct buf *body, const char *name, struct slice json)
{
    if (body->len > 1) {
        buf_append_char(body, ',');
    }
    json_append_string(body, slice_of(name));
    buf_append_char(body, ':');
    buf_append(body, json);
}

void app_body_text(struct buf *body, const char *name, const char *text)
{
    if (text != NULL) {
        app_body_json(body, name, SLICE(""));
        json_append_string(body, slice_of(text));
    }
}

void app_body_end(struct buf *body)
{
    buf_append_char(body, '}');
}

int app_call_read_stdin(struct app_call *call, struct slice *ret_text)
{
    struct buf data;
    int code = 0;

    buf_init(&data, BODY_BYTES_MAX);
    for (ssize_t got = 1; code == 0 && got != 0;) {
        struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};
        char *place = buf_reserve(&data, 4 * KIB);

        if (place == NULL) {
            code = app_call_refuse(call, COMMAND_FAILED, "validation.too_large", NULL,
                                   "stdin holds more than any request may");
        } else if (interrupt_poll(&fd, 1, -1) > 0) {
            got = read(STDIN_FILENO, place, 4 * KIB);
            if (got < 0 && errno != EINTR) {
                code = app_call_refuse(call, COMMAND_FAILED, "client.stdin", NULL,
                                       "cannot read stdin: %s", strerror(errno));
            }
            buf_advance(&data, got > 0 ? (size_t)got : 0);
        }
        if (code == 0 && interrupt_signal() != 0) {
            code = COMMAND_INTERRUPTED + interrupt_signal();
        }
    }
    if (code == 0 && !utf8_valid(buf_slice(&data))) {
        code = app_call_refuse(call, COMMAND_USAGE, "client.usage", NULL,
                               "stdin is not UTF-8, which a text must be");
    }
    if (code == 0) {
        const char *copy = arena_try_copy(&call->memory, buf_slice(&data));

        *ret_text = (struct slice){copy, copy == NULL ? 0 : data.len};
    }
    buf_finish(&data);
    return code;
}
