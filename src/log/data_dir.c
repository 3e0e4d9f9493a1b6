/* A process that takes the directory holds the lock on the file `lock` in it, which dies with the
 * process; the file stays. */
#include "log/data_dir.h"
#include "log/manifest.h"

#include <assert.h>
#include <stdio.h>

/* What stands in the directory. */
struct contents {
    unsigned parts;   /* of those that every start makes: a bit each */
    bool mixed;       /* something that is neither ours nor of a fresh file system */
    char foreign[64]; /* the first such name that is not hidden, cut; empty: there is none */
};

#define PARTS_ALL 15u

static int note_entry(void *context, const char *name)
{
    /* The first four are made at every start. */
    static const char *const known[] = {"lock",    "wal",  "packs",   "catalog",
                                        "reserve", "keys", "control", "lost+found"};
    struct contents *c = context;
    for (size_t i = 0; i < ARRAY_COUNT(known); i++) {
        if (slice_starts_with(slice_of(name), slice_of(known[i]))) {
            c->parts |= strcmp(name, known[i]) == 0 ? 1u << i & PARTS_ALL : 0;
            return 0;
        }
    }
    c->mixed = true;
    if (name[0] != '.' && c->foreign[0] == '\0') {
        (void)snprintf(c->foreign, sizeof(c->foreign), "%s", name);
    }
    return 0;
}

/* Streams are nobody else's to read. A directory of ours that holds other things too keeps its
 * rights; what is made in it is private by itself. One that holds other things and was never ours
 * is most likely not what was meant. */
static int make_dir(struct sys *sys, const char *path, struct errmsg *msg)
{
    struct contents c = {0};
    int rc = sys->mkdir(sys->context, path);
    if (rc) {
        return err_set(msg, rc, "cannot make the data directory %s: %s", path,
                       rc == ERR_NOTFOUND ? "the directory that it is to stand in does not exist"
                                          : err_file_text(rc));
    }
    if (!sys->make_private) {
        return 0;
    }
    rc = sys->list_dir(sys->context, path, note_entry, &c);
    if (rc == 0 && strcmp(c.foreign, MANIFEST_NAME) == 0 && c.parts != PARTS_ALL) {
        return err_set(msg, ERR_MISMATCH,
                       "cannot use the data directory %s: it is a backup; make a directory of it: "
                       "arbe streams restore OUT DIR",
                       path);
    }
    if (rc == 0 && c.foreign[0] != '\0' && c.parts != PARTS_ALL) {
        return err_set(msg, ERR_MISMATCH,
                       "cannot use the data directory %s: it holds other things, such as %s; give "
                       "an empty directory, or one that has streams already",
                       path, c.foreign);
    }
    if (rc == 0 && !c.mixed) {
        rc = sys->make_private(sys->context, path);
    }
    return rc ? err_set(msg, rc, "cannot use the data directory %s: %s", path, err_file_text(rc))
              : 0;
}

int data_dir_take(struct sys *sys, const char *path, int *ret_fd, struct errmsg *msg)
{
    char lock[DATA_DIR_PATH_BYTES_MAX];
    int len = snprintf(lock, sizeof(lock), "%s/lock", path);
    assert(len > 0 && (size_t)len < sizeof(lock));
    int rc = make_dir(sys, path, msg);
    if (rc) {
        return rc;
    }
    int fd = sys->lock(sys->context, lock);
    if (fd < 0) {
        return err_set(msg, fd, "cannot lock %s: %s", lock, err_file_text(fd));
    }
    *ret_fd = fd;
    return 0;
}

int data_dir_sync_entry(struct sys *sys, const char *path)
{
    char parent[DATA_DIR_PATH_BYTES_MAX];
    size_t len = strlen(path);
    assert(len < sizeof(parent));
    memcpy(parent, path, len + 1);
    while (len > 1 && parent[len - 1] == '/') {
        parent[--len] = '\0';
    }
    char *slash = strrchr(parent, '/');
    if (!slash) {
        (void)snprintf(parent, sizeof(parent), ".");
    } else if (slash == parent) {
        parent[1] = '\0';
    } else {
        *slash = '\0';
    }
    int rc = sys->sync_dir(sys->context, parent);
    /* A parent that this user cannot read was not made by him, nor was the directory in it. */
    return rc == ERR_PERM ? 0 : rc;
}
