/* One table, made from ERR_LIST, answers every question about a code. */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct err_row {
    const char *name; /* as in ERR_LIST */
    const char *text; /* the default sentence */
    int status;       /* HTTP */
};

static const struct err_row rows[] = {
#define X(name, status, text) {#name, text, status},
    ERR_LIST(X)
#undef X
};

_Static_assert(ARRAY_COUNT(rows) == ERR_INDEX_COUNT, "one row for each code");

/* The row of `code`, or NULL when no such code exists: a log line must never crash on a bad one. */
static const struct err_row *row_of(int code)
{
    if (code >= 0 || code < -(int)ERR_INDEX_COUNT) {
        return NULL;
    }
    return &rows[-(code + 1)];
}

const char *err_name(int code)
{
    const struct err_row *row = row_of(code);

    if (row == NULL) {
        return code == 0 ? "OK" : "?";
    }
    return row->name;
}

const char *err_text(int code)
{
    const struct err_row *row = row_of(code);

    if (row == NULL) {
        return code == 0 ? "no error" : "an error without a name";
    }
    return row->text;
}

const char *err_file_text(int code)
{
    switch (code) {
    case ERR_NOTFOUND:
        return "there is no such file or directory";
    case ERR_EXISTS:
        return "something of that name exists already";
    case ERR_PERM:
        return "this user may not do that there, or the file system is read-only";
    case ERR_TOOBIG:
        return "a name in the path is too long";
    case ERR_LIMIT:
        return "too many files are open; raise the limit (ulimit -n)";
    default:
        return err_text(code);
    }
}

int err_status(int code)
{
    const struct err_row *row = row_of(code);

    if (row == NULL) {
        return code == 0 ? 200 : 500;
    }
    return row->status;
}

int err_from_errno(int errno_value)
{
    switch (errno_value) {
    case ENOMEM:
        return ERR_NOMEM;
    case ENOSPC:
    case EDQUOT:
        return ERR_NOSPC;
    case ENOENT:
        return ERR_NOTFOUND;
    case EEXIST:
        return ERR_EXISTS;
    case EACCES:
    case EPERM:
    case EROFS:
        return ERR_PERM;
    case EAGAIN:
    case EINTR:
        return ERR_AGAIN;
    case ENOTDIR:
    case EISDIR:
    case ELOOP: /* links are not followed */
        return ERR_FILEKIND;
    case ENAMETOOLONG:
        return ERR_TOOBIG;
    case EMFILE:
    case ENFILE:
        return ERR_LIMIT;
    default:
        /* EINVAL and its like included: they are faults of ours, and must not reach a client as a
         * complaint about its request. */
        return ERR_IO;
    }
}

/* Makes `msg` "prefix: rest", cut at its size; `rest` may lie in `msg`. */
static void prepend(struct errmsg *msg, const char *prefix, const char *rest)
{
    size_t prefix_len = strlen(prefix);
    size_t rest_at = prefix_len + 2;
    size_t rest_len = strlen(rest);

    if (rest_at >= sizeof(msg->text)) {
        memcpy(msg->text, prefix, prefix_len + 1);
        return;
    }
    if (rest_len >= sizeof(msg->text) - rest_at) {
        rest_len = sizeof(msg->text) - rest_at - 1;
    }
    memmove(msg->text + rest_at, rest, rest_len);
    msg->text[rest_at + rest_len] = '\0';
    memcpy(msg->text, prefix, prefix_len);
    memcpy(msg->text + prefix_len, ": ", 2);
}

int err_set(struct errmsg *msg, int code, const char *format, ...)
{
    va_list args;

    if (msg == NULL) {
        return code;
    }
    va_start(args, format);
    (void)vsnprintf(msg->text, sizeof(msg->text), format, args); /* a cut sentence is wanted */
    va_end(args);
    return code;
}

int err_prefix(struct errmsg *msg, int code, const char *format, ...)
{
    struct errmsg prefix;
    const char *rest;
    va_list args;

    if (msg == NULL) {
        return code;
    }
    va_start(args, format);
    (void)vsnprintf(prefix.text, sizeof(prefix.text), format, args); /* may be cut, as above */
    va_end(args);
    rest = msg->text[0] != '\0' ? msg->text : err_text(code);
    prepend(msg, prefix.text, rest);
    return code;
}
