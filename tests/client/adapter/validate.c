/* Options that make no sense are refused by the library before anything is sent. Its sentences name
 * options as C does; drivers look for their own names. */
#include "client/adapter/handlers.h"

#include "base/attr.h"

#include <stdio.h>

static const struct {
    const char *ours;
    const char *theirs;
} names[] = {
    {"max_retries", "maxRetries"},           {"initial_delay_ms", "initialDelayMs"},
    {"max_delay_ms", "maxDelayMs"},          {"max_batch_bytes", "maxBatchBytes"},
    {"max_batch_messages", "maxBatchItems"}, {"producer_id", "producerId"},
};

/* Replaces the first name that the sentence has, which is the one that it is about. */
static void translate(char message[STREAM_ERROR_MESSAGE_BYTES])
{
    char made[STREAM_ERROR_MESSAGE_BYTES * 2];
    const char *first = NULL;
    size_t which = 0;

    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        const char *at = strstr(message, names[i].ours);

        if (at != NULL && (first == NULL || at < first)) {
            first = at;
            which = i;
        }
    }
    if (first != NULL) {
        (void)snprintf(made, sizeof(made), "%.*s%s%s", (int)(first - message), message,
                       names[which].theirs, first + strlen(names[which].ours));
        made[STREAM_ERROR_MESSAGE_BYTES - 1] = '\0';
        memcpy(message, made, strlen(made) + 1);
    }
}

static int try_retry(struct session *s, const struct command *target,
                     struct stream_error *ret_error)
{
    struct stream_client_options options;
    struct stream_client *client = NULL;

    session_client_options(s, &options);
    struct stream_retry *retry = &options.retry;

    retry->max_retries = (int)command_number(target, "maxRetries", retry->max_retries);
    retry->initial_delay_ms = (int)command_number(target, "initialDelayMs",
                                                  retry->initial_delay_ms);
    retry->max_delay_ms = (int)command_number(target, "maxDelayMs", retry->max_delay_ms);
    retry->multiplier = command_number(target, "multiplier", retry->multiplier);
    int code = stream_client_new(s->base_url, &options, &client, ret_error);

    if (code == STREAM_OK) {
        stream_client_free(client);
    }
    return code;
}

/* Below 0 a size becomes one that no memory has, which is refused too; so it is said here. */
static int try_producer(struct session *s, const struct command *target,
                        struct stream_error *ret_error)
{
    const char *id = command_text(target, "producerId");
    struct stream_producer_options options;
    struct stream_producer *producer = NULL;

    stream_producer_options_init(&options);
    double bytes = command_number(target, "maxBatchBytes", (double)options.max_batch_bytes);

    options.epoch = (int64_t)command_number(target, "epoch", 0);
    options.max_batch_bytes = bytes < 0 ? 0 : (size_t)bytes;
    options.max_batch_messages = (int)command_number(target, "maxBatchItems",
                                                     options.max_batch_messages);
    int code = stream_producer_new(s->client, "validate", id != NULL ? id : "validate", &options,
                                   &producer, ret_error);

    if (code == STREAM_OK) {
        stream_producer_free(producer);
    }
    return code;
}

void handle_validate(struct session *s, const struct command *c, struct reply *r)
{
    struct command target = {.arena = c->arena};
    const char *what = command_object(c, "target", &target) ? command_text(&target, "target") : "";
    struct stream_error error;
    int code;

    if (what != NULL && strcmp(what, "retry-options") == 0) {
        code = try_retry(s, &target, &error);
    } else if (what != NULL && strcmp(what, "idempotent-producer") == 0) {
        code = try_producer(s, &target, &error);
    } else {
        reply_refusal(r, "NOT_SUPPORTED", "there is nothing of this name to validate");
        return;
    }
    if (code != STREAM_OK) {
        translate(error.message);
        reply_error(r, &error, false);
        return;
    }
    reply_success(r);
}
