/* A segment file is DIR/wal/wal-NNNNNNNNNNNNNNNN, N the hexadecimal log position at which it began
 * when it was named. The first 4 KiB are the header (little-endian, the rest of the page is zero):
 *
 *   0  u64 magic       "arbewal1"
 *   8  u32 format      1
 *  12  u32 generation  how often the file was recycled
 *  16  u8[16] uuid     of the data directory
 *  32  u64 start       log position of the byte at file offset 4096; the name is for people only
 *  40  u64 size        bytes of the file
 *  48  u32 zero
 *  52  u32 crc         CRC-32C over bytes 0..51
 *
 * All of it lies in one 512-byte sector, so a crash leaves either the old or the new header.
 *
 * Making one: create, reserve the space, fill with zeros, write the header, sync the file, sync the
 * directory; used only after that. Filling costs one pass over the disk, ahead of need and off the
 * commit path; without it each later sync would also have to write the file system's record that
 * another piece of the file holds data, which doubled the time of a commit where it was measured.
 * A crash on the way leaves a file of zeros, which recovery removes.
 *
 * Recycling one: write the header with the new start, sync, rename, sync the directory. The header
 * is what counts: a crash before the rename leaves an old name that nobody minds. The frames of its
 * former life stay in it and are told apart by their position (record.h). */
#include "log/segment.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/err.h"
#include "base/limits.h"

#define SEGMENT_MAGIC          0x316c617765627261u /* "arbewal1" */
#define SEGMENT_FORMAT_VERSION 1u
#define HEADER_CRC_AT          52u
#define FILL_BYTES             MIB /* zeros written at once */
#define FILL_SYNC_EVERY        4u  /* fills per sync, so that no commit waits behind all of them */
#define NAME_PREFIX            "wal-"
#define NAME_DIGITS            16u
#define ASIDE_MAX              1000u

void segment_encode_header(const struct segment_dir *dir, const struct segment *s, void *page)
{
    uint8_t *out = page;
    memset(out, 0, SEGMENT_HEADER_BYTES);
    bytes_put_u64(out, SEGMENT_MAGIC);
    bytes_put_u32(out + 8, SEGMENT_FORMAT_VERSION);
    bytes_put_u32(out + 12, s->generation);
    memcpy(out + 16, dir->uuid, 16);
    bytes_put_u64(out + 32, s->start);
    bytes_put_u64(out + 40, s->bytes + SEGMENT_HEADER_BYTES);
    bytes_put_u32(out + 48, 0);
    bytes_put_u32(out + HEADER_CRC_AT, crc32c(0, out, HEADER_CRC_AT));
}

static enum segment_state decode_header(const struct segment_dir *dir, const uint8_t *in,
                                        struct segment *s)
{
    if (bytes_get_u64(in) != SEGMENT_MAGIC ||
        bytes_get_u32(in + HEADER_CRC_AT) != crc32c(0, in, HEADER_CRC_AT)) {
        return SEGMENT_DAMAGED;
    }
    if (bytes_get_u32(in + 8) != SEGMENT_FORMAT_VERSION) {
        return SEGMENT_FORMAT;
    }
    if (memcmp(in + 16, dir->uuid, 16) != 0) {
        return SEGMENT_FOREIGN;
    }
    uint64_t size = bytes_get_u64(in + 40);
    s->generation = bytes_get_u32(in + 12);
    s->start = bytes_get_u64(in + 32);
    s->bytes = size - SEGMENT_HEADER_BYTES;
    bool sane = size > SEGMENT_HEADER_BYTES && size % SEGMENT_HEADER_BYTES == 0 &&
                s->start % RECORD_ALIGN == 0 && s->start + s->bytes > s->start;
    return sane ? SEGMENT_GOOD : SEGMENT_DAMAGED;
}

void segment_format_name(uint64_t number, char *out)
{
    (void)snprintf(out, SEGMENT_PATH_MAX, NAME_PREFIX "%016llx", (unsigned long long)number);
}

static void format_path(const struct segment_dir *dir, const char *name, char *out)
{
    int len = snprintf(out, SEGMENT_PATH_MAX, "%s/%s", dir->path, name);
    assert(len > 0 && len < (int)SEGMENT_PATH_MAX); /* wal_open refuses longer directories */
}

static void format_number_path(const struct segment_dir *dir, uint64_t number, char *out)
{
    char name[SEGMENT_PATH_MAX];
    segment_format_name(number, name);
    format_path(dir, name, out);
}

bool segment_parse_name(const char *name, uint64_t *ret_number)
{
    size_t prefix = strlen(NAME_PREFIX);
    if (strncmp(name, NAME_PREFIX, prefix) != 0 || strlen(name) != prefix + NAME_DIGITS) {
        return false;
    }
    uint64_t number = 0;
    for (const char *c = name + prefix; *c; c++) {
        bool digit = *c >= '0' && *c <= '9';
        bool letter = *c >= 'a' && *c <= 'f';
        if (!digit && !letter) {
            return false;
        }
        number = number * 16 + (unsigned)(digit ? *c - '0' : *c - 'a' + 10);
    }
    *ret_number = number;
    return true;
}

/* Writes zeros over the whole file, whose space is reserved. */
static int fill(const struct segment_dir *dir, int fd)
{
    struct sys *sys = dir->sys;
    void *zeros = calloc(1, FILL_BYTES);
    if (!zeros) {
        return ERR_NOMEM;
    }
    int rc = 0;
    unsigned fills = 0;
    for (uint64_t at = 0; at < dir->segment_bytes && rc == 0; at += FILL_BYTES) {
        uint64_t left = dir->segment_bytes - at;
        struct iovec iov = {zeros, left < FILL_BYTES ? (size_t)left : FILL_BYTES};
        rc = sys->pwritev(sys->context, fd, &iov, 1, at);
        if (rc == 0 && ++fills % FILL_SYNC_EVERY == 0) {
            rc = sys->fdatasync(sys->context, fd);
        }
    }
    free(zeros);
    return rc;
}

static int put_header(const struct segment_dir *dir, const struct segment *s)
{
    struct sys *sys = dir->sys;
    uint8_t page[SEGMENT_HEADER_BYTES];
    segment_encode_header(dir, s, page);
    struct iovec iov = {page, sizeof(page)};
    return sys->pwritev(sys->context, s->fd, &iov, 1, 0);
}

/* Writes the header page and makes it durable. */
static int write_header(const struct segment_dir *dir, const struct segment *s)
{
    int rc = put_header(dir, s);
    return rc ? rc : dir->sys->fdatasync(dir->sys->context, s->fd);
}

int segment_rewrite_header(const struct segment_dir *dir, struct segment *s)
{
    s->dirty = true;
    return put_header(dir, s);
}

/* Creates the file; one of that name can only be a left-over of an attempt that failed, since
 * starts never come twice. */
static int create_file(const struct segment_dir *dir, const char *path)
{
    struct sys *sys = dir->sys;
    int fd = sys->open(sys->context, path, true);
    if (fd == ERR_EXISTS) {
        int rc = sys->unlink(sys->context, path);
        fd = rc ? rc : sys->open(sys->context, path, true);
    }
    return fd;
}

int segment_create(const struct segment_dir *dir, log_pos start, struct segment **ret_segment)
{
    struct sys *sys = dir->sys;
    assert(dir->segment_bytes > SEGMENT_HEADER_BYTES);
    assert(dir->segment_bytes % SEGMENT_HEADER_BYTES == 0);
    struct segment *s = malloc(sizeof(*s));
    if (!s) {
        return ERR_NOMEM;
    }
    char path[SEGMENT_PATH_MAX];
    format_number_path(dir, start, path);
    int fd = create_file(dir, path);
    if (fd < 0) {
        free(s);
        return fd;
    }
    *s = (struct segment){.start = start,
                          .bytes = dir->segment_bytes - SEGMENT_HEADER_BYTES,
                          .file_bytes = dir->segment_bytes,
                          .name = start,
                          .fd = fd};
    list_init(&s->link);
    int rc = sys->allocate(sys->context, fd, dir->segment_bytes);
    if (rc == 0 && dir->zero_fill) {
        rc = fill(dir, fd);
    }
    rc = rc ? rc : write_header(dir, s);
    rc = rc ? rc : sys->sync_dir(sys->context, dir->path);
    if (rc) {
        segment_remove(dir, s);
        return rc;
    }
    *ret_segment = s;
    return 0;
}

int segment_recycle(const struct segment_dir *dir, struct segment *s, log_pos start)
{
    struct sys *sys = dir->sys;
    assert(list_empty(&s->link));
    assert(start > s->start);
    struct segment next = *s;
    next.start = start;
    next.generation++;
    next.name = start;
    int rc = write_header(dir, &next);
    if (rc) {
        return rc;
    }
    char from[SEGMENT_PATH_MAX];
    char to[SEGMENT_PATH_MAX];
    format_number_path(dir, s->name, from);
    format_number_path(dir, start, to);
    rc = sys->rename(sys->context, from, to);
    rc = rc ? rc : sys->sync_dir(sys->context, dir->path);
    if (rc) {
        return rc;
    }
    *s = next;
    list_init(&s->link);
    return 0;
}

/* Whether the file holds nothing but zeros: below 0 an error, 0 no, 1 yes. */
static int all_zero(const struct segment_dir *dir, int fd)
{
    struct sys *sys = dir->sys;
    uint8_t chunk[SEGMENT_HEADER_BYTES];
    uint64_t at = 0;
    for (;;) {
        int64_t n = sys->pread(sys->context, fd, chunk, sizeof(chunk), at);
        if (n < 0) {
            return (int)n;
        }
        for (int64_t i = 0; i < n; i++) {
            if (chunk[i] != 0) {
                return 0;
            }
        }
        if (n < (int64_t)sizeof(chunk)) {
            return 1;
        }
        at += sizeof(chunk);
    }
}

/* Reads and judges an open file into *s. */
static int inspect(const struct segment_dir *dir, struct segment *s, enum segment_state *ret_state)
{
    struct sys *sys = dir->sys;
    uint8_t page[SEGMENT_HEADER_BYTES];
    int64_t size = sys->size(sys->context, s->fd);
    if (size < 0) {
        return (int)size;
    }
    s->file_bytes = (uint64_t)size;
    int64_t n = sys->pread(sys->context, s->fd, page, sizeof(page), 0);
    if (n < 0) {
        return (int)n;
    }
    enum segment_state state = SEGMENT_DAMAGED;
    if (n == (int64_t)sizeof(page)) {
        state = decode_header(dir, page, s);
    }
    if (state == SEGMENT_DAMAGED) {
        int zero = all_zero(dir, s->fd);
        if (zero < 0) {
            return zero;
        }
        state = zero ? SEGMENT_UNFINISHED : SEGMENT_DAMAGED;
    }
    *ret_state = state;
    return 0;
}

int segment_open(const struct segment_dir *dir, const char *name, enum segment_state *ret_state,
                 struct segment **ret_segment)
{
    struct sys *sys = dir->sys;
    struct segment *s = calloc(1, sizeof(*s));
    if (!s) {
        return ERR_NOMEM;
    }
    list_init(&s->link);
    bool named = segment_parse_name(name, &s->name);
    assert(named);
    char path[SEGMENT_PATH_MAX];
    format_path(dir, name, path);
    s->fd = dir->read_only ? sys->open_read(sys->context, path)
                           : sys->open(sys->context, path, false);
    if (s->fd < 0) {
        int rc = s->fd;
        free(s);
        return rc;
    }
    enum segment_state state = SEGMENT_DAMAGED;
    int rc = inspect(dir, s, &state);
    if (rc || state != SEGMENT_GOOD) {
        segment_close(dir, s);
        s = NULL;
    }
    if (rc) {
        return rc;
    }
    *ret_state = state;
    if (s) {
        *ret_segment = s;
    }
    return 0;
}

void segment_close(const struct segment_dir *dir, struct segment *s)
{
    if (s) {
        assert(list_empty(&s->link));
        dir->sys->close(dir->sys->context, s->fd);
        free(s);
    }
}

void segment_remove(const struct segment_dir *dir, struct segment *s)
{
    char path[SEGMENT_PATH_MAX];
    format_number_path(dir, s->name, path);
    (void)dir->sys->unlink(dir->sys->context, path); /* What stays is found again by recovery. */
    segment_close(dir, s);
}

/* A path beside the file `name` that is not taken: name.damaged, name.damaged.1, ... */
static int find_aside(const struct segment_dir *dir, const char *name, char *out)
{
    struct sys *sys = dir->sys;
    for (unsigned i = 0; i < ASIDE_MAX; i++) {
        char aside[SEGMENT_PATH_MAX - 64];
        int len = i == 0 ? snprintf(aside, sizeof(aside), "%s.damaged", name)
                         : snprintf(aside, sizeof(aside), "%s.damaged.%u", name, i);
        assert(len > 0 && len < (int)sizeof(aside));
        format_path(dir, aside, out);
        int fd = sys->open(sys->context, out, false);
        if (fd < 0) {
            return fd == ERR_NOTFOUND ? 0 : fd;
        }
        sys->close(sys->context, fd);
    }
    return ERR_EXISTS;
}

int segment_set_aside(const struct segment_dir *dir, const char *name)
{
    struct sys *sys = dir->sys;
    char from[SEGMENT_PATH_MAX];
    char to[SEGMENT_PATH_MAX];
    format_path(dir, name, from);
    int rc = find_aside(dir, name, to);
    rc = rc ? rc : sys->rename(sys->context, from, to);
    return rc ? rc : sys->sync_dir(sys->context, dir->path);
}

/* Copies all bytes of `from` to the empty file `to`, durably. */
static int copy_bytes(struct sys *sys, int from, int to)
{
    char *bytes = malloc(FILL_BYTES);
    if (!bytes) {
        return ERR_NOMEM;
    }
    int64_t n = 1;
    int rc = 0;
    for (uint64_t at = 0; n > 0 && rc == 0; at += (uint64_t)n) {
        n = sys->pread(sys->context, from, bytes, FILL_BYTES, at);
        rc = n < 0 ? (int)n : 0;
        if (n > 0) {
            struct iovec iov = {bytes, (size_t)n};
            rc = sys->pwritev(sys->context, to, &iov, 1, at);
        }
    }
    free(bytes);
    return rc ? rc : sys->fdatasync(sys->context, to);
}

int segment_copy_aside(const struct segment_dir *dir, const struct segment *s)
{
    struct sys *sys = dir->sys;
    char name[SEGMENT_PATH_MAX];
    char path[SEGMENT_PATH_MAX];
    segment_format_name(s->name, name);
    int rc = find_aside(dir, name, path);
    if (rc) {
        return rc;
    }
    int fd = sys->open(sys->context, path, true);
    if (fd < 0) {
        return fd;
    }
    rc = copy_bytes(sys, s->fd, fd);
    sys->close(sys->context, fd);
    rc = rc ? rc : sys->sync_dir(sys->context, dir->path);
    if (rc) {
        (void)sys->unlink(sys->context, path); /* half a copy helps nobody */
    }
    return rc;
}
