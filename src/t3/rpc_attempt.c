/* Others may be tried only as long as it never came to words with a server: what one says is the
 * answer, whatever another address would say. */
#include "t3/rpc_attempt.h"

#include "base/err.h"
#include "t3/rpc_scarce.h"

#include <assert.h>
#include <openssl/x509_vfy.h>
#include <stdio.h>
#include <string.h>

#define STATUS_MIN 100
#define STATUS_MAX 999

static int fail(struct rpc_failure *failure, enum t3_rpc_code code, const char *text)
{
    failure->code = code;
    (void)snprintf(failure->text, sizeof(failure->text), "%s", text);
    return (int)code;
}

static int fail_with(struct rpc_failure *failure, enum t3_rpc_code code, const char *text,
                     const char *particulars)
{
    failure->code = code;
    (void)snprintf(failure->text, sizeof(failure->text), "%s: %.200s", text, particulars);
    return (int)code;
}

static int fail_memory(struct rpc_failure *failure)
{
    return fail(failure, T3_RPC_ERROR_MEMORY, rpc_scarce_text(1));
}

void rpc_attempt_init(struct rpc_attempt *a, const struct rpc_url *url, bool token)
{
    *a = (struct rpc_attempt){.url = url, .token = token, .verify_code = X509_V_OK};
}

void rpc_attempt_finish(struct rpc_attempt *a)
{
    rpc_lookup_forget(&a->lookup);
    if (a->literal != NULL) {
        freeaddrinfo(a->literal);
    }
    a->literal = NULL;
    a->next = NULL;
}

/* ------------------------------------------------------------------------------------ addresses */

static int take_addresses(struct rpc_attempt *a, int code, const struct addrinfo *addresses,
                          struct rpc_failure *failure)
{
    assert(a->next == NULL);
    if (code == 0 && addresses != NULL) {
        a->next = addresses;
        return T3_RPC_OK;
    }
    /* Without a descriptor the answer is that there is no such name. */
    return code == EAI_MEMORY || rpc_scarce_descriptors(1)
               ? fail_memory(failure)
               : fail_with(failure, T3_RPC_ERROR_NETWORK, "the name of the host leads nowhere",
                           gai_strerror(code));
}

int rpc_attempt_begin(struct rpc_attempt *a, void (*wake)(void *context), void *context,
                      struct rpc_failure *ret_failure)
{
    static const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST};

    assert(a->lookup.query == NULL);
    if (!a->url->literal) {
        int started = rpc_lookup_start(&a->lookup, a->url->host, wake, context);

        return started == 0           ? T3_RPC_OK
               : started == ERR_AGAIN ? fail(ret_failure, T3_RPC_ERROR_NETWORK,
                                             "the name server holds up too many other look-ups")
               : started == ERR_LIMIT
                   ? fail(ret_failure, T3_RPC_ERROR_MEMORY, "no thread can be started")
                   : fail_memory(ret_failure);
    }
    int code = getaddrinfo(a->url->host, NULL, &hints, &a->literal);

    return take_addresses(a, code, a->literal, ret_failure);
}

int rpc_attempt_look(struct rpc_attempt *a, struct rpc_failure *ret_failure)
{
    int code = 0;
    const struct addrinfo *addresses = NULL;

    if (a->lookup.query == NULL || !rpc_lookup_ended(&a->lookup, &code, &addresses)) {
        return T3_RPC_OK;
    }
    return take_addresses(a, code, addresses, ret_failure);
}

int rpc_attempt_advance(struct rpc_attempt *a, uint64_t now_ms, uint64_t deadline_ms,
                        char numeric[static NI_MAXHOST], struct rpc_failure *ret_failure)
{
    const struct addrinfo *address = a->next;
    uint64_t left = deadline_ms > now_ms ? deadline_ms - now_ms : 0;
    size_t count = 0;

    assert(address != NULL);
    for (const struct addrinfo *one = address; one != NULL; one = one->ai_next) {
        count++;
    }
    a->next = address->ai_next;
    a->latest = RPC_TRY_RUNNING;
    a->head_sent = false;
    a->try_ms = now_ms + left / count;
    return getnameinfo(address->ai_addr, address->ai_addrlen, numeric, NI_MAXHOST, NULL, 0,
                       NI_NUMERICHOST) == 0
               ? T3_RPC_OK
               : fail_memory(ret_failure);
}

bool rpc_attempt_is_late(const struct rpc_attempt *a, uint64_t now_ms)
{
    return a->next != NULL && now_ms >= a->try_ms;
}

/* ------------------------------------------------------------------------------------- failures */

/* The answer to the upgrade was another than that. */
static void explain_status(const struct rpc_attempt *a, struct rpc_failure *failure)
{
    char text[128];

    if (a->status == 401 || a->status == 403) {
        (void)snprintf(text, sizeof(text), "the server %s (HTTP %d)",
                       a->token ? "does not accept the token" : "wants a token, and none was given",
                       a->status);
        (void)fail(failure, T3_RPC_ERROR_AUTH, text);
    } else if (a->status == 426) {
        (void)fail(failure, T3_RPC_ERROR_VERSION,
                   "the server wants another orchestration protocol than 2 (HTTP 426)");
    } else {
        (void)snprintf(text, sizeof(text),
                       "the server answered HTTP %d instead of opening a WebSocket", a->status);
        (void)fail(failure, T3_RPC_ERROR_HTTP, text);
    }
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static void explain_words(const struct rpc_attempt *a, const char *words,
                          struct rpc_failure *failure)
{
    if (a->verify_code != X509_V_OK && rpc_scarce_descriptors(1)) {
        (void)fail_memory(failure); /* the certificates to trust could not be read */
    } else if (a->verify_code != X509_V_OK) {
        (void)fail_with(failure, T3_RPC_ERROR_TLS, "the server's certificate is not good",
                        X509_verify_cert_error_string(a->verify_code));
    } else if (begins(words, "connect SSL") && strstr(words, "reason(1)") != NULL) {
        /* That is all they say where a plain server answers; a server may also know no version
         * or cipher that fits. */
        (void)fail(failure, T3_RPC_ERROR_TLS,
                   "no TLS connection: what answers there seems to speak no TLS; perhaps http:// "
                   "is meant");
    } else if (begins(words, "connect SSL")) {
        (void)fail_with(failure, T3_RPC_ERROR_TLS, "no TLS connection", words);
    } else if (strstr(words, "OOM") != NULL) {
        (void)fail_memory(failure);
    } else if (begins(words, "HS: ") || begins(words, "problems parsing")) {
        (void)fail_with(failure, T3_RPC_ERROR_PROTOCOL,
                        "the answer is no good upgrade to a WebSocket", words);
    } else if (a->head_sent) {
        (void)fail(failure, T3_RPC_ERROR_NETWORK, "the connection ended without an answer");
    } else {
        (void)fail(failure, T3_RPC_ERROR_NETWORK, "no connection: nothing answers there");
    }
}

bool rpc_attempt_fail(struct rpc_attempt *a, const char *words, struct rpc_failure *ret_failure)
{
    if (a->status != 0 && (a->status < STATUS_MIN || a->status > STATUS_MAX)) {
        a->status = 0;
        (void)fail(ret_failure, T3_RPC_ERROR_PROTOCOL,
                   "the answer is no good upgrade to a WebSocket: its status is none of HTTP");
        return false;
    }
    if (a->status != 0 && a->status != 101) {
        explain_status(a, ret_failure);
        return false;
    }
    if (a->next != NULL && (a->latest == RPC_TRY_LATE || begins(words, "Unable to connect"))) {
        a->latest = RPC_TRY_FAILED;
        return true;
    }
    explain_words(a, words, ret_failure);
    return false;
}
