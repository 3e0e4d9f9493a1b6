/* Any bytes as an answer: a head, and behind its empty line a body. The first byte picks the verb.
 * Every text of the result is NUL-terminated, the sentence of a refusal is one line of whole
 * characters, and the names of a listing are texts. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/limits.h"
#include "base/utf8.h"
#include "client/http_head.h"
#include "client/http_listing.h"
#include "client/http_sentence.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TERMINATED(text) assert(memchr((text), '\0', sizeof(text)) != NULL)

static void on_listed(struct call *call, struct slice name, const struct stream_info *info)
{
    assert(call->verb == CALL_LIST);
    assert(name.len < CALL_AFTER_BYTES && memchr(name.ptr, '\0', name.len) == NULL);
    TERMINATED(info->content_type);
    TERMINATED(info->next_offset);
    TERMINATED(info->expires_at);
}

/* Feeds the lines of the head; what is left is the body. */
static struct slice feed(struct http_head *head, struct call *call, struct slice rest)
{
    struct slice line;

    while (!head->whole && slice_split(&rest, '\n', &line)) {
        /* libcurl's lines come with their ends. */
        line.len += rest.ptr != NULL;
        if (!http_head_line(head, call, line)) {
            break;
        }
    }
    return rest;
}

static void check_result(const struct call_result *r)
{
    TERMINATED(r->info.next_offset);
    TERMINATED(r->info.content_type);
    TERMINATED(r->info.cursor);
    TERMINATED(r->info.etag);
    TERMINATED(r->info.expires_at);
    TERMINATED(r->after);
    TERMINATED(r->error.message);
    assert(r->info.ttl_seconds >= -1 && r->info.producer_seq >= -1);
    assert(r->info.producer_epoch >= -1 && r->error.expected_seq >= -1);
}

static void check_sentence(struct call *call, const struct http_head *head, struct slice body)
{
    struct buf sentence;

    buf_init(&sentence, CLIENT_SENTENCE_BYTES);
    http_sentence(body, head->is_json, head->is_text, &sentence);
    call_fail_status(call, head->status, head->has_retry_after, buf_slice(&sentence));
    buf_finish(&sentence);

    struct slice message = slice_of(call->result.error.message);

    assert(call->result.error.code != STREAM_OK);
    assert(message.len < STREAM_ERROR_MESSAGE_BYTES && utf8_valid(message));
    for (size_t i = 0; i < message.len; i++) {
        assert((unsigned char)message.ptr[i] >= 0x20 && message.ptr[i] != 0x7f);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct http_head head = {0};
    struct call call = {.name = SLICE("a"), .body = SLICE("x"), .on_listed = on_listed};

    if (size == 0) {
        return 0;
    }
    call.verb = (enum call_verb)(data[0] % (CALL_LIST + 1));
    call_begin(&call);
    struct slice body = feed(&head, &call, (struct slice){(const char *)data + 1, size - 1});

    check_result(&call.result);
    long pause = http_head_retry_after(&head, 1000000000);

    assert(pause >= -1 && pause <= 1000000000);
    if (body.ptr == NULL) {
        return 0;
    }
    if (call.verb == CALL_LIST && head.status == 200) {
        http_listing(&call, body);
    } else if (head.status < 200 || head.status > 299) {
        check_sentence(&call, &head, body);
    }
    check_result(&call.result);
    return 0;
}
