/* Which route does what, and what its refusals mean, was read from T3 Code's source. Newer servers
 * let a session end itself; older ones only let others do it. */
#include "cli/t3_session.h"

#include "base/base64.h"
#include "base/json.h"
#include "base/json_value.h"
#include "base/limits.h"
#include "base/redact.h"
#include "cli/t3_http.h"
#include "cli/t3_url.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define DESCRIPTOR_PATH "/.well-known/t3/environment"
#define TOKEN_PATH      "/oauth/token"
#define SESSION_PATH    "/api/auth/session"
#define REVOKE_PATH     "/api/auth/session/revoke"
#define CLIENT_PATH     "/api/auth/clients/revoke"
#define FORM_TYPE       "application/x-www-form-urlencoded"
#define ENDING_BYTES    110u       /* of a sentence, for what became of a token */
#define LONG_BYTES      (7u * KIB) /* of a token that can be sent, if not kept */
#define FORM_BYTES_MAX  (8u * KIB)

/* ------------------------------------------------------------------ answers */

/* A member that is a string, in printable ASCII, cut to what fits; empty when it is none. False:
 * something was cut. */
static bool take_text(struct slice object, const char *name, char *out, size_t size)
{
    char memory[T3_ANSWER_BYTES_MAX +
                1]; /* no value is longer, nor is a token lost for want of it */
    struct slice value;
    struct buf text;
    size_t len = 0;

    out[0] = '\0';
    if (object.len == 0 || json_kind(object) != JSON_OBJECT ||
        json_object_find(object, slice_of(name), &value, NULL) != 1 ||
        json_kind(value) != JSON_STRING) {
        return true;
    }
    buf_init_fixed(&text, memory, sizeof(memory));
    json_string_decode_lossy(value, &text);
    for (; len < text.len && len + 1 < size; len++) {
        out[len] = (char)(text.ptr[len] > 0x1f && text.ptr[len] < 0x7f ? text.ptr[len] : '?');
    }
    out[len] = '\0';
    explicit_bzero(memory, text.len);
    return len == text.len;
}

static bool take_number(struct slice object, const char *name, uint64_t *ret_number)
{
    struct slice value;

    return object.len > 0 && json_kind(object) == JSON_OBJECT &&
           json_object_find(object, slice_of(name), &value, NULL) == 1 &&
           json_kind(value) == JSON_NUMBER && json_number_u64(value, UINT32_MAX, ret_number);
}

/* The server's word for why: a code such as "invalid_scope". Empty when it is none. */
static void take_reason(const struct t3_http_answer *answer, char out[static T3_TEXT_BYTES])
{
    static const char *const names[] = {"reason", "requiredScope", "code", "error"};

    out[0] = '\0';
    for (size_t i = 0; i < ARRAY_COUNT(names) && out[0] == '\0'; i++) {
        (void)take_text(answer->json, names[i], out, 64); /* cut, it says enough */
        if (strspn(out, "abcdefghijklmnopqrstuvwxyz_:") != strlen(out)) {
            out[0] = '\0';
        }
    }
}

static int send_to(const struct t3_site *site, const char *method, const char *path,
                   struct t3_http_request request, struct t3_http_answer *ret_answer,
                   struct errmsg *msg)
{
    char url[T3_URL_BYTES + 64];

    t3_url_http(site->url, path, url, sizeof(url));
    request.method = method;
    request.url = url;
    request.ca_file = site->ca_file;
    request.timeout_ms = site->timeout_ms;
    return t3_http_send(&request, ret_answer, msg);
}

/* An answer that means nothing here. */
static int odd_answer(const struct t3_http_answer *answer, const char *method, const char *path,
                      struct errmsg *msg)
{
    char reason[T3_TEXT_BYTES];

    take_reason(answer, reason);
    return err_set(msg, ERR_FAILED, "the server answered %s %s with %d%s%s%s", method, path,
                   answer->status, reason[0] == '\0' ? "" : " (", reason,
                   reason[0] == '\0' ? "" : ")");
}

/* ------------------------------------------------------------------ which server */

static int read_descriptor(const struct t3_http_answer *answer, struct t3_descriptor *descriptor,
                           struct errmsg *msg)
{
    char environment[T3_TEXT_BYTES];
    uint64_t protocol = T3_PROTOCOL;

    (void)take_text(answer->json, "environmentId", environment, sizeof(environment));
    if (answer->status != 200 || environment[0] == '\0') {
        return err_set(msg, ERR_NOTFOUND,
                       "this is no T3 Code server: GET " DESCRIPTOR_PATH " was answered with %d%s",
                       answer->status, answer->status == 200 ? ", and nothing that T3 says" : "");
    }
    (void)take_text(answer->json, "label", descriptor->label, sizeof(descriptor->label));
    (void)take_text(answer->json, "serverVersion", descriptor->version,
                    sizeof(descriptor->version));
    if (take_number(answer->json, "orchestrationProtocolVersion", &protocol) &&
        protocol != T3_PROTOCOL) {
        return err_set(msg, ERR_MISMATCH,
                       "the server (version %.40s) speaks orchestration protocol %u, and arbe "
                       "speaks %u",
                       descriptor->version[0] == '\0' ? "unknown" : descriptor->version,
                       (unsigned)protocol, T3_PROTOCOL);
    }
    return 0;
}

int t3_session_describe(const struct t3_site *site, struct t3_descriptor *ret_descriptor,
                        struct errmsg *msg)
{
    struct t3_descriptor descriptor = {.label = ""};
    struct t3_http_answer answer;
    int code = send_to(site, "GET", DESCRIPTOR_PATH, (struct t3_http_request){.token = NULL},
                       &answer, msg);

    if (code != 0) {
        return code;
    }
    code = read_descriptor(&answer, &descriptor, msg);
    t3_http_answer_finish(&answer);
    if (code == 0) {
        *ret_descriptor = descriptor;
    }
    return code;
}

/* ------------------------------------------------------------------ the exchange */

/* RFC 8693, with T3's name for what a pairing credential is. */
static void append_exchange(struct buf *form, const char *credential, const char *client)
{
    const char *const fields[][2] = {
        {"grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"},
        {"subject_token", credential},
        {"subject_token_type", "urn:t3:params:oauth:token-type:environment-bootstrap"},
        {"requested_token_type", "urn:ietf:params:oauth:token-type:access_token"},
        {"scope", T3_SCOPE},
        {"client_label", client},
        {"client_device_type", "bot"},
        {"client_os", "linux"},
    };

    for (size_t i = 0; i < ARRAY_COUNT(fields); i++) {
        buf_append_format(form, "%s%s=", i == 0 ? "" : "&", fields[i][0]);
        t3_http_append_form(form, fields[i][1]);
    }
}

static int refuse_exchange(const struct t3_http_answer *answer, struct errmsg *msg)
{
    char reason[T3_TEXT_BYTES];

    take_reason(answer, reason);
    switch (answer->status) {
    case 400:
        if (strcmp(reason, "scope_not_granted") == 0) {
            return err_set(msg, ERR_PERM,
                           "the pairing credential does not grant " T3_SCOPE
                           ", which is all that arbe asks for; make one that does");
        }
        if (strcmp(reason, "invalid_scope") == 0) {
            return err_set(msg, ERR_MISMATCH,
                           "the server does not know the scope " T3_SCOPE
                           ", so it has no tokens that can only read");
        }
        return odd_answer(answer, "POST", TOKEN_PATH, msg);
    case 401:
    case 403:
        return err_set(msg, ERR_PERM,
                       "the server does not take this pairing credential: it is wrong, was used "
                       "already, or has expired; make a new one on the server's machine: t3 auth "
                       "pairing create");
    case 404:
    case 405:
        return err_set(msg, ERR_NOTFOUND,
                       "the server has no POST " TOKEN_PATH " (%d): its version is too old to "
                       "give out tokens that can only read",
                       answer->status);
    case 426:
        return err_set(msg, ERR_MISMATCH, "the server wants another protocol than arbe speaks");
    default:
        return odd_answer(answer, "POST", TOKEN_PATH, msg);
    }
}

/* What a header can carry. Bearer tokens have no '?': it stands for what was odd (take_text). */
static bool is_token(const char *token)
{
    size_t len = strlen(token);

    for (size_t i = 0; i < len; i++) {
        if (token[i] < 0x21 || token[i] > 0x7e || token[i] == '?') {
            return false;
        }
    }
    return len > 0;
}

/* Adds to a sentence, which is cut where that leaves no room. */
static void add_ending(struct errmsg *msg, const char *ending)
{
    size_t len = strlen(msg->text);

    len = len > sizeof(msg->text) - ENDING_BYTES ? sizeof(msg->text) - ENDING_BYTES : len;
    (void)snprintf(msg->text + len, sizeof(msg->text) - len, "; %s", ending);
}

/* The exchange was asked for, and what the server made of that cannot be read. */
static void warn_of_token(struct errmsg *msg)
{
    add_ending(msg,
               "a token may have been given out: t3 auth session list there tells, and t3 auth "
               "session revoke ID ends it");
}

/* A token that cannot be kept, since it is too long or odd, is good all the same; so is one that
 * cannot be read. */
static void drop_odd(const struct t3_site *site, struct slice answer, struct errmsg *msg)
{
    char token[LONG_BYTES];
    bool whole = take_text(answer, "access_token", token, sizeof(token));

    if (token[0] != '\0') {
        t3_session_drop(site, whole && is_token(token) ? token : NULL, msg);
    } else {
        warn_of_token(msg);
    }
    explicit_bzero(token, sizeof(token));
}

static int read_grant(const struct t3_site *site, const struct t3_http_answer *answer,
                      struct t3_grant *grant, struct errmsg *msg)
{
    char type[T3_TEXT_BYTES];
    bool whole = take_text(answer->json, "access_token", grant->token, sizeof(grant->token));

    if (answer->status != 200) {
        int code = refuse_exchange(answer, msg);

        if (answer->status > 200 && answer->status < 300) {
            drop_odd(site, answer->json, msg); /* it did not refuse */
        }
        return code;
    }
    (void)take_text(answer->json, "token_type", type, sizeof(type));
    (void)take_text(answer->json, "scope", grant->scope, sizeof(grant->scope)); /* cut is wide */
    if (!take_number(answer->json, "expires_in", &grant->expires_in_s)) {
        grant->expires_in_s = 0;
    }
    if (!whole || !is_token(grant->token) || strcasecmp(type, "Bearer") != 0) {
        (void)err_set(msg, ERR_FAILED,
                      "the server answered POST " TOKEN_PATH " with no bearer token that can be "
                      "kept");
        drop_odd(site, answer->json, msg);
        return ERR_FAILED;
    }
    return 0;
}

int t3_session_exchange(const struct t3_site *site, const char *credential, const char *client,
                        struct t3_grant *ret_grant, struct errmsg *msg)
{
    struct t3_http_answer answer = {.status = 0};
    struct t3_grant grant = {.token = ""};
    struct buf form;
    bool sent = false;

    buf_init(&form, FORM_BYTES_MAX);
    if (buf_reserve(&form, FORM_BYTES_MAX) == NULL) {
        return err_set(msg, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
    }
    append_exchange(&form, credential, client);
    int code = form.failed ? err_set(msg, ERR_PERM, "the pairing credential is too long")
                           : send_to(site, "POST", TOKEN_PATH,
                                     (struct t3_http_request){.content_type = FORM_TYPE,
                                                              .body = buf_slice(&form),
                                                              .ret_sent = &sent},
                                     &answer, msg);

    explicit_bzero(form.ptr, form.cap);
    buf_finish(&form);
    if (code != 0 && sent) {
        warn_of_token(msg);
    }
    code = code == 0 ? read_grant(site, &answer, &grant, msg) : code;
    t3_http_answer_finish(&answer);
    if (code == 0) {
        *ret_grant = grant;
    } else {
        redact(msg->text, credential); /* servers may quote it */
        redact(msg->text, grant.token);
    }
    explicit_bzero(&grant, sizeof(grant));
    return code;
}

/* ------------------------------------------------------------------ what a token may do */

/* Adds what the array of that name says, with spaces, to `out`. False when there is none. */
static bool take_scopes(struct slice object, char *out, size_t size)
{
    struct slice array;
    struct slice element;
    struct json_walk walk;
    struct buf text;

    if (json_kind(object) != JSON_OBJECT ||
        json_object_find(object, SLICE("scopes"), &array, NULL) != 1 ||
        json_kind(array) != JSON_ARRAY) {
        return false;
    }
    buf_init_fixed(&text, out, size);
    json_walk_begin(&walk, array);
    while (json_walk_element(&walk, &element)) {
        buf_append(&text, text.len == 0 ? SLICE("") : SLICE(" "));
        if (json_kind(element) == JSON_STRING) {
            json_string_decode_lossy(element, &text);
        } else {
            buf_append(&text, SLICE("?"));
        }
    }
    out[text.len] = '\0'; /* one that is cut ends in a space or more, and is wide too */
    for (char *c = out; c < out + text.len; c++) {
        *c = (char)(*c > 0x1f && *c < 0x7f ? *c : '?');
    }
    return true;
}

static int refuse_scope(const char *scope, struct errmsg *msg)
{
    return err_set(msg, ERR_MISMATCH,
                   "the token that the server gave may do more than read (%.100s), so it is not "
                   "kept",
                   scope);
}

/* Both the exchange and the session may say what the token may do; one must, and neither more. */
static int judge(struct slice session, const char *scope, struct errmsg *msg)
{
    struct slice authenticated;
    char scopes[T3_TEXT_BYTES];

    if (json_object_find(session, SLICE("authenticated"), &authenticated, NULL) != 1 ||
        json_kind(authenticated) != JSON_TRUE) {
        return err_set(msg, ERR_PERM, "the server does not take the token");
    }
    bool said = take_scopes(session, scopes, sizeof(scopes));

    if (scope[0] != '\0' && strcmp(scope, T3_SCOPE) != 0) {
        return refuse_scope(scope, msg);
    }
    if (said && strcmp(scopes, T3_SCOPE) != 0) {
        return refuse_scope(scopes[0] == '\0' ? "or nothing at all" : scopes, msg);
    }
    if (!said && scope[0] == '\0') {
        return err_set(msg, ERR_MISMATCH,
                       "the server does not say what the token that it gave may do, so it is not "
                       "kept");
    }
    return 0;
}

int t3_session_check(const struct t3_site *site, const char *token, const char *scope,
                     struct errmsg *msg)
{
    struct t3_http_answer answer;
    int code = send_to(site, "GET", SESSION_PATH, (struct t3_http_request){.token = token}, &answer,
                       msg);

    if (code != 0) {
        return code;
    }
    if (answer.status == 401 || answer.status == 403) {
        code = err_set(msg, ERR_PERM, "the server does not take the token");
    } else if (answer.status != 200 || answer.json.len == 0 ||
               json_kind(answer.json) != JSON_OBJECT) {
        code = odd_answer(&answer, "GET", SESSION_PATH, msg);
    } else {
        code = judge(answer.json, scope, msg);
    }
    t3_http_answer_finish(&answer);
    if (code != 0) {
        redact(msg->text, token); /* servers may quote it */
    }
    return code;
}

/* ------------------------------------------------------------------ its end */

static bool says_revoked(const struct t3_http_answer *answer)
{
    struct slice value;

    return answer->status == 200 && answer->json.len > 0 &&
           json_kind(answer->json) == JSON_OBJECT &&
           json_object_find(answer->json, SLICE("revoked"), &value, NULL) == 1 &&
           json_kind(value) == JSON_TRUE;
}

/* 0 and ERR_GONE are the end of it; ERR_EXISTS is a no. */
static int ask_revoke(const struct t3_site *site, const char *token, const char *path,
                      struct slice body, struct errmsg *msg)
{
    struct t3_http_answer answer;
    int code = send_to(
        site, "POST", path,
        (struct t3_http_request){.token = token, .content_type = "application/json", .body = body},
        &answer, msg);

    if (code != 0) {
        return code;
    }
    if (says_revoked(&answer)) {
        code = 0;
    } else if (answer.status == 401) {
        code = err_set(msg, ERR_GONE, "the server did not take the token any more");
    } else {
        (void)odd_answer(&answer, "POST", path, msg); /* the sentence */
        redact(msg->text, token);                     /* servers may quote it */
        code = ERR_EXISTS;
    }
    t3_http_answer_finish(&answer);
    return code;
}

int t3_session_revoke(const struct t3_site *site, const char *token, struct errmsg *msg)
{
    char id[T3_SESSION_ID_BYTES];
    char body[T3_SESSION_ID_BYTES + 32];
    int code = ask_revoke(site, token, REVOKE_PATH, SLICE("{}"), msg);

    if (code != ERR_EXISTS || !t3_session_id(token, id)) {
        return code;
    }
    int len = snprintf(body, sizeof(body), "{\"sessionId\":\"%s\"}", id);

    return ask_revoke(site, token, CLIENT_PATH, (struct slice){body, (size_t)len}, msg);
}

void t3_session_drop(const struct t3_site *site, const char *token, struct errmsg *msg)
{
    char id[T3_SESSION_ID_BYTES] = "ID";
    struct errmsg why = {{0}};
    int code = token == NULL ? ERR_INVALID : t3_session_revoke(site, token, &why);
    char ending[ENDING_BYTES];

    if (code == 0 || code == ERR_GONE) {
        add_ending(msg, "its session was ended");
        return;
    }
    if (token != NULL) {
        (void)t3_session_id(token, id); /* else it is to be looked up */
    }
    (void)snprintf(ending, sizeof(ending), "end its session: t3 auth session revoke %.60s", id);
    add_ending(msg, ending);
}

bool t3_session_id(const char *token, char out[static T3_SESSION_ID_BYTES])
{
    struct slice claims = {token, strcspn(token, ".")};
    char memory[T3_READER_TOKEN_BYTES];
    char id[T3_SESSION_ID_BYTES] = "";
    size_t len = 0;
    struct slice json;

    if (token[claims.len] == '.' && claims.len < sizeof(memory) &&
        base64url_decode(claims, memory, &len) &&
        json_text_read((struct slice){memory, len}, &json, NULL) == 0) {
        (void)take_text(json, "sid", id, sizeof(id)); /* one that is cut helps nobody, nor harms */
    }
    explicit_bzero(memory, sizeof(memory));
    if (id[0] == '\0' || strspn(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                    "-_") != strlen(id)) {
        return false;
    }
    memcpy(out, id, sizeof(id));
    return true;
}
