/* GET /v1/stream/__ds/jwks.json: the public keys of webhooks (PROTOCOL.md 6.5). */
#include "serve/control.h"

#include "serve/keys.h"
#include "serve/problem.h"

void control_jwks_answer(struct exchange *x)
{
    char memory[KEYS_JWKS_BYTES_MAX + 1];
    struct buf document;

    buf_init_fixed(&document, memory, sizeof(memory));
    keys_append_jwks(x->worker->server->keys, &document);
    if (document.failed) {
        problem_answer_code(x, ERR_NOMEM, &(struct errmsg){{0}});
        return;
    }
    control_answer(x, 200, SLICE("application/jwk-set+json"), SLICE("public, max-age=300"),
                   buf_slice(&document));
}
