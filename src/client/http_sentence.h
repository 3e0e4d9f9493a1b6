/* What a server says in the body of a refusal, as one sentence. Pure. */
#ifndef ARBE_CLIENT_HTTP_SENTENCE_H
#define ARBE_CLIENT_HTTP_SENTENCE_H

#include "base/buf.h"

/* Appends the sentence in `body`, perhaps cut: `detail` or `title` of a problem document (RFC
 * 9457), `message` of {"error": {...}}, or of {"error": "..."} the text; of a text that is no JSON
 * the first line. Nothing for anything else, such as a page of HTML. */
void http_sentence(struct slice body, bool is_json, bool is_text, struct buf *out);

#endif
