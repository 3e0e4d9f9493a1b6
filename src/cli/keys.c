/* arbe streams rotate-key and replace-keys: the secrets of subscriptions. */
#include "serve/keys.h"

#include "base/date.h"
#include "cli/tool.h"

#include <stdio.h>
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
    if (check_user(call->operands[0], &msg) != 0 ||
        keys_replace(&sys, call->operands[0], &msg) != 0) {
        return tool_fail(call, msg.text);
    }
    (void)printf("%s", call->json
                           ? "{\"replaced\":true}\n"
                           : "new keys are in place: callback tokens made before are void\n");
    return tool_end_output();
}
