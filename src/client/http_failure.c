/* libcurl's words are kept where they say more than its code: of certificates, above all. Elsewhere
 * ours are shorter and do not change with its version. */
#include "client/http_failure.h"

#include <stdio.h>
#include <string.h>

static void set(struct http_failure *f, enum stream_error_code code, bool transient,
                const char *sentence)
{
    f->code = code;
    f->transient = transient;
    f->names_host = code == STREAM_ERROR_NETWORK || code == STREAM_ERROR_TLS ||
                    code == STREAM_ERROR_TIMEOUT;
    (void)snprintf(f->sentence, sizeof(f->sentence), "%.300s", sentence);
}

/* The sentence, and what the system says of it. */
static void set_errno(struct http_failure *f, const char *sentence, int os_errno)
{
    char text[128] = "";
    char both[256];

    set(f, STREAM_ERROR_NETWORK, true, sentence);
    if (os_errno != 0) {
        (void)snprintf(both, sizeof(both), "%s: %s", sentence,
                       strerror_r(os_errno, text, sizeof(text)));
        set(f, STREAM_ERROR_NETWORK, true, both);
    }
}

/* A handshake that breaks off is no fault of a certificate. */
static bool is_broken_handshake(const char *words)
{
    return strstr(words, "SYSCALL") != NULL || strstr(words, "reset by peer") != NULL ||
           strstr(words, "unexpected eof") != NULL;
}

void http_failure(CURLcode code, const char *words, int os_errno, int connect_ms,
                  struct http_failure *f)
{
    char text[64];

    words = words[0] != '\0' ? words : curl_easy_strerror(code);
    switch (code) {
    case CURLE_OUT_OF_MEMORY:
        set(f, STREAM_ERROR_MEMORY, false, "out of memory");
        break;
    case CURLE_URL_MALFORMAT:
        set(f, STREAM_ERROR_ARGUMENT, false, words);
        break;
    case CURLE_OPERATION_TIMEDOUT:
        (void)snprintf(text, sizeof(text), "no connection within %d ms", connect_ms);
        set(f, STREAM_ERROR_TIMEOUT, true, text);
        break;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
        set(f, STREAM_ERROR_NETWORK, true, "the name of the host leads nowhere");
        break;
    case CURLE_COULDNT_CONNECT:
        set_errno(f, "no connection", os_errno);
        break;
    case CURLE_GOT_NOTHING:
        set(f, STREAM_ERROR_NETWORK, true, "the connection ended without an answer");
        break;
    case CURLE_PARTIAL_FILE:
        set(f, STREAM_ERROR_NETWORK, true, "the answer broke off before it was whole");
        break;
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
        set_errno(f, "the connection broke", os_errno);
        break;
    case CURLE_SSL_CONNECT_ERROR:
        set(f, is_broken_handshake(words) ? STREAM_ERROR_NETWORK : STREAM_ERROR_TLS,
            is_broken_handshake(words), words);
        break;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CRL_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_INVALIDCERTSTATUS:
    case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
        set(f, STREAM_ERROR_TLS, false, words);
        break;
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_UNSUPPORTED_PROTOCOL:
        set(f, STREAM_ERROR_FORMAT, false, "the answer is not HTTP/1.1");
        break;
    case CURLE_BAD_CONTENT_ENCODING:
        set(f, STREAM_ERROR_FORMAT, false, "the answer's compression is broken");
        break;
    default:
        set(f, STREAM_ERROR_NETWORK, true, words);
        break;
    }
}
