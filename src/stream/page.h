/* Gathering the pieces of a page: runs of memory and of pack files that together are a range of a
 * stream, through a chain of forks if need be. */
#ifndef ARBE_STREAM_PAGE_H
#define ARBE_STREAM_PAGE_H

#include "stream/core.h"

/* What to gather; the page has stream, start and json set. */
struct page_request {
    uint64_t tail;      /* visible tail: the page ends there at most */
    uint32_t bytes_max; /* of one page; a JSON message may exceed it */
    bool check;         /* in JSON mode, prove that the start lies between messages */
    bool in_memory;     /* pieces must be memory */
    bool may_block;     /* on the pool */
};

/* Adds pieces from page->start, which is below the tail, and sets page->next and bytes. ERR_AGAIN
 * when it would have to block; ERR_INVALID; ERR_GONE when the stream went meanwhile; ERR_NOMEM,
 * ERR_IO, ERR_CORRUPT. After an error the page has no pieces. */
int page_gather(struct stream_page *page, const struct page_request *r) MUST_USE;

#endif
