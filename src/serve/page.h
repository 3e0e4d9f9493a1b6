/* Sends the bytes of a page: memory by reference, files from the page cache. */
#ifndef ARBE_SERVE_PAGE_H
#define ARBE_SERVE_PAGE_H

#include "serve/exchange.h"

/* Bytes of the body that a page makes: in JSON mode an array around the pieces, without the
 * last comma. */
uint64_t page_body_bytes(const struct stream_page *page);

/* Queues the body behind what is queued. Takes the pieces' references over. False when memory
 * is out: the connection is then beyond use. */
bool page_queue(struct exchange *x, struct stream_page *page) MUST_USE;

/* Appends the body to a buffer when it is small and in memory; false, and nothing is done, when
 * not. */
bool page_append_small(struct buf *out, const struct stream_page *page) MUST_USE;

/* Gives back what the end of a page of text cuts apart, so that the next page begins with it: the
 * bytes of a UTF-8 character that is not whole; and, when `more` follows at once, a CR, which may
 * be half a line end. Nothing may be left, but not when `more` follows. */
void page_trim_text(struct stream_page *page, bool more);

#endif
