/* The last line is proven first; then every line is taken strictly, since whoever can change the
 * text can also make its checksum right. */
#include "log/manifest.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/number.h"

#define FIRST_LINE "arbe-backup 1\n"
#define END_BYTES  13u /* "end " and 8 digits and a line end */
#define LIMIT      UINT64_MAX

void manifest_put_head(struct buf *out, const struct manifest_head *head)
{
    buf_append(out, SLICE(FIRST_LINE "uuid "));
    for (unsigned i = 0; i < sizeof(head->uuid); i++) {
        buf_append_format(out, "%02x", head->uuid[i]);
    }
    buf_append_format(out, "\nlog %llu %llu\n", (unsigned long long)head->from,
                      (unsigned long long)head->to);
}

void manifest_put_file(struct buf *out, const struct manifest_file *file)
{
    buf_append_format(out, "file %llu %08x %s\n", (unsigned long long)file->bytes, file->crc,
                      file->name);
}

void manifest_put_end(struct buf *out)
{
    buf_append_format(out, "end %08x\n", crc32c(0, out->ptr, out->len));
}

bool manifest_name_good(struct slice name)
{
    static const char *const dirs[] = {"wal/", "packs/", "keys/"};
    bool good = slice_equal(name, SLICE("catalog/data.mdb")) ||
                slice_equal(name, SLICE(MANIFEST_RECORDS));
    size_t skip = 0;
    for (unsigned i = 0; i < ARRAY_COUNT(dirs); i++) {
        if (slice_starts_with(name, slice_of(dirs[i]))) {
            skip = strlen(dirs[i]);
        }
    }
    if (skip > 0 && name.len > skip && name.len < MANIFEST_NAME_BYTES && name.ptr[skip] != '.') {
        good = true;
        for (size_t i = skip; i < name.len; i++) {
            char c = name.ptr[i];
            good = good && c > ' ' && c <= '~' && c != '/';
        }
    }
    return good;
}

/* 8 hex digits in lower case. */
static bool read_crc(struct slice text, uint32_t *ret_crc)
{
    uint32_t crc = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool digit = c >= '0' && c <= '9';
        bool letter = c >= 'a' && c <= 'f';
        if (!digit && !letter) {
            return false;
        }
        crc = crc << 4 | (unsigned)(digit ? c - '0' : c - 'a' + 10);
    }
    *ret_crc = crc;
    return text.len == 8;
}

static bool read_uuid(struct slice text, uint8_t uuid[static 16])
{
    if (text.len != 32) {
        return false;
    }
    for (unsigned i = 0; i < 4; i++) {
        uint32_t part = 0;
        if (!read_crc((struct slice){text.ptr + (size_t)i * 8, 8}, &part)) {
            return false;
        }
        for (unsigned j = 0; j < 4; j++) {
            uuid[i * 4 + j] = (uint8_t)(part >> (24 - 8 * j));
        }
    }
    return true;
}

/* Takes a line that begins with `word` and a space; what is behind that. */
static bool take_line(struct slice *rest, const char *word, struct slice *ret_line)
{
    struct slice line;
    if (!slice_split(rest, '\n', &line) || !slice_starts_with(line, slice_of(word))) {
        return false;
    }
    size_t skip = strlen(word);
    *ret_line = (struct slice){line.ptr + skip, line.len - skip};
    return true;
}

static bool read_file(struct slice line, struct manifest_file *file)
{
    struct slice bytes;
    struct slice crc;
    if (!slice_split(&line, ' ', &bytes) || !slice_split(&line, ' ', &crc) || !line.ptr ||
        !manifest_name_good(line) || !read_crc(crc, &file->crc) ||
        !number_parse_u64(bytes, LIMIT, false, &file->bytes)) {
        return false;
    }
    memcpy(file->name, line.ptr, line.len);
    file->name[line.len] = '\0';
    return true;
}

static bool read_head(struct slice *rest, struct manifest_head *head)
{
    struct slice line;
    struct slice from;
    return take_line(rest, "arbe-backup 1", &line) && line.len == 0 &&
           take_line(rest, "uuid ", &line) && read_uuid(line, head->uuid) &&
           take_line(rest, "log ", &line) && slice_split(&line, ' ', &from) && line.ptr &&
           number_parse_u64(from, LIMIT, false, &head->from) &&
           number_parse_u64(line, LIMIT, false, &head->to) && head->from <= head->to;
}

static int damaged(struct errmsg *msg)
{
    return err_set(msg, ERR_CORRUPT, "its manifest was cut or changed: this is no backup");
}

/* Reads all files; with `each` NULL only proves them. */
static int read_files(struct slice rest, manifest_file_fn each, void *context, struct errmsg *msg)
{
    while (rest.ptr && rest.len > 0) {
        struct manifest_file file;
        struct slice line;
        if (!take_line(&rest, "file ", &line) || !read_file(line, &file)) {
            return damaged(msg);
        }
        int rc = each ? each(context, &file) : 0;
        if (rc) {
            return rc;
        }
    }
    return 0;
}

int manifest_read(struct slice text, struct manifest_head *ret_head, manifest_file_fn each,
                  void *context, struct errmsg *msg)
{
    struct manifest_head head;
    uint32_t crc = 0;
    if (text.len < END_BYTES) {
        return damaged(msg);
    }
    struct slice end = {text.ptr + text.len - END_BYTES, END_BYTES};
    struct slice body = {text.ptr, text.len - END_BYTES};
    if (!slice_starts_with(end, SLICE("end ")) || end.ptr[END_BYTES - 1] != '\n' ||
        !read_crc((struct slice){end.ptr + 4, 8}, &crc) || crc != crc32c(0, body.ptr, body.len) ||
        body.len == 0 || end.ptr[-1] != '\n') {
        return damaged(msg);
    }
    if (!slice_starts_with(body, SLICE(FIRST_LINE))) {
        return slice_starts_with(body, SLICE("arbe-backup "))
                   ? err_set(msg, ERR_MISMATCH, "it was made by a version that is not known here")
                   : damaged(msg);
    }
    if (!read_head(&body, &head)) {
        return damaged(msg);
    }
    int rc = read_files(body, NULL, NULL, msg);
    *ret_head = head;
    return rc ? rc : read_files(body, each, context, msg);
}
