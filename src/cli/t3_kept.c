/* Paths are those of the file, looked up from where it is. */
#include "cli/t3_kept.h"

int t3_kept_open(const struct t3_call *call, struct t3_kept *kept, struct errmsg *msg)
{
    int code = t3_hosts_locate(call->set.hosts_file, kept->path, msg);

    return code == 0 ? profiles_read(kept->path, &t3_hosts_form, &kept->file, msg) : code;
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
    return (struct slice){url, strcspn(url, "?")};
}
