/* Paths are those of the file, looked up from where it is. */
#include "cli/t3_kept.h"

#include "cli/interrupt.h"
#include "cli/t3_hosts_file.h"
#include "cli/t3_url.h"
#include "t3/wake.h"

#define AGAIN_MS 50 /* until a lock is tried again */

int t3_kept_open(const struct t3_call *call, struct t3_kept *kept, struct errmsg *msg)
{
    int code = t3_hosts_locate(call->set.hosts_file, kept->path, msg);

    return code == 0 ? profiles_read(kept->path, &t3_hosts_form, &kept->file, msg) : code;
}

int t3_kept_lock(const struct t3_call *call, struct t3_kept *kept, struct errmsg *msg)
{
    const uint64_t limit_ms = call->set.timeout_ms;
    const uint64_t begun_ms = t3_now_ms();
    int code = t3_hosts_file_lock(kept->path, &kept->lock, msg);

    if (code == ERR_AGAIN) {
        t3_call_tell(call, "another arbe t3 login or logout changes the hosts; waiting for it");
    }
    while (code == ERR_AGAIN && interrupt_signal() == 0 && t3_now_ms() - begun_ms < limit_ms) {
        (void)interrupt_poll(NULL, 0, AGAIN_MS); /* the loop looks again */
        code = t3_hosts_file_lock(kept->path, &kept->lock, msg);
    }
    if (code == ERR_AGAIN) {
        return err_set(msg, ERR_CONFLICT,
                       "another arbe t3 login or logout still changes the hosts in %.120s; nothing "
                       "was spent or changed; try again when it has ended, or wait longer with "
                       "--timeout",
                       kept->path);
    }
    if (code != 0) {
        return code;
    }
    kept->locked = true;
    kept->section = NULL;
    profiles_finish(&kept->file);
    return t3_kept_open(call, kept, msg);
}

void t3_kept_finish(struct t3_kept *kept)
{
    if (kept->locked) {
        t3_hosts_file_unlock(kept->path, kept->lock);
    }
    profiles_finish(&kept->file);
}

int t3_kept_find(struct t3_kept *kept, const char *label, struct errmsg *msg)
{
    int code = 0;

    kept->section = profiles_find(&kept->file, label);
    kept->token[0] = '\0';
    kept->ca[0] = '\0';
    if (kept->section != NULL && kept->section->secret_file != NULL) {
        code = profile_file_path(kept->path, kept->section->secret_file, kept->token,
                                 sizeof(kept->token), msg);
    }
    if (code == 0 && kept->section != NULL && kept->section->ca_file != NULL) {
        code = profile_file_path(kept->path, kept->section->ca_file, kept->ca, sizeof(kept->ca),
                                 msg);
    }
    return code;
}

struct slice t3_kept_shown_url(const char *url)
{
    return t3_url_check(url) == NULL ? slice_of(url) : SLICE("(no good URL)");
}
