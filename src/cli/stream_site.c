/* First the base URL and the profile that it comes from, then name and secret. */
#include "cli/stream_site.h"

#include "cli/profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROUTE         "/v1/stream/"
#define PROFILE_USUAL "default"

/* What the choice is made from. */
struct chooser {
    const struct site_wish *wish;
    struct profiles profiles;
    char profiles_path[SITE_PATH_BYTES_MAX]; /* empty: there is nowhere to look */
    const struct profile *profile;           /* that says the URL, or has it; NULL: none */
    const char *url;                         /* of the base */
    bool own; /* the command's first server, and none that a whole URL leads to */
};

static const char *environment(const char *name)
{
    const char *value = getenv(name);

    return value == NULL || value[0] == '\0' ? NULL : value;
}

static bool is_url(const char *text)
{
    return strncmp(text, "http://", 7) == 0 || strncmp(text, "https://", 8) == 0;
}

/* Where the path of a URL begins: at its third slash, or at its end. */
static const char *path_of(const char *url)
{
    const char *host = strstr(url, "://") + 3;

    return host + strcspn(host, "/");
}

static int check_url(const char *url, const char *what, struct errmsg *msg)
{
    if (!is_url(url)) {
        return err_set(msg, ERR_INVALID,
                       "%s: \"%.80s\" is not good: a URL begins with http:// or https://", what,
                       url);
    }
    const char *path = path_of(url);
    const char *host = strstr(url, "://") + 3;

    if (path == host) {
        return err_set(msg, ERR_INVALID, "%s: \"%.80s\" names no host", what, url);
    }
    if (memchr(host, '@', (size_t)(path - host)) != NULL) {
        return err_set(msg, ERR_INVALID,
                       "%s: a URL is no place for a password: others see it; use --secret-file",
                       what);
    }
    if (strpbrk(url, "?# ") != NULL) {
        return err_set(msg, ERR_INVALID,
                       "%s: \"%.80s\" is not good: it takes a URL without query, fragment and "
                       "space",
                       what, url);
    }
    if (strlen(url) > SITE_URL_BYTES_MAX - sizeof(ROUTE)) {
        return err_set(msg, ERR_INVALID, "%s: a URL has at most %u bytes", what,
                       SITE_URL_BYTES_MAX - (unsigned)sizeof(ROUTE));
    }
    return 0;
}

static int find_profile(struct chooser *c, const char *name, struct errmsg *msg)
{
    c->profile = profiles_find(&c->profiles, name);
    if (c->profile == NULL) {
        return err_set(msg, ERR_INVALID, "there is no profile \"%.40s\" in %.120s", name,
                       c->profiles_path[0] == '\0' ? "any file: HOME is not set"
                                                   : c->profiles_path);
    }
    c->url = c->profile->url;
    return check_url(c->url, c->profile->name, msg);
}

/* The base for names. */
static int choose_base(struct chooser *c, struct errmsg *msg)
{
    const struct site_wish *wish = c->wish;
    const char *what = wish->url != NULL ? "--url" : "ARBE_URL";
    const char *name = wish->profile;

    c->url = wish->url;
    if (wish->url != NULL && wish->profile != NULL) {
        return err_set(msg, ERR_INVALID, "--url and --profile exclude each other");
    }
    if (c->url == NULL && name == NULL) {
        c->url = environment("ARBE_URL");
    }
    if (c->url != NULL) {
        c->profile = profiles_match(&c->profiles, c->url);
        return check_url(c->url, what, msg);
    }
    if (name == NULL) {
        name = environment("ARBE_PROFILE");
    }
    if (name == NULL && profiles_find(&c->profiles, PROFILE_USUAL) != NULL) {
        name = PROFILE_USUAL;
    }
    if (name != NULL) {
        return find_profile(c, name, msg);
    }
    c->url = SITE_URL_DEFAULT;
    return 0;
}

/* Writes the base with its slash. A URL of a host only stands for a server of the usual route. */
static void write_base(const char *url, size_t len, char out[static SITE_URL_BYTES_MAX])
{
    while (len > 0 && url[len - 1] == '/') {
        len--;
    }
    if (path_of(url) >= url + len) {
        (void)snprintf(out, SITE_URL_BYTES_MAX, "%.*s%s", (int)len, url, ROUTE);
    } else {
        (void)snprintf(out, SITE_URL_BYTES_MAX, "%.*s/", (int)len, url);
    }
}

static int digit_of(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* The name that a URL's path says: decoded, but for %2F and %25, which names keep as they are. */
static int write_name(const char *path, char out[static SITE_URL_BYTES_MAX], struct errmsg *msg)
{
    size_t len = 0;

    while (*path != '\0') {
        int high = path[0] == '%' ? digit_of(path[1]) : 0;
        int low = path[0] == '%' && high >= 0 ? digit_of(path[2]) : 0;
        char byte = (char)(high * 16 + low);

        if (high < 0 || low < 0 || (path[0] == '%' && byte == '\0')) {
            return err_set(msg, ERR_INVALID,
                           "\"%.80s\" is not good: a %% is followed by two hex digits, and not 00",
                           path);
        }
        if (path[0] != '%' || byte == '/' || byte == '%') {
            out[len++] = *path++;
        } else {
            out[len++] = byte;
            path += 3;
        }
    }
    out[len] = '\0';
    return 0;
}

/* A whole URL: below the base, else below a profile's URL, else below what looks like the base. */
static int choose_by_url(struct chooser *c, struct site *site, struct errmsg *msg)
{
    const char *stream = c->wish->stream;
    int code = check_url(stream, "the stream", msg);
    size_t len;

    if (code != 0) {
        return code;
    }
    write_base(c->url, strlen(c->url), site->url);
    len = strlen(site->url);
    if (strncmp(site->url, stream, len) != 0) {
        const char *route = strstr(path_of(stream), ROUTE);

        if (c->wish->url != NULL || c->wish->profile != NULL) {
            return err_set(msg, ERR_INVALID, "\"%.80s\" is not below %.120s", stream, site->url);
        }
        c->own = false;
        c->profile = profiles_match(&c->profiles, stream);
        if (c->profile != NULL) {
            write_base(c->profile->url, strlen(c->profile->url), site->url);
        }
        len = strlen(site->url);
        if (c->profile == NULL || strncmp(site->url, stream, len) != 0) {
            len = route != NULL ? (size_t)(route - stream) + sizeof(ROUTE) - 1
                                : (size_t)(path_of(stream) - stream) + 1;
            (void)snprintf(site->url, sizeof(site->url), "%.*s", (int)len, stream);
        }
    }
    if (strlen(stream) <= len) {
        return err_set(msg, ERR_INVALID, "\"%.80s\" names no stream", stream);
    }
    return write_name(stream + len, site->name, msg);
}

static int choose_by_name(const struct chooser *c, struct site *site, struct errmsg *msg)
{
    const char *name = c->wish->stream == NULL ? "" : c->wish->stream;

    write_base(c->url, strlen(c->url), site->url);
    if (c->wish->stream != NULL && (name[0] == '\0' || name[0] == '/')) {
        return err_set(msg, ERR_INVALID,
                       "\"%.80s\" is not good: a stream is its name, without a slash in front, or "
                       "its whole URL",
                       name);
    }
    if (strlen(name) >= sizeof(site->name)) {
        return err_set(msg, ERR_INVALID, "a name has at most %zu bytes", sizeof(site->name) - 1);
    }
    (void)snprintf(site->name, sizeof(site->name), "%s", name);
    return 0;
}

static int read_secret(const char *path, struct site *site, struct errmsg *msg)
{
    char memory[SECRET_BYTES_MAX];
    struct slice secret;
    int code = secret_read(path, memory, &secret, msg);

    if (code == 0) {
        (void)snprintf(site->secret, sizeof(site->secret), "%.*s", (int)secret.len, secret.ptr);
    }
    return code;
}

/* A secret that the environment names is for the server that the environment names. Where it names
 * none, it is for the command's own. */
static bool environment_fits(const struct chooser *c, const char *base)
{
    char own[SITE_URL_BYTES_MAX];
    struct errmsg msg = {{0}};
    const char *url = environment("ARBE_URL");
    const char *name = environment("ARBE_PROFILE");

    if (url == NULL && name == NULL) {
        return c->own;
    }
    if (url == NULL) {
        const struct profile *profile = profiles_find(&c->profiles, name);

        url = profile == NULL ? "" : profile->url;
    }
    if (check_url(url, "ARBE_URL", &msg) != 0) {
        return false;
    }
    write_base(url, strlen(url), own);
    return profile_url_covers(own, base);
}

static int choose_credentials(const struct chooser *c, struct site *site, struct errmsg *msg)
{
    const char *secret = c->wish->secret_file;
    const char *ca = c->wish->ca_file != NULL ? c->wish->ca_file : environment("ARBE_CA_FILE");
    char path[SITE_PATH_BYTES_MAX];
    int code = 0;

    if (secret == NULL && c->profile != NULL && c->profile->secret_file != NULL) {
        code = profile_file_path(c->profiles_path, c->profile->secret_file, path, sizeof(path),
                                 msg);
        secret = path;
    } else if (secret == NULL && environment_fits(c, site->url)) {
        secret = environment("ARBE_SECRET_FILE");
    }
    if (code == 0 && secret != NULL) {
        code = read_secret(secret, site, msg);
    }
    if (code == 0 && ca != NULL) {
        (void)snprintf(site->ca_file, sizeof(site->ca_file), "%s", ca);
    } else if (code == 0 && c->profile != NULL && c->profile->ca_file != NULL) {
        code = profile_file_path(c->profiles_path, c->profile->ca_file, site->ca_file,
                                 sizeof(site->ca_file), msg);
    }
    return code;
}

int site_choose(const struct site_wish *wish, struct site *ret_site, struct errmsg *msg)
{
    struct chooser c = {.wish = wish, .own = !wish->foreign};
    struct site site = {.url = ""};
    int code = 0;

    if (profiles_locate(c.profiles_path, sizeof(c.profiles_path))) {
        code = profiles_read(c.profiles_path, &profile_form, &c.profiles, msg);
    }
    if (code == 0) {
        code = choose_base(&c, msg);
    }
    if (code == 0) {
        code = wish->stream != NULL && is_url(wish->stream) ? choose_by_url(&c, &site, msg)
                                                            : choose_by_name(&c, &site, msg);
    }
    if (code == 0) {
        code = choose_credentials(&c, &site, msg);
    }
    profiles_finish(&c.profiles);
    if (code == 0) {
        *ret_site = site;
    }
    return code;
}
