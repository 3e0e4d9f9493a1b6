/* Entries that somebody posts, judged and made ready to be stored: envelope, payload, authorship,
 * id and time. Pure but for new ids; everything lives in the call's memory. */
#ifndef ARBE_APP_DRAFTS_H
#define ARBE_APP_DRAFTS_H

#include "app/api_call.h"
#include "thread/authorship.h"
#include "thread/poster.h"

/* One of them. */
struct draft {
    struct slice id;
    struct slice author_id; /* empty: none */
    struct slice payload;   /* as it will be stored */
    enum payload_type type;
};

/* Judges a scanned value. `who` says who asks; its type and author are filled in. API_DONE, with
 * the draft and the entry to post, or API_FAILED with the path of what is wrong. */
int draft_make(struct api_call *c, struct slice value, struct authorship_question *who,
               struct draft *ret_draft, struct post_entry *ret_entry) MUST_USE;

/* Makes the entry of a draft that the server itself writes. API_DONE or API_FAILED. */
int draft_compose(struct api_call *c, const struct draft *draft, bool fresh,
                  struct post_entry *ret_entry) MUST_USE;

#endif
