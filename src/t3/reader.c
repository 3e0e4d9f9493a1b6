/* The happy path: the first event is asked for, and CONNECTING is told. Asked again, the reader
 * makes a connection and all requests on it, which are sent when it stands; then it is CATCHING_UP.
 * Each subscription has its first chunk given and acknowledged; with the last of them it is LIVE.
 *
 * A connection ends for good or for a while. What asking again would not change is REFUSED: a
 * token, a scope, a method, a version; nothing is tried until t3_reader_retry. All else is LOST:
 * the connection is freed, whatever it had still to tell, and after a pause another one is made,
 * where the server begins each stream with a snapshot. Pauses grow until a connection has been live
 * for as long as the longest of them, so that a server which answers and breaks is not hammered.
 * A stream that the server ends or breaks off begins again alone, after pauses of its own, which
 * grow by the same rule; the connection stands, and the other streams go on.
 * What takes an operator or much of both sides, a bad certificate or a message beyond the limit,
 * goes straight to the longest one: it does not heal by itself soon, and it must not be for ever.
 *
 * `state` and `connection` say together where a reader is. CONNECTING without a connection is to
 * be dialled, which waits until CONNECTING was told: so each failure is told, also one at once,
 * but for one that t3_reader_retry came before: whoever calls that knows enough. */
#include "t3/reader.h"

#include "base/attr.h"
#include "base/err.h"
#include "t3/backoff.h"
#include "t3/rpc_check.h"
#include "t3/rpc_error.h"
#include "t3/rpc_scarce.h"
#include "t3/subscriptions.h"
#include "t3/wake.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define DELAY_INITIAL_MS 500
#define DELAY_MAX_MS     5000
#define DELAY_MULTIPLIER 1.5

struct t3_reader {
    struct t3_reader_options options; /* its texts are these */
    char *url;
    char *token; /* of the options, as the next two; wiped */
    char *ca_file;
    char *user_agent;
    struct t3_wake wake;
    struct t3_backoff backoff;
    struct t3_subscriptions subscriptions;
    struct t3_rpc *connection; /* NULL: none */
    bool open;                 /* it stands */
    enum t3_reader_state state;
    enum t3_reader_state told; /* the last that was given as an event */
    bool news;                 /* `state` is to be given */
    struct t3_rpc_error error; /* LOST, REFUSED: why */
    uint64_t live_ms;          /* when this connection was first LIVE; 0: not yet */
    int delay_ms;              /* LOST: the pause */
    uint64_t due_ms;           /* its end, or that of the first pause of a stream; 0: none */
};

const char *t3_reader_state_name(enum t3_reader_state state)
{
    static const char *const names[] = {
        [T3_READER_CONNECTING] = "connecting",
        [T3_READER_CATCHING_UP] = "catching up",
        [T3_READER_LIVE] = "live",
        [T3_READER_LOST] = "lost",
        [T3_READER_REFUSED] = "refused",
    };

    return (size_t)state < ARRAY_COUNT(names) ? names[state] : "unknown";
}

/* ------------------------------------------------------------------ making and freeing */

void t3_reader_options_init(struct t3_reader_options *options)
{
    *options = (struct t3_reader_options){
        .initial_delay_ms = DELAY_INITIAL_MS,
        .max_delay_ms = DELAY_MAX_MS,
        .multiplier = DELAY_MULTIPLIER,
    };
    t3_rpc_options_init(&options->rpc);
}

/* A copy of a text that may be NULL. */
static char *copy(const char *text, bool *failed)
{
    size_t size = text != NULL ? strlen(text) + 1 : 0;
    char *copied = size > 0 ? malloc(size) : NULL;

    if (copied != NULL) {
        memcpy(copied, text, size);
    }
    *failed = *failed || (size > 0 && copied == NULL);
    return copied;
}

/* Makes the options' texts and the URL the reader's own. */
static bool own_texts(struct t3_reader *r, const char *url)
{
    struct t3_rpc_options *rpc = &r->options.rpc;
    bool failed = false;

    r->url = copy(url, &failed);
    rpc->token = r->token = copy(rpc->token, &failed);
    rpc->ca_file = r->ca_file = copy(rpc->ca_file, &failed);
    rpc->user_agent = r->user_agent = copy(rpc->user_agent, &failed);
    return !failed;
}

static void free_texts(struct t3_reader *r)
{
    if (r->token != NULL) {
        explicit_bzero(r->token, strlen(r->token));
    }
    free(r->url);
    free(r->token);
    free(r->ca_file);
    free(r->user_agent);
}

static int check(const char *url, const struct t3_reader_options *options,
                 struct t3_rpc_error *ret_error)
{
    struct t3_rpc_options rpc = options->rpc;
    const char *wrong = t3_backoff_check(options->initial_delay_ms, options->max_delay_ms,
                                         options->multiplier);
    int code;

    if (wrong != NULL) {
        return rpc_error_set(ret_error, T3_RPC_ERROR_ARGUMENT, "%s", wrong);
    }
    rpc.token = options->token == NULL ? rpc.token : NULL;
    code = rpc_check_options(&rpc, ret_error);
    return code == T3_RPC_OK ? rpc_check_url(url, ret_error) : code;
}

int t3_reader_new(const char *url, const struct t3_reader_options *options,
                  struct t3_reader **ret_reader, struct t3_rpc_error *ret_error)
{
    struct t3_reader_options chosen;
    struct t3_reader *r;
    int code;

    t3_reader_options_init(&chosen);
    chosen = options != NULL ? *options : chosen;
    code = check(url, &chosen, ret_error);
    if (code != T3_RPC_OK) {
        return code;
    }
    r = calloc(1, sizeof(*r));
    if (r == NULL) {
        return rpc_error_set(ret_error, T3_RPC_ERROR_MEMORY, "out of memory");
    }
    r->options = chosen;
    if (!own_texts(r, url)) {
        code = rpc_error_set(ret_error, T3_RPC_ERROR_MEMORY, "out of memory");
        goto fail_texts;
    }
    code = t3_wake_init(&r->wake);
    if (code != 0) {
        code = rpc_error_set(ret_error, T3_RPC_ERROR_MEMORY,
                             code == ERR_LIMIT ? RPC_NO_DESCRIPTOR : "out of memory");
        goto fail_texts;
    }
    t3_backoff_init(&r->backoff, chosen.initial_delay_ms, chosen.max_delay_ms, chosen.multiplier);
    t3_subscriptions_init(&r->subscriptions);
    r->told = T3_READER_REFUSED; /* nothing yet: CONNECTING is news, whatever is called before */
    r->news = true;
    t3_wake_ring(&r->wake, true);
    *ret_reader = r;
    return T3_RPC_OK;

fail_texts:
    free_texts(r);
    free(r);
    return code;
}

void t3_reader_free(struct t3_reader *r)
{
    if (r == NULL) {
        return;
    }
    t3_wake_unwatch(&r->wake);
    t3_rpc_free(r->connection);
    t3_subscriptions_finish(&r->subscriptions);
    t3_wake_finish(&r->wake);
    free_texts(r);
    free(r);
}

/* ------------------------------------------------------------------ states */

/* A state that is left again before anybody was told is not told; a failure is left by nothing but
 * another one, the end of its pause, which waits for that, and t3_reader_retry. */
static void enter(struct t3_reader *r, enum t3_reader_state state)
{
    r->state = state;
    r->news = state != r->told || state == T3_READER_LOST || state == T3_READER_REFUSED;
}

/* Whether it has something to do that no descriptor tells; and says so by its own. */
static void ring(struct t3_reader *r)
{
    bool to_dial = r->state == T3_READER_CONNECTING && r->connection == NULL;

    t3_wake_ring(&r->wake, r->news || to_dial);
}

/* What is due next; 0: nothing. */
static void set_due(struct t3_reader *r, uint64_t due_ms)
{
    r->due_ms = due_ms;
    t3_wake_at(&r->wake, due_ms);
}

static void drop_connection(struct t3_reader *r)
{
    set_due(r, 0);
    t3_wake_unwatch(&r->wake);
    t3_rpc_free(r->connection);
    r->connection = NULL;
    r->open = false;
    r->live_ms = 0;
    t3_subscriptions_restart(&r->subscriptions);
}

/* Random bits for a pause: no secret depends on them. */
static uint64_t roll_dice(void)
{
    uint64_t dice;

    if (getrandom(&dice, sizeof(dice), GRND_NONBLOCK) != (ssize_t)sizeof(dice)) {
        dice = t3_now_ms() * UINT64_C(0x9e3779b97f4a7c15);
    }
    return dice;
}

/* The pause after what was live since then, 0 for never, has broken. */
static int next_pause(const struct t3_reader *r, struct t3_backoff *backoff, uint64_t live_ms)
{
    if (live_ms != 0 && t3_now_ms() - live_ms >= (uint64_t)r->options.max_delay_ms) {
        t3_backoff_reset(backoff);
    }
    return t3_backoff_next(backoff, roll_dice());
}

static void lose(struct t3_reader *r, const struct t3_rpc_error *error)
{
    struct t3_rpc_error why = *error;
    uint64_t live_ms = r->live_ms;

    drop_connection(r);
    if (why.code == T3_RPC_ERROR_TLS || why.code == T3_RPC_ERROR_LIMIT) {
        t3_backoff_jump(&r->backoff);
        live_ms = 0;
    }
    r->error = why;
    r->delay_ms = next_pause(r, &r->backoff, live_ms);
    set_due(r, t3_now_ms() + (uint64_t)r->delay_ms);
    enter(r, T3_READER_LOST);
}

static void refuse(struct t3_reader *r, const struct t3_rpc_error *error)
{
    struct t3_rpc_error why = *error;

    drop_connection(r);
    r->error = why;
    enter(r, T3_READER_REFUSED);
}

static void connect_anew(struct t3_reader *r)
{
    set_due(r, 0);
    enter(r, T3_READER_CONNECTING);
}

/* CATCHING_UP or LIVE, as the subscriptions stand. */
static void settle(struct t3_reader *r)
{
    bool live = t3_subscriptions_live(&r->subscriptions);

    if (r->open) {
        if (live && r->subscriptions.count > 0 && r->live_ms == 0) {
            r->live_ms = t3_now_ms();
        }
        enter(r, live ? T3_READER_LIVE : T3_READER_CATCHING_UP);
    }
}

void t3_reader_lose(struct t3_reader *r, const struct t3_rpc_error *error)
{
    if (r->state != T3_READER_LOST && r->state != T3_READER_REFUSED) {
        lose(r, error);
        ring(r);
    }
}

void t3_reader_refuse(struct t3_reader *r, const struct t3_rpc_error *error)
{
    refuse(r, error);
    ring(r);
}

void t3_reader_retry(struct t3_reader *r)
{
    if (r->state == T3_READER_REFUSED) {
        t3_backoff_reset(&r->backoff);
    }
    if (r->state == T3_READER_REFUSED || r->state == T3_READER_LOST) {
        connect_anew(r);
        ring(r);
    }
}

/* ------------------------------------------------------------------ subscriptions */

/* Sends the request of a subscription. That the connection has ended is no failure: it is told by
 * an event, and the next connection asks again. */
static int ask(struct t3_reader *r, struct t3_subscription *s, struct t3_rpc_error *ret_error)
{
    int code = t3_rpc_subscribe(r->connection, s->method, s->payload, &s->request, ret_error);

    s->due_ms = 0;
    return code == T3_RPC_ERROR_CLOSED ? T3_RPC_OK : code;
}

int t3_reader_subscribe(struct t3_reader *r, const char *method, const char *payload,
                        uint64_t *ret_id, struct t3_rpc_error *ret_error)
{
    struct slice name;
    struct slice object;
    struct t3_subscription *s;
    struct t3_backoff backoff;
    int code = rpc_check_request(method, payload, &name, &object, ret_error);

    if (code != T3_RPC_OK) {
        return code;
    }
    if (r->subscriptions.count >= r->options.rpc.requests_max) {
        return rpc_error_set(ret_error, T3_RPC_ERROR_LIMIT,
                             "there are %d subscriptions, as many as requests_max allows",
                             r->subscriptions.count);
    }
    t3_backoff_init(&backoff, r->options.initial_delay_ms, r->options.max_delay_ms,
                    r->options.multiplier);
    s = t3_subscriptions_add(&r->subscriptions, name, object, &backoff);
    if (s == NULL) {
        return rpc_error_set(ret_error, T3_RPC_ERROR_MEMORY, "out of memory");
    }
    code = r->connection != NULL ? ask(r, s, ret_error) : T3_RPC_OK;
    if (code != T3_RPC_OK) {
        t3_subscriptions_remove(&r->subscriptions, s);
        return code;
    }
    settle(r);
    ring(r);
    *ret_id = s->id;
    return T3_RPC_OK;
}

void t3_reader_unsubscribe(struct t3_reader *r, uint64_t id)
{
    struct t3_subscription *s = t3_subscriptions_find(&r->subscriptions, id);

    if (s == NULL) {
        return;
    }
    if (s->request != 0) {
        t3_rpc_interrupt(r->connection, s->request);
    }
    t3_subscriptions_remove(&r->subscriptions, s);
    settle(r);
    ring(r);
}

void t3_reader_ack(struct t3_reader *r, uint64_t id)
{
    struct t3_subscription *s = t3_subscriptions_find(&r->subscriptions, id);
    struct t3_rpc_error error;
    int code;

    if (s == NULL || !s->unacked) {
        return;
    }
    s->unacked = false;
    code = t3_rpc_ack(r->connection, s->request, &error);
    if (code == T3_RPC_OK && s->live_ms == 0) {
        s->live_ms = t3_now_ms();
        settle(r);
    } else if (code != T3_RPC_OK && code != T3_RPC_ERROR_CLOSED) {
        lose(r, &error); /* without its ack the stream would stand still for ever */
    }
    ring(r);
}

/* ------------------------------------------------------------------ connecting */

/* The token of the next connection, into `token` and the options. False: there is none to be had,
 * and that was told. */
static bool fetch_token(struct t3_reader *r, char token[T3_READER_TOKEN_BYTES],
                        struct t3_rpc_options *options)
{
    char message[T3_RPC_MESSAGE_BYTES] = "";
    struct t3_rpc_error error;

    if (r->options.token == NULL) {
        return true;
    }
    if (r->options.token(r->options.context, token, message) != 0) {
        message[sizeof(message) - 1] = '\0';
        (void)rpc_error_set(&error, T3_RPC_ERROR_AUTH, "%s",
                            message[0] != '\0' ? message : "there is no token");
        refuse(r, &error);
        return false;
    }
    token[T3_READER_TOKEN_BYTES - 1] = '\0';
    options->token = token[0] != '\0' ? token : NULL;
    return true;
}

/* Asks for each stream that is not under way, unless it has a pause. */
static void ask_due(struct t3_reader *r)
{
    uint64_t now_ms = t3_now_ms();
    struct t3_rpc_error error;
    int code = T3_RPC_OK;

    LIST_FOR_EACH(node, &r->subscriptions.all)
    {
        struct t3_subscription *s = t3_subscription_of(node);

        if (code == T3_RPC_OK && s->request == 0 && s->due_ms <= now_ms) {
            code = ask(r, s, &error);
        }
    }
    if (code != T3_RPC_OK) {
        lose(r, &error);
    } else {
        set_due(r, t3_subscriptions_due_ms(&r->subscriptions));
    }
}

static void dial(struct t3_reader *r)
{
    struct t3_rpc_options options = r->options.rpc;
    char token[T3_READER_TOKEN_BYTES] = "";
    struct t3_rpc_error error;
    int code = T3_RPC_OK;
    bool ready = fetch_token(r, token, &options);

    if (ready) {
        code = t3_rpc_connect(r->url, &options, &r->connection, &error);
    }
    explicit_bzero(token, sizeof(token));
    if (!ready) {
        return;
    }
    if (code == T3_RPC_ERROR_ARGUMENT) {
        error.code = T3_RPC_ERROR_AUTH; /* the token: all else was looked at with the options */
        refuse(r, &error);
    } else if (code != T3_RPC_OK) {
        lose(r, &error);
    } else if (t3_wake_watch(&r->wake, t3_rpc_fd(r->connection)) != 0) {
        (void)rpc_error_set(&error, T3_RPC_ERROR_MEMORY,
                            "the system allows no more descriptors to be watched");
        lose(r, &error);
    } else {
        ask_due(r);
    }
}

/* ------------------------------------------------------------------ events */

static bool is_final(enum t3_rpc_code code)
{
    return code == T3_RPC_ERROR_AUTH || code == T3_RPC_ERROR_VERSION ||
           code == T3_RPC_ERROR_SCOPE || code == T3_RPC_ERROR_METHOD;
}

static int give_state(struct t3_reader *r, struct t3_reader_event *ret_event)
{
    bool ended = r->state == T3_READER_LOST || r->state == T3_READER_REFUSED;

    r->news = false;
    r->told = r->state;
    *ret_event = (struct t3_reader_event){.kind = T3_READER_EVENT_STATE, .state = r->state};
    ret_event->delay_ms = r->state == T3_READER_LOST ? r->delay_ms : 0;
    if (ended) {
        ret_event->error = r->error;
    }
    return 1;
}

static int give_chunk(struct t3_reader *r, const struct t3_rpc_event *event,
                      struct t3_reader_event *ret_event)
{
    struct t3_subscription *s = t3_subscriptions_find_request(&r->subscriptions, event->id);

    if (s == NULL) {
        return 0;
    }
    *ret_event = (struct t3_reader_event){
        .kind = T3_READER_EVENT_CHUNK,
        .state = r->state,
        .id = s->id,
        .fresh = s->live_ms == 0, /* none comes before the last is acknowledged */
        .json = event->json,
        .len = event->len,
    };
    s->unacked = true;
    return 1;
}

/* A subscription failed with an error that the server declares: the others go on without it. */
static int give_error(struct t3_reader *r, struct t3_subscription *s,
                      const struct t3_rpc_event *event, struct t3_reader_event *ret_event)
{
    *ret_event = (struct t3_reader_event){
        .kind = T3_READER_EVENT_ERROR,
        .state = r->state,
        .id = s->id,
        .json = event->json,
        .len = event->len,
        .error = event->error,
    };
    t3_subscriptions_remove(&r->subscriptions, s);
    settle(r);
    return 1;
}

/* The server broke off one stream, or ended it, though what is followed does not end. */
static int give_broken(struct t3_reader *r, struct t3_subscription *s,
                       const struct t3_rpc_error *error, struct t3_reader_event *ret_event)
{
    int delay_ms = next_pause(r, &s->backoff, s->live_ms);

    *ret_event = (struct t3_reader_event){
        .kind = T3_READER_EVENT_BROKEN,
        .state = r->state,
        .id = s->id,
        .delay_ms = delay_ms,
        .error = *error,
    };
    t3_subscription_restart(s);
    s->due_ms = t3_now_ms() + (uint64_t)delay_ms;
    set_due(r, t3_subscriptions_due_ms(&r->subscriptions));
    settle(r);
    return 1;
}

static int take_error(struct t3_reader *r, const struct t3_rpc_event *event,
                      struct t3_reader_event *ret_event)
{
    struct t3_subscription *s = t3_subscriptions_find_request(&r->subscriptions, event->id);

    if (s == NULL) {
        return 0;
    }
    if (event->error.code == T3_RPC_ERROR_FAILED) {
        return give_error(r, s, event, ret_event);
    }
    if (is_final(event->error.code)) {
        refuse(r, &event->error);
        return 0;
    }
    return give_broken(r, s, &event->error, ret_event);
}

static int take_done(struct t3_reader *r, const struct t3_rpc_event *event,
                     struct t3_reader_event *ret_event)
{
    struct t3_subscription *s = t3_subscriptions_find_request(&r->subscriptions, event->id);
    struct t3_rpc_error error;

    if (s == NULL) {
        return 0;
    }
    (void)rpc_error_set(&error, T3_RPC_ERROR_CLOSED, "the server ended the stream of %s",
                        s->method);
    return give_broken(r, s, &error, ret_event);
}

/* 1: that is an event to give. */
static int take(struct t3_reader *r, const struct t3_rpc_event *event,
                struct t3_reader_event *ret_event)
{
    switch (event->kind) {
    case T3_RPC_EVENT_OPEN:
        r->open = true;
        settle(r);
        return 0;
    case T3_RPC_EVENT_CHUNK:
        return give_chunk(r, event, ret_event);
    case T3_RPC_EVENT_DONE:
        return take_done(r, event, ret_event);
    case T3_RPC_EVENT_ERROR:
        return take_error(r, event, ret_event);
    case T3_RPC_EVENT_CLOSED:
        if (is_final(event->error.code)) {
            refuse(r, &event->error);
        } else {
            lose(r, &event->error);
        }
        return 0;
    }
    return 0;
}

/* Does what is due. 1: there is an event to give; 0: nothing is due any more. */
static int work(struct t3_reader *r, struct t3_reader_event *ret_event)
{
    struct t3_rpc_event event;

    for (;;) {
        if (r->news) {
            return give_state(r, ret_event);
        }
        bool due = r->due_ms != 0 && t3_now_ms() >= r->due_ms;

        if (due && r->state == T3_READER_LOST) {
            connect_anew(r);
        } else if (due) {
            ask_due(r);
        } else if (r->connection == NULL && r->state == T3_READER_CONNECTING) {
            dial(r);
        } else if (r->connection == NULL || t3_rpc_next(r->connection, 0, &event) == 0) {
            return 0;
        } else if (take(r, &event, ret_event)) {
            return 1;
        }
    }
}

int t3_reader_next(struct t3_reader *r, int timeout_ms, struct t3_reader_event *ret_event)
{
    uint64_t end_ms = timeout_ms > 0 ? t3_now_ms() + (uint64_t)timeout_ms : 0;
    int left_ms = timeout_ms;

    for (;;) {
        int given = work(r, ret_event);

        ring(r);
        if (given || left_ms == 0) {
            return given;
        }
        t3_wake_wait(&r->wake, left_ms);
        if (timeout_ms > 0) {
            uint64_t now_ms = t3_now_ms();

            left_ms = now_ms < end_ms ? (int)(end_ms - now_ms) : 0;
        }
    }
}

int t3_reader_fd(const struct t3_reader *r)
{
    return r->wake.epoll_fd;
}
