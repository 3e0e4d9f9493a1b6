/* Advice follows only where it helps: a sentence that has its cure already, such as that of a token
 * file which others may read, gets no second one. */
#include "cli/host_words.h"

#include "base/limits.h"

static const struct t3_host *find(const struct t3_hosts *hosts, const char *label)
{
    for (size_t i = 0; hosts != NULL && i < hosts->count; i++) {
        if (strcmp(hosts->list[i].label, label) == 0) {
            return &hosts->list[i];
        }
    }
    return NULL;
}

static void add_try_again(struct buf *out, const struct host_place *place)
{
    if (place->keys) {
        buf_append(out, SLICE("; then r tries again"));
    }
}

/* The server does not take the token that there is, if there is one. */
static void add_login(struct buf *out, const struct t3_watch_host *host,
                      const struct host_place *place)
{
    const struct t3_host *known = find(place->hosts, host->label);

    if (known != NULL && known->token != NULL) {
        buf_append(out, SLICE("; that token is of ARBE_T3_TOKEN: set another, and start again"));
        return;
    }
    buf_append(out, SLICE("; sign in with: "));
    t3_host_login_words(out, host->label, host->url, known != NULL ? known->file : NULL);
    if (known == NULL || known->token_file != NULL) {
        add_try_again(out, place);
    } else {
        buf_append(out, SLICE("; then start again")); /* its token had no file when this began */
    }
}

/* What to do about a host that refused; it follows a sentence. A status is that of the server: one
 * that was not asked had no token, and whoever looked for it said what to do. */
static void add_advice(struct buf *out, const struct t3_watch_host *host,
                       const struct host_place *place)
{
    enum t3_rpc_code code = host->error.code;

    if (code == T3_RPC_ERROR_SCOPE || (code == T3_RPC_ERROR_AUTH && host->error.status != 0)) {
        add_login(out, host, place);
        return;
    }
    if (code == T3_RPC_ERROR_METHOD || (code == T3_RPC_ERROR_VERSION && host->error.status != 0)) {
        buf_append(out, SLICE("; that T3 Code and this arbe do not fit: update the older one"));
    }
    add_try_again(out, place);
}

void host_words(char out[static HOST_WORDS_BYTES], const struct t3_watch_host *host,
                const struct host_place *place)
{
    struct buf text;

    buf_init_fixed(&text, out, HOST_WORDS_BYTES);
    buf_append_format(&text, "%s", t3_reader_state_name(host->state));
    if (host->state != T3_READER_LIVE && host->error.message[0] != '\0') {
        buf_append_format(&text, ": %s", host->error.message);
    }
    if (host->state == T3_READER_LOST) {
        buf_append(&text, SLICE("; trying again"));
    } else if (host->state == T3_READER_REFUSED) {
        add_advice(&text, host, place);
    }
    if (host->full) {
        buf_append_format(&text, "; some of its threads are left out: a board has %u rows",
                          T3_ROWS_MAX);
    }
    if (host->skipped > 0) {
        buf_append_format(&text, "; %zu broken item%s left out", host->skipped,
                          host->skipped == 1 ? "" : "s");
    }
    out[text.len] = '\0';
}
