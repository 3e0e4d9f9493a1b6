/* What libcurl's codes mean to a program: one of our codes, and a sentence. Pure. */
#ifndef ARBE_CLIENT_HTTP_FAILURE_H
#define ARBE_CLIENT_HTTP_FAILURE_H

#include "arbe/stream_error.h"

#include <curl/curl.h>
#include <stdbool.h>

struct http_failure {
    enum stream_error_code code;
    bool transient;  /* may pass by itself */
    bool names_host; /* the sentence is about the host, whose name is to stand before it */
    char sentence[320];
};

/* `words` is libcurl's own message, perhaps empty; `os_errno` the errno it met, or 0;
 * `connect_ms` the limit for a connection, which is the only one that libcurl watches. */
void http_failure(CURLcode code, const char *words, int os_errno, int connect_ms,
                  struct http_failure *ret_failure);

#endif
