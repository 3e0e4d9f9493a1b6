/* The file is read whole; what --t3 names is looked up in it. */
#include "cli/t3_hosts.h"

#include "base/limits.h"
#include "base/utf8.h"
#include "cli/config_home.h"
#include "cli/secret.h"
#include "cli/t3_url.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define TOKEN_VARIABLE "ARBE_T3_TOKEN"
#define FILE_VARIABLE  "ARBE_T3_HOSTS_FILE"

const struct profile_form t3_hosts_form = {
    .file = "hosts' file",
    .section = "host",
    .has_allow_http = true,
};

/* What a list is made of. */
struct source {
    char path[T3_HOSTS_PATH_BYTES]; /* empty: there is nowhere to look */
    const char *flag;               /* of --t3-hosts; NULL: it was not given */
    struct profiles file;
    struct t3_hosts hosts;
};

_Static_assert(PROFILES_MAX + FLAG_LIST_MAX <= T3_HOSTS_MAX, "a board takes all that can be named");

const char *t3_hosts_choose(const char *flag)
{
    const char *variable = getenv(FILE_VARIABLE);

    return flag != NULL ? flag : variable != NULL && variable[0] != '\0' ? variable : NULL;
}

int t3_hosts_locate(const char *file, char out[static T3_HOSTS_PATH_BYTES], struct errmsg *msg)
{
    char path[T3_HOSTS_PATH_BYTES + 1] = ""; /* one that is cut shows by its length */

    if (file != NULL) {
        (void)snprintf(path, sizeof(path), "%s", file);
    } else if (!config_home_path("t3", path, sizeof(path))) {
        return err_set(msg, ERR_INVALID,
                       "there is no place for a hosts' file: neither HOME nor XDG_CONFIG_HOME is "
                       "set; --t3-hosts names one");
    }
    if (strlen(path) >= T3_HOSTS_PATH_BYTES) {
        return err_set(msg, ERR_INVALID, "the path of the hosts' file is too long: %.100s...",
                       path);
    }
    memcpy(out, path, strlen(path) + 1);
    return 0;
}

int t3_hosts_check_label(struct slice label, struct errmsg *msg)
{
    bool good = label.len > 0 && label.len <= T3_HOST_BYTES_MAX && utf8_valid(label);

    for (size_t i = 0; good && i < label.len; i++) {
        const struct slice rest = {label.ptr + i, label.len - i};

        good = label.ptr[i] != ' ' && memchr("/=[]", label.ptr[i], 4) == NULL &&
               utf8_harmful(rest) == 0;
    }
    return good ? 0
                : err_set(msg, ERR_INVALID,
                          "\"%.*s\" is no name for a host: that has 1 to %u bytes, and no space, "
                          "slash, '=', bracket or control character",
                          (int)(label.len > 40 ? 40 : label.len), label.ptr, T3_HOST_BYTES_MAX);
}

/* ------------------------------------------------------------------ the file */

static int check_section(const struct profile *section, struct errmsg *msg)
{
    const char *why = t3_url_check(section->url);
    int code = t3_hosts_check_label(slice_of(section->name), msg);

    return code != 0 || why == NULL ? code
                                    : err_set(msg, ERR_INVALID, "the URL is not good: %s", why);
}

/* A file that was asked for must be there. */
static int read_file(struct source *s, const char *file, struct errmsg *msg)
{
    const char *usual = t3_hosts_choose(NULL);
    bool named = file != NULL;

    s->flag = named && usual != NULL && strcmp(file, usual) == 0 ? NULL : file;
    int code = t3_hosts_locate(file, s->path, msg);

    if (code != 0 && !named) {
        s->path[0] = '\0';
        return 0; /* without a home there are no hosts in it */
    }
    if (code == 0 && named && access(s->path, F_OK) != 0) {
        code = err_set(msg, ERR_IO, "cannot open the hosts' file %.150s: %s", s->path,
                       strerror(errno));
    }
    if (code == 0) {
        code = profiles_read(s->path, &t3_hosts_form, &s->file, msg);
    }
    for (size_t i = 0; code == 0 && i < s->file.count; i++) {
        struct errmsg why = {{0}};

        code = check_section(&s->file.list[i], &why);
        if (code != 0) {
            code = err_set(msg, code, "%.60s: [%.30s]: %.150s", s->path, s->file.list[i].name,
                           why.text);
        }
    }
    return code;
}

/* A path of the file, for the process: NULL for none. */
static int take_path(const struct source *s, const char *file, char **ret_path, struct errmsg *msg)
{
    char path[T3_HOSTS_PATH_BYTES];
    int code = file == NULL ? 0 : profile_file_path(s->path, file, path, sizeof(path), msg);

    if (code != 0 || file == NULL) {
        return code;
    }
    *ret_path = strdup(path);
    return *ret_path != NULL ? 0 : err_set(msg, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
}

/* ------------------------------------------------------------------ the list */

static bool is_listed(const struct source *s, const char *label)
{
    for (size_t i = 0; i < s->hosts.count; i++) {
        if (strcmp(s->hosts.list[i].label, label) == 0) {
            return true;
        }
    }
    return false;
}

/* Room was made for as many as there can be. `of_file`: NULL, or its section. */
static int add_host(struct source *s, struct slice label, const char *url,
                    const struct profile *of_file, struct errmsg *msg)
{
    struct t3_host *host = &s->hosts.list[s->hosts.count++]; /* whoever fails frees it */

    host->label = strndup(label.ptr, label.len);
    host->url = strdup(url);
    host->file = s->flag != NULL ? strdup(s->flag) : NULL;
    if (host->label == NULL || host->url == NULL || (s->flag != NULL && host->file == NULL)) {
        return err_set(msg, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
    }
    if (of_file == NULL) {
        return 0;
    }
    int code = take_path(s, of_file->secret_file, &host->token_file, msg);

    host->allow_http = of_file->allow_http;
    return code == 0 ? take_path(s, of_file->ca_file, &host->ca_file, msg) : code;
}

static const struct profile *find_url(const struct source *s, const char *url)
{
    for (size_t i = 0; i < s->file.count; i++) {
        if (t3_url_same(s->file.list[i].url, url)) {
            return &s->file.list[i];
        }
    }
    return NULL;
}

/* A host that has no URL must be in the file; one that has must not be there with another. */
static int add_named(struct source *s, const char *label, const char *url, struct errmsg *msg)
{
    const struct profile *of_file = profiles_find(&s->file, label);

    if (is_listed(s, label)) {
        return err_set(msg, ERR_INVALID, "the host \"%.40s\" is named twice", label);
    }
    if (url == NULL && of_file == NULL) {
        return err_set(
            msg, ERR_INVALID,
            "there is no host \"%.40s\" in the hosts' file%s%.100s; HOST=URL names one of "
            "any URL",
            label, s->path[0] == '\0' ? ", for HOME is not set" : " ", s->path);
    }
    if (url != NULL && of_file != NULL && !t3_url_same(url, of_file->url)) {
        return err_set(
            msg, ERR_INVALID,
            "the host \"%.40s\" has another URL in the hosts' file %.100s, and its token "
            "is for that alone; give this one another name",
            label, s->path);
    }
    return add_host(s, slice_of(label), url == NULL ? of_file->url : url, of_file, msg);
}

/* The URL of a HOST=URL. What may have a password or a ticket in it is not
 * repeated. */
static int check_url_of(struct slice label, const char *url, struct errmsg *msg)
{
    const char *why = t3_url_check(url);

    return why == NULL
               ? 0
               : err_set(msg, ERR_INVALID, "\"%.50s\" is no URL for the host \"%.*s\": %.120s",
                         strpbrk(url, "@?") == NULL ? url : "...",
                         (int)(label.len < 40 ? label.len : 40), label.ptr, why);
}

/* HOST or HOST=URL. */
static int add_word(struct source *s, struct slice word, struct errmsg *msg)
{
    const char *equals = word.len == 0 ? NULL : memchr(word.ptr, '=', word.len);
    struct slice label = word;
    char *url = NULL;

    if (equals != NULL) {
        label.len = (size_t)(equals - word.ptr);
        url = strndup(equals + 1, word.len - label.len - 1);
    }
    char *name = strndup(label.ptr, label.len);
    int code = name == NULL || (equals != NULL && url == NULL)
                   ? err_set(msg, ERR_NOMEM, "%s", err_text(ERR_NOMEM))
                   : t3_hosts_check_label(label, msg);

    code = code == 0 && url != NULL ? check_url_of(label, url, msg) : code;
    code = code == 0 ? add_named(s, name, url, msg) : code;
    free(name);
    free(url);
    return code;
}

/* A URL without a name for its host. */
static bool is_bare_url(struct slice word)
{
    const char *colon = word.len > 0 ? memmem(word.ptr, word.len, "://", 3) : NULL;

    return colon != NULL && memchr(word.ptr, '=', (size_t)(colon - word.ptr)) == NULL;
}

static int add_words(struct source *s, const struct flag_list *words, const char *from,
                     struct errmsg *msg)
{
    int code = 0;

    for (size_t i = 0; code == 0 && i < words->count; i++) {
        struct errmsg why = {{0}};

        if (is_bare_url(words->items[i])) {
            return err_set(msg, ERR_INVALID,
                           "%.120s takes HOST=URL, such as mac=http://127.0.0.1:3773", from);
        }
        code = add_word(s, words->items[i], &why);
        if (code != 0) {
            code = err_set(msg, code, "%.120s: %.240s", from, why.text);
        }
    }
    return code;
}

static int add_rest_of_file(struct source *s, struct errmsg *msg)
{
    int code = 0;

    for (size_t i = 0; code == 0 && i < s->file.count; i++) {
        const struct profile *of_file = &s->file.list[i];

        if (!is_listed(s, of_file->name)) {
            code = add_host(s, slice_of(of_file->name), of_file->url, of_file, msg);
        }
    }
    return code;
}

/* ------------------------------------------------------------------ ARBE_T3_TOKEN */

static bool is_token(const char *text)
{
    size_t len = strlen(text);

    for (size_t i = 0; i < len; i++) {
        if (text[i] < 0x21 || text[i] > 0x7e) {
            return false;
        }
    }
    return len < T3_READER_TOKEN_BYTES;
}

/* With several hosts nobody knows for which it was meant. */
static int take_variable(struct t3_hosts *hosts, struct errmsg *msg)
{
    const char *token = getenv(TOKEN_VARIABLE);

    if (token == NULL || token[0] == '\0' || hosts->count == 0) {
        return 0;
    }
    if (hosts->count > 1) {
        return err_set(msg, ERR_INVALID,
                       TOKEN_VARIABLE " is for one host, and there are %zu: arbe t3 login keeps "
                                      "one for each",
                       hosts->count);
    }
    if (!is_token(token)) {
        return err_set(msg, ERR_INVALID,
                       TOKEN_VARIABLE " must be visible ASCII without spaces, less than %d bytes",
                       T3_READER_TOKEN_BYTES);
    }
    hosts->list[0].token = strdup(token);
    return hosts->list[0].token != NULL ? 0 : err_set(msg, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
}

/* ------------------------------------------------------------------ loading */

static int make_room(struct source *s, size_t words, struct errmsg *msg)
{
    s->hosts.list = calloc(words + s->file.count + 1, sizeof(s->hosts.list[0]));
    return s->hosts.list != NULL ? 0 : err_set(msg, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
}

int t3_hosts_check_way(const char *label, const char *url, bool allowed, struct errmsg *msg)
{
    char authority[T3_URL_BYTES];

    if (allowed || !t3_url_is_exposed(url)) {
        return 0;
    }
    t3_url_authority(url, authority, sizeof(authority));
    return err_set(msg, ERR_INVALID,
                   "%.30s%s%.50s is not encrypted, and its token could be read on the way: use "
                   "https, or \"allow-http = true\" in its section of the hosts' file; "
                   "arbe board and t3 take --allow-http",
                   label == NULL ? "" : label, label == NULL ? "" : ": ", authority);
}

/* A token that a list has, for a host to which it may not go. */
static int check_ways(const struct t3_hosts *hosts, bool allowed, struct errmsg *msg)
{
    int code = 0;

    for (size_t i = 0; code == 0 && i < hosts->count; i++) {
        const struct t3_host *host = &hosts->list[i];

        if (host->token != NULL || host->token_file != NULL) {
            code = t3_hosts_check_way(host->label, host->url, allowed || host->allow_http, msg);
        }
    }
    return code;
}

/* Of one server under two names each thread would be shown twice. */
static int check_urls(const struct t3_hosts *hosts, struct errmsg *msg)
{
    for (size_t i = 0; i < hosts->count; i++) {
        for (size_t j = 0; j < i; j++) {
            const struct t3_host *a = &hosts->list[j];
            const struct t3_host *b = &hosts->list[i];

            if (t3_url_same_server(a->url, b->url)) {
                return err_set(msg, ERR_INVALID,
                               "the host \"%.40s\" is the same server as \"%.40s\", and each "
                               "thread would be shown twice; leave one of them out",
                               b->label, a->label);
            }
        }
    }
    return 0;
}

/* Hands the list out, or forgets it. */
static int end(struct source *s, int code, bool allow_http, struct t3_hosts *ret_hosts,
               struct errmsg *msg)
{
    code = code == 0 ? check_urls(&s->hosts, msg) : code;
    code = code == 0 ? take_variable(&s->hosts, msg) : code;
    code = code == 0 ? check_ways(&s->hosts, allow_http, msg) : code;
    profiles_finish(&s->file);
    if (code != 0) {
        t3_hosts_finish(&s->hosts);
        return code;
    }
    *ret_hosts = s->hosts;
    return 0;
}

int t3_hosts_load(const struct t3_hosts_flags *flags, struct t3_hosts *ret_hosts,
                  struct errmsg *msg)
{
    struct source s = {.path = ""};
    int code = read_file(&s, flags->file, msg);

    code = code == 0 ? make_room(&s, flags->t3.count, msg) : code;
    code = code == 0
               ? add_words(&s, &flags->t3, flags->t3_from == NULL ? "--t3" : flags->t3_from, msg)
               : code;
    if (code == 0 && (flags->all_of_file || flags->t3.count == 0)) {
        code = add_rest_of_file(&s, msg);
    }
    return end(&s, code, flags->allow_http != 0, ret_hosts, msg);
}

/* A URL that no host of the file has is named by its authority. */
static int add_url(struct source *s, const char *url, struct errmsg *msg)
{
    char authority[T3_URL_BYTES];
    const char *why = t3_url_check(url);

    if (why != NULL) {
        return err_set(msg, ERR_INVALID, "that is no URL of a T3 server: %s", why);
    }
    const struct profile *of_file = find_url(s, url);

    if (of_file != NULL) {
        return add_host(s, slice_of(of_file->name), of_file->url, of_file, msg);
    }
    t3_url_authority(url, authority, sizeof(authority));
    return add_host(s, slice_of(authority), url, NULL, msg);
}

int t3_hosts_load_one(const char *word, const struct t3_hosts_flags *flags,
                      struct t3_hosts *ret_hosts, struct errmsg *msg)
{
    struct source s = {.path = ""};
    int code = read_file(&s, flags->file, msg);
    bool url = t3_url_is_meant(word) && strcspn(word, "=") > strcspn(word, ":");

    code = code == 0 ? make_room(&s, 1, msg) : code;
    if (code == 0) {
        code = url ? add_url(&s, word, msg) : add_word(&s, slice_of(word), msg);
    }
    return end(&s, code, flags->allow_http != 0, ret_hosts, msg);
}

static void wipe(char *text)
{
    if (text != NULL) {
        explicit_bzero(text, strlen(text));
    }
    free(text);
}

void t3_hosts_finish(struct t3_hosts *hosts)
{
    for (size_t i = 0; i < hosts->count; i++) {
        free(hosts->list[i].label);
        free(hosts->list[i].url);
        free(hosts->list[i].token_file);
        free(hosts->list[i].ca_file);
        free(hosts->list[i].file);
        wipe(hosts->list[i].token);
    }
    free(hosts->list);
    *hosts = (struct t3_hosts){.list = NULL};
}

/* ------------------------------------------------------------------ use */

int t3_host_token(const struct t3_host *host, char token[static T3_READER_TOKEN_BYTES],
                  struct errmsg *msg)
{
    struct slice secret = {"", 0};
    char memory[T3_READER_TOKEN_BYTES];
    int code = 0;

    token[0] = '\0';
    if (host->token != NULL) {
        secret = slice_of(host->token);
    } else if (host->token_file != NULL) {
        code = secret_read_long(host->token_file, memory, sizeof(memory), &secret, msg);
    }
    if (code == 0) {
        memcpy(token, secret.ptr, secret.len);
        token[secret.len] = '\0';
    }
    explicit_bzero(memory, sizeof(memory));
    return code;
}

/* A word for a shell, in quotes where it would mean something else without. */
static void add_shell_word(struct buf *out, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "%+,-./:=@_";

    if (word[0] != '\0' && word[strspn(word, plain)] == '\0') {
        buf_append(out, slice_of(word));
        return;
    }
    buf_append_char(out, '\'');
    for (; *word != '\0'; word++) {
        if (*word == '\'') {
            buf_append(out, SLICE("'\\''"));
        } else {
            buf_append_char(out, *word);
        }
    }
    buf_append_char(out, '\'');
}

void t3_host_login_words(struct buf *out, const char *label, const char *url, const char *file)
{
    buf_append(out, SLICE("arbe t3 login "));
    add_shell_word(out, url);
    buf_append(out, SLICE(" --host "));
    add_shell_word(out, label);
    if (t3_url_is_exposed(url)) {
        buf_append(out, SLICE(" --allow-http")); /* it was watched: somebody allowed it */
    }
    if (file != NULL) {
        buf_append(out, SLICE(" --t3-hosts "));
        add_shell_word(out, file);
    }
}

/* A file that others may read says itself what to do; one that is missing or broken is written anew
 * by signing in. */
static int tell_token(void *context, char token[T3_READER_TOKEN_BYTES],
                      char message[T3_RPC_MESSAGE_BYTES])
{
    const struct t3_host *host = context;
    struct errmsg msg = {{0}};
    struct buf text;
    int code = t3_host_token(host, token, &msg);

    if (code != 0) {
        buf_init_fixed(&text, message, T3_RPC_MESSAGE_BYTES);
        buf_append_format(&text, "%s", msg.text);
        if (code != ERR_PERM) {
            buf_append(&text, SLICE("; sign in with: "));
            t3_host_login_words(&text, host->label, host->url, host->file);
        }
        message[text.len] = '\0';
    }
    return code;
}

void t3_hosts_fill(const struct t3_host *host, struct t3_reader_options *options)
{
    options->token = tell_token;
    options->context = (void *)host; /* it only reads */
    options->rpc.ca_file = host->ca_file;
}

int t3_hosts_watch(const struct t3_hosts *hosts, struct t3_watch *watch, struct errmsg *msg)
{
    struct t3_reader_options options;
    int code = 0;

    for (size_t i = 0; code == 0 && i < hosts->count; i++) {
        t3_reader_options_init(&options);
        t3_hosts_fill(&hosts->list[i], &options);
        code = t3_watch_add(watch, hosts->list[i].label, hosts->list[i].url, &options, msg);
    }
    return code;
}
