/* Webhook URLs: what is taken, libcurl reads in the same way, or the host that was checked would
 * not be the host that is called. */
#include "serve/webhook_url.h"

#include <assert.h>
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_part(CURLU *theirs, CURLUPart part, struct slice ours)
{
    char *text = NULL;

    assert(curl_url_get(theirs, part, &text, CURLU_DEFAULT_PORT) == CURLUE_OK);
    struct slice said = slice_of(text);

    if (said.len > 0 && said.ptr[0] == '[') {
        said = (struct slice){said.ptr + 1, said.len - 2};
    }
    /* libcurl writes IPv6 addresses in one form; that they are the same is its own business. */
    assert(slice_equal_nocase(said, ours) || memchr(ours.ptr, ':', ours.len) != NULL);
    curl_free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = {(const char *)data, size};
    struct webhook_url url;
    struct webhook_url strict;
    struct errmsg msg = {{0}};
    char port[8];

    if (webhook_url_parse(text, true, &url, &msg) != 0) {
        assert(msg.text[0] != '\0');
        assert(webhook_url_parse(text, false, &strict, NULL) == ERR_INVALID);
        return 0;
    }
    if (webhook_url_parse(text, false, &strict, NULL) == 0) {
        assert(strict.https);
        assert(slice_equal(strict.host, url.host));
    }
    assert(url.host.ptr >= text.ptr);
    assert(url.host.ptr + url.host.len <= text.ptr + text.len);

    char *copy = strndup(text.ptr, text.len);
    CURLU *theirs = curl_url();

    assert(copy != NULL);
    assert(theirs != NULL);
    assert(curl_url_set(theirs, CURLUPART_URL, copy, 0) == CURLUE_OK);
    (void)snprintf(port, sizeof(port), "%u", url.port);
    check_part(theirs, CURLUPART_SCHEME, url.https ? SLICE("https") : SLICE("http"));
    check_part(theirs, CURLUPART_HOST, url.host);
    check_part(theirs, CURLUPART_PORT, slice_of(port));
    curl_url_cleanup(theirs);
    free(copy);
    return 0;
}
