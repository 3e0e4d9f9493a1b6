/* The thread: a look-up, then a try of each address, then an open connection, then its end. Between
 * two turns of libwebsockets `step` looks at what others want and at the clock; libwebsockets tells
 * the rest by `on_event`. Both run on the thread.
 *
 * An end is told once, by `fail` or by the user itself; after it the connection may linger for
 * T3_CLOSE_MS, so that the server hears why. The thread never waits for the server when it is to
 * stop.
 *
 * Signals: the thread takes none. SIGPIPE, which OpenSSL can raise, stays pending with the thread
 * and goes with it. */
#include "t3/rpc_socket.h"

#include "base/limits.h"
#include "t3/frame.h"
#include "t3/rpc_context.h"
#include "t3/rpc_error.h"
#include "t3/rpc_lookup.h"
#include "t3/rpc_tls.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

#define READ_BYTES 32768u /* from the socket at once, and handed out at once */
#define KEPT_BYTES 65536u /* a larger buffer is freed after its use */

enum state {
    LOOKING_UP, /* asks for addresses */
    CONNECTING, /* tries one */
    OPEN,       /* the connection stands */
    CLOSING,    /* it is to be closed, or is being closed */
    ENDED,      /* the thread has nothing more to do */
};

struct rpc_socket {
    struct rpc_socket_options options; /* constant */
    struct rpc_socket_user user;       /* constant */
    pthread_t thread;
    atomic_bool stopping;        /* by rpc_socket_destroy */
    atomic_bool close_wanted;    /* by rpc_socket_close */
    atomic_bool woken;           /* by rpc_socket_wake */
    pthread_mutex_t mutex;       /* guards `context` against others than the thread */
    struct lws_context *context; /* NULL before and after */

    /* the thread's */
    enum state state;
    bool told;    /* of the end */
    SSL_CTX *tls; /* NULL: none */
    struct rpc_lookup *lookup;
    struct addrinfo *addresses;   /* owned */
    const struct addrinfo *next;  /* the one to be tried next */
    struct lws *wsi;              /* NULL: none */
    bool try_failed;              /* the try of the latest address has ended */
    bool try_late;                /* it took too long */
    bool head_sent;               /* it is the server's turn */
    int status;                   /* of the answer to the upgrade; 0: none yet */
    int verify_code;              /* why the certificate is not good; X509_V_OK */
    lws_sorted_usec_list_t timer; /* at the next deadline */
    uint64_t deadline_ms;         /* for a connection, or for the end of one */
    uint64_t try_ms;              /* for the try of this address */
    uint64_t ping_ms;             /* the next ping is due */
    int pings_open;               /* pings without an answer */
    bool ping_due;                /* one is to be sent */
    bool paused;                  /* nothing is read, since the user is full */
    bool close_begun;             /* libwebsockets knows that it is to close */
    enum lws_close_status close_code;
    struct buf message;  /* as far as it has come */
    struct buf out;      /* LWS_PRE bytes, then what is sent */
    unsigned char *head; /* the token is in there, in libwebsockets' memory; NULL */
    size_t head_len;
};

static uint64_t now_ms(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail for this clock */
    return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* -------------------------------------------------------------------------------------- the end */

/* The next turn comes at once. */
static void kick(struct rpc_socket *s)
{
    if (s->context != NULL) {
        lws_cancel_service(s->context);
    }
}

static void end(struct rpc_socket *s)
{
    s->state = ENDED;
    kick(s);
}

/* Tells the end, unless it was told. */
static void tell(struct rpc_socket *s, const struct t3_rpc_error *error)
{
    if (!s->told) {
        s->told = true;
        s->user.closed(s->user.context, error);
    }
}

static void fail_memory(struct rpc_socket *s)
{
    struct t3_rpc_error error;

    (void)rpc_error_set(&error, T3_RPC_ERROR_MEMORY, "out of memory");
    tell(s, &error);
    end(s);
}

/* An end of a connection or of a try of one, whose sentence is the place and `text`. */
static void fail(struct rpc_socket *s, enum t3_rpc_code code, const char *text)
{
    struct t3_rpc_error error;

    (void)rpc_error_set(&error, code, "%s: %s", s->options.url->place, text);
    error.status = s->status != 101 ? s->status : 0;
    tell(s, &error);
    end(s);
}

/* From now on only the close matters, and only for so long. */
static void begin_close(struct rpc_socket *s, enum lws_close_status code)
{
    if (s->state == OPEN) {
        s->state = CLOSING;
        s->close_code = code;
        s->deadline_ms = now_ms() + T3_CLOSE_MS;
    }
}

static void tell_closed_by_us(struct rpc_socket *s)
{
    struct t3_rpc_error error;

    (void)rpc_error_set(&error, T3_RPC_ERROR_CLOSED, "the connection was closed");
    tell(s, &error);
}

/* ---------------------------------------------------------------------- a connection that fails */

/* The answer to the upgrade was another than that. */
static void fail_status(struct rpc_socket *s)
{
    char text[128];

    if (s->status == 401 || s->status == 403) {
        (void)snprintf(text, sizeof(text), "the server %s (HTTP %d)",
                       s->options.authorization != NULL ? "does not accept the token"
                                                        : "wants a token, and none was given",
                       s->status);
        fail(s, T3_RPC_ERROR_AUTH, text);
    } else if (s->status == 426) {
        fail(s, T3_RPC_ERROR_VERSION,
             "the server wants another orchestration protocol than 2 (HTTP 426)");
    } else {
        (void)snprintf(text, sizeof(text),
                       "the server answered HTTP %d instead of opening a WebSocket", s->status);
        fail(s, T3_RPC_ERROR_HTTP, text);
    }
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* By libwebsockets' own words, which are all that it tells. */
static void fail_handshake(struct rpc_socket *s, const char *words)
{
    char text[320];

    if (s->verify_code != X509_V_OK) {
        (void)snprintf(text, sizeof(text), "the server's certificate is not good: %.200s",
                       X509_verify_cert_error_string(s->verify_code));
        fail(s, T3_RPC_ERROR_TLS, text);
    } else if (begins(words, "connect SSL") && strstr(words, "reason(1)") != NULL) {
        /* That is all they say where a plain server answers; a server may also know no version
         * or cipher that fits. */
        fail(s, T3_RPC_ERROR_TLS,
             "no TLS connection: what answers there seems to speak no TLS; perhaps http:// is "
             "meant");
    } else if (begins(words, "connect SSL")) {
        (void)snprintf(text, sizeof(text), "no TLS connection: %.200s", words);
        fail(s, T3_RPC_ERROR_TLS, text);
    } else if (strstr(words, "OOM") != NULL) {
        fail_memory(s);
    } else if (begins(words, "HS: ") || begins(words, "problems parsing")) {
        (void)snprintf(text, sizeof(text), "the answer is no good upgrade to a WebSocket: %.200s",
                       words);
        fail(s, T3_RPC_ERROR_PROTOCOL, text);
    } else if (s->head_sent) {
        fail(s, T3_RPC_ERROR_NETWORK, "the connection ended without an answer");
    } else {
        fail(s, T3_RPC_ERROR_NETWORK, "no connection: nothing answers there");
    }
}

/* The try of an address has failed; others may be left, if it never came to words with a server. */
static void on_no_connection(struct rpc_socket *s, struct lws *wsi, const char *words)
{
    s->wsi = NULL;
    if (s->state != CONNECTING) {
        return;
    }
    s->status = s->status != 0 ? s->status : (int)lws_http_client_http_response(wsi);
    if (s->status != 0 && s->status != 101) {
        fail_status(s);
    } else if (s->next != NULL && (s->try_late || begins(words, "Unable to connect"))) {
        s->try_failed = true;
        kick(s);
    } else {
        fail_handshake(s, words);
    }
}

/* ---------------------------------------------------------------------------- a connection ends */

/* libwebsockets does not say why it ended a connection. If the socket is still good, it was for
 * what the server sent. */
static void fail_broken(struct rpc_socket *s, struct lws *wsi)
{
    char byte;
    ssize_t n = recv(lws_get_socket_fd(wsi), &byte, 1, MSG_PEEK | MSG_DONTWAIT);

    if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))) {
        fail(s, T3_RPC_ERROR_PROTOCOL, "the server broke the rules of WebSockets");
    } else {
        fail(s, T3_RPC_ERROR_NETWORK, "the connection broke");
    }
}

static void on_closed(struct rpc_socket *s, struct lws *wsi)
{
    s->wsi = NULL;
    if (s->state == CLOSING) {
        tell_closed_by_us(s);
        end(s);
    } else if (s->state != ENDED) {
        fail_broken(s, wsi);
    }
}

/* The server's close frame, which libwebsockets answers. */
static void on_peer_close(struct rpc_socket *s, const unsigned char *payload, size_t len)
{
    struct t3_rpc_error error;

    if (len >= 2) {
        (void)rpc_error_set(&error, T3_RPC_ERROR_CLOSED,
                            "%s: the server closed the connection (%u)", s->options.url->place,
                            (unsigned)payload[0] << 8 | payload[1]);
    } else {
        (void)rpc_error_set(&error, T3_RPC_ERROR_CLOSED, "%s: the server closed the connection",
                            s->options.url->place);
    }
    tell(s, &error);
    begin_close(s, LWS_CLOSE_STATUS_NORMAL);
    s->close_begun = true;
    kick(s); /* there is a deadline now */
}

/* ----------------------------------------------------------------------------------- what comes */

/* Ends the connection for what the server sent: told, or else for that reason. The close itself
 * waits until the socket can be written to: libwebsockets 4.1.6 whose receive callback asks for an
 * end in the middle of a frame goes on to collect the rest of it, behind its buffer. */
static void reject(struct rpc_socket *s, enum lws_close_status status, enum t3_rpc_code code,
                   const char *text)
{
    struct t3_rpc_error error;

    (void)rpc_error_set(&error, code, "%s: %s", s->options.url->place, text);
    tell(s, &error);
    begin_close(s, status);
    buf_finish(&s->message);
    (void)lws_callback_on_writable(s->wsi); /* fails only with the socket */
    kick(s);                                /* there is a deadline now */
}

/* What the server is told of what it sent. */
static enum lws_close_status close_status(int code)
{
    switch (code) {
    case T3_RPC_ERROR_LIMIT:
        return LWS_CLOSE_STATUS_MESSAGE_TOO_LARGE;
    case T3_RPC_ERROR_PROTOCOL:
        return LWS_CLOSE_STATUS_PROTOCOL_ERR;
    case T3_RPC_ERROR_DEFECT:
        return LWS_CLOSE_STATUS_NORMAL;
    default:
        return LWS_CLOSE_STATUS_UNEXPECTED_CONDITION;
    }
}

static void hand_out(struct rpc_socket *s)
{
    int code = s->user.message(s->user.context, &s->message);

    if (code != T3_RPC_OK) {
        s->told = true;
        reject(s, close_status(code), (enum t3_rpc_code)code, "");
        return;
    }
    if (s->message.cap > KEPT_BYTES) {
        buf_finish(&s->message);
    }
    buf_clear(&s->message);
    if (!s->paused && s->user.full(s->user.context)) {
        s->paused = true;
        (void)lws_rx_flow_control(s->wsi, 0); /* applies behind this callback */
    }
}

static void reject_long(struct rpc_socket *s)
{
    size_t max = s->options.message_bytes_max;
    bool even = max % MIB == 0;
    char text[128];

    (void)snprintf(text, sizeof(text),
                   "the server sent a message that is longer than the %zu %s that one may have",
                   even ? max / MIB : max,
                   even       ? "MiB"
                   : max == 1 ? "byte"
                              : "bytes");
    reject(s, LWS_CLOSE_STATUS_MESSAGE_TOO_LARGE, T3_RPC_ERROR_LIMIT, text);
}

static void on_piece(struct rpc_socket *s, const char *bytes, size_t len)
{
    if (s->state != OPEN) {
        return; /* nobody wants it any more */
    }
    s->pings_open = 0;
    if (lws_frame_is_binary(s->wsi)) {
        reject(s, LWS_CLOSE_STATUS_UNACCEPTABLE_OPCODE, T3_RPC_ERROR_PROTOCOL,
               "the server sent a message that is no text");
        return;
    }
    if (len > s->options.message_bytes_max - s->message.len) {
        reject_long(s);
        return;
    }
    buf_append(&s->message, (struct slice){bytes, len});
    if (s->message.failed) {
        reject(s, LWS_CLOSE_STATUS_UNEXPECTED_CONDITION, T3_RPC_ERROR_MEMORY,
               "out of memory for a message of the server");
    } else if (lws_is_final_fragment(s->wsi)) {
        hand_out(s);
    }
}

/* ------------------------------------------------------------------------------------ what goes */

/* The next message, behind the room that libwebsockets wants for its header. */
static bool compose(struct rpc_socket *s)
{
    static const char room[LWS_PRE];

    if (s->out.cap > KEPT_BYTES) {
        buf_finish(&s->out);
    }
    buf_clear(&s->out);
    buf_append(&s->out, (struct slice){room, sizeof(room)});
    if (s->ping_due && s->state == OPEN) {
        s->ping_due = false;
        t3_frame_ping(&s->out);
        return true;
    }
    return s->user.send(s->user.context, &s->out);
}

static int on_writeable(struct rpc_socket *s)
{
    bool closing = s->state == CLOSING && !s->close_begun;
    bool more = (s->state == OPEN || closing) && compose(s);

    if (closing && (!more || s->out.failed)) {
        s->close_begun = true;
        lws_close_reason(s->wsi, s->close_code, NULL, 0);
        return -1; /* libwebsockets sends it, and waits for the answer */
    }
    if (!more) {
        return 0;
    }
    if (s->out.failed) {
        reject(s, LWS_CLOSE_STATUS_GOINGAWAY, T3_RPC_ERROR_MEMORY,
               "out of memory for a message to the server");
        return 0;
    }
    int n = lws_write(s->wsi, (unsigned char *)s->out.ptr + LWS_PRE, s->out.len - LWS_PRE,
                      LWS_WRITE_TEXT);

    (void)lws_callback_on_writable(s->wsi); /* there may be more; fails only with the socket */
    return n < 0 ? -1 : 0;
}

/* Fields of the request's head. 0, or 1 when they have no room, which limits.h makes sure of. */
static int add_fields(struct rpc_socket *s, struct lws *wsi, unsigned char **at, size_t len)
{
    const struct rpc_socket_options *o = &s->options;
    unsigned char *end = *at + len;

    s->head_sent = true;
    if (lws_add_http_header_by_name(
            wsi, (const unsigned char *)"user-agent:", (const unsigned char *)o->user_agent,
            (int)strlen(o->user_agent), at, end) != 0) {
        return 1;
    }
    s->head = *at;
    if (o->authorization != NULL &&
        lws_add_http_header_by_name(
            wsi, (const unsigned char *)"authorization:", (const unsigned char *)o->authorization,
            (int)strlen(o->authorization), at, end) != 0) {
        return 1;
    }
    s->head_len = (size_t)(*at - s->head);
    return 0;
}

static void on_open(struct rpc_socket *s)
{
    if (s->state != CONNECTING) {
        return;
    }
    s->state = OPEN;
    s->ping_ms = now_ms() + (uint64_t)s->options.ping_interval_ms;
    s->user.opened(s->user.context);
    (void)lws_callback_on_writable(s->wsi); /* requests may wait; fails only with the socket */
    kick(s);                                /* there is a deadline now */
}

static int on_event(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in,
                    size_t len)
{
    struct rpc_socket *s = lws_context_user(lws_get_context(wsi));

    switch (reason) {
    case LWS_CALLBACK_OPENSSL_PERFORM_SERVER_CERT_VERIFICATION:
        if (len == 0) { /* OpenSSL does not trust it; the answer here changes nothing */
            s->verify_code = X509_STORE_CTX_get_error(user);
        }
        break;
    case LWS_CALLBACK_CLIENT_APPEND_HANDSHAKE_HEADER:
        return add_fields(s, wsi, in, len);
    case LWS_CALLBACK_ESTABLISHED_CLIENT_HTTP:
        s->status = (int)lws_http_client_http_response(wsi);
        break;
    case LWS_CALLBACK_CLIENT_CONNECTION_ERROR: {
        char words[256];

        (void)snprintf(words, sizeof(words), "%.*s", in != NULL ? (int)len : 0,
                       in != NULL ? (const char *)in : "");
        on_no_connection(s, wsi, words);
        break;
    }
    case LWS_CALLBACK_CLIENT_ESTABLISHED:
        s->wsi = wsi;
        on_open(s);
        break;
    case LWS_CALLBACK_CLIENT_RECEIVE:
        on_piece(s, in, len);
        break;
    case LWS_CALLBACK_CLIENT_WRITEABLE:
        return on_writeable(s);
    case LWS_CALLBACK_WS_PEER_INITIATED_CLOSE:
        on_peer_close(s, in, len);
        break;
    case LWS_CALLBACK_CLIENT_CLOSED:
        on_closed(s, wsi);
        break;
    default:
        break;
    }
    return 0;
}

/* ------------------------------------------------------------------------------ to a connection */

/* Tries the next address. */
static void try_next(struct rpc_socket *s)
{
    const struct rpc_url *url = s->options.url;
    const struct addrinfo *address = s->next;
    char numeric[NI_MAXHOST];
    uint64_t now = now_ms();
    uint64_t left = s->deadline_ms > now ? s->deadline_ms - now : 0;
    size_t count = 0;

    for (const struct addrinfo *one = address; one != NULL; one = one->ai_next) {
        count++;
    }
    s->state = CONNECTING;
    s->next = address->ai_next;
    s->try_failed = s->try_late = s->head_sent = false;
    s->try_ms = now + left / count;
    if (getnameinfo(address->ai_addr, address->ai_addrlen, numeric, sizeof(numeric), NULL, 0,
                    NI_NUMERICHOST) != 0) {
        fail_memory(s);
        return;
    }
    static const lws_retry_bo_t no_pings = {0}; /* WebSocket's own: ours tell more */
    struct lws_client_connect_info info = {
        .context = s->context,
        .address = numeric,
        .port = url->port,
        .ssl_connection = LCCSCF_HTTP_NO_FOLLOW_REDIRECT | LCCSCF_SKIP_SERVER_CERT_HOSTNAME_CHECK |
                          (url->tls ? LCCSCF_USE_SSL : 0), /* the check is in rpc_tls.c */
        .path = url->target,
        .host = url->place,
        .ietf_version_or_minus_one = -1,
        .alpn = "http/1.1",
        .retry_and_idle_policy = &no_pings,
        .pwsi = &s->wsi,
    };

    if (lws_client_connect_via_info(&info) == NULL && s->state == CONNECTING && !s->try_failed) {
        s->wsi = NULL; /* it failed at once, and not through on_event */
        s->try_failed = true;
    }
}

/* The look-up has ended, or none was needed. */
static void take_addresses(struct rpc_socket *s, int code, struct addrinfo *addresses)
{
    if (code == 0 && addresses != NULL) {
        s->addresses = addresses;
        s->next = addresses;
        try_next(s);
    } else if (code == EAI_MEMORY) {
        fail_memory(s);
    } else {
        char text[160];

        (void)snprintf(text, sizeof(text), "the name of the host leads nowhere: %.100s",
                       gai_strerror(code));
        fail(s, T3_RPC_ERROR_NETWORK, text);
    }
}

static void wake_from_lookup(void *context)
{
    rpc_socket_wake(context);
}

static void begin_lookup(struct rpc_socket *s)
{
    const struct rpc_url *url = s->options.url;

    s->deadline_ms = now_ms() + (uint64_t)s->options.connect_timeout_ms;
    if (url->literal) {
        static const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                              .ai_flags = AI_NUMERICHOST};
        struct addrinfo *addresses = NULL;
        int code = getaddrinfo(url->host, NULL, &hints, &addresses);

        take_addresses(s, code, addresses);
    } else if (rpc_lookup_start(url->host, wake_from_lookup, s, &s->lookup) != 0) {
        fail_memory(s);
    }
}

/* ------------------------------------------------------------------------------------- the turn */

static void step_lookup(struct rpc_socket *s)
{
    int code = 0;
    struct addrinfo *addresses = NULL;

    if (s->lookup != NULL && rpc_lookup_take(s->lookup, &code, &addresses)) {
        rpc_lookup_forget(s->lookup);
        s->lookup = NULL;
        take_addresses(s, code, addresses);
    }
}

/* An address that does not answer must leave time for the others. */
static void step_connecting(struct rpc_socket *s, uint64_t now)
{
    if (s->wsi != NULL && s->next != NULL && now >= s->try_ms) {
        s->try_late = true;
        lws_set_timeout(s->wsi, PENDING_TIMEOUT_USER_REASON_BASE, LWS_TO_KILL_SYNC);
    }
    while (s->state == CONNECTING && s->try_failed) {
        if (s->next == NULL) {
            fail(s, T3_RPC_ERROR_NETWORK, "no connection: nothing answers there");
        } else {
            try_next(s);
        }
    }
}

static void step_open(struct rpc_socket *s, uint64_t now)
{
    if (s->paused && !s->user.full(s->user.context)) {
        s->paused = false;
        s->pings_open = 0;                    /* answers may stand unread */
        (void)lws_rx_flow_control(s->wsi, 1); /* fails only with the socket */
    }
    if (s->options.ping_interval_ms > 0 && now >= s->ping_ms) {
        if (s->pings_open >= s->options.pings_missed_max && !s->paused) {
            fail(s, T3_RPC_ERROR_TIMEOUT, "the server does not answer any more");
            return;
        }
        s->pings_open++;
        s->ping_due = true;
        s->ping_ms = now + (uint64_t)s->options.ping_interval_ms;
    }
    if (s->ping_due || atomic_exchange(&s->woken, false)) {
        (void)lws_callback_on_writable(s->wsi); /* likewise */
    }
}

static void step_late(struct rpc_socket *s)
{
    if (s->state == CLOSING) {
        tell_closed_by_us(s);
        end(s);
    } else {
        fail(s, T3_RPC_ERROR_TIMEOUT, "no connection in time");
    }
}

/* When something must be done though nothing happens; 0: never. */
static uint64_t next_deadline(const struct rpc_socket *s)
{
    if (s->state == OPEN) {
        return s->options.ping_interval_ms > 0 ? s->ping_ms : 0;
    }
    return s->state == CONNECTING && s->next != NULL && s->try_ms < s->deadline_ms ? s->try_ms
                                                                                   : s->deadline_ms;
}

/* The time is looked at after the turn, so the timer has only to end it. */
static void on_timer(lws_sorted_usec_list_t *timer)
{
    kick(container_of(timer, struct rpc_socket, timer));
}

static void set_timer(struct rpc_socket *s, uint64_t now)
{
    uint64_t at = next_deadline(s);
    uint64_t left = at > now ? at - now : 0;

    if (at == 0) {
        lws_sul_cancel(&s->timer);
    } else {
        lws_sul_schedule(s->context, 0, &s->timer, on_timer, (lws_usec_t)(left * 1000 + 500));
    }
}

static void step(struct rpc_socket *s)
{
    uint64_t now = now_ms();

    if (s->state != CLOSING && atomic_load(&s->close_wanted)) {
        if (s->state == OPEN) {
            begin_close(s, LWS_CLOSE_STATUS_NORMAL);
            (void)lws_callback_on_writable(s->wsi); /* fails only with the socket */
        } else {
            tell_closed_by_us(s);
            end(s);
        }
    }
    if (s->state == LOOKING_UP) {
        step_lookup(s);
    }
    if (s->state == CONNECTING) {
        step_connecting(s, now);
    }
    if (s->state == OPEN) {
        step_open(s, now);
    } else if (s->state != ENDED && now >= s->deadline_ms) {
        step_late(s);
    }
    if (s->state != ENDED) {
        set_timer(s, now);
    }
}

/* A last word to a server that is left without waiting for it: turns that do not wait, either. */
static void say_goodbye(struct rpc_socket *s)
{
    if (s->wsi == NULL || s->state != OPEN) {
        return;
    }
    begin_close(s, LWS_CLOSE_STATUS_GOINGAWAY);
    (void)lws_callback_on_writable(s->wsi); /* fails only with the socket */
    for (int i = 0; i < 3 && s->state == CLOSING; i++) {
        (void)lws_service(s->context, -1);
    }
}

/* ----------------------------------------------------------------------- libwebsockets' context */

static const struct lws_protocols protocols[] = {
    {.name = "arbe", .callback = on_event, .rx_buffer_size = READ_BYTES},
    {.name = NULL},
};

static struct lws_context *create_context(struct rpc_socket *s)
{
    const struct rpc_context_options options = {
        .protocols = protocols,
        .user = s,
        .tls = s->tls,
        .timeout_s = (unsigned)s->options.connect_timeout_ms / 1000 + 10, /* ours comes first */
        .read_bytes = READ_BYTES,
    };

    return rpc_context_create(&options);
}

static void set_context(struct rpc_socket *s, struct lws_context *context)
{
    (void)pthread_mutex_lock(&s->mutex);
    s->context = context;
    (void)pthread_mutex_unlock(&s->mutex);
}

static bool begin(struct rpc_socket *s)
{
    const struct rpc_socket_options *o = &s->options;
    struct t3_rpc_error error;

    if (o->url->tls && rpc_tls_create(o->url, o->ca_file, &s->tls, &error) != T3_RPC_OK) {
        tell(s, &error);
        return false;
    }
    struct lws_context *context = create_context(s);

    if (context == NULL) {
        fail_memory(s);
        return false;
    }
    set_context(s, context);
    begin_lookup(s);
    return true;
}

static void finish(struct rpc_socket *s)
{
    struct lws_context *context = s->context;

    rpc_lookup_forget(s->lookup);
    if (context != NULL) {
        say_goodbye(s);
        s->state = ENDED;
        s->told = true;
        lws_sul_cancel(&s->timer);
        set_context(s, NULL);
        if (s->head != NULL) {
            explicit_bzero(s->head, s->head_len); /* the token; what came since is not needed */
        }
        lws_context_destroy(context);
    }
    if (s->addresses != NULL) {
        freeaddrinfo(s->addresses);
    }
    SSL_CTX_free(s->tls);
    buf_finish(&s->message);
    buf_finish(&s->out);
}

static void *run(void *argument)
{
    struct rpc_socket *s = argument;

    if (begin(s)) {
        while (s->state != ENDED && !atomic_load(&s->stopping)) {
            step(s);
            if (s->state != ENDED && lws_service(s->context, 0) < 0) {
                fail_memory(s);
            }
        }
    }
    finish(s);
    return NULL;
}

/* -------------------------------------------------------------------------------- other threads */

void rpc_socket_wake(struct rpc_socket *s)
{
    atomic_store(&s->woken, true);
    (void)pthread_mutex_lock(&s->mutex);
    kick(s);
    (void)pthread_mutex_unlock(&s->mutex);
}

void rpc_socket_close(struct rpc_socket *s)
{
    atomic_store(&s->close_wanted, true);
    rpc_socket_wake(s);
}

/* The thread takes no signals: they are the program's. */
static int start_thread(struct rpc_socket *s)
{
    sigset_t all;
    sigset_t before;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&s->thread, NULL, run, s);

    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

int rpc_socket_create(const struct rpc_socket_options *options, const struct rpc_socket_user *user,
                      struct rpc_socket **ret_socket, struct t3_rpc_error *ret_error)
{
    struct rpc_socket *s = calloc(1, sizeof(*s));

    if (s == NULL || pthread_mutex_init(&s->mutex, NULL) != 0) {
        free(s);
        return rpc_error_set(ret_error, T3_RPC_ERROR_MEMORY, "out of memory");
    }
    s->options = *options;
    s->user = *user;
    s->verify_code = X509_V_OK;
    buf_init(&s->message, options->message_bytes_max);
    buf_init(&s->out, SIZE_MAX / 2);
    if (start_thread(s) != 0) {
        (void)pthread_mutex_destroy(&s->mutex);
        free(s);
        return rpc_error_set(ret_error, T3_RPC_ERROR_MEMORY, "no thread can be started");
    }
    *ret_socket = s;
    return T3_RPC_OK;
}

void rpc_socket_destroy(struct rpc_socket *s)
{
    if (s == NULL) {
        return;
    }
    atomic_store(&s->stopping, true);
    rpc_socket_wake(s);
    (void)pthread_join(s->thread, NULL);
    (void)pthread_mutex_destroy(&s->mutex);
    free(s);
}
