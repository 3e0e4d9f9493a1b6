/* An end is told once, by `fail` or by the user itself; after it the connection may linger for
 * T3_CLOSE_MS, so that the server hears why. */
#include "t3/rpc_link.h"

#include "base/limits.h"
#include "t3/frame.h"
#include "t3/rpc_error.h"
#include "t3/rpc_scarce.h"
#include "t3/wake.h"

#include <assert.h>
#include <errno.h>
#include <openssl/x509_vfy.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define KEPT_BYTES          65536u /* a larger buffer is freed after its use */
#define CONTEXT_DESCRIPTORS 2      /* of libwebsockets: for random numbers, and to be woken */

/* -------------------------------------------------------------------------------------- the end */

/* The next turn comes at once. */
static void kick(struct rpc_link *s)
{
    if (s->context != NULL) {
        lws_cancel_service(s->context);
    }
}

/* Nothing ends silently: the user was told before. */
static void end(struct rpc_link *s)
{
    assert(s->told);
    s->state = RPC_LINK_ENDED;
    kick(s);
}

/* Tells the end, unless it was told. */
static void tell(struct rpc_link *s, const struct t3_rpc_error *error)
{
    if (!s->told) {
        s->told = true;
        s->user.closed(s->user.context, error);
    }
}

void rpc_link_fail(struct rpc_link *s, const struct t3_rpc_error *error)
{
    tell(s, error);
    end(s);
}

void rpc_link_fail_memory(struct rpc_link *s)
{
    struct t3_rpc_error error;

    (void)rpc_error_set(&error, T3_RPC_ERROR_MEMORY, "%s", rpc_scarce_text(CONTEXT_DESCRIPTORS));
    rpc_link_fail(s, &error);
}

/* An end of a connection or of a try of one, whose sentence is the place and `text`. */
static void fail(struct rpc_link *s, enum t3_rpc_code code, const char *text)
{
    struct t3_rpc_error error;

    (void)rpc_error_set(&error, code, "%s: %s", s->options.url->place, text);
    error.status = s->attempt.status != 101 ? s->attempt.status : 0;
    rpc_link_fail(s, &error);
}

/* From now on only the close matters, and only for so long. */
static void begin_close(struct rpc_link *s, enum lws_close_status code)
{
    if (s->state == RPC_LINK_OPEN) {
        s->state = RPC_LINK_CLOSING;
        s->close_code = code;
        s->deadline_ms = t3_now_ms() + T3_CLOSE_MS;
    }
}

/* The rest of the close is libwebsockets' business. */
static void hand_over_close(struct rpc_link *s)
{
    if (s->state == RPC_LINK_CLOSING) {
        s->state = RPC_LINK_CLOSE_BEGUN;
    }
}

static bool is_closing(const struct rpc_link *s)
{
    return s->state == RPC_LINK_CLOSING || s->state == RPC_LINK_CLOSE_BEGUN;
}

static void end_closed_by_us(struct rpc_link *s)
{
    struct t3_rpc_error error;

    (void)rpc_error_set(&error, T3_RPC_ERROR_CLOSED, "the connection was closed");
    rpc_link_fail(s, &error);
}

/* ---------------------------------------------------------------------- a connection that fails */

/* The try of an address has ended without a connection. */
static void on_no_connection(struct rpc_link *s, struct lws *wsi, const char *words)
{
    struct rpc_attempt *attempt = &s->attempt;
    struct rpc_failure failure;

    s->wsi = NULL;
    if (s->state != RPC_LINK_CONNECTING) {
        return;
    }
    if (attempt->status == 0) {
        attempt->status = (int)lws_http_client_http_response(wsi);
    }
    if (rpc_attempt_fail(attempt, words, &failure)) {
        kick(s);
    } else {
        fail(s, failure.code, failure.text);
    }
}

/* ---------------------------------------------------------------------------- a connection ends */

/* libwebsockets does not say why it ended a connection. If the socket is still good, it was for
 * what the server sent. */
static void fail_broken(struct rpc_link *s, struct lws *wsi)
{
    char byte;
    ssize_t n = recv(lws_get_socket_fd(wsi), &byte, 1, MSG_PEEK | MSG_DONTWAIT);

    if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))) {
        fail(s, T3_RPC_ERROR_PROTOCOL, "the server broke the rules of WebSockets");
    } else {
        fail(s, T3_RPC_ERROR_NETWORK, "the connection broke");
    }
}

static void on_closed(struct rpc_link *s, struct lws *wsi)
{
    s->wsi = NULL;
    if (is_closing(s)) {
        end_closed_by_us(s);
    } else if (s->state != RPC_LINK_ENDED) {
        fail_broken(s, wsi);
    }
}

/* The server's close frame, which libwebsockets answers. */
static void on_peer_close(struct rpc_link *s, const unsigned char *payload, size_t len)
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
    hand_over_close(s);
    kick(s); /* there is a deadline now */
}

/* ----------------------------------------------------------------------------------- what comes */

/* Ends the connection for what the server sent: told, or else for that reason. The close itself
 * waits until the socket can be written to: libwebsockets 4.1.6 whose receive callback asks for an
 * end in the middle of a frame goes on to collect the rest of it, behind its buffer. */
static void reject(struct rpc_link *s, enum lws_close_status status, enum t3_rpc_code code,
                   const char *text)
{
    struct t3_rpc_error error;

    assert(s->state == RPC_LINK_OPEN);
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

static void hand_out(struct rpc_link *s)
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

static void reject_long(struct rpc_link *s)
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

static void on_piece(struct rpc_link *s, const char *bytes, size_t len)
{
    if (s->state != RPC_LINK_OPEN) {
        return; /* nobody wants it any more */
    }
    rpc_pings_heard(&s->pings);
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
static bool compose(struct rpc_link *s)
{
    static const char room[LWS_PRE];

    if (s->out.cap > KEPT_BYTES) {
        buf_finish(&s->out);
    }
    buf_clear(&s->out);
    buf_append(&s->out, (struct slice){room, sizeof(room)});
    if (s->state == RPC_LINK_OPEN && rpc_pings_take(&s->pings)) {
        t3_frame_ping(&s->out);
        return true;
    }
    return s->user.send(s->user.context, &s->out);
}

static int on_writeable(struct rpc_link *s)
{
    bool closing = s->state == RPC_LINK_CLOSING;
    bool more = (s->state == RPC_LINK_OPEN || closing) && compose(s);

    if (closing && (!more || s->out.failed)) {
        hand_over_close(s);
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
static int add_fields(struct rpc_link *s, struct lws *wsi, unsigned char **at, size_t len)
{
    const struct rpc_socket_options *o = &s->options;
    unsigned char *end = *at + len;

    s->attempt.head_sent = true;
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

static void on_open(struct rpc_link *s)
{
    if (s->state != RPC_LINK_CONNECTING) {
        return;
    }
    s->state = RPC_LINK_OPEN;
    rpc_pings_begin(&s->pings, s->options.ping_interval_ms, s->options.pings_missed_max,
                    t3_now_ms());
    s->user.opened(s->user.context);
    (void)lws_callback_on_writable(s->wsi); /* requests may wait; fails only with the socket */
    kick(s);                                /* there is a deadline now */
}

int rpc_link_event(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in,
                   size_t len)
{
    struct rpc_link *s = lws_context_user(lws_get_context(wsi));

    switch (reason) {
    case LWS_CALLBACK_OPENSSL_PERFORM_SERVER_CERT_VERIFICATION:
        if (len == 0) { /* OpenSSL does not trust it; the answer here changes nothing */
            s->attempt.verify_code = X509_STORE_CTX_get_error(user);
        }
        break;
    case LWS_CALLBACK_CLIENT_APPEND_HANDSHAKE_HEADER:
        return add_fields(s, wsi, in, len);
    case LWS_CALLBACK_ESTABLISHED_CLIENT_HTTP:
        s->attempt.status = (int)lws_http_client_http_response(wsi);
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
    case LWS_CALLBACK_EVENT_WAIT_CANCELLED:
        s->wakes = true;
        break;
    default:
        break;
    }
    return 0;
}

/* ------------------------------------------------------------------------------ to a connection */

/* Tries the next address. */
static void try_next(struct rpc_link *s)
{
    const struct rpc_url *url = s->options.url;
    char numeric[NI_MAXHOST];
    struct rpc_failure failure;

    assert(s->state == RPC_LINK_LOOKING_UP || s->state == RPC_LINK_CONNECTING);
    s->state = RPC_LINK_CONNECTING;
    if (rpc_scarce_descriptors(1)) {
        fail(s, T3_RPC_ERROR_MEMORY, RPC_NO_DESCRIPTOR);
        return;
    }
    if (rpc_attempt_advance(&s->attempt, t3_now_ms(), s->deadline_ms, numeric, &failure) !=
        T3_RPC_OK) {
        fail(s, failure.code, failure.text);
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

    if (lws_client_connect_via_info(&info) == NULL && s->state == RPC_LINK_CONNECTING &&
        s->attempt.latest != RPC_TRY_FAILED) {
        s->wsi = NULL; /* it failed at once, and not through rpc_link_event */
        s->attempt.latest = RPC_TRY_FAILED;
    }
}

static void step_lookup(struct rpc_link *s)
{
    struct rpc_failure failure;

    if (rpc_attempt_look(&s->attempt, &failure) != T3_RPC_OK) {
        fail(s, failure.code, failure.text);
    } else if (s->attempt.next != NULL) {
        try_next(s);
    }
}

/* An address that does not answer must leave time for the others. */
static void step_connecting(struct rpc_link *s, uint64_t now)
{
    if (s->wsi != NULL && rpc_attempt_is_late(&s->attempt, now)) {
        s->attempt.latest = RPC_TRY_LATE;
        lws_set_timeout(s->wsi, PENDING_TIMEOUT_USER_REASON_BASE, LWS_TO_KILL_SYNC);
    }
    while (s->state == RPC_LINK_CONNECTING && s->attempt.latest == RPC_TRY_FAILED) {
        if (s->attempt.next == NULL) {
            fail(s, T3_RPC_ERROR_NETWORK, "no connection: nothing answers there");
        } else {
            try_next(s);
        }
    }
}

/* ------------------------------------------------------------------------------------- the turn */

static void step_open(struct rpc_link *s, uint64_t now)
{
    assert(s->wsi != NULL);
    if (s->paused && !s->user.full(s->user.context)) {
        s->paused = false;
        rpc_pings_heard(&s->pings);           /* answers may stand unread */
        (void)lws_rx_flow_control(s->wsi, 1); /* fails only with the socket */
    }
    if (!rpc_pings_step(&s->pings, now, s->paused)) {
        fail(s, T3_RPC_ERROR_TIMEOUT, "the server does not answer any more");
    } else if (s->pings.to_send) {
        rpc_link_wake(s);
    }
}

static void step_late(struct rpc_link *s)
{
    if (is_closing(s)) {
        end_closed_by_us(s);
    } else {
        fail(s, T3_RPC_ERROR_TIMEOUT, "no connection in time");
    }
}

void rpc_link_step(struct rpc_link *s)
{
    uint64_t now = t3_now_ms();

    if (s->state == RPC_LINK_LOOKING_UP) {
        step_lookup(s);
    }
    if (s->state == RPC_LINK_CONNECTING) {
        step_connecting(s, now);
    }
    if (s->state == RPC_LINK_OPEN) {
        step_open(s, now);
    } else if (s->state != RPC_LINK_ENDED && now >= s->deadline_ms) {
        step_late(s);
    }
}

/* When the next step must come though nothing happens; 0: never. */
static uint64_t due_ms(const struct rpc_link *s)
{
    const struct rpc_attempt *attempt = &s->attempt;

    if (s->state == RPC_LINK_OPEN) {
        return rpc_pings_due_ms(&s->pings);
    }
    return s->state == RPC_LINK_CONNECTING && attempt->next != NULL &&
                   attempt->try_ms < s->deadline_ms
               ? attempt->try_ms
               : s->deadline_ms;
}

int64_t rpc_link_left_ms(const struct rpc_link *s)
{
    uint64_t at = due_ms(s);
    uint64_t now = t3_now_ms();

    assert(s->state != RPC_LINK_ENDED);
    if (at == 0) {
        return -1;
    }
    return at > now ? (int64_t)(at - now) : 0;
}

void rpc_link_wake(struct rpc_link *s)
{
    if (s->state == RPC_LINK_OPEN) {
        (void)lws_callback_on_writable(s->wsi); /* fails only with the socket */
    }
}

void rpc_link_close(struct rpc_link *s)
{
    if (s->state == RPC_LINK_OPEN) {
        begin_close(s, LWS_CLOSE_STATUS_NORMAL);
        (void)lws_callback_on_writable(s->wsi); /* fails only with the socket */
    } else if (s->state == RPC_LINK_LOOKING_UP || s->state == RPC_LINK_CONNECTING) {
        end_closed_by_us(s);
    }
}

/* ------------------------------------------------------------------------- beginning and ending */

void rpc_link_init(struct rpc_link *s, const struct rpc_socket_options *options,
                   const struct rpc_socket_user *user)
{
    *s = (struct rpc_link){.options = *options, .user = *user};
    rpc_attempt_init(&s->attempt, options->url, options->authorization != NULL);
    buf_init(&s->message, options->message_bytes_max);
    buf_init(&s->out, SIZE_MAX / 2);
}

void rpc_link_finish(struct rpc_link *s)
{
    rpc_attempt_finish(&s->attempt);
    buf_finish(&s->message);
    buf_finish(&s->out);
}

void rpc_link_begin(struct rpc_link *s, struct lws_context *context, void (*wake)(void *context),
                    void *wake_context)
{
    struct rpc_failure failure;

    assert(s->state == RPC_LINK_LOOKING_UP);
    assert(s->context == NULL);
    s->context = context;
    s->deadline_ms = t3_now_ms() + (uint64_t)s->options.connect_timeout_ms;
    if (rpc_attempt_begin(&s->attempt, wake, wake_context, &failure) != T3_RPC_OK) {
        fail(s, failure.code, failure.text);
    } else {
        step_lookup(s);
    }
}

/* A last word to a server that is left without waiting for it: turns that do not wait, either. */
static void say_goodbye(struct rpc_link *s)
{
    if (s->wsi == NULL || s->state != RPC_LINK_OPEN) {
        return;
    }
    begin_close(s, LWS_CLOSE_STATUS_GOINGAWAY);
    (void)lws_callback_on_writable(s->wsi); /* fails only with the socket */
    for (int i = 0; i < 3 && is_closing(s); i++) {
        (void)lws_service(s->context, -1);
    }
}

void rpc_link_leave(struct rpc_link *s)
{
    say_goodbye(s);
    s->state = RPC_LINK_ENDED;
    s->told = true;
    if (s->head != NULL) {
        explicit_bzero(s->head, s->head_len); /* the token; what came since is not needed */
    }
    s->context = NULL;
}
