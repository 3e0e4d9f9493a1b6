/* The title is the status's reason phrase, which is what RFC 9457 section 4.2.1 wants of
 * about:blank. */
#include "serve/problem.h"

#include "base/json.h"
#include "serve/mount.h"
#include "stream/refusal.h"
#include "stream/subscription_view.h"

#define DOCUMENT_BYTES_MAX (4 * KIB)

void problem_format(struct buf *out, int status, struct slice detail)
{
    buf_append_format(out, "{\"type\":\"about:blank\",\"title\":\"%s\",\"status\":%d,\"detail\":",
                      http_status_reason(status), status);
    json_append_string(out, detail);
    buf_append(out, SLICE("}\n"));
}

/* What refusals of HTTP itself are called there: as what serves the request would call them, where
 * it has a word for the status. */
static const char *control_code_of(int status)
{
    static const struct {
        int status;
        const char *code;
    } codes[] = {
        {401, "UNAUTHORIZED"}, /* the secret; of tokens others speak */
        {405, "METHOD_NOT_ALLOWED"},
        {408, "REQUEST_TIMEOUT"},
#define X(name, number) {number, #name},
        SUBSCRIPTION_ERROR_LIST(X)
#undef X
    };

    for (size_t i = 0; i < ARRAY_COUNT(codes); i++) {
        if (codes[i].status == status) {
            return codes[i].code;
        }
    }
    return "INTERNAL_ERROR";
}

void problem_format_control(struct buf *out, int status, struct slice message)
{
    buf_append_format(out, "{\"error\":{\"code\":\"%s\",\"message\":", control_code_of(status));
    json_append_string(out, message);
    buf_append(out, SLICE("}}\n"));
}

/* Whether a mount's refusals are composed by the mount. */
static bool is_guest(const struct exchange *x)
{
    return x->mount != NULL && !x->as_stream;
}

void problem_begin(struct exchange *x, int status)
{
    reply_begin(x, status, REPLY_NO_STORE);
    reply_literal(x, SLICE("Content-Type"),
                  x->control || is_guest(x) ? SLICE("application/json")
                                            : SLICE("application/problem+json"));
}

static void format(struct buf *out, const struct exchange *x, int status, struct slice detail)
{
    if (is_guest(x)) {
        x->mount->format_problem(out, status, x->worker->draining, detail);
    } else if (x->control) {
        problem_format_control(out, status, detail);
    } else {
        problem_format(out, status, detail);
    }
}

/* The document, in the caller's memory. */
static struct slice compose(char memory[static DOCUMENT_BYTES_MAX], const struct exchange *x,
                            int status, struct slice detail)
{
    struct buf document;

    buf_init_fixed(&document, memory, DOCUMENT_BYTES_MAX);
    format(&document, x, status, detail);
    if (document.failed) {
        /* A sentence that does not fit is replaced by the plain one. */
        buf_init_fixed(&document, memory, DOCUMENT_BYTES_MAX);
        format(&document, x, status, slice_of(http_status_reason(status)));
    }
    return buf_slice(&document);
}

void problem_send(struct exchange *x, int status, struct slice detail)
{
    char memory[DOCUMENT_BYTES_MAX];

    reply_send(x, compose(memory, x, status, detail));
}

struct slice problem_unasked(struct worker *w, int status, struct slice detail)
{
    struct exchange x = {.worker = w, .body = {.whole = true}};
    char memory[DOCUMENT_BYTES_MAX];
    struct slice document = compose(memory, &x, status, detail);

    problem_begin(&x, status);
    reply_end_head(&x, document.len);
    buf_append(&w->out, document);
    return w->out.failed ? (struct slice){NULL, 0} : buf_slice(&w->out);
}

void problem_answer(struct exchange *x, int status, struct slice detail)
{
    problem_begin(x, status);
    problem_send(x, status, detail);
}

void problem_note(struct exchange *x, int code)
{
    tally_error(&x->worker->tally, code);
    x->outcome_unknown = code == ERR_UNKNOWN;
}

void problem_answer_code(struct exchange *x, int code, const struct errmsg *msg)
{
    problem_note(x, code);
    problem_answer(x, err_status(code), refusal_detail(code, msg));
}
