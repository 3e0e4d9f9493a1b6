/* A page of threads, newest activity first, right at every moment: the records may be a few seconds
 * behind for threads that are being written to (thread/recency.h), and this makes up for it. */
#ifndef ARBE_APP_THREAD_PAGE_H
#define ARBE_APP_THREAD_PAGE_H

#include "app/api_call.h"

/* Answers the page. API_DONE or API_FAILED. Blocks. */
int thread_page_answer(struct api_call *c, const struct thread_query *query,
                       const struct store_page *page) MUST_USE;

#endif
