/* The text is read whole and cut in place; profiles borrow from it. */
#include "cli/profile.h"

#include "cli/config_file.h"
#include "cli/config_home.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

const struct profile_form profile_form = {.file = "profiles' file", .section = "profile"};

bool profiles_locate(char *out, size_t size)
{
    const char *file = getenv("ARBE_PROFILES");

    if (file == NULL || file[0] == '\0') {
        return config_home_path("profiles", out, size);
    }
    (void)snprintf(out, size, "%s", file);
    return true;
}

/* Whether the file is there and to be trusted: 1, 0 when it is not there, or an error. */
static int check_file(const struct profile_form *form, const char *path, struct errmsg *msg)
{
    struct stat info;

    if (stat(path, &info) != 0) {
        if (errno == ENOENT || errno == ENOTDIR) {
            return 0;
        }
        return err_set(msg, ERR_IO, "cannot look at the %s %.100s: %s", form->file, path,
                       strerror(errno));
    }
    if (info.st_uid != geteuid() && info.st_uid != 0) {
        return err_set(msg, ERR_PERM, "the %s %.100s belongs to another user", form->file, path);
    }
    if ((info.st_mode & 022) != 0) {
        return err_set(msg, ERR_PERM,
                       "the %s %.80s may be written by others (mode %o); run: chmod go-w %.80s",
                       form->file, path, (unsigned)info.st_mode & 0777u, path);
    }
    return 1;
}

static char *trim(char *text)
{
    size_t len = strlen(text);

    while (len > 0 && strchr(" \t\r", text[len - 1]) != NULL) {
        text[--len] = '\0';
    }
    return text + strspn(text, " \t\r");
}

static int begin_profile(struct profiles *p, char *name, const char *where, struct errmsg *msg)
{
    size_t len = strlen(name);

    if (name[len - 1] != ']' || len < 3) {
        return err_set(msg, ERR_INVALID, "%s: a %s begins with [NAME]", where, p->form->section);
    }
    name[len - 1] = '\0';
    name = trim(name + 1);
    if (profiles_find(p, name) != NULL) {
        return err_set(msg, ERR_INVALID, "%s: there are two %ss \"%.40s\"", where, p->form->section,
                       name);
    }
    if (p->count == PROFILES_MAX) {
        return err_set(msg, ERR_INVALID, "%s: at most %u %ss", where, PROFILES_MAX,
                       p->form->section);
    }
    p->list[p->count++] = (struct profile){.name = name};
    return 0;
}

static int set_value(struct profiles *p, const char *name, const char *value, const char *where,
                     struct errmsg *msg)
{
    struct profile *last = p->count == 0 ? NULL : &p->list[p->count - 1];
    bool is_allow_http = p->form->has_allow_http && strcmp(name, "allow-http") == 0;
    const char **place = last == NULL                       ? NULL
                         : is_allow_http                    ? &last->allow_http_text
                         : strcmp(name, "url") == 0         ? &last->url
                         : strcmp(name, "secret-file") == 0 ? &last->secret_file
                         : strcmp(name, "ca-file") == 0     ? &last->ca_file
                                                            : NULL;

    if (last == NULL) {
        return err_set(msg, ERR_INVALID, "%s: a %s begins with [NAME]", where, p->form->section);
    }
    if (strcmp(name, "secret") == 0) {
        return err_set(msg, ERR_INVALID,
                       "%s: a secret has no place here: put it in a file that only you can read, "
                       "and name that with secret-file",
                       where);
    }
    if (place == NULL) {
        return err_set(msg, ERR_INVALID, "%s: \"%.40s\" is not known; a %s has url, secret-file%s",
                       where, name, p->form->section,
                       p->form->has_allow_http ? ", ca-file and allow-http" : " and ca-file");
    }
    if (*place != NULL || value[0] == '\0') {
        return value[0] == '\0' ? err_set(msg, ERR_INVALID, "%s: %s needs a value", where, name)
                                : err_set(msg, ERR_INVALID, "%s: %s stands in this %s already",
                                          where, name, p->form->section);
    }
    if (is_allow_http && strcmp(value, "true") != 0 && strcmp(value, "false") != 0) {
        return err_set(msg, ERR_INVALID, "%s: allow-http is true or false", where);
    }
    *place = value;
    last->allow_http = last->allow_http_text != NULL && strcmp(last->allow_http_text, "true") == 0;
    return 0;
}

static int take_line(struct profiles *p, char *line, const char *where, struct errmsg *msg)
{
    char *text = trim(line);
    char *equals = strchr(text, '=');

    if (text[0] == '\0' || text[0] == '#') {
        return 0;
    }
    if (text[0] == '[') {
        return begin_profile(p, text, where, msg);
    }
    if (equals == NULL) {
        return err_set(msg, ERR_INVALID, "%s: a line is [NAME] or name = value", where);
    }
    *equals = '\0';
    return set_value(p, trim(text), trim(equals + 1), where, msg);
}

static int take_lines(struct profiles *p, const char *path, struct errmsg *msg)
{
    char where[140];
    unsigned number = 1;
    int code = 0;

    for (char *line = p->text; code == 0 && line != NULL; number++) {
        char *end = strchr(line, '\n');

        if (end != NULL) {
            *end = '\0';
        }
        (void)snprintf(where, sizeof(where), "%.100s:%u", path, number);
        code = take_line(p, line, where, msg);
        line = end == NULL ? NULL : end + 1;
    }
    for (size_t i = 0; code == 0 && i < p->count; i++) {
        if (p->list[i].url == NULL) {
            code = err_set(msg, ERR_INVALID, "%.100s: the %s \"%.40s\" has no url", path,
                           p->form->section, p->list[i].name);
        }
    }
    return code;
}

int profiles_read(const char *path, const struct profile_form *form, struct profiles *ret_profiles,
                  struct errmsg *msg)
{
    struct profiles p = {.form = form};
    int code = check_file(form, path, msg);

    if (code <= 0) {
        if (code == 0) {
            *ret_profiles = p;
        }
        return code;
    }
    p.list = calloc(PROFILES_MAX, sizeof(p.list[0]));
    if (p.list == NULL) {
        return err_set(msg, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
    }
    code = config_file_read(path, form->file, &p.text, msg);
    if (code == 0) {
        code = take_lines(&p, path, msg);
    }
    if (code != 0) {
        profiles_finish(&p);
        return code;
    }
    *ret_profiles = p;
    return 0;
}

void profiles_finish(struct profiles *p)
{
    free(p->list);
    free(p->text);
    *p = (struct profiles){.list = NULL};
}

const struct profile *profiles_find(const struct profiles *p, const char *name)
{
    for (size_t i = 0; i < p->count; i++) {
        if (strcmp(p->list[i].name, name) == 0) {
            return &p->list[i];
        }
    }
    return NULL;
}

bool profile_url_covers(const char *base, const char *url)
{
    size_t len = strlen(base);

    while (len > 0 && base[len - 1] == '/') {
        len--;
    }
    return len > 0 && strncmp(base, url, len) == 0 && (url[len] == '/' || url[len] == '\0');
}

const struct profile *profiles_match(const struct profiles *p, const char *url)
{
    const struct profile *best = NULL;

    for (size_t i = 0; i < p->count; i++) {
        if (profile_url_covers(p->list[i].url, url) &&
            (best == NULL || strlen(p->list[i].url) > strlen(best->url))) {
            best = &p->list[i];
        }
    }
    return best;
}

int profile_file_path(const char *profiles_path, const char *file, char *out, size_t size,
                      struct errmsg *msg)
{
    const char *home = getenv("HOME");
    const char *slash = strrchr(profiles_path, '/');
    int len;

    if (strncmp(file, "~/", 2) == 0) {
        if (home == NULL || home[0] == '\0') {
            return err_set(msg, ERR_INVALID, "%.100s: there is no HOME for this path", file);
        }
        len = snprintf(out, size, "%s%s", home, file + 1);
    } else if (file[0] == '/' || slash == NULL) {
        len = snprintf(out, size, "%s", file);
    } else {
        len = snprintf(out, size, "%.*s/%s", (int)(slash - profiles_path), profiles_path, file);
    }
    if (len < 0 || (size_t)len >= size) {
        return err_set(msg, ERR_INVALID, "%.100s: the path is too long", file);
    }
    return 0;
}
