/* Lines are kept as they came until the last is there, since Connection, which says what else is
 * only for this hop, may stand anywhere. */
#include "app/upstream_head.h"

#include "base/limits.h"
#include "base/number.h"

void upstream_head_init(struct upstream_head *h, struct slice secret)
{
    *h = (struct upstream_head){.secret = secret};
    buf_init(&h->lines, UPSTREAM_HEAD_BYTES_MAX);
    /* A status line of ours may be a little longer. */
    buf_init(&h->out, UPSTREAM_HEAD_BYTES_MAX + 64);
}

void upstream_head_finish(struct upstream_head *h)
{
    buf_finish(&h->lines);
    buf_finish(&h->out);
}

bool upstream_head_has_body(const struct upstream_head *h)
{
    return h->status != 204 && h->status != 304;
}

/* Without CRLF or LF. */
static struct slice without_end(struct slice line)
{
    while (line.len > 0 && (line.ptr[line.len - 1] == '\n' || line.ptr[line.len - 1] == '\r')) {
        line.len--;
    }
    return line;
}

/* "HTTP/1.1 200 OK". False when it is none. */
static bool parse_status(struct slice line, int *ret_status, struct slice *ret_reason)
{
    struct slice version;
    struct slice code;
    uint64_t status = 0;

    if (!slice_starts_with(line, SLICE("HTTP/1.")) || !slice_split(&line, ' ', &version) ||
        !slice_split(&line, ' ', &code) || code.len != 3 ||
        !number_parse_u64(code, 599, false, &status) || status < 100) {
        return false;
    }
    *ret_status = (int)status;
    *ret_reason = line.ptr == NULL ? (struct slice){"", 0} : line;
    return true;
}

static bool is_token(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool good = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                    (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);

        if (!good) {
            return false;
        }
    }
    return text.len > 0;
}

/* No control characters but tabs. */
static bool is_value(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];

        if ((c < 0x20 && c != '\t') || c == 0x7f) {
            return false;
        }
    }
    return true;
}

/* Folded lines begin with a space, and are no field: RFC 9112 section 5.2 lets them be refused. */
static bool parse_field(struct slice line, struct slice *ret_name, struct slice *ret_value)
{
    if (!slice_split(&line, ':', ret_name) || line.ptr == NULL) {
        return false;
    }
    *ret_value = slice_trim(line);
    return is_token(*ret_name) && is_value(*ret_value);
}

static bool is_hop_by_hop(struct slice name)
{
    static const char *const names[] = {"Connection", "Keep-Alive",        "TE",
                                        "Trailer",    "Transfer-Encoding", "Upgrade"};

    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        if (slice_equal_nocase(name, slice_of(names[i]))) {
            return true;
        }
    }
    return name.len >= 6 && slice_equal_nocase((struct slice){name.ptr, 6}, SLICE("Proxy-"));
}

/* Steps through the fields behind the status line, which are good. */
static bool next_field(struct slice *rest, struct slice *ret_name, struct slice *ret_value)
{
    struct slice line;

    return slice_split(rest, '\n', &line) && line.len > 0 &&
           parse_field(without_end(line), ret_name, ret_value);
}

/* Whether a Connection field among them names it. */
static bool is_named(struct slice fields, struct slice wanted)
{
    struct slice name;
    struct slice value;
    struct slice option;

    while (next_field(&fields, &name, &value)) {
        if (!slice_equal_nocase(name, SLICE("Connection"))) {
            continue;
        }
        while (slice_split(&value, ',', &option)) {
            if (slice_equal_nocase(slice_trim(option), wanted)) {
                return true;
            }
        }
    }
    return false;
}

static bool holds(struct slice text, struct slice part)
{
    return part.len > 0 && text.len >= part.len &&
           memmem(text.ptr, text.len, part.ptr, part.len) != NULL;
}

/* Whether a client is to see it. Cookies of the other server would be set for this one's origin. */
static bool is_for_client(const struct upstream_head *h, struct slice fields, struct slice name,
                          struct slice value)
{
    if (slice_equal_nocase(name, SLICE("Content-Length"))) {
        return h->has_length && h->status != 204;
    }
    return !is_hop_by_hop(name) && !slice_equal_nocase(name, SLICE("Set-Cookie")) &&
           !holds(name, h->secret) && !holds(value, h->secret) && !is_named(fields, name);
}

/* What is said of the body's length. False when that could be read in two ways. */
static bool parse_framing(struct upstream_head *h, struct slice fields)
{
    struct slice name;
    struct slice value;
    unsigned lengths = 0;
    unsigned codings = 0;

    while (next_field(&fields, &name, &value)) {
        if (slice_equal_nocase(name, SLICE("Content-Length"))) {
            lengths++;
            if (!number_parse_u64(value, INT64_MAX, true, &h->length)) {
                return false;
            }
        } else if (slice_equal_nocase(name, SLICE("Transfer-Encoding"))) {
            codings++;
            if (!slice_equal_nocase(value, SLICE("chunked"))) {
                return false;
            }
        }
    }
    h->has_length = lengths == 1;
    return lengths + codings <= 1;
}

static bool fields_are_good(struct slice fields)
{
    struct slice line;
    struct slice name;
    struct slice value;

    while (slice_split(&fields, '\n', &line)) {
        if (line.len > 0 && !parse_field(without_end(line), &name, &value)) {
            return false;
        }
    }
    return true;
}

/* The head is there as a whole. */
static int finish(struct upstream_head *h)
{
    struct slice fields = buf_slice(&h->lines);
    struct slice line;
    struct slice reason;
    struct slice name;
    struct slice value;

    if (!slice_split(&fields, '\n', &line) ||
        !parse_status(without_end(line), &h->status, &reason) || !is_value(reason)) {
        return ERR_INVALID;
    }
    if (h->status < 200) {
        buf_clear(&h->lines); /* the answer itself follows */
        return 0;
    }
    if (!fields_are_good(fields) || !parse_framing(h, fields)) {
        return ERR_INVALID;
    }
    buf_append_format(&h->out, "HTTP/1.1 %d ", h->status);
    buf_append(&h->out, holds(reason, h->secret) ? (struct slice){NULL, 0} : reason);
    buf_append(&h->out, SLICE("\r\n"));
    for (struct slice rest = fields; next_field(&rest, &name, &value);) {
        if (is_for_client(h, fields, name, value)) {
            buf_append(&h->out, name);
            buf_append(&h->out, SLICE(": "));
            buf_append(&h->out, value);
            buf_append(&h->out, SLICE("\r\n"));
        }
    }
    buf_finish(&h->lines);
    h->whole = true;
    return h->out.failed ? ERR_NOMEM : 0;
}

int upstream_head_line(struct upstream_head *h, struct slice line)
{
    if (without_end(line).len == 0) {
        return finish(h);
    }
    if (line.len > UPSTREAM_HEAD_BYTES_MAX - h->lines.len) {
        return ERR_TOOBIG;
    }
    buf_append(&h->lines, line);
    return h->lines.failed ? ERR_NOMEM : 0;
}
