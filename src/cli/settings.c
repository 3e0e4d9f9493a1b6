/* The table, then what is done with it. */
#include "cli/settings.h"

#include "base/limits.h"
#include "base/number.h"
#include "cli/config_file.h"
#include "net/listener.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define CONNECTIONS_DEFAULT 10000u
#define WORKERS_MAX         256u
#define DESCRIPTORS_SPARE   16u           /* for standard streams, log, catalog, loops */
#define SEGMENT_UNIT        (64ull * KIB) /* log segments are whole pages of every kind */
#define DAY_MS              (24ull * 3600 * 1000)
#define COUNT_MOST          1000000000000ull /* of a limit that need not be there at all */
#define SIZE_MOST           (1ull << 50)     /* likewise */

#define AT(field) offsetof(struct settings, field)

static const struct flag flags[] = {
    {"config", "FILE", NULL, "file with lines of name = value, named as these flags", NULL,
     FLAG_CONFIG, AT(config), 0, 0},
    {"print-config", NULL, NULL, "print the settings in force as such a file, and end", NULL,
     FLAG_ACTION, AT(print_config), 0, 0},
    {"listen", "HOST:PORT", "127.0.0.1:4437", "address to listen on; port 0 picks one", NULL,
     FLAG_TEXT, AT(listen), 0, 0},
    {"data", "DIR", "./data", "data directory, made when missing", NULL, FLAG_TEXT, AT(data), 0, 0},
    {"durability", "sync|os|memory", "sync",
     "what an acknowledged append survives: power loss, a crash, nothing", "sync|os|memory",
     FLAG_CHOICE, AT(durability), 0, 0},
    {"workers", "N", NULL, "threads that serve connections (default: one per core)", NULL,
     FLAG_COUNT, AT(workers), 1, WORKERS_MAX},
    {"secret-file", "FILE", NULL, "file with the bearer secret that every request must show", NULL,
     FLAG_TEXT, AT(secret_file), 0, 0},
    {"insecure", NULL, NULL, "listen beyond loopback without a secret", NULL, FLAG_SWITCH,
     AT(insecure), 0, 0},
    {"public-url", "URL", NULL,
     "what URLs to this server begin with (default: Host, for webhooks the address listened on)",
     NULL, FLAG_TEXT, AT(public_url), 0, 0},
    {"webhooks-allow-loopback", NULL, NULL,
     "let webhooks go to this machine, also by http: for development", NULL, FLAG_SWITCH,
     AT(webhooks_allow_loopback), 0, 0},
    {"long-poll-timeout", "TIME", "30s", "a long-poll without data ends after this", NULL,
     FLAG_DURATION, AT(long_poll_timeout_ms), 1, 3600 * 1000},
    {"sse-lifetime", "TIME", "60s", "an SSE connection ends cleanly after about this", NULL,
     FLAG_DURATION, AT(sse_lifetime_ms), 1, DAY_MS},
    {"sse-heartbeat", "TIME", "15s", "a quiet SSE connection gets a comment after this", NULL,
     FLAG_DURATION, AT(sse_heartbeat_ms), 1, DAY_MS},
    {"read-page", "SIZE", "4MiB", "most bytes of one catch-up answer", NULL, FLAG_SIZE,
     AT(read_page_bytes), 1, 1024ull * MIB},
    {"max-body", "SIZE", "64MiB", "most bytes of one request body", NULL, FLAG_SIZE,
     AT(body_bytes_max), 1, 512ull * MIB},
    {"max-connections", "N", NULL, "open connections (default: 10000, or what descriptors allow)",
     NULL, FLAG_COUNT, AT(connections), 1, 1000000},
    {"max-streams", "N", NULL, "streams the server keeps, 507 above (default: any number)", NULL,
     FLAG_COUNT, AT(limits.streams_max), 0, COUNT_MOST},
    {"max-bytes", "SIZE", NULL, "bytes that all streams hold, 507 above (default: any number)",
     NULL, FLAG_SIZE, AT(limits.bytes_max), 0, SIZE_MOST},
    {"max-request-rate", "N", NULL, "requests per second, 429 above (default: any number)", NULL,
     FLAG_COUNT, AT(limits.requests_per_second), 0, COUNT_MOST},
    {"max-write-rate", "SIZE", NULL,
     "bytes of request bodies per second, 429 above (default: any number)", NULL, FLAG_SIZE,
     AT(limits.body_bytes_per_second), 0, SIZE_MOST},
    {"max-waiters", "N", NULL, "live readers at a time, 503 above (default: any number)", NULL,
     FLAG_COUNT, AT(limits.waiters_max), 0, COUNT_MOST},
    {"wal-segment", "SIZE", "64MiB", "bytes of one file of the write-ahead log", NULL, FLAG_SIZE,
     AT(wal_segment_bytes), SEGMENT_UNIT, 1024ull * MIB},
    {"checkpoint-bytes", "SIZE", "256MiB", "log bytes after which a checkpoint is made", NULL,
     FLAG_SIZE, AT(checkpoint_bytes), SEGMENT_UNIT, 64ull * 1024 * MIB},
    {"checkpoint-interval", "TIME", "30s", "longest time between checkpoints", NULL, FLAG_DURATION,
     AT(checkpoint_interval_ms), 10, DAY_MS},
    {"cors-origin", "ORIGIN", "*", "Access-Control-Allow-Origin", NULL, FLAG_TEXT, AT(cors_origin),
     0, 0},
    {"log-file", "FILE", NULL, "append the operator's lines to a file, opened anew at SIGHUP", NULL,
     FLAG_TEXT, AT(log_file), 0, 0},
    {"log-level", "debug|info|warn|error", "info",
     "least important lines; debug tells each request", "debug|info|warn|error", FLAG_CHOICE,
     AT(log_level), 0, 0},
    {"log-format", "text|json", "text", "how the operator's lines look", "text|json", FLAG_CHOICE,
     AT(log_format), 0, 0},
    /* Those of `arbe serve` alone, see flag_count. */
    {"streams-url", "URL", NULL,
     "another Durable Streams server that has the threads' streams (default: this one)", NULL,
     FLAG_TEXT, AT(streams_url), 0, 0},
    {"streams-secret-file", "FILE", NULL, "file with that server's bearer secret", NULL, FLAG_TEXT,
     AT(streams_secret_file), 0, 0},
    {"t3", "HOST=URL", NULL,
     "T3 Code server for the board, or HOST of the hosts' file; may be given again (default: none)",
     NULL, FLAG_LIST, AT(t3), 0, 0},
    {"t3-hosts", "FILE", NULL,
     "the hosts' file, with tokens for T3; without --t3 all of it is watched", NULL, FLAG_TEXT,
     AT(t3_hosts), 0, 0},
};

#define SERVE_FLAGS 4u

/* How many of the flags a program knows. */
static size_t flag_count(enum settings_program program)
{
    return ARRAY_COUNT(flags) - (program == SETTINGS_SERVE ? 0 : SERVE_FLAGS);
}

void settings_print_help(enum settings_program program, FILE *out)
{
    flags_print_help(flags, flag_count(program), out);
}

/* Whether text is "http://" or "https://" and an authority, with a path only where one is
 * allowed. */
static bool is_url(struct slice text, bool path_allowed)
{
    size_t scheme = slice_starts_with(text, SLICE("http://"))    ? 7
                    : slice_starts_with(text, SLICE("https://")) ? 8
                                                                 : 0;

    if (scheme == 0 || text.len == scheme || text.len > 512) {
        return false;
    }
    for (size_t i = scheme; i < text.len; i++) {
        char c = text.ptr[i];

        if (c <= ' ' || c > '~' || strchr("?#\"<>\\^`{|}", c) != NULL ||
            (c == '/' && !path_allowed)) {
            return false;
        }
    }
    return text.ptr[scheme] != '/';
}

/* "HOST:PORT", where HOST is a numeric address, "localhost", or in brackets. Whether it can be
 * bound is found out by binding. */
static bool is_address(const char *text)
{
    const char *colon = strrchr(text, ':');
    char host[64];
    unsigned char binary[sizeof(struct in6_addr)];
    uint64_t port = 0;
    size_t len = colon == NULL ? 0 : (size_t)(colon - text);

    if (len == 0 || len >= sizeof(host) ||
        !number_parse_u64(slice_of(colon + 1), 65535, false, &port)) {
        return false;
    }
    memcpy(host, text, len);
    host[len] = '\0';
    if (host[0] == '[' && host[len - 1] == ']') {
        host[len - 1] = '\0';
        return inet_pton(AF_INET6, host + 1, binary) == 1;
    }
    return strcmp(host, "localhost") == 0 || inet_pton(AF_INET, host, binary) == 1;
}

static int check(const struct settings *settings, struct errmsg *msg)
{
    if (!is_address(settings->listen)) {
        return err_set(
            msg, ERR_INVALID,
            "--listen: \"%.60s\" is not good: it takes HOST:PORT, where HOST is a numeric "
            "address or localhost and PORT is 0 to 65535, such as 127.0.0.1:4437 or [::1]:4437",
            settings->listen);
    }
    if (settings->secret_file == NULL && !settings->insecure &&
        !listener_is_loopback(settings->listen)) {
        return err_set(
            msg, ERR_INVALID,
            "--listen %.60s would serve everybody who can reach it: give --secret-file, or "
            "--insecure to do so anyway",
            settings->listen);
    }
    if (settings->public_url != NULL && !is_url(slice_of(settings->public_url), true)) {
        return err_set(
            msg, ERR_INVALID,
            "--public-url: \"%.60s\" is not good: it takes http:// or https:// and a host",
            settings->public_url);
    }
    if (strcmp(settings->cors_origin, "*") != 0 &&
        !is_url(slice_of(settings->cors_origin), false)) {
        return err_set(msg, ERR_INVALID,
                       "--cors-origin: \"%.60s\" is not good: it takes * or an origin such as "
                       "https://app.example",
                       settings->cors_origin);
    }
    if (settings->streams_url != NULL && !is_url(slice_of(settings->streams_url), true)) {
        return err_set(
            msg, ERR_INVALID,
            "--streams-url: \"%.60s\" is not good: it takes http:// or https://, a host, "
            "and the path below which streams stand, such as "
            "http://127.0.0.1:4438/v1/stream/",
            settings->streams_url);
    }
    if (settings->streams_secret_file != NULL && settings->streams_url == NULL) {
        return err_set(msg, ERR_INVALID,
                       "--streams-secret-file is for another server: give --streams-url too");
    }
    return 0;
}

/* Raises the soft limit on descriptors to the hard one and says how many there are. */
static uint64_t descriptors(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return 1024;
    }
    rlim_t before = limit.rlim_cur;

    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
        limit.rlim_cur = before;
    }
    return limit.rlim_cur == RLIM_INFINITY ? UINT32_MAX : (uint64_t)limit.rlim_cur;
}

int settings_choose_connections(const struct settings *settings, uint32_t *ret_count,
                                struct errmsg *msg)
{
    uint64_t all = descriptors();
    uint64_t kept = PACK_FDS_MAX + 4 * DESCRIPTORS_SPARE;
    uint64_t most = all > DESCRIPTORS_SPARE ? all - DESCRIPTORS_SPARE : 1;

    if (settings->connections > most) {
        return err_set(msg, ERR_INVALID,
                       "--max-connections: %llu is not good: the limit on descriptors (ulimit -n) "
                       "allows 1 to %llu",
                       (unsigned long long)settings->connections, (unsigned long long)most);
    }
    uint64_t count = all > 2 * kept ? all - kept : all / 2;

    count = count > CONNECTIONS_DEFAULT ? CONNECTIONS_DEFAULT : count;
    *ret_count = (uint32_t)(settings->connections > 0 ? settings->connections : count);
    return 0;
}

static unsigned cores(void)
{
    long count = sysconf(_SC_NPROCESSORS_ONLN);

    if (count < 1) {
        return 1;
    }
    return count > (long)WORKERS_MAX ? WORKERS_MAX : (unsigned)count;
}

void settings_fill(const struct settings *settings, struct serve_config *config)
{
    uint64_t units = (settings->wal_segment_bytes + SEGMENT_UNIT - 1) / SEGMENT_UNIT;

    config->listen = settings->listen;
    config->data_dir = settings->data;
    config->durability = (enum durability)settings->durability;
    config->worker_count = settings->workers > 0 ? (unsigned)settings->workers : cores();
    config->cors_origin = settings->cors_origin;
    config->webhooks_allow_loopback = settings->webhooks_allow_loopback != 0;
    config->long_poll_timeout_ms = settings->long_poll_timeout_ms;
    config->sse_lifetime_ms = settings->sse_lifetime_ms;
    config->sse_heartbeat_ms = settings->sse_heartbeat_ms;
    config->checkpoint_interval_ms = settings->checkpoint_interval_ms;
    config->checkpoint_bytes = settings->checkpoint_bytes;
    config->wal_segment_bytes = units * SEGMENT_UNIT;
    config->body_bytes_max = settings->body_bytes_max;
    config->read_page_bytes = (uint32_t)settings->read_page_bytes;
    config->logger = (struct logger){.fd = STDERR_FILENO,
                                     .format = (enum logger_format)settings->log_format,
                                     .level = (enum logger_level)settings->log_level};
}

static int load(struct settings *settings, struct settings_sources *sources, int argc, char **argv,
                struct errmsg *msg)
{
    const struct flag_table table = {flags, flag_count(settings->program), settings,
                                     sources->origins};
    int code = flags_check_environment(&table, environ, msg);

    if (code == 0) {
        code = flags_parse(&table, argc, argv, getenv, msg);
    }
    if (code != 0 || settings->config == NULL) {
        return code;
    }
    /* Once more from the weakest on: the file stands below what named it. */
    const char *path = settings->config;

    code = config_file_read(path, "configuration file", &sources->file, msg);
    if (code != 0) {
        return code;
    }
    *settings = (struct settings){.program = settings->program};
    code = flags_set_defaults(&table, msg);
    if (code == 0) {
        code = config_file_apply(path, sources->file, &table, msg);
    }
    if (code == 0) {
        code = flags_set_environment(&table, getenv, msg);
    }
    return code == 0 ? flags_set_arguments(&table, argc, argv, msg) : code;
}

int settings_load(struct settings *settings, struct settings_sources *sources, int argc,
                  char **argv, struct errmsg *msg)
{
    sources->origins = calloc(ARRAY_COUNT(flags), sizeof(*sources->origins));
    if (sources->origins == NULL) {
        return err_set(msg, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
    }
    int code = load(settings, sources, argc, argv, msg);

    return code == 0 ? check(settings, msg) : code;
}

void settings_finish(struct settings_sources *sources)
{
    free(sources->file);
    free(sources->origins);
    *sources = (struct settings_sources){.file = NULL};
}

static void format_origin(struct buf *out, const struct flag_origin *origin, const char *path)
{
    switch (origin->source) {
    case FLAG_FROM_DEFAULT:
        break;
    case FLAG_FROM_FILE:
        buf_append_format(out, "# from %s:%u\n", path, origin->line);
        break;
    case FLAG_FROM_ENVIRONMENT:
        buf_append(out, SLICE("# from the environment\n"));
        break;
    case FLAG_FROM_ARGUMENT:
        buf_append(out, SLICE("# from the command line\n"));
        break;
    }
}

/* What is not set is a comment. */
bool settings_print(const struct settings *settings, const struct settings_sources *sources,
                    FILE *out)
{
    struct buf text;

    buf_init(&text, CONFIG_FILE_BYTES_MAX);
    for (size_t i = 0; i < flag_count(settings->program); i++) {
        const struct flag *flag = &flags[i];

        if (!flags_is_setting(flag)) {
            continue;
        }
        size_t start = text.len;

        format_origin(&text, &sources->origins[i], settings->config);
        buf_append_format(&text, "%s = ", flag->name);
        size_t value = text.len;

        flags_format(flag, settings, &text);
        if (text.len == value) {
            text.len = start;
            buf_append_format(&text, "# %s =", flag->name);
        }
        buf_append_char(&text, '\n');
    }
    bool good = !text.failed && fwrite(text.ptr, 1, text.len, out) == text.len;

    buf_finish(&text);
    return fflush(out) == 0 && good;
}

/* The flags that SIGHUP reloads; the others take a restart. */
static const char *const reloadable[] = {"secret-file", "max-connections",  "max-streams",
                                         "max-bytes",   "max-request-rate", "max-write-rate",
                                         "max-waiters", "log-level"};

static bool is_reloadable(const struct flag *flag)
{
    for (size_t i = 0; i < ARRAY_COUNT(reloadable); i++) {
        if (strcmp(flag->name, reloadable[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool differs(const struct flag *flag, const struct settings *a, const struct settings *b)
{
    struct buf text[2];

    buf_init(&text[0], CONFIG_FILE_BYTES_MAX); /* of a list of URLs, above all */
    buf_init(&text[1], CONFIG_FILE_BYTES_MAX);
    flags_format(flag, a, &text[0]);
    flags_format(flag, b, &text[1]);
    bool same = slice_equal(buf_slice(&text[0]), buf_slice(&text[1]));

    buf_finish(&text[0]);
    buf_finish(&text[1]);
    return !same;
}

void settings_tell_restart(const struct settings *running, const struct settings *now,
                           struct errmsg *msg)
{
    for (size_t i = 0; i < flag_count(now->program); i++) {
        if (flags_is_setting(&flags[i]) && !is_reloadable(&flags[i]) &&
            differs(&flags[i], running, now)) {
            (void)err_set(msg, 0, "%s takes a restart to change", flags[i].name);
            return;
        }
    }
}

void settings_log(const struct settings *settings, const struct logger *logger)
{
    struct logger_field fields[ARRAY_COUNT(flags)];
    struct buf values;
    size_t count = 0;

    buf_init(&values, CONFIG_FILE_BYTES_MAX);
    for (size_t i = 0; i < flag_count(settings->program); i++) {
        size_t start = values.len;

        if (flags_is_setting(&flags[i])) {
            flags_format(&flags[i], settings, &values);
        }
        if (values.len > start) {
            fields[count++] = (struct logger_field){.key = flags[i].name,
                                                    .text = {NULL, values.len - start}};
        }
    }
    const char *at = values.ptr; /* which does not move any more */

    for (size_t i = 0; i < count; i++) {
        fields[i].text.ptr = at;
        at += fields[i].text.len;
    }
    if (!values.failed) {
        logger_fields(logger, LOGGER_INFO, "settings", fields, count);
    }
    buf_finish(&values);
}
