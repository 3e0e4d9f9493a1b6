/* libcurl's simple interface: there is one request at a time and nothing else to do. */
#include "cli/t3_http.h"

#include "base/json_value.h"
#include "base/limits.h"
#include "base/version.h"
#include "cli/interrupt.h"
#include "cli/t3_url.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <strings.h>

#define TOKEN_LINE     "Authorization: Bearer "
#define LINE_BYTES_MAX (8u * KIB) /* of a header; tokens have less */

/* On its way. */
struct exchange {
    CURL *easy;
    struct curl_slist *lines;
    struct buf body;
    bool too_long;
    char error[CURL_ERROR_SIZE];
};

static size_t on_body(char *bytes, size_t size, size_t count, void *context)
{
    struct exchange *x = context;

    if (x->body.len + size * count > T3_ANSWER_BYTES_MAX) {
        x->too_long = true;
        return 0;
    }
    buf_append(&x->body, (struct slice){bytes, size * count});
    return x->body.failed ? 0 : size * count;
}

static int on_progress(void *context, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    (void)context;
    (void)a;
    (void)b;
    (void)c;
    (void)d;
    return interrupt_signal() != 0;
}

static bool add_line(struct exchange *x, const char *line)
{
    struct curl_slist *longer = curl_slist_append(x->lines, line);

    x->lines = longer == NULL ? x->lines : longer;
    return longer != NULL;
}

static bool add_lines(struct exchange *x, const struct t3_http_request *request)
{
    struct buf line;
    bool good = add_line(x, "Accept: application/json");

    buf_init(&line, LINE_BYTES_MAX);
    good = good && buf_reserve(&line, LINE_BYTES_MAX) != NULL; /* no copy is left by growing */
    if (request->content_type != NULL) {
        buf_append_format(&line, "Content-Type: %s", request->content_type);
        buf_append_char(&line, '\0');
        good = good && !line.failed && add_line(x, line.ptr) && add_line(x, "Expect:");
    }
    buf_clear(&line);
    if (request->token != NULL) {
        buf_append(&line, SLICE(TOKEN_LINE));
        buf_append(&line, slice_of(request->token));
        buf_append_char(&line, '\0');
        good = good && !line.failed && add_line(x, line.ptr);
    }
    if (line.ptr != NULL) {
        explicit_bzero(line.ptr, line.cap);
    }
    buf_finish(&line);
    return good;
}

/* All are known to this curl; but it copies texts. */
#define SET(option, value) good = curl_easy_setopt(x->easy, option, value) == CURLE_OK && good

static bool set_options(struct exchange *x, const struct t3_http_request *request)
{
    bool good = true;

    SET(CURLOPT_URL, request->url);
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(CURLOPT_CUSTOMREQUEST, request->method);
    if (request->content_type != NULL) {
        SET(CURLOPT_POSTFIELDS, request->body.len > 0 ? request->body.ptr : "");
        SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body.len);
    }
    if (strncasecmp(request->url, "http:", 5) == 0) {
        SET(CURLOPT_PROXY, ""); /* one of the environment would read what is not encrypted */
    }
    if (request->ca_file != NULL) {
        SET(CURLOPT_CAINFO, request->ca_file);
    }
    SET(CURLOPT_HTTPHEADER, x->lines);
    SET(CURLOPT_USERAGENT, "arbe/" ARBE_VERSION);
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    SET(CURLOPT_SSL_VERIFYPEER, 1L);
    SET(CURLOPT_SSL_VERIFYHOST, 2L);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_QUICK_EXIT, 1L);
    SET(CURLOPT_TIMEOUT_MS, (long)request->timeout_ms);
    SET(CURLOPT_CONNECTTIMEOUT_MS, (long)request->timeout_ms);
    SET(CURLOPT_ERRORBUFFER, x->error);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, x);
    SET(CURLOPT_NOPROGRESS, 0L);
    SET(CURLOPT_XFERINFOFUNCTION, on_progress);
    return good;
}

/* Why there is no answer. */
static int tell(const struct exchange *x, const struct t3_http_request *request, CURLcode code,
                struct errmsg *msg)
{
    char host[T3_URL_BYTES];

    if (code == CURLE_ABORTED_BY_CALLBACK || interrupt_signal() != 0) {
        return err_set(msg, ERR_STOPPING, "interrupted");
    }
    t3_url_authority(request->url, host, sizeof(host));
    if (x->too_long) {
        return err_set(msg, ERR_TOOBIG, "%.100s: an answer of more than %u bytes is none of T3",
                       host, T3_ANSWER_BYTES_MAX);
    }
    if (code == CURLE_OUT_OF_MEMORY || x->body.failed) {
        return err_set(msg, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
    }
    if (strstr(x->error, "wrong version number") != NULL) { /* OpenSSL, of what is no TLS record */
        return err_set(
            msg, ERR_AGAIN,
            "no answer from %.80s: what is there speaks no TLS; perhaps http:// is meant", host);
    }
    return err_set(msg, ERR_AGAIN, "no answer from %.80s: %.140s", host,
                   x->error[0] != '\0' ? x->error : curl_easy_strerror(code));
}

static int perform(struct exchange *x, const struct t3_http_request *request, int *ret_status,
                   struct errmsg *msg)
{
    long status = 0;

    x->easy = curl_easy_init();
    if (x->easy == NULL || buf_reserve(&x->body, T3_ANSWER_BYTES_MAX) == NULL ||
        !add_lines(x, request) || !set_options(x, request)) {
        return err_set(msg, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
    }
    CURLcode code = curl_easy_perform(x->easy);
    long sent = 0;

    (void)curl_easy_getinfo(x->easy, CURLINFO_REQUEST_SIZE, &sent); /* 0 if it does not know */
    if (request->ret_sent != NULL) {
        *request->ret_sent = sent > 0;
    }
    if (code != CURLE_OK) {
        return tell(x, request, code, msg);
    }
    (void)curl_easy_getinfo(x->easy, CURLINFO_RESPONSE_CODE, &status); /* 0 if it has none */
    *ret_status = (int)status;
    return 0;
}

/* libcurl does not wipe what it copied; its copies of lines can be reached. */
static void finish(struct exchange *x)
{
    for (struct curl_slist *line = x->lines; line != NULL; line = line->next) {
        explicit_bzero(line->data, strlen(line->data));
    }
    curl_slist_free_all(x->lines);
    curl_easy_cleanup(x->easy);
    curl_global_cleanup();
}

int t3_http_send(const struct t3_http_request *request, struct t3_http_answer *ret_answer,
                 struct errmsg *msg)
{
    struct exchange x = {.easy = NULL};
    struct t3_http_answer answer = {.status = 0};

    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        return err_set(msg, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
    }
    buf_init(&x.body, T3_ANSWER_BYTES_MAX);
    int code = perform(&x, request, &answer.status, msg);

    finish(&x);
    answer.body = x.body;
    if (code != 0) {
        t3_http_answer_finish(&answer);
        return code;
    }
    if (json_text_read(buf_slice(&answer.body), &answer.json, NULL) != 0) {
        answer.json = SLICE("");
    }
    *ret_answer = answer;
    return 0;
}

void t3_http_answer_finish(struct t3_http_answer *answer)
{
    if (answer->body.ptr != NULL) {
        explicit_bzero(answer->body.ptr, answer->body.cap);
    }
    buf_finish(&answer->body);
    *answer = (struct t3_http_answer){.status = 0};
}

void t3_http_append_form(struct buf *out, const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++) {
        if ((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') ||
            strchr("-._*", *c) != NULL) {
            buf_append_char(out, (char)*c);
        } else {
            buf_append_format(out, "%%%02X", *c);
        }
    }
}
