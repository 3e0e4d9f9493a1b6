/* Read whole, cut in place. */
#include "cli/config_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WHERE_BYTES_MAX 120

static int read_all(int fd, char *text, size_t *ret_len)
{
    size_t len = 0;

    for (;;) {
        ssize_t got = read(fd, text + len, CONFIG_FILE_BYTES_MAX + 1 - len);

        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            *ret_len = len;
            return got < 0 ? err_from_errno(errno) : 0;
        }
        len += (size_t)got;
    }
}

static int check_text(const char *path, const char *what, struct slice text, struct errmsg *msg)
{
    if (text.len > CONFIG_FILE_BYTES_MAX) {
        return err_set(msg, ERR_INVALID, "%.100s: a %s has at most %u bytes", path, what,
                       CONFIG_FILE_BYTES_MAX);
    }
    if (memchr(text.ptr, '\0', text.len) != NULL) {
        return err_set(msg, ERR_INVALID, "%.100s is no text: there is a zero byte in it", path);
    }
    return 0;
}

static int open_file(const char *path, const char *what, int *ret_fd, struct errmsg *msg)
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0) {
        return err_set(msg, ERR_IO, "cannot open the %s %.100s: %s", what, path, strerror(errno));
    }
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        (void)close(fd);
        return err_set(msg, ERR_INVALID, "%.100s is not a file", path);
    }
    *ret_fd = fd;
    return 0;
}

int config_file_read(const char *path, const char *what, char **ret_text, struct errmsg *msg)
{
    char *text = malloc(CONFIG_FILE_BYTES_MAX + 2);
    size_t len = 0;
    int fd;

    if (text == NULL) {
        return err_set(msg, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
    }
    int code = open_file(path, what, &fd, msg);

    if (code == 0) {
        code = read_all(fd, text, &len);
        (void)close(fd); /* nothing was written to it */
        if (code != 0) {
            (void)err_set(msg, code, "cannot read the %s %.100s: %s", what, path,
                          err_file_text(code));
        } else {
            code = check_text(path, what, (struct slice){text, len}, msg);
        }
    }
    if (code != 0) {
        free(text);
        return code;
    }
    text[len] = '\0';
    *ret_text = text;
    return 0;
}

/* Cuts white space from both ends, in place. */
static char *trim(char *text)
{
    size_t len = strlen(text);

    while (len > 0 && strchr(" \t\r", text[len - 1]) != NULL) {
        text[--len] = '\0';
    }
    return text + strspn(text, " \t\r");
}

static int apply_line(const char *path, char *line, unsigned number, const struct flag_table *table,
                      struct errmsg *msg)
{
    const struct flag_origin origin = {FLAG_FROM_FILE, number};
    char where[WHERE_BYTES_MAX];
    char *text = trim(line);
    char *equals = strchr(text, '=');

    (void)snprintf(where, sizeof(where), "%.100s:%u", path, number);
    if (text[0] == '\0' || text[0] == '#') {
        return 0;
    }
    if (equals == NULL) {
        return err_set(msg, ERR_INVALID, "%s: \"%.40s\" is not good: a line is name = value", where,
                       text);
    }
    *equals = '\0';
    struct slice name = slice_of(trim(text));

    for (size_t i = 0; i < table->count; i++) {
        if (slice_equal(name, slice_of(table->flags[i].name)) &&
            table->origins[i].source == FLAG_FROM_FILE) {
            return err_set(msg, ERR_INVALID, "%s: \"%s\" stands in line %u already", where,
                           name.ptr, table->origins[i].line);
        }
    }
    return flags_set_named(table, name, trim(equals + 1), origin, where, msg);
}

int config_file_apply(const char *path, char *text, const struct flag_table *table,
                      struct errmsg *msg)
{
    unsigned number = 1;
    int code = 0;

    for (char *line = text; code == 0 && line != NULL; number++) {
        char *end = strchr(line, '\n');

        if (end != NULL) {
            *end = '\0';
        }
        code = apply_line(path, line, number, table, msg);
        line = end == NULL ? NULL : end + 1;
    }
    return code;
}
