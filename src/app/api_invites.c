/* Invites: a link that lets one person into a house, once. The link's token is a secret: it is
 * stored as a hash, and paths with it are not logged. */
#include "app/handlers.h"

#include "app/app.h"
#include "app/may.h"
#include "app/new_key.h"
#include "app/record_json.h"
#include "app/signals.h"
#include "thread/mention.h"

#define EXPIRES_SECONDS     (7u * 24 * 3600)
#define REFUSAL             "the invite is unknown, used or expired"
#define EXPIRES_SECONDS_MAX (30u * 24 * 3600)

int invite_create(struct api_call *c)
{
    struct input in;
    struct house_record house;
    enum member_role role = ROLE_MEMBER;
    char token[API_TOKEN_BYTES];
    struct invite_record invite = {.created_ms = c->now_ms};
    struct errmsg msg = {{0}};

    if (may_house(c, c->params[0], ROLE_OWNER, &house) != API_DONE) {
        return API_FAILED;
    }
    input_begin(&in, c->body, true, &c->memory, &c->error);
    struct slice text = input_text(&in, "role", &(struct input_text){.bytes_max = 16});
    uint64_t seconds = input_number(&in, "expiresIn", 1, EXPIRES_SECONDS_MAX, EXPIRES_SECONDS);

    if (!in.failed && text.ptr != NULL && !role_parse(text, &role)) {
        input_refuse(&in, "role", "must be owner or member");
    }
    if (input_end(&in) != 0 || new_token_make(c, token, &invite.hash) != API_DONE) {
        return API_FAILED;
    }
    invite.id = api_new_id(c);
    invite.house_id = house.id;
    invite.role = role;
    invite.created_by = api_agent(c);
    invite.expires_ms = c->now_ms + (int64_t)seconds * 1000;
    int code = invite.id.ptr == NULL ? ERR_NOMEM
                                     : store_invite_create(c->app->store, &invite, &msg);

    if (code != 0) {
        explicit_bzero(token, sizeof(token));
        return api_fail(c, code, &msg, "house");
    }
    buf_append_char(&c->answer, '{');
    json_put_text(&c->answer, "id", invite.id);
    json_put_text(&c->answer, "token", slice_of(token));
    buf_append_format(&c->answer, ",\"url\":\"%s/invite/%s\"", c->app->config.public_url, token);
    json_put_text(&c->answer, "role", role_text(role));
    json_put_time(&c->answer, "expiresAt", invite.expires_ms);
    buf_append_char(&c->answer, '}');
    explicit_bzero(token, sizeof(token));
    return api_answer(c, 201);
}

/* Somebody new: an agent with its first key. */
struct stranger {
    struct agent_record agent;
    struct key_record record;
    char key[API_KEY_BYTES];
    char handle[MENTION_HANDLE_BYTES];
};

static int read_stranger(struct api_call *c, struct stranger *s)
{
    struct input in;

    input_begin(&in, c->body, false, &c->memory, &c->error);
    struct slice name = input_text(
        &in, "name", &(struct input_text){.bytes_max = RECORD_NAME_BYTES_MAX, .required = true});

    if (input_end(&in) != 0) {
        return API_FAILED;
    }
    size_t handle_len = mention_handle(name, s->handle);

    s->agent = (struct agent_record){.id = api_new_id(c),
                                     .kind = AGENT_HUMAN,
                                     .name = name,
                                     .handle = {s->handle, handle_len},
                                     .created_ms = c->now_ms};
    return s->agent.id.ptr == NULL
               ? API_FAILED
               : new_key_make(c, s->agent.id, SLICE("invite"), s->key, &s->record);
}

static int read_nothing(struct api_call *c)
{
    struct input in;

    input_begin(&in, c->body, true, &c->memory, &c->error);
    return input_end(&in) != 0 ? API_FAILED : API_DONE;
}

static int refuse_token(struct api_call *c)
{
    return c->caller.proof == CALLER_NOBODY ? api_refuse_attempt(c, API_INVITE_UNUSABLE, REFUSAL)
                                            : api_refuse(c, API_INVITE_UNUSABLE, REFUSAL);
}

/* What the claim is about, with its signal. */
static int prepare(struct api_call *c, struct slice hash, struct slice agent_id,
                   struct invite_record *ret_invite, struct signals *signals)
{
    struct errmsg msg = {{0}};
    int code = store_invite_find(c->app->store, hash, c->now_ms, &c->memory, ret_invite, &msg);

    if (code == ERR_NOTFOUND) {
        return refuse_token(c);
    }
    if (code != 0) {
        return api_fail(c, code, &msg, "invite");
    }
    signals_add(signals, c, ret_invite->primary_thread_id, agent_id, "signal.house.member_added",
                (struct signal_member[]){{"agentId", agent_id},
                                         {"role", role_text(ret_invite->role)},
                                         {NULL, {NULL, 0}}});
    return signals_check(signals, c);
}

static int answer_claim(struct api_call *c, const struct invite_record *invite,
                        struct slice agent_id, const char *key)
{
    struct agent_record agent;
    struct house_record house;
    struct errmsg msg = {{0}};
    int code = store_agent_get(c->app->store, agent_id, &c->memory, &agent, &msg);

    if (code == 0) {
        code = store_house_get(c->app->store, invite->house_id, agent_id, &c->memory, &house, &msg);
    }
    if (code != 0) {
        return api_fail(c, code, &msg, "house");
    }
    buf_append(&c->answer, SLICE("{\"agent\":"));
    json_put_agent(&c->answer, &agent);
    if (key != NULL) {
        json_put_text(&c->answer, "apiKey", slice_of(key));
    }
    buf_append(&c->answer, SLICE(",\"house\":"));
    json_put_house(&c->answer, &house);
    buf_append_char(&c->answer, '}');
    return api_answer(c, key != NULL ? 201 : 200);
}

static int claim(struct api_call *c, struct slice hash, struct stranger *stranger)
{
    bool is_new = c->caller.proof == CALLER_NOBODY;
    struct slice agent_id = is_new ? stranger->agent.id : api_agent(c);
    struct signals signals = {.count = 0};
    struct invite_record invite;
    struct errmsg msg = {{0}};

    if (prepare(c, hash, agent_id, &invite, &signals) != API_DONE) {
        return API_FAILED;
    }
    const struct invite_claim wanted = {.hash = hash,
                                        .agent_id = agent_id,
                                        .agent = is_new ? &stranger->agent : NULL,
                                        .key = is_new ? &stranger->record : NULL,
                                        .now_ms = c->now_ms};
    int code = store_invite_claim(c->app->store, &wanted, signals.items, signals.count, &msg);

    if (code == ERR_NOTFOUND) {
        return refuse_token(c);
    }
    if (code != 0) {
        return api_fail(c, code, &msg, "invite");
    }
    (void)outbox_run(c->app->outbox, invite.primary_thread_id); /* else it is tried again */
    return answer_claim(c, &invite, agent_id, is_new ? stranger->key : NULL);
}

int invite_claim(struct api_call *c)
{
    struct stranger stranger = {.key = ""};
    char hash[API_KEY_HASH_BYTES];
    int result = c->caller.proof == CALLER_NOBODY ? read_stranger(c, &stranger) : read_nothing(c);

    if (result == API_DONE && !api_token_shape_good(c->params[0])) {
        result = refuse_token(c);
    }
    if (result == API_DONE && !api_key_hash(c->params[0], hash)) {
        result = api_refuse(c, API_BUSY, "the server has no memory for this just now");
    }
    result = result == API_DONE ? claim(c, slice_of(hash), &stranger) : result;
    explicit_bzero(stranger.key, sizeof(stranger.key));
    return result;
}
