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

/* Gives back the bytes of a UTF-8 character that the page's end cuts apart, so that the next page
 * begins with it, unless nothing would be left. For pages that more bytes follow. */
void page_trim_character(struct stream_page *page);

#endif
