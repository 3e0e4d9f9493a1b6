/* Each member is looked up by its name, so order does not matter and what is unknown is passed
 * over. Strings and lists are copied to the arena in the form that is kept. */
#include "stream/subscription_request.h"

#include <assert.h>
#include <openssl/evp.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/json_value.h"
#include "base/number.h"
#include "stream/glob.h"
#include "stream/name.h"

/* A body that is being read. */
struct reader {
    struct arena *arena;
    struct errmsg *msg;
    struct slice object; /* the members */
};

static int no_memory(const struct reader *r)
{
    return err_set(r->msg, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
}

/* "`what` must be `wanted`, not a number". */
static int refuse(const struct reader *r, const char *what, const char *wanted, struct slice value)
{
    return err_set(r->msg, ERR_INVALID, "%s must be %s, not %s", what, wanted,
                   json_kind_text(json_kind(value)));
}

static int open_body(struct reader *r, struct slice body)
{
    if (body.len > SUBSCRIPTION_BODY_BYTES_MAX) {
        return err_set(r->msg, ERR_TOOBIG, "the body is larger than %u bytes",
                       SUBSCRIPTION_BODY_BYTES_MAX);
    }
    int code = json_text_read(body.len > 0 ? body : SLICE("{}"), &r->object, r->msg);
    if (code < 0) {
        return err_prefix(r->msg, code, "the body");
    }
    return json_kind(r->object) == JSON_OBJECT ? 0
                                               : refuse(r, "the body", "a JSON object", r->object);
}

/* The member `name`: 1, 0 when there is none or it is null, or an error. */
static int find(const struct reader *r, struct slice object, const char *name,
                struct slice *ret_value)
{
    int found = json_object_find(object, slice_of(name), ret_value, r->msg);
    return found == 1 && json_kind(*ret_value) == JSON_NULL ? 0 : found;
}

/* A string value, decoded; at most `max` bytes. */
static int read_string(const struct reader *r, const char *what, struct slice value, size_t max,
                       struct slice *ret_text)
{
    if (json_kind(value) != JSON_STRING) {
        return refuse(r, what, "a string", value);
    }
    struct buf text;
    char *memory = arena_try_alloc(r->arena, value.len);
    if (!memory) {
        return no_memory(r);
    }
    buf_init_fixed(&text, memory, value.len); /* no escape is shorter than what it stands for */
    int code = json_string_decode(value, &text);
    assert(code != ERR_NOMEM);
    if (code < 0) {
        return err_set(r->msg, code, "%s has half of a surrogate pair, which is no character",
                       what);
    }
    if (text.len > max) {
        return err_set(r->msg, ERR_INVALID, "%s is longer than %zu bytes", what, max);
    }
    *ret_text = buf_slice(&text);
    return 0;
}

/* The member `name` as a string; empty when there is none. */
static int find_string(const struct reader *r, struct slice object, const char *name, size_t max,
                       struct slice *ret_text)
{
    struct slice value;
    int found = find(r, object, name, &value);
    if (found <= 0) {
        *ret_text = SLICE("");
        return found;
    }
    return read_string(r, name, value, max, ret_text);
}

static int copy(const struct reader *r, struct slice bytes, struct slice *ret_copy)
{
    const char *memory = arena_try_copy(r->arena, bytes);
    if (!memory) {
        return no_memory(r);
    }
    *ret_copy = (struct slice){memory, bytes.len};
    return 0;
}

/* ------------------------------------------------------------------------------------- paths */

static struct slice strip_slashes(struct slice path)
{
    while (path.len > 0 && path.ptr[0] == '/') {
        path = (struct slice){path.ptr + 1, path.len - 1};
    }
    while (path.len > 0 && path.ptr[path.len - 1] == '/') {
        path.len--;
    }
    return path;
}

int subscription_path_parse(struct slice raw, char out[static STREAM_NAME_BYTES_MAX],
                            size_t *ret_len, struct errmsg *msg)
{
    struct slice path = strip_slashes(raw);
    if (path.len == 0) {
        return err_set(msg, ERR_INVALID, "a stream path may not be empty");
    }
    return name_parse(path, out, ret_len, msg) < 0 ? ERR_INVALID : 0;
}

/* A name of STREAM_NAME_BYTES_MAX bytes, each escaped, with as many slashes around it. */
#define URL_PATH_BYTES_MAX (4 * STREAM_NAME_BYTES_MAX)

int subscription_url_path_parse(struct slice escaped, char out[static STREAM_NAME_BYTES_MAX],
                                size_t *ret_len, struct errmsg *msg)
{
    char decoded[URL_PATH_BYTES_MAX];
    long len = name_unescape(escaped, decoded, sizeof(decoded));
    if (len < 0) {
        return err_set(msg, ERR_INVALID,
                       len == ERR_TOOBIG ? "the stream path is too long"
                                         : "a '%%' in a path must be followed by two hex digits");
    }
    return subscription_path_parse((struct slice){decoded, (size_t)len}, out, ret_len, msg);
}

/* A string value as a canonical name. */
static int read_path(const struct reader *r, const char *what, struct slice value,
                     struct slice *ret_path)
{
    char name[STREAM_NAME_BYTES_MAX];
    size_t len = 0;
    struct slice raw;
    int code = read_string(r, what, value, SIZE_MAX, &raw);
    if (code < 0) {
        return code;
    }
    if (subscription_path_parse(raw, name, &len, r->msg) < 0) {
        return err_prefix(r->msg, ERR_INVALID, "%s", what);
    }
    return copy(r, (struct slice){name, len}, ret_path);
}

static int compare_slices(const void *a, const void *b)
{
    return slice_compare(*(const struct slice *)a, *(const struct slice *)b);
}

/* In order, each once; returns how many are left. */
static size_t sort_once(struct slice *paths, size_t count)
{
    size_t kept = 0;
    qsort(paths, count, sizeof(*paths), compare_slices);
    for (size_t i = 0; i < count; i++) {
        if (kept == 0 || !slice_equal(paths[i], paths[kept - 1])) {
            paths[kept++] = paths[i];
        }
    }
    return kept;
}

static size_t count_elements(struct slice array)
{
    struct json_walk w;
    struct slice element;
    size_t count = 0;
    json_walk_begin(&w, array);
    while (json_walk_element(&w, &element)) {
        count++;
    }
    return count;
}

/* The array "streams". */
static int read_streams(const struct reader *r, struct slice array,
                        const struct slice **ret_streams, size_t *ret_count)
{
    if (json_kind(array) != JSON_ARRAY) {
        return refuse(r, "streams", "an array of stream paths", array);
    }
    size_t count = count_elements(array);
    struct slice *paths = arena_try_alloc(r->arena, (count + 1) * sizeof(*paths));
    struct json_walk w;
    struct slice element;
    if (!paths) {
        return no_memory(r);
    }
    json_walk_begin(&w, array);
    for (size_t i = 0; json_walk_element(&w, &element); i++) {
        assert(i < count);
        int code = read_path(r, "a member of streams", element, &paths[i]);
        if (code < 0) {
            return code;
        }
    }
    count = sort_once(paths, count);
    if (count > SUBSCRIPTION_LINKS_MAX) {
        return err_set(r->msg, ERR_INVALID, "streams has more than %u paths",
                       SUBSCRIPTION_LINKS_MAX);
    }
    *ret_streams = paths;
    *ret_count = count;
    return 0;
}

/* --------------------------------------------------------------------------------------- PUT */

static int read_type(const struct reader *r, struct subscription_definition *def)
{
    struct slice type;
    int code = find_string(r, r->object, "type", SIZE_MAX, &type);
    if (code < 0) {
        return code;
    }
    if (slice_equal(type, SLICE("webhook"))) {
        def->type = SUBSCRIPTION_WEBHOOK;
    } else if (slice_equal(type, SLICE("pull-wake"))) {
        def->type = SUBSCRIPTION_PULL_WAKE;
    } else {
        return err_set(r->msg, ERR_INVALID, "type must be \"webhook\" or \"pull-wake\"");
    }
    return 0;
}

/* An empty pattern counts as none, as in other servers. */
static int read_pattern(const struct reader *r, struct subscription_definition *def)
{
    struct slice raw;
    char pattern[GLOB_BYTES_MAX];
    size_t len = 0;
    int code = find_string(r, r->object, "pattern", SIZE_MAX, &raw);
    def->pattern = SLICE("");
    if (code < 0 || raw.len == 0) {
        return code;
    }
    if (glob_parse(strip_slashes(raw), pattern, &len, r->msg) < 0) {
        return err_prefix(r->msg, ERR_INVALID, "pattern");
    }
    return copy(r, (struct slice){pattern, len}, &def->pattern);
}

static int read_target(const struct reader *r, struct subscription_definition *def)
{
    struct slice value;
    int found;
    if (def->type == SUBSCRIPTION_PULL_WAKE) {
        found = find(r, r->object, "wake_stream", &value);
        if (found == 0) {
            return err_set(r->msg, ERR_INVALID,
                           "wake_stream is missing: name the stream that gets wake events");
        }
        return found < 0 ? found : read_path(r, "wake_stream", value, &def->target);
    }
    found = find(r, r->object, "webhook", &value);
    if (found < 0) {
        return found;
    }
    if (found == 1 && json_kind(value) != JSON_OBJECT) {
        return refuse(r, "webhook", "an object with a url", value);
    }
    int code = found == 0 ? 0
                          : find_string(r, value, "url", SUBSCRIPTION_URL_BYTES_MAX, &def->target);
    if (code == 0 && (found == 0 || def->target.len == 0)) {
        return err_set(r->msg, ERR_INVALID, "webhook.url is missing: say where wakes are sent");
    }
    return code < 0 ? err_prefix(r->msg, code, "webhook") : 0;
}

static int read_lease(const struct reader *r, struct subscription_definition *def)
{
    struct slice value;
    uint64_t lease_ms = SUBSCRIPTION_LEASE_MS_DEFAULT;
    int found = find(r, r->object, "lease_ttl_ms", &value);
    if (found == 1 && (!json_number_u64(value, SUBSCRIPTION_LEASE_MS_MAX, &lease_ms) ||
                       lease_ms < SUBSCRIPTION_LEASE_MS_MIN)) {
        return err_set(r->msg, ERR_INVALID, "lease_ttl_ms must be a whole number from %u to %u",
                       SUBSCRIPTION_LEASE_MS_MIN, SUBSCRIPTION_LEASE_MS_MAX);
    }
    def->lease_ttl_ms = (uint32_t)lease_ms;
    return found < 0 ? found : 0;
}

static int read_description(const struct reader *r, struct subscription_definition *def)
{
    struct slice value;
    int found = find(r, r->object, "description", &value);
    def->has_description = found == 1;
    def->description = SLICE("");
    return found == 1 ? read_string(r, "description", value, SUBSCRIPTION_DESCRIPTION_BYTES_MAX,
                                    &def->description)
                      : found;
}

static int read_named(const struct reader *r, struct subscription_spec *spec)
{
    struct slice value;
    int found = find(r, r->object, "streams", &value);
    int code = found == 1 ? read_streams(r, value, &spec->streams, &spec->stream_count) : found;
    if (code < 0) {
        return code;
    }
    if (spec->stream_count == 0 && spec->def.pattern.len == 0) {
        return err_set(r->msg, ERR_INVALID,
                       "pattern and streams are missing: give at least one of them");
    }
    for (size_t i = 0; i < spec->stream_count; i++) {
        if (spec->def.type == SUBSCRIPTION_PULL_WAKE &&
            slice_equal(spec->streams[i], spec->def.target)) {
            return err_set(r->msg, ERR_INVALID,
                           "streams has the wake_stream: wake events may not wake");
        }
    }
    return 0;
}

/* A field for the hash: its length and its bytes, so that no two lists of fields look alike. */
static bool hash_field(EVP_MD_CTX *hash, struct slice field)
{
    unsigned char len[8];
    bytes_put_u64(len, field.len);
    return EVP_DigestUpdate(hash, len, sizeof(len)) == 1 &&
           EVP_DigestUpdate(hash, field.len > 0 ? field.ptr : "", field.len) == 1;
}

static bool hash_fields(EVP_MD_CTX *hash, const struct subscription_spec *spec)
{
    const struct subscription_definition *def = &spec->def;
    char lease[24];
    struct buf text;
    buf_init_fixed(&text, lease, sizeof(lease));
    buf_append_u64(&text, def->lease_ttl_ms);
    bool good = hash_field(hash, def->type == SUBSCRIPTION_WEBHOOK ? SLICE("webhook")
                                                                   : SLICE("pull-wake"));
    good = good && hash_field(hash, def->pattern) && hash_field(hash, def->target) &&
           hash_field(hash, buf_slice(&text)) &&
           hash_field(hash, def->has_description ? SLICE("1") : SLICE("0")) &&
           hash_field(hash, def->description);
    for (size_t i = 0; i < spec->stream_count && good; i++) {
        good = hash_field(hash, spec->streams[i]);
    }
    return good;
}

static int make_hash(const struct reader *r, struct subscription_spec *spec)
{
    EVP_MD_CTX *hash = EVP_MD_CTX_new();
    bool good = hash && EVP_DigestInit_ex(hash, EVP_sha256(), NULL) == 1 &&
                hash_fields(hash, spec) && EVP_DigestFinal_ex(hash, spec->def.hash, NULL) == 1;
    EVP_MD_CTX_free(hash);
    return good ? 0 : no_memory(r);
}

int subscription_request_put(struct slice body, struct arena *a, struct subscription_spec *ret_spec,
                             struct errmsg *msg)
{
    static int (*const reads[])(const struct reader *r, struct subscription_definition *def) = {
        read_type, read_pattern, read_target, read_lease, read_description,
    };
    struct reader r = {.arena = a, .msg = msg};
    struct subscription_spec spec = {.streams = NULL};
    int code = open_body(&r, body);
    for (size_t i = 0; i < ARRAY_COUNT(reads) && code == 0; i++) {
        code = reads[i](&r, &spec.def);
    }
    code = code == 0 ? read_named(&r, &spec) : code;
    code = code == 0 ? make_hash(&r, &spec) : code;
    if (code == 0) {
        *ret_spec = spec;
    }
    return code;
}

/* ------------------------------------------------------------------------- the other requests */

int subscription_request_streams(struct slice body, struct arena *a,
                                 const struct slice **ret_streams, size_t *ret_count,
                                 struct errmsg *msg)
{
    struct reader r = {.arena = a, .msg = msg};
    struct slice value;
    int code = open_body(&r, body);
    if (code < 0) {
        return code;
    }
    int found = find(&r, r.object, "streams", &value);
    if (found == 0) {
        return err_set(msg, ERR_INVALID, "streams is missing: give an array of stream paths");
    }
    return found < 0 ? found : read_streams(&r, value, ret_streams, ret_count);
}

int subscription_request_claim(struct slice body, struct arena *a, struct slice *ret_worker,
                               struct errmsg *msg)
{
    struct reader r = {.arena = a, .msg = msg};
    struct slice worker;
    int code = open_body(&r, body);
    if (code == 0) {
        code = find_string(&r, r.object, "worker", SUBSCRIPTION_WORKER_BYTES_MAX, &worker);
    }
    if (code == 0 && worker.len == 0) {
        return err_set(msg, ERR_INVALID, "worker is missing: say who claims");
    }
    if (code == 0) {
        *ret_worker = worker;
    }
    return code;
}

/* "stream", or "path" as some clients write. */
static int read_ack_path(const struct reader *r, struct slice ack, struct slice *ret_path)
{
    struct slice value;
    int found = find(r, ack, "stream", &value);
    found = found == 0 ? find(r, ack, "path", &value) : found;
    if (found == 0) {
        return err_set(r->msg, ERR_INVALID, "an ack has no stream: say which it is about");
    }
    return found < 0 ? found : read_path(r, "stream of an ack", value, ret_path);
}

static int read_ack(const struct reader *r, struct slice value, struct subscription_ack *ack)
{
    struct slice text;
    struct offset offset;
    if (json_kind(value) != JSON_OBJECT) {
        return refuse(r, "a member of acks", "an object with stream and offset", value);
    }
    int code = read_ack_path(r, value, &ack->path);
    if (code == 0) {
        code = find_string(r, value, "offset", SIZE_MAX, &text);
    }
    if (code < 0) {
        return code;
    }
    if (text.len == 0) {
        return err_set(r->msg, ERR_INVALID, "an ack has no offset: say what was processed last");
    }
    if (!offset_parse(text, &offset) || offset.kind == OFFSET_NOW) {
        return err_set(r->msg, ERR_INVALID,
                       "the offset of an ack must be one that this server gave out");
    }
    ack->start = offset.kind == OFFSET_START;
    ack->position = ack->start ? 0 : offset.position;
    return 0;
}

static int read_acks(const struct reader *r, struct subscription_report *report)
{
    struct slice array;
    struct slice element;
    struct json_walk w;
    int found = find(r, r->object, "acks", &array);
    if (found <= 0) {
        return found;
    }
    if (json_kind(array) != JSON_ARRAY) {
        return refuse(r, "acks", "an array of acks", array);
    }
    size_t count = count_elements(array);
    struct subscription_ack *acks = arena_try_alloc(r->arena, (count + 1) * sizeof(*acks));
    if (!acks) {
        return no_memory(r);
    }
    json_walk_begin(&w, array);
    for (size_t i = 0; json_walk_element(&w, &element); i++) {
        assert(i < count);
        int code = read_ack(r, element, &acks[i]);
        if (code < 0) {
            return code;
        }
    }
    report->acks = acks;
    report->ack_count = count;
    return 0;
}

static int read_wake(const struct reader *r, struct subscription_report *report)
{
    struct slice value;
    int code = find_string(r, r->object, "wake_id", SIZE_MAX, &report->wake_id);
    if (code < 0) {
        return code;
    }
    if (report->wake_id.len == 0) {
        return err_set(r->msg, ERR_INVALID, "wake_id is missing: send the one of the wake");
    }
    int found = find(r, r->object, "generation", &value);
    if (found < 0) {
        return found;
    }
    if (found == 0 || !json_number_u64(value, NUMBER_JS_MAX, &report->generation)) {
        return err_set(r->msg, ERR_INVALID,
                       "generation must be a whole number: send the one of the wake");
    }
    return 0;
}

static int read_done(const struct reader *r, struct subscription_report *report)
{
    struct slice value;
    int found = find(r, r->object, "done", &value);
    if (found == 1 && json_kind(value) != JSON_TRUE && json_kind(value) != JSON_FALSE) {
        return refuse(r, "done", "true or false", value);
    }
    report->done = found == 1 && json_kind(value) == JSON_TRUE;
    return found < 0 ? found : 0;
}

int subscription_request_report(struct slice body, struct arena *a,
                                struct subscription_report *ret_report, struct errmsg *msg)
{
    struct reader r = {.arena = a, .msg = msg};
    struct subscription_report report = {.done = false};
    int code = open_body(&r, body);
    code = code == 0 ? read_wake(&r, &report) : code;
    code = code == 0 ? read_acks(&r, &report) : code;
    code = code == 0 ? read_done(&r, &report) : code;
    if (code == 0) {
        *ret_report = report;
    }
    return code;
}

bool subscription_reply_done(struct slice reply)
{
    struct slice object;
    struct slice done;
    return json_text_read(reply, &object, NULL) == 0 &&
           json_object_find(object, SLICE("done"), &done, NULL) == 1 &&
           json_kind(done) == JSON_TRUE;
}
