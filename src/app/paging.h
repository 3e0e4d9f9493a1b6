/* Lists of the API, a page at a time: ?limit= and ?cursor=, and the answer around the items. */
#ifndef ARBE_APP_PAGING_H
#define ARBE_APP_PAGING_H

#include "app/api_call.h"

#define PAGING_LIMIT_DEFAULT 50u

/* Reads both parameters; limit is 1 to STORE_PAGE_MAX. */
struct store_page paging_read(struct params *p);

/* Begins {"NAME":[. */
void paging_begin(struct api_call *c, const char *name);

/* Before each item but the first: a comma. */
void paging_item(struct api_call *c, size_t index);

/* Whether the answer has so many bytes that its page ends, whatever was asked for. */
bool paging_is_full(const struct api_call *c);

/* Ends ],"nextCursor":…} and answers 200. */
int paging_end(struct api_call *c, struct slice next);

#endif
