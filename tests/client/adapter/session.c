/* Fields and dynamic values are read by the library's callbacks, on its own thread. The texts of
 * fields are the command's, so they go before it does. */
#include "client/adapter/session.h"

#include "base/json_value.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <time.h>

static char *copy(const char *text)
{
    char *made = strdup(text);

    if (made == NULL) {
        abort();
    }
    return made;
}

static void *make(size_t size)
{
    void *made = calloc(1, size);

    if (made == NULL) {
        abort();
    }
    return made;
}

void session_init(struct session *s)
{
    *s = (struct session){.base_url = NULL};
    (void)pthread_mutex_init(&s->lock, NULL); /* cannot fail on Linux */
}

/* Forgets all that belongs to one server. */
static void close_client(struct session *s)
{
    while (s->producers != NULL) {
        session_drop_producer(s, s->producers);
    }
    stream_client_free(s->client);
    s->client = NULL;
    session_clear_dynamics(s);
    for (struct kept_type *type = s->types, *next; type != NULL; type = next) {
        next = type->next;
        free(type->path);
        free(type);
    }
    s->types = NULL;
    free(s->base_url);
    s->base_url = NULL;
}

void session_finish(struct session *s)
{
    close_client(s);
    (void)pthread_mutex_destroy(&s->lock);
}

/* ------------------------------------------------------------------- on the client's thread */

static void make_value(struct dynamic *d, char out[128])
{
    struct timespec now;

    d->made++;
    switch (d->kind) {
    case DYNAMIC_COUNTER:
        (void)snprintf(out, 128, "%llu", d->made);
        break;
    case DYNAMIC_TIMESTAMP:
        (void)clock_gettime(CLOCK_REALTIME, &now);
        (void)snprintf(out, 128, "%lld", (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000);
        break;
    case DYNAMIC_TOKEN:
        (void)snprintf(out, 128, "%s", d->token);
        break;
    }
}

static bool has_field(const struct session *s, const char *name)
{
    for (size_t i = 0; i < s->field_count; i++) {
        if (strcasecmp(s->fields[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

static void add_dynamics(struct session *s, bool params, struct stream_headers *headers)
{
    char value[128];

    for (struct dynamic *d = s->dynamics; d != NULL; d = d->next) {
        if (d->is_param != params || (!params && has_field(s, d->name))) {
            continue;
        }
        make_value(d, value);
        stream_headers_add(headers, d->name, value);
        if (d->sent[0] == '\0') {
            memcpy(d->sent, value, sizeof(value));
        }
    }
}

static void add_headers(void *context, struct stream_headers *headers)
{
    struct session *s = context;

    (void)pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->field_count; i++) {
        stream_headers_add(headers, s->fields[i].name, s->fields[i].value);
    }
    add_dynamics(s, false, headers);
    (void)pthread_mutex_unlock(&s->lock);
}

static void add_query(void *context, struct stream_headers *query)
{
    struct session *s = context;

    (void)pthread_mutex_lock(&s->lock);
    add_dynamics(s, true, query);
    (void)pthread_mutex_unlock(&s->lock);
}

/* -------------------------------------------------------------------------- on the main thread */

/* An append whose fate is not known is tried again, which is what a driver that makes a server
 * answer 500 wants to see. */
void session_client_options(struct session *s, struct stream_client_options *ret_options)
{
    stream_client_options_init(ret_options);
    ret_options->at_least_once = 1;
    ret_options->add_headers = add_headers;
    ret_options->add_query = add_query;
    ret_options->context = s;
}

int session_open(struct session *s, const char *server_url, int timeout_ms,
                 struct stream_error *ret_error)
{
    struct stream_client_options options;
    size_t len = strlen(server_url);
    bool ends = len > 0 && server_url[len - 1] == '/';

    close_client(s);
    s->base_url = make(len + 2);
    (void)snprintf(s->base_url, len + 2, "%s%s", server_url, ends ? "" : "/");
    session_client_options(s, &options);
    if (timeout_ms > 0) {
        options.request_timeout_ms = timeout_ms;
    }
    return stream_client_new(s->base_url, &options, &s->client, ret_error);
}

void session_set_fields(struct session *s, const struct command *c)
{
    struct command headers;
    struct json_walk walk;
    struct slice name;
    struct slice value;
    size_t len;

    (void)pthread_mutex_lock(&s->lock);
    s->field_count = 0;
    for (struct dynamic *d = s->dynamics; d != NULL; d = d->next) {
        d->sent[0] = '\0';
    }
    if (command_object(c, "headers", &headers)) {
        json_walk_begin(&walk, headers.object);
        while (s->field_count < FIELDS_MAX && json_walk_member(&walk, &name, &value)) {
            struct field *field = &s->fields[s->field_count];

            field->name = command_decode(&headers, name, &len);
            field->value = command_decode(&headers, value, &len);
            s->field_count += field->name != NULL && field->value != NULL;
        }
    }
    (void)pthread_mutex_unlock(&s->lock);
}

void session_clear_fields(struct session *s)
{
    (void)pthread_mutex_lock(&s->lock);
    s->field_count = 0;
    (void)pthread_mutex_unlock(&s->lock);
}

void session_set_dynamic(struct session *s, const char *name, bool is_param, const char *kind,
                         const char *token)
{
    struct dynamic *d;

    (void)pthread_mutex_lock(&s->lock);
    for (d = s->dynamics; d != NULL; d = d->next) {
        if (d->is_param == is_param && strcasecmp(d->name, name) == 0) {
            break;
        }
    }
    if (d == NULL) {
        d = make(sizeof(*d));
        d->name = copy(name);
        d->is_param = is_param;
        d->next = s->dynamics;
        s->dynamics = d;
    }
    free(d->token);
    d->token = copy(token != NULL ? token : "");
    d->made = 0;
    d->kind = strcmp(kind, "counter") == 0     ? DYNAMIC_COUNTER
              : strcmp(kind, "timestamp") == 0 ? DYNAMIC_TIMESTAMP
                                               : DYNAMIC_TOKEN;
    (void)pthread_mutex_unlock(&s->lock);
}

void session_clear_dynamics(struct session *s)
{
    (void)pthread_mutex_lock(&s->lock);
    for (struct dynamic *d = s->dynamics, *next; d != NULL; d = next) {
        next = d->next;
        free(d->name);
        free(d->token);
        free(d);
    }
    s->dynamics = NULL;
    (void)pthread_mutex_unlock(&s->lock);
}

static void reply_sent(const struct session *s, struct reply *r, const char *name, bool params)
{
    bool any = false;

    for (const struct dynamic *d = s->dynamics; d != NULL; d = d->next) {
        if (d->is_param == params && d->sent[0] != '\0') {
            if (!any) {
                reply_open(r, name, '{');
                any = true;
            }
            reply_text(r, d->name, d->sent);
        }
    }
    if (any) {
        reply_shut(r, '}');
    }
}

void session_reply_sent(struct session *s, struct reply *r)
{
    (void)pthread_mutex_lock(&s->lock);
    reply_sent(s, r, "headersSent", false);
    reply_sent(s, r, "paramsSent", true);
    (void)pthread_mutex_unlock(&s->lock);
}

static struct kept_type *find_type(const struct session *s, const char *path)
{
    struct kept_type *type = s->types;

    while (type != NULL && strcmp(type->path, path) != 0) {
        type = type->next;
    }
    return type;
}

void session_note_type(struct session *s, const char *path, const char *content_type)
{
    struct kept_type *type = find_type(s, path);

    if (type == NULL) {
        type = make(sizeof(*type));
        type->path = copy(path);
        type->next = s->types;
        s->types = type;
    }
    type->is_json = strncasecmp(content_type, "application/json", 16) == 0;
}

bool session_is_json(const struct session *s, const char *path)
{
    const struct kept_type *type = find_type(s, path);

    return type != NULL && type->is_json;
}

const char *session_name(const char *path)
{
    return path[0] == '/' ? path + 1 : path;
}

struct kept_producer *session_find_producer(struct session *s, const char *key)
{
    struct kept_producer *kept = s->producers;

    while (kept != NULL && strcmp(kept->key, key) != 0) {
        kept = kept->next;
    }
    return kept;
}

void session_keep_producer(struct session *s, const char *key, struct stream_producer *producer)
{
    struct kept_producer *kept = make(sizeof(*kept));

    kept->key = copy(key);
    kept->producer = producer;
    kept->next = s->producers;
    s->producers = kept;
}

void session_drop_producer(struct session *s, struct kept_producer *kept)
{
    struct kept_producer **at = &s->producers;

    while (*at != kept) {
        at = &(*at)->next;
    }
    *at = kept->next;
    stream_producer_free(kept->producer);
    free(kept->key);
    free(kept);
}
