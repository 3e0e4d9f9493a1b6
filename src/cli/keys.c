/* arbe streams rotate-key and replace-keys: the secrets of subscriptions. */
#include "serve/keys.h"

#include "base/date.h"
#include "cli/tool.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void print_rotation(const struct tool_call *call, const struct keys_rotation *rotation)
{
    char signs[DATE_RFC3339_BYTES];
    char retired[DATE_RFC3339_BYTES];

    date_format_rfc3339(signs, rotation->signs_ms);
    date_format_rfc3339(retired, rotation->retired_ms);
    if (call->json) {
        (void)printf("{\"new\":\"%s\",\"old\":\"%s\",\"signs\":\"%s\",\"retired\":\"%s\"}\n",
                     rotation->kid_new, rotation->kid_old, signs, retired);
        return;
    }
    (void)printf("%s  new: published from now on, signs from %s\n", rotation->kid_new, signs);
    (void)printf("%s  old: signs until then, published until %s\n", rotation->kid_old, retired);
}

/* A file that another user makes is one that the server cannot read. */
static int check_user(const char *dir, struct errmsg *msg)
{
    struct stat st;

    if (stat(dir, &st) == 0 && st.st_uid != geteuid()) {
        return err_set(msg, ERR_PERM, "%.120s belongs to user %u, who must do this: sudo -u '#%u'",
                       dir, st.st_uid, st.st_uid);
    }
    return 0; /* what cannot be looked at is told by what follows */
}

static int note_entry(void *context, const char *name)
{
    bool *any = context;

    *any = *any || strcmp(name, "wal") == 0 || strcmp(name, "catalog") == 0;
    return 0;
}

/* A slip in the path must not leave secrets and a lock in a directory of somebody else's. */
static int check_dir(struct sys *sys, const char *dir, struct errmsg *msg)
{
    bool any = false;
    int rc = sys->list_dir(sys->context, dir, note_entry, &any);

    if (rc != 0) {
        return err_set(msg, rc, "cannot list %.180s: %s", dir, err_file_text(rc));
    }
    return any ? 0
               : err_set(msg, ERR_INVALID,
                         "%.120s is no data directory: there is neither wal nor catalog in it",
                         dir);
}

int tool_rotate_key(const struct tool_call *call)
{
    struct sys sys;
    struct errmsg msg = {{0}};
    struct keys_rotation rotation;

    sys_posix_init(&sys);
    if (check_user(call->operands[0], &msg) != 0 ||
        keys_rotate(&sys, call->operands[0], &rotation, &msg) != 0) {
        return tool_fail(call, msg.text);
    }
    print_rotation(call, &rotation);
    return tool_end_output();
}

int tool_replace_keys(const struct tool_call *call)
{
    struct sys sys;
    struct errmsg msg = {{0}};

    sys_posix_init(&sys);
    if (check_user(call->operands[0], &msg) != 0 || check_dir(&sys, call->operands[0], &msg) != 0 ||
        keys_replace(&sys, call->operands[0], &msg) != 0) {
        return tool_fail(call, msg.text);
    }
    (void)printf("%s", call->json
                           ? "{\"replaced\":true}\n"
                           : "new keys are in place: callback tokens made before are void\n");
    return tool_end_output();
}
