/* The idempotent producer. One that is told single messages lives on, so that the next command
 * goes on from there; a batch has a producer of its own. */
#include "client/adapter/handlers.h"

#include "base/json_value.h"

#include <stdio.h>

/* Drivers give the same messages again, to see them counted once. */
static struct stream_producer *open_producer(struct session *s, const struct command *c,
                                             struct reply *r)
{
    int in_flight = (int)command_number(c, "maxInFlight", 1);
    struct stream_producer_options options;
    struct stream_producer *producer;
    struct stream_error error;

    stream_producer_options_init(&options);
    options.epoch = (int64_t)command_number(c, "epoch", 0);
    options.auto_claim = command_flag(c, "autoClaim");
    options.replay = 1;
    options.max_in_flight = in_flight;
    if (in_flight > 1) {
        options.max_batch_messages = 1; /* else there would be but one batch */
        options.linger_ms = 0;
    }
    if (stream_producer_new(s->client, session_name(command_text(c, "path")),
                            command_text(c, "producerId"), &options, &producer,
                            &error) != STREAM_OK) {
        reply_error(r, &error, false);
        return NULL;
    }
    return producer;
}

static void make_key(const struct command *c, char out[1024])
{
    (void)snprintf(out, 1024, "%s %.0f %s", command_text(c, "path"), command_number(c, "epoch", 0),
                   command_text(c, "producerId"));
}

/* NULL with a reply when it cannot be made. */
static struct stream_producer *kept_producer(struct session *s, const struct command *c,
                                             struct reply *r)
{
    char key[1024];

    make_key(c, key);
    struct kept_producer *kept = session_find_producer(s, key);

    if (kept != NULL) {
        return kept->producer;
    }
    struct stream_producer *producer = open_producer(s, c, r);

    if (producer != NULL) {
        session_keep_producer(s, key, producer);
    }
    return producer;
}

static void reply_stored(struct reply *r, const struct stream_info *info)
{
    reply_success(r);
    reply_number(r, "status", 200);
    reply_text(r, "offset", info->next_offset);
    reply_flag(r, "duplicate", info->duplicate != 0);
    if (info->producer_seq >= 0) {
        reply_number(r, "producerSeq", info->producer_seq);
    }
}

void handle_produce(struct session *s, const struct command *c, struct reply *r)
{
    struct stream_producer *producer = kept_producer(s, c, r);
    struct slice data = command_bytes(c, "data");
    struct stream_info info;
    struct stream_error error;

    if (producer == NULL) {
        return;
    }
    if (stream_producer_append(producer, data.ptr, data.len, &error) != STREAM_OK ||
        stream_producer_flush(producer, &info, &error) != STREAM_OK) {
        reply_error(r, &error, false);
        return;
    }
    reply_stored(r, &info);
}

static int append_items(struct stream_producer *producer, const struct command *c,
                        struct stream_error *ret_error)
{
    struct slice items;
    struct slice item;
    struct json_walk walk;
    int code = STREAM_OK;

    if (!command_member(c, "items", &items)) {
        return STREAM_OK;
    }
    json_walk_begin(&walk, items);
    while (code == STREAM_OK && json_walk_element(&walk, &item)) {
        size_t len = 0;
        const char *text = command_decode(c, item, &len);

        code = stream_producer_append(producer, text, len, ret_error);
    }
    return code;
}

void handle_produce_batch(struct session *s, const struct command *c, struct reply *r)
{
    struct stream_producer *producer = open_producer(s, c, r);
    struct stream_info info;
    struct stream_error error;

    if (producer == NULL) {
        return;
    }
    if (append_items(producer, c, &error) != STREAM_OK ||
        stream_producer_flush(producer, &info, &error) != STREAM_OK) {
        reply_error(r, &error, false);
    } else {
        reply_stored(r, &info);
    }
    stream_producer_free(producer);
}

void handle_produce_close(struct session *s, const struct command *c, struct reply *r)
{
    struct stream_producer *producer = kept_producer(s, c, r);
    struct slice data = command_bytes(c, "data");
    struct stream_info info;
    struct stream_error error;

    if (producer == NULL) {
        return;
    }
    if (stream_producer_close(producer, data.ptr, data.len, &info, &error) != STREAM_OK) {
        reply_error(r, &error, false);
        return;
    }
    reply_success(r);
    reply_number(r, "status", 200);
    reply_text(r, "finalOffset", info.next_offset);
}

/* What is not flushed is stored first; the stream stays open. */
void handle_detach(struct session *s, const struct command *c, struct reply *r)
{
    char key[1024];
    struct stream_error error;
    int code = STREAM_OK;

    make_key(c, key);
    struct kept_producer *kept = session_find_producer(s, key);

    if (kept != NULL) {
        code = stream_producer_flush(kept->producer, NULL, &error);
        session_drop_producer(s, kept);
    }
    if (code != STREAM_OK) {
        reply_error(r, &error, false);
        return;
    }
    reply_success(r);
    reply_number(r, "status", 200);
}
