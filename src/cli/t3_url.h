/* URLs of T3 Code servers: what is taken for one, whether two mean the same server, and where the
 * server's plain HTTP is. Pure. */
#ifndef ARBE_CLI_T3_URL_H
#define ARBE_CLI_T3_URL_H

#include "base/attr.h"
#include "base/limits.h"

#include <stdbool.h>
#include <stddef.h>

#define T3_URL_BYTES (T3_URL_BYTES_MAX + 1u) /* with the NUL */

/* NULL for what t3_rpc_connect takes and is without a query; else a sentence that says what is
 * wrong with it, and does not repeat what may be a password. Static storage. */
const char *t3_url_check(const char *url) MUST_USE;

/* Whether a word is meant to be a URL: it has "://" in it. */
bool t3_url_is_meant(const char *word);

/* Writes the URL of the server that made a pairing link ("http://h/pair#token=...", or
 * "https://page/pair?host=h#token=..." by way of T3's hosted page); ret_token is where its
 * credential begins, in `link`. False for what is no such link, or too long; nothing is written
 * then. */
bool t3_url_pairing_base(const char *link, char *out, size_t size, const char **ret_token);

/* Whether two URLs, both good, mean the same place, where a token for the one may go: ws is http,
 * "/ws" and no path are the same, and so are a port that is left out and the usual one. */
bool t3_url_same(const char *a, const char *b);

/* Whether they lead to one server, as far as they tell: also where one says localhost and the other
 * 127.0.0.1 or [::1]. */
bool t3_url_same_server(const char *a, const char *b);

/* Writes the URL of `path` ("/oauth/token") over HTTP at the server of a good URL: beside its
 * "/ws". */
void t3_url_http(const char *url, const char *path, char *out, size_t size);

/* Writes host and port, as they stand in a good URL. */
void t3_url_authority(const char *url, char *out, size_t size);

/* Whether what is sent to a good URL can be read on the way: neither encrypted nor to this machine
 * itself. */
bool t3_url_is_exposed(const char *url);

#endif
