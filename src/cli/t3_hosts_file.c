/* A section is its heading and all lines to its last value; blank lines and comments behind that
 * belong to what follows. */
#include "cli/t3_hosts_file.h"

#include "base/limits.h"
#include "base/utf8.h"
#include "cli/config_file.h"
#include "cli/private_file.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#define LABEL_BYTES_MAX 200u /* a file's name has at most 255 */
#define LINKS_MAX       40   /* one behind the other, as the kernel has it */

int t3_hosts_file_check_label(const char *label, struct errmsg *msg)
{
    if (label[0] != '.' && strlen(label) <= LABEL_BYTES_MAX) {
        return 0;
    }
    return err_set(msg, ERR_INVALID,
                   "\"%.40s\" is no name for a host with a token: that begins with no dot and has "
                   "at most %u bytes",
                   label, LABEL_BYTES_MAX);
}

void t3_hosts_file_token_path(const char *path, const char *label,
                              char out[static T3_HOSTS_PATH_BYTES])
{
    const char *slash = strrchr(path, '/');

    (void)snprintf(out, T3_HOSTS_PATH_BYTES, "%.*s" T3_TOKEN_DIR "/%s",
                   slash == NULL ? 0 : (int)(slash - path + 1), path, label);
}

/* ------------------------------------------------------------------ where it is */

static int refuse_links(int error, const char *path, struct errmsg *msg)
{
    return err_set(msg, ERR_IO, "cannot follow the link %.150s to the hosts' file: %s", path,
                   strerror(error));
}

/* Takes one step from a link to where it leads: 1, or 0 when it is none, or an errno below 0. */
static int step(char at[static PATH_MAX])
{
    char target[PATH_MAX];
    char next[2 * PATH_MAX];
    const char *slash = strrchr(at, '/');
    ssize_t len = readlink(at, target, sizeof(target));

    if (len < 0) {
        return errno == EINVAL || errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
    }
    int dir_len = slash == NULL || target[0] == '/' ? 0 : (int)(slash - at + 1);

    (void)snprintf(next, sizeof(next), "%.*s%.*s", dir_len, at, (int)len, target);
    if (strlen(next) >= PATH_MAX) {
        return -ENAMETOOLONG;
    }
    memcpy(at, next, strlen(next) + 1);
    return 1;
}

/* A link to the file stays one: where it leads, also when nothing is there yet. */
static int follow(const char *path, char real[static PATH_MAX], struct errmsg *msg)
{
    int more = 1;

    if (realpath(path, real) != NULL) {
        return 0;
    }
    if (strlen(path) >= PATH_MAX) {
        return refuse_links(ENAMETOOLONG, path, msg);
    }
    memcpy(real, path, strlen(path) + 1);
    for (int i = 0; more > 0 && i < LINKS_MAX; i++) {
        more = step(real);
    }
    return more == 0 ? 0 : refuse_links(more < 0 ? -more : ELOOP, path, msg);
}

/* That directory of the user's may be reached by a link. */
static int check_dir_of(const char *path, struct errmsg *msg)
{
    const char *slash = strrchr(path, '/');
    char dir[PATH_MAX];

    (void)snprintf(dir, sizeof(dir), "%.*s",
                   slash == NULL   ? 1
                   : slash == path ? 1
                                   : (int)(slash - path),
                   slash == NULL ? "." : path);
    return private_dir_check(dir, "the hosts' file", true, msg);
}

int t3_hosts_file_check_place(const char *path, struct errmsg *msg)
{
    char tokens[T3_HOSTS_PATH_BYTES];
    char real[PATH_MAX];
    int code = check_dir_of(path, msg);

    code = code == 0 ? follow(path, real, msg) : code;
    code = code == 0 ? check_dir_of(real, msg) : code;
    t3_hosts_file_token_path(path, "", tokens);
    tokens[strlen(tokens) - 1] = '\0'; /* a slash there would follow a link */
    return code == 0 ? private_dir_check(tokens, "the tokens", false, msg) : code;
}

int t3_hosts_file_lock(const char *path, int *ret_fd, struct errmsg *msg)
{
    char real[PATH_MAX];
    int code = t3_hosts_file_check_place(path, msg);

    code = code == 0 ? follow(path, real, msg) : code;
    return code == 0 ? private_file_lock(real, "the hosts' file", ret_fd, msg) : code;
}

void t3_hosts_file_unlock(const char *path, int fd)
{
    char real[PATH_MAX];
    struct errmsg msg;

    if (follow(path, real, &msg) == 0) {
        private_file_unlock(real, fd);
    } else {
        (void)close(fd); /* the file of the lock stays, and does no harm */
    }
}

/* ------------------------------------------------------------------ lines */

static struct slice trim(struct slice line)
{
    while (line.len > 0 && strchr(" \t\r\n", line.ptr[line.len - 1]) != NULL) {
        line.len--;
    }
    while (line.len > 0 && strchr(" \t\r", line.ptr[0]) != NULL) {
        line = (struct slice){line.ptr + 1, line.len - 1};
    }
    return line;
}

/* Takes a line with its end off the front. */
static bool next_line(struct slice *rest, struct slice *ret_line)
{
    const char *end = rest->len == 0 ? NULL : memchr(rest->ptr, '\n', rest->len);
    size_t len = end == NULL ? rest->len : (size_t)(end - rest->ptr) + 1;

    *ret_line = (struct slice){rest->ptr, len};
    *rest = (struct slice){rest->ptr + len, rest->len - len};
    return len > 0;
}

static bool is_heading(struct slice line, const char *label)
{
    struct slice text = trim(line);

    if (text.len < 2 || text.ptr[0] != '[' || text.ptr[text.len - 1] != ']') {
        return false;
    }
    return label == NULL ||
           slice_equal(trim((struct slice){text.ptr + 1, text.len - 2}), slice_of(label));
}

/* Where the section of that label is; at the end, and empty, when there is none. */
static struct slice find_section(struct slice text, const char *label)
{
    struct slice rest = text;
    struct slice line;
    struct slice section = {NULL, 0};

    while (next_line(&rest, &line)) {
        struct slice said = trim(line);

        if (section.ptr != NULL && is_heading(line, NULL)) {
            break;
        }
        if (section.ptr == NULL && is_heading(line, label)) {
            section = line;
        } else if (section.ptr != NULL && said.len > 0 && said.ptr[0] != '#') {
            section.len = (size_t)(line.ptr + line.len - section.ptr);
        }
    }
    return section.ptr == NULL ? (struct slice){text.ptr + text.len, 0} : section;
}

/* How long its last line is, when that is blank; else 0. */
static size_t blank_at_end(struct slice text)
{
    size_t len = text.len > 0 ? 1 : 0;

    while (len < text.len && text.ptr[text.len - len - 1] != '\n') {
        len++;
    }
    return trim((struct slice){text.ptr + text.len - len, len}).len == 0 ? len : 0;
}

/* Of the blank lines before and behind a section that goes, one goes with it: a section that is
 * put in again brings one. */
static void take_blank(struct slice *before, struct slice *after)
{
    struct slice rest = *after;
    struct slice line;
    size_t blank = blank_at_end(*before);

    if (!next_line(&rest, &line)) {
        before->len -= blank;
    } else if (trim(line).len == 0 && (before->len == 0 || blank > 0)) {
        *after = rest;
    }
}

/* ------------------------------------------------------------------ the file */

/* The text of the file; empty when there is none. */
static int read_text(const char *path, char **ret_text, struct errmsg *msg)
{
    if (access(path, F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR)) {
        *ret_text = calloc(1, 1);
        return *ret_text != NULL ? 0 : err_set(msg, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
    }
    return config_file_read(path, t3_hosts_form.file, ret_text, msg);
}

static int write_text(const char *path, const struct buf *text, struct errmsg *msg)
{
    char real[PATH_MAX];

    if (text->failed) {
        return err_set(msg, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
    }
    if (text->len > CONFIG_FILE_BYTES_MAX) {
        return err_set(msg, ERR_INVALID, "%.100s would have more than %u bytes", path,
                       CONFIG_FILE_BYTES_MAX);
    }
    int code = follow(path, real, msg);

    return code == 0 ? private_file_write(real, "the hosts' file", buf_slice(text), msg) : code;
}

static void append_value(struct buf *out, const char *name, const char *value)
{
    if (value != NULL) {
        buf_append_format(out, "%s = ", name);
        buf_append(out, slice_of(value));
        buf_append_char(out, '\n');
    }
}

static void append_section(struct buf *out, const struct t3_section *section)
{
    buf_append_char(out, '[');
    buf_append(out, slice_of(section->label));
    buf_append(out, SLICE("]\n"));
    append_value(out, "url", section->url);
    append_value(out, "secret-file", section->secret_file);
    append_value(out, "ca-file", section->ca_file);
    append_value(out, "allow-http", section->allow_http ? "true" : NULL);
}

/* Puts `section`, or nothing for NULL, in the place of the one with that label. */
static int change(const char *path, const char *label, const struct t3_section *section,
                  struct errmsg *msg)
{
    char *text = NULL;
    struct buf out;
    int code = read_text(path, &text, msg);

    if (code != 0) {
        return code;
    }
    struct slice whole = slice_of(text);
    struct slice old = find_section(whole, label);
    struct slice before = {text, (size_t)(old.ptr - whole.ptr)};
    struct slice after = {old.ptr + old.len, whole.len - before.len - old.len};

    buf_init(&out, 2 * CONFIG_FILE_BYTES_MAX); /* a file, and more than a section can have */
    if (section == NULL && old.len > 0) {
        take_blank(&before, &after);
    }
    buf_append(&out, before);
    if (section != NULL && old.len == 0 && before.len > 0) {
        buf_append(&out, text[before.len - 1] == '\n' ? SLICE("\n") : SLICE("\n\n"));
    }
    if (section != NULL) {
        append_section(&out, section);
    }
    buf_append(&out, after);
    if (section != NULL || old.len > 0) {
        code = write_text(path, &out, msg);
    }
    buf_finish(&out);
    free(text);
    return code;
}

int t3_hosts_file_check_value(const char *name, const char *value, struct errmsg *msg)
{
    struct slice rest = slice_of(value);
    bool good = rest.len > 0 && value[0] != ' ' && value[rest.len - 1] != ' ';

    for (; good && rest.len > 0; rest = (struct slice){rest.ptr + 1, rest.len - 1}) {
        good = utf8_control(rest) == 0;
    }
    return good ? 0
                : err_set(msg, ERR_INVALID,
                          "the hosts' file cannot have \"%.150s\" as %s: a value has no control "
                          "characters, and no space first or last",
                          value, name);
}

static int check_section(const struct t3_section *section, struct errmsg *msg)
{
    const char *const values[][2] = {
        {"url", section->url},
        {"secret-file", section->secret_file},
        {"ca-file", section->ca_file},
    };
    int code = t3_hosts_check_label(slice_of(section->label), msg);

    for (size_t i = 0; code == 0 && i < ARRAY_COUNT(values); i++) {
        code = values[i][1] == NULL ? 0
                                    : t3_hosts_file_check_value(values[i][0], values[i][1], msg);
    }
    return code;
}

int t3_hosts_file_put(const char *path, const struct t3_section *section, struct errmsg *msg)
{
    int code = check_section(section, msg);

    return code == 0 ? change(path, section->label, section, msg) : code;
}

int t3_hosts_file_remove(const char *path, const char *label, struct errmsg *msg)
{
    return change(path, label, NULL, msg);
}
