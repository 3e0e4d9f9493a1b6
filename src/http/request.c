/* One pass over the head, in order, so that the first thing wrong is what the client is told. Bytes
 * are looked at sixteen at a time where text may be long: targets and values; names are short and
 * go through a table.
 *
 * When a head comes in pieces, the first attempt runs out of bytes; from then on only its end is
 * looked for, and the one pass is made once that is there. */
#include "http/request.h"

#include <assert.h>

#include "base/number.h"

/* Results of the steps. */
enum step {
    STEP_REFUSED = -1,
    STEP_MORE = 0,
    STEP_GOOD = 1,
};

/* Headers that change how the message is read, seen so far. */
struct seen {
    unsigned hosts;      /* Host fields */
    unsigned lengths;    /* Content-Length fields */
    unsigned codings;    /* Transfer-Encoding fields */
    bool close;          /* Connection: close */
    bool keep_alive;     /* Connection: keep-alive */
    struct slice length; /* the Content-Length */
    struct slice coding; /* the Transfer-Encoding */
};

struct parser {
    const char *at;               /* next byte */
    const char *end;              /* one past the last byte, or past the cap */
    struct http_request *request; /* being filled */
    struct http_refusal *refusal; /* set by STEP_REFUSED */
    struct seen seen;
};

/* tchar of RFC 9110 section 5.6.2. */
static const bool token_chars[256] = {
    ['!'] = true,         ['#'] = true,         ['$'] = true,         ['%'] = true, ['&'] = true,
    ['\''] = true,        ['*'] = true,         ['+'] = true,         ['-'] = true, ['.'] = true,
    ['^'] = true,         ['_'] = true,         ['`'] = true,         ['|'] = true, ['~'] = true,
    ['0' ... '9'] = true, ['A' ... 'Z'] = true, ['a' ... 'z'] = true,
};

static bool is_token_char(char c)
{
    return token_chars[(unsigned char)c];
}

static const char *skip_token(const char *at, const char *end)
{
    while (at < end && is_token_char(*at)) {
        at++;
    }
    return at;
}

typedef uint8_t lanes __attribute__((vector_size(16)));

/* The first control character but tab, or `end`; where spaces count, the first space, tab or
 * control character. */
static inline const char *skip_text(const char *at, const char *end, bool spaces_count)
{
    for (; end - at >= 16; at += 16) {
        lanes bytes;
        lanes hits;
        uint64_t halves[2];

        memcpy(&bytes, at, sizeof(bytes));
        hits = spaces_count ? (lanes)(bytes <= 0x20) : (lanes)((bytes < 0x20) & (bytes != '\t'));
        hits |= (lanes)(bytes == 0x7f);
        memcpy(halves, &hits, sizeof(halves));
        if (halves[0] != 0) {
            return at + __builtin_ctzll(halves[0]) / 8;
        }
        if (halves[1] != 0) {
            return at + 8 + __builtin_ctzll(halves[1]) / 8;
        }
    }
    for (; at < end; at++) {
        unsigned char c = (unsigned char)*at;

        if (c == 0x7f || (spaces_count ? c <= 0x20 : c < 0x20 && c != '\t')) {
            break;
        }
    }
    return at;
}

static int refuse(struct parser *p, int status, const char *sentence)
{
    *p->refusal = (struct http_refusal){status, sentence};
    return STEP_REFUSED;
}

/* CRLF and nothing else ends a line: a bare LF or CR is read in two ways (RFC 9112 section 2.2). */
static int take_line_end(struct parser *p)
{
    if (p->at == p->end) {
        return STEP_MORE;
    }
    if (*p->at != '\r') {
        return refuse(p, 400, "the head holds a control character or a line without CRLF");
    }
    if (p->end - p->at < 2) {
        return STEP_MORE;
    }
    if (p->at[1] != '\n') {
        return refuse(p, 400, "a carriage return stands alone; lines end with CRLF");
    }
    p->at += 2;
    return STEP_GOOD;
}

static int take_method(struct parser *p)
{
    const char *start = p->at;
    const char *end = skip_token(start, p->end);

    if (end == p->end) {
        return STEP_MORE;
    }
    if (end == start || *end != ' ') {
        return refuse(p, 400, "the request does not begin with a method and a space");
    }
    p->request->method_token = (struct slice){start, (size_t)(end - start)};
    p->request->method = http_method_of(p->request->method_token);
    p->at = end + 1;
    return STEP_GOOD;
}

/* The path and query of an absolute-form target (RFC 9112 section 3.2.2); ptr NULL when it is none.
 * Without a path it is the last slash of "http://", since every slice of a request lies in its
 * bytes; with a query alone it begins with '?'. User information is refused: it serves to deceive
 * (RFC 9110 section 4.2.4). */
static struct slice cut_absolute(struct slice target)
{
    static const struct slice schemes[] = {{"http://", 7}, {"https://", 8}};

    for (size_t i = 0; i < ARRAY_COUNT(schemes); i++) {
        size_t at = schemes[i].len;

        if (target.len <= at || !slice_equal_nocase((struct slice){target.ptr, at}, schemes[i])) {
            continue;
        }
        while (at < target.len && target.ptr[at] != '/' && target.ptr[at] != '?') {
            if (target.ptr[at] == '@') {
                return (struct slice){NULL, 0};
            }
            at++;
        }
        if (at == schemes[i].len) {
            return (struct slice){NULL, 0};
        }
        return at == target.len ? (struct slice){target.ptr + schemes[i].len - 1, 1}
                                : (struct slice){target.ptr + at, target.len - at};
    }
    return (struct slice){NULL, 0};
}

static int check_target(struct parser *p)
{
    struct http_request *r = p->request;
    struct slice target = r->target;

    if (memchr(target.ptr, '#', target.len) != NULL) {
        return refuse(p, 400, "the request target holds a fragment");
    }
    if (target.ptr[0] == '/' || slice_equal(r->method_token, SLICE("CONNECT"))) {
        return STEP_GOOD; /* CONNECT has its own form; its method is one we do not serve */
    }
    if (slice_equal(target, SLICE("*"))) {
        return r->method == HTTP_OPTIONS
                   ? STEP_GOOD
                   : refuse(p, 400, "the request target * is for OPTIONS only");
    }
    r->target = cut_absolute(target);
    if (r->target.ptr == NULL) {
        return refuse(p, 400, "the request target is neither a path nor an http URL");
    }
    return STEP_GOOD;
}

static int take_target(struct parser *p)
{
    const char *start = p->at;
    const char *end = skip_text(start, p->end, true);
    size_t len = (size_t)(end - start);

    if (len > HTTP_TARGET_BYTES_MAX) {
        return refuse(p, 414, "the request target is longer than 8 KiB");
    }
    if (end == p->end) {
        return STEP_MORE;
    }
    if (len == 0 || *end != ' ') {
        return refuse(p, 400, "the request line is not METHOD SP TARGET SP HTTP/1.1");
    }
    p->request->target = (struct slice){start, len};
    p->at = end + 1;
    return STEP_GOOD;
}

static int take_version(struct parser *p)
{
    static const char shape[] = "HTTP/";
    const char *at = p->at;
    size_t left = (size_t)(p->end - at);

    for (size_t i = 0; i < 8 && i < left; i++) {
        bool good = i < 5    ? at[i] == shape[i]
                    : i == 6 ? at[i] == '.'
                             : at[i] >= '0' && at[i] <= '9';

        if (!good) {
            return refuse(p, 400, "the request line does not end with HTTP/1.1 or HTTP/1.0");
        }
    }
    if (left < 8) {
        return STEP_MORE;
    }
    if (at[5] != '1') {
        return refuse(p, 505, "only HTTP/1.1 and HTTP/1.0 are spoken here");
    }
    /* A higher minor version is served as the highest known one (RFC 9110 section 2.5). */
    p->request->minor_version = at[7] == '0' ? 0 : 1;
    p->at = at + 8;
    return take_line_end(p);
}

static int take_request_line(struct parser *p)
{
    int step = take_method(p);

    if (step == STEP_GOOD) {
        step = take_target(p);
    }
    if (step == STEP_GOOD) {
        step = take_version(p);
    }
    /* After the version: what looks odd to 1.1 may be right in another one. */
    if (step == STEP_GOOD) {
        step = check_target(p);
    }
    return step;
}

/* Host is checked for what could hide another host or path in it (RFC 9112 section 3.2). */
static int note_host(struct parser *p, struct slice value)
{
    if (p->seen.hosts++ > 0) {
        return refuse(p, 400, "there are several Host headers");
    }
    for (size_t i = 0; i < value.len; i++) {
        unsigned char c = (unsigned char)value.ptr[i];

        if (c <= ' ' || c >= 0x7f || c == '/' || c == '?' || c == '#' || c == '@' || c == '\\' ||
            c == '"' || c == '<' || c == '>' || c == ',') {
            return refuse(p, 400, "the Host header is not a host name with an optional port");
        }
    }
    return STEP_GOOD;
}

static int note_length(struct parser *p, struct slice value)
{
    /* Even equal ones: a proxy in front may have used the other (RFC 9112 section 6.3). */
    if (p->seen.lengths++ > 0) {
        return refuse(p, 400, "there are several Content-Length headers");
    }
    p->seen.length = value;
    return STEP_GOOD;
}

static int note_coding(struct parser *p, struct slice value)
{
    if (p->seen.codings++ > 0) {
        return refuse(p, 400, "there are several Transfer-Encoding headers");
    }
    p->seen.coding = value;
    return STEP_GOOD;
}

static int note_connection(struct parser *p, struct slice value)
{
    struct slice part;

    while (slice_split(&value, ',', &part)) {
        part = slice_trim(part);
        p->seen.close |= slice_equal_nocase(part, SLICE("close"));
        p->seen.keep_alive |= slice_equal_nocase(part, SLICE("keep-alive"));
    }
    return STEP_GOOD;
}

static int note_expect(struct parser *p, struct slice value)
{
    if (!slice_equal_nocase(value, SLICE("100-continue"))) {
        return refuse(p, 417, "the only expectation met here is 100-continue");
    }
    /* A 1.0 client cannot read a 100 (RFC 9110 section 10.1.1). */
    p->request->expect_continue = p->request->minor_version > 0;
    return STEP_GOOD;
}

/* Looks at the few names that change how the message is read; lengths tell almost all apart. */
static int note_header(struct parser *p, const struct http_header *h)
{
    switch (h->name.len) {
    case 4:
        return slice_equal_nocase(h->name, SLICE("host")) ? note_host(p, h->value) : STEP_GOOD;
    case 6:
        return slice_equal_nocase(h->name, SLICE("expect")) ? note_expect(p, h->value) : STEP_GOOD;
    case 10:
        return slice_equal_nocase(h->name, SLICE("connection")) ? note_connection(p, h->value)
                                                                : STEP_GOOD;
    case 14:
        return slice_equal_nocase(h->name, SLICE("content-length")) ? note_length(p, h->value)
                                                                    : STEP_GOOD;
    case 17:
        return slice_equal_nocase(h->name, SLICE("transfer-encoding")) ? note_coding(p, h->value)
                                                                       : STEP_GOOD;
    default:
        return STEP_GOOD;
    }
}

static int take_header(struct parser *p)
{
    struct http_header header;
    const char *start = p->at;
    const char *colon = skip_token(start, p->end);
    const char *stop;
    int step;

    if (colon == p->end) {
        return STEP_MORE;
    }
    /* This also refuses a folded line and a space before the colon (RFC 9112 section 5). */
    if (colon == start || *colon != ':') {
        return refuse(p, 400, "a header line is not NAME: VALUE");
    }
    stop = skip_text(colon + 1, p->end, false);
    p->at = stop;
    step = take_line_end(p);
    if (step != STEP_GOOD) {
        return step;
    }
    if (p->request->header_count == HTTP_HEADERS_MAX) {
        return refuse(p, 431, "there are more than 100 headers");
    }
    header.name = (struct slice){start, (size_t)(colon - start)};
    header.value = slice_trim((struct slice){colon + 1, (size_t)(stop - colon - 1)});
    p->request->headers[p->request->header_count++] = header;
    return note_header(p, &header);
}

/* Up to and with the empty line. */
static int take_headers(struct parser *p)
{
    for (;;) {
        int step;

        if (p->at < p->end && (*p->at == '\r' || *p->at == '\n')) {
            return take_line_end(p);
        }
        step = take_header(p);
        if (step != STEP_GOOD) {
            return step;
        }
    }
}

static bool is_token(struct slice s)
{
    return s.len > 0 && skip_token(s.ptr, s.ptr + s.len) == s.ptr + s.len;
}

/* How the body is delimited (RFC 9112 section 6.3), without any of the latitude it leaves. */
static int decide_body(struct parser *p)
{
    struct http_request *r = p->request;
    const struct seen *seen = &p->seen;

    if (seen->codings > 0) {
        if (seen->lengths > 0) {
            return refuse(p, 400, "Transfer-Encoding and Content-Length are both present");
        }
        if (r->minor_version == 0) {
            return refuse(p, 400, "HTTP/1.0 has no Transfer-Encoding");
        }
        if (slice_equal_nocase(seen->coding, SLICE("chunked"))) {
            r->body = HTTP_BODY_CHUNKED;
            return STEP_GOOD;
        }
        return is_token(seen->coding)
                   ? refuse(p, 501, "the only transfer coding known here is chunked")
                   : refuse(p, 400, "Transfer-Encoding must be chunked and nothing else");
    }
    if (seen->lengths > 0) {
        if (seen->length.len > 19 ||
            !number_parse_u64(seen->length, UINT64_MAX, true, &r->content_length)) {
            return refuse(p, 400, "Content-Length is not a number of 1 to 19 digits");
        }
        r->body = HTTP_BODY_LENGTH;
    }
    return STEP_GOOD;
}

/* What can only be judged once all headers are known. */
static int check_whole(struct parser *p)
{
    struct http_request *r = p->request;

    if (p->seen.hosts == 0 && r->minor_version > 0) {
        return refuse(p, 400, "there is no Host header");
    }
    r->keep_alive = !p->seen.close && (r->minor_version > 0 || p->seen.keep_alive);
    return decide_body(p);
}

/* What is over its cap when a head of the greatest size has no end. */
static int refuse_long(struct parser *p)
{
    if (p->request->method_token.ptr == NULL) {
        return refuse(p, 400, "the request does not begin with a method and a space");
    }
    return refuse(p, 431, "the request line and headers are longer than 16 KiB");
}

static int take_head(struct parser *p)
{
    int step = STEP_GOOD;

    if (p->at < p->end && (*p->at == '\r' || *p->at == '\n')) {
        step = take_line_end(p);
    }
    if (step == STEP_GOOD) {
        step = take_request_line(p);
    }
    if (step == STEP_GOOD) {
        step = take_headers(p);
    }
    if (step == STEP_GOOD) {
        step = check_whole(p);
    }
    return step;
}

/* Whether the end of the head, or something that is certainly wrong, is in what has come since the
 * last look. A line feed that ends an empty line is the end; one without its CR is wrong. */
static bool has_end(struct slice input, size_t scanned)
{
    const char *at = input.ptr + scanned;
    const char *end = input.ptr + input.len;

    while (at < end) {
        const char *feed = memchr(at, '\n', (size_t)(end - at));

        if (feed == NULL) {
            return false;
        }
        /* At the very start this is the empty line that may precede a request. */
        if (feed - input.ptr >= 3 && feed[-1] == '\r' && feed[-2] == '\n') {
            return true;
        }
        if (feed == input.ptr || feed[-1] != '\r') {
            return true;
        }
        at = feed + 1;
    }
    return false;
}

long http_request_parse(struct slice input, size_t *scanned, struct http_request *ret_request,
                        struct http_refusal *ret_refusal)
{
    struct parser p = {.at = input.ptr, .request = ret_request, .refusal = ret_refusal};
    bool at_cap = input.len >= HTTP_HEAD_BYTES_MAX;
    int step;

    assert(*scanned <= input.len);
    if (input.len == 0 || (*scanned > 0 && !at_cap && !has_end(input, *scanned))) {
        *scanned = input.len;
        return 0;
    }
    p.end = input.ptr + (at_cap ? HTTP_HEAD_BYTES_MAX : input.len);
    ret_request->method_token = (struct slice){NULL, 0};
    ret_request->body = HTTP_BODY_NONE;
    ret_request->content_length = 0;
    ret_request->keep_alive = false;
    ret_request->expect_continue = false;
    ret_request->header_count = 0;
    step = take_head(&p);
    if (step == STEP_MORE && at_cap) {
        step = refuse_long(&p);
    }
    if (step == STEP_REFUSED) {
        return ERR_INVALID;
    }
    *scanned = step == STEP_MORE ? input.len : 0;
    return step == STEP_MORE ? 0 : p.at - input.ptr;
}

struct slice http_request_header(const struct http_request *r, struct slice name, size_t *ret_count)
{
    struct slice value = {NULL, 0};
    size_t count = 0;

    for (size_t i = 0; i < r->header_count; i++) {
        const struct http_header *h = &r->headers[i];

        if (h->name.len == name.len && slice_equal_nocase(h->name, name)) {
            if (count++ == 0) {
                value = h->value;
            }
        }
    }
    if (ret_count != NULL) {
        *ret_count = count;
    }
    return value;
}

/* `part`, which lies within `bytes`, at the same place of `copy`. */
static struct slice rebase(struct slice part, struct slice bytes, const char *copy)
{
    uintptr_t at = (uintptr_t)part.ptr - (uintptr_t)bytes.ptr;

    assert(at <= bytes.len);
    assert(part.len <= bytes.len - at);
    return (struct slice){copy + at, part.len};
}

void http_request_copy(const struct http_request *r, struct slice bytes, char *copy,
                       struct http_request *ret_request)
{
    size_t used = offsetof(struct http_request, headers) + r->header_count * sizeof(r->headers[0]);

    memcpy(copy, bytes.ptr, bytes.len);
    memcpy(ret_request, r, used); /* most of the table is not in use */
    ret_request->method_token = rebase(r->method_token, bytes, copy);
    ret_request->target = rebase(r->target, bytes, copy);
    for (size_t i = 0; i < r->header_count; i++) {
        ret_request->headers[i].name = rebase(r->headers[i].name, bytes, copy);
        ret_request->headers[i].value = rebase(r->headers[i].value, bytes, copy);
    }
}

void http_target_split(struct slice target, struct slice *ret_path, struct slice *ret_query)
{
    const char *mark = target.len == 0 ? NULL : memchr(target.ptr, '?', target.len);

    if (mark == NULL) {
        *ret_path = target;
        *ret_query = (struct slice){NULL, 0};
        return;
    }
    *ret_query = (struct slice){mark + 1, (size_t)(target.ptr + target.len - mark - 1)};
    /* An absolute form without a path means the root (RFC 9112 section 3.2.1). */
    *ret_path = mark == target.ptr ? SLICE("/")
                                   : (struct slice){target.ptr, (size_t)(mark - target.ptr)};
}

/* The value of a hex digit, or 16. */
static unsigned hex_value(char c)
{
    unsigned digit = (unsigned)(unsigned char)c - '0';
    unsigned letter = ((unsigned)(unsigned char)c | 0x20u) - 'a';

    return digit <= 9 ? digit : letter <= 5 ? letter + 10 : 16;
}

long http_percent_decode(struct slice in, char *out)
{
    char *to = out;

    for (size_t i = 0; i < in.len; i++) {
        unsigned high;
        unsigned low;

        if (in.ptr[i] != '%') {
            *to++ = in.ptr[i];
            continue;
        }
        if (in.len - i < 3) {
            return ERR_INVALID;
        }
        high = hex_value(in.ptr[i + 1]);
        low = hex_value(in.ptr[i + 2]);
        if (high > 15 || low > 15) {
            return ERR_INVALID;
        }
        *to++ = (char)(high << 4 | low);
        i += 2;
    }
    return to - out;
}

bool http_query_next(struct slice *rest, struct slice *ret_name, struct slice *ret_value)
{
    struct slice part;

    while (slice_split(rest, '&', &part)) {
        if (part.len > 0) {
            (void)slice_split(&part, '=', ret_name); /* a part is not empty, so there is a name */
            *ret_value = part;
            return true;
        }
    }
    return false;
}

/* Takes an entity tag off the front of *rest, without W/ but with its quotes; false when there is
 * none (RFC 9110 section 8.8.3). */
static bool take_etag(struct slice *rest, struct slice *ret_tag)
{
    size_t start = slice_starts_with(*rest, SLICE("W/")) ? 2 : 0;
    size_t at = start + 1;

    if (rest->len <= start || rest->ptr[start] != '"') {
        return false;
    }
    while (at < rest->len && rest->ptr[at] != '"') {
        at++;
    }
    if (at == rest->len) {
        return false;
    }
    *ret_tag = (struct slice){rest->ptr + start, at + 1 - start};
    *rest = (struct slice){rest->ptr + at + 1, rest->len - at - 1};
    return true;
}

bool http_etag_matches(struct slice if_none_match, struct slice etag)
{
    struct slice rest = slice_trim(if_none_match);
    struct slice wanted;
    struct slice tag;

    if (slice_equal(rest, SLICE("*"))) {
        return true;
    }
    if (!take_etag(&etag, &wanted)) {
        return false;
    }
    /* A tag may hold commas, so the list cannot simply be split at them. */
    while (rest.len > 0) {
        if (rest.ptr[0] == ',') {
            rest = slice_trim((struct slice){rest.ptr + 1, rest.len - 1});
            continue;
        }
        if (!take_etag(&rest, &tag)) {
            return false;
        }
        if (slice_equal(tag, wanted)) {
            return true;
        }
        rest = slice_trim(rest);
        if (rest.len > 0 && rest.ptr[0] != ',') {
            return false;
        }
    }
    return false;
}
