/* The address is checked twice. The look-up is ours, and if one of its answers is not public the
 * whole name is refused: such an answer is a mistake or an attack. The good ones are pinned
 * (CURLOPT_RESOLVE), so that no second look-up can give others. And the socket is only made once
 * the address that libcurl is about to connect to was checked, wherever it has it from; that alone
 * would be enough, but would let a name pass that leads here and there. */
#include "serve/webhook_transfer.h"

#include "base/limits.h"
#include "serve/address.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <sys/socket.h>

#define ANSWERS_MAX      16u    /* addresses of a host that are tried; others are checked only */
#define PIN_BYTES_MAX    2048u  /* host, port, and ANSWERS_MAX addresses */
#define CONNECT_MS       10000L /* for connection and TLS */
#define RECEIVE_BYTES    16384L
#define CONNECTION_AGE_S 60L /* an idle one is not used again after this */

static size_t on_body(char *bytes, size_t size, size_t count, void *context)
{
    struct webhook_transfer *t = context;

    buf_append(&t->reply, (struct slice){bytes, size * count});
    if (t->reply.failed) {
        t->too_long = true;
        return 0; /* ends the transfer */
    }
    return size * count;
}

/* Header lines, those of interim answers and trailers too: libcurl keeps them all. */
static size_t on_header(char *bytes, size_t size, size_t count, void *context)
{
    struct webhook_transfer *t = context;

    (void)bytes;
    t->header_bytes += size * count;
    if (t->header_bytes > WEBHOOK_HEADER_BYTES_MAX) {
        t->too_long = true;
        return 0; /* ends the transfer */
    }
    return size * count;
}

static curl_socket_t on_socket(void *context, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct webhook_transfer *t = context;
    const char *refused = purpose == CURLSOCKTYPE_IPCXN
                              ? address_refusal(&address->addr, t->allow_loopback)
                              : "of an unknown purpose";

    if (refused != NULL) {
        t->refused = refused;
        return CURL_SOCKET_BAD;
    }
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

/* Sets an option; a failure sticks in `code`. The options are of several types, as libcurl has
 * it. */
#define SET(option, value)                                     \
    do {                                                       \
        if (code == CURLE_OK) {                                \
            code = curl_easy_setopt(t->easy, option, (value)); \
        }                                                      \
    } while (0)

/* What is sent and where to. */
static CURLcode set_request(struct webhook_transfer *t, const struct webhook_order *order)
{
    CURLcode code = CURLE_OK;

    SET(CURLOPT_URL, order->url);
    SET(CURLOPT_PROTOCOLS_STR, order->https ? "https" : "http");
    SET(CURLOPT_POST, 1L);
    SET(CURLOPT_POSTFIELDS, order->body.ptr);
    SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)order->body.len);
    SET(CURLOPT_HTTPHEADER, t->headers);
    SET(CURLOPT_USERAGENT, "arbe");
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(CURLOPT_RESOLVE, t->resolved);
    SET(CURLOPT_PRIVATE, order->about);
    return code;
}

/* What is taken from a receiver, and for how long. */
static CURLcode set_bounds(struct webhook_transfer *t, const struct webhook_order *order)
{
    CURLcode code = CURLE_OK;
    long timeout = (long)order->timeout_ms;

    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_PROXY, ""); /* the environment's neither */
    SET(CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    SET(CURLOPT_SSL_VERIFYPEER, 1L);
    SET(CURLOPT_SSL_VERIFYHOST, 2L);
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (order->ca_file != NULL) {
        SET(CURLOPT_CAINFO, order->ca_file);
    }
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_TIMEOUT_MS, timeout);
    SET(CURLOPT_CONNECTTIMEOUT_MS, timeout < CONNECT_MS ? timeout : CONNECT_MS);
    SET(CURLOPT_MAXAGE_CONN, CONNECTION_AGE_S);
    SET(CURLOPT_BUFFERSIZE, RECEIVE_BYTES);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, t);
    SET(CURLOPT_HEADERFUNCTION, on_header);
    SET(CURLOPT_HEADERDATA, t);
    SET(CURLOPT_OPENSOCKETFUNCTION, on_socket);
    SET(CURLOPT_OPENSOCKETDATA, t);
    return code;
}

static bool add_line(struct curl_slist **list, const char *line)
{
    struct curl_slist *longer = curl_slist_append(*list, line);

    *list = longer != NULL ? longer : *list;
    return longer != NULL;
}

int webhook_transfer_init(struct webhook_transfer *t, const struct webhook_order *order)
{
    char signature[256];

    *t = (struct webhook_transfer){.allow_loopback = order->allow_loopback};
    buf_init(&t->reply, WEBHOOK_REPLY_BYTES_MAX);
    (void)snprintf(signature, sizeof(signature), "Webhook-Signature: %s", order->signature);
    t->easy = curl_easy_init();
    /* Without "Expect:" a large body would wait a second for a receiver that knows no 100. */
    if (t->easy == NULL || !add_line(&t->headers, "Content-Type: application/json") ||
        !add_line(&t->headers, signature) || !add_line(&t->headers, "Expect:") ||
        (order->resolved != NULL && !add_line(&t->resolved, order->resolved)) ||
        set_request(t, order) != CURLE_OK || set_bounds(t, order) != CURLE_OK) {
        webhook_transfer_finish(t);
        return ERR_NOMEM;
    }
    return 0;
}

void webhook_transfer_finish(struct webhook_transfer *t)
{
    curl_easy_cleanup(t->easy);
    curl_slist_free_all(t->headers);
    curl_slist_free_all(t->resolved);
    buf_finish(&t->reply);
    t->easy = NULL;
    t->headers = NULL;
    t->resolved = NULL;
}

/* The address as text; false for what is neither IPv4 nor IPv6. */
static bool format_address(const struct sockaddr *address, char out[static INET6_ADDRSTRLEN])
{
    struct sockaddr_in ip4;
    struct sockaddr_in6 ip6;

    if (address->sa_family == AF_INET) {
        memcpy(&ip4, address, sizeof(ip4));
        return inet_ntop(AF_INET, &ip4.sin_addr, out, INET6_ADDRSTRLEN) != NULL;
    }
    if (address->sa_family == AF_INET6) {
        memcpy(&ip6, address, sizeof(ip6));
        return inet_ntop(AF_INET6, &ip6.sin6_addr, out, INET6_ADDRSTRLEN) != NULL;
    }
    return false;
}

int webhook_transfer_pin(const struct webhook_url *url, const struct addrinfo *answers,
                         bool allow_loopback, char **ret_resolved, struct errmsg *msg)
{
    char memory[PIN_BYTES_MAX];
    char text[INET6_ADDRSTRLEN];
    struct buf pin;
    unsigned count = 0;

    buf_init_fixed(&pin, memory, sizeof(memory));
    /* The plus lets libcurl forget it after a minute; by then the connection is there. */
    buf_append_format(&pin, "+%.*s:%u:", (int)url->host.len, url->host.ptr, url->port);
    for (const struct addrinfo *one = answers; one != NULL; one = one->ai_next) {
        const char *refused = address_refusal(one->ai_addr, allow_loopback);
        bool shown = format_address(one->ai_addr, text);

        if (refused != NULL) {
            return err_set(msg, ERR_PERM, "it leads to %s, which is %s",
                           shown ? text : "an address", refused);
        }
        if (count < ANSWERS_MAX) {
            bool bracket = one->ai_family == AF_INET6;

            buf_append_format(&pin, "%s%s%s%s", count > 0 ? "," : "", bracket ? "[" : "", text,
                              bracket ? "]" : "");
            count++;
        }
    }
    if (count == 0) {
        return err_set(msg, ERR_NOTFOUND, "it has no address");
    }
    buf_append_char(&pin, '\0');
    char *resolved = pin.failed ? NULL : strdup(pin.ptr);

    if (resolved == NULL) {
        return err_set(msg, ERR_NOMEM, "out of memory");
    }
    *ret_resolved = resolved;
    return 0;
}
