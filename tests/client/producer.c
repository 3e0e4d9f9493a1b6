/* A producer in a program of its own, for the end-to-end tests: it uses what arbe/producer.h has
 * and nothing else.
 *
 *   producer BASE_URL NAME ID [OPTION=VALUE ...]
 *
 * epoch=N claim=0|1 replay=0|1 batch=MESSAGES bytes=N linger=MS flight=N queued=BYTES type=TYPE
 * text=0|1 pad=BYTES retries=N delay=MS max_delay=MS request=MS
 *
 * Reads commands from stdin, a line each, and answers each with a JSON object on a line of stdout:
 *
 *   append COUNT    so many messages: {"p":ID,"n":0,...} and on, or "ID-0;" (text=1)
 *   flush
 *   close           with a last message
 *   end             close without one
 *
 * A failure for good is told as {"failed":CODE,...}. SIGUSR1 aborts the producer. */
#include "client/program.h"

#include <arbe/producer.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct stream_producer *producer;

struct job {
    const char *id;
    int json;
    int pad;
    long long given; /* messages */
};

static void on_signal(int number)
{
    (void)number;
    stream_producer_abort(producer);
}

static void on_failed(void *context, uint64_t first_lost, const struct stream_error *error)
{
    (void)context;
    printf("{\"failed\":\"%s\",\"first_lost\":%llu,\"unknown\":%d}\n",
           stream_error_name(error->code), (unsigned long long)first_lost, error->outcome_unknown);
    (void)fflush(stdout);
}

static void tell(int code, const struct stream_error *error, const struct stream_info *info)
{
    uint64_t appended;
    uint64_t stored;
    int64_t epoch;

    stream_producer_counts(producer, &appended, &stored, &epoch);
    printf("{\"code\":\"%s\",\"appended\":%llu,\"stored\":%llu,\"epoch\":%lld,",
           stream_error_name((enum stream_error_code)code), (unsigned long long)appended,
           (unsigned long long)stored, (long long)epoch);
    if (code != STREAM_OK) {
        printf("\"current\":%lld,\"expected\":%lld,\"status\":%d,", error->current_epoch,
               error->expected_seq, error->status);
    }
    printf("\"next\":\"%s\",\"closed\":%d,\"message\":\"", info->next_offset, info->closed);
    for (const char *at = error->message; *at; at++) {
        if (*at == '"' || *at == '\\') {
            putchar('\\');
        }
        putchar(*at);
    }
    printf("\"}\n");
    (void)fflush(stdout);
}

/* A message with its number. */
static int compose(struct job *job, char *out, size_t size)
{
    if (!job->json) {
        return snprintf(out, size, "%s-%lld;", job->id, job->given++);
    }
    return snprintf(out, size, "{\"p\":\"%s\",\"n\":%lld,\"pad\":\"%0*d\"}", job->id, job->given++,
                    job->pad, 0);
}

static int append(struct job *job, long long count, struct stream_error *error)
{
    char message[70000];
    int code = STREAM_OK;

    for (long long i = 0; code == STREAM_OK && i < count; i++) {
        int len = compose(job, message, sizeof(message));
        code = stream_producer_append(producer, message, (size_t)len, error);
        job->given -= code != STREAM_OK;
    }
    return code;
}

static int run(struct job *job, const char *line, struct stream_info *info,
               struct stream_error *error)
{
    char message[70000];

    if (strncmp(line, "append ", 7) == 0) {
        return append(job, strtoll(line + 7, NULL, 10), error);
    }
    if (strcmp(line, "flush\n") == 0) {
        return stream_producer_flush(producer, info, error);
    }
    if (strcmp(line, "close\n") == 0) {
        int len = compose(job, message, sizeof(message));
        return stream_producer_close(producer, message, (size_t)len, info, error);
    }
    return stream_producer_close(producer, NULL, 0, info, error);
}

static int work(struct job *job)
{
    char line[256];

    while (fgets(line, sizeof(line), stdin)) {
        struct stream_error error = {0};
        struct stream_info info = {0};
        int code = run(job, line, &info, &error);
        tell(code, &error, &info);
    }
    return 0;
}

static int open_producer(char **argv, struct stream_client *client)
{
    struct stream_producer_options options;
    struct stream_error error;

    stream_producer_options_init(&options);
    options.epoch = number("epoch", 0);
    options.auto_claim = number("claim", 0);
    options.replay = number("replay", 0);
    options.max_batch_messages = number("batch", options.max_batch_messages);
    options.max_batch_bytes = (size_t)number("bytes", (int)options.max_batch_bytes);
    options.linger_ms = number("linger", options.linger_ms);
    options.max_in_flight = number("flight", options.max_in_flight);
    options.max_queued_bytes = (size_t)number("queued", (int)options.max_queued_bytes);
    options.content_type = option("type", NULL);
    options.failed = on_failed;
    if (stream_producer_new(client, argv[2], argv[3], &options, &producer, &error)) {
        (void)fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct stream_client_options options;
    struct stream_client *client;
    struct stream_error error;

    if (argc < 4) {
        (void)fprintf(stderr, "usage: producer BASE_URL NAME ID [OPTION=VALUE ...]\n");
        return 2;
    }
    option_words = argv + 4;
    option_count = argc - 4;
    stream_client_options_init(&options);
    options.retry.max_retries = number("retries", STREAM_RETRY_FOREVER);
    options.retry.initial_delay_ms = number("delay", 5);
    options.retry.max_delay_ms = number("max_delay", 50);
    options.request_timeout_ms = number("request", options.request_timeout_ms);
    if (stream_client_new(argv[1], &options, &client, &error)) {
        (void)fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    struct job job = {
        .id = argv[3],
        .json = number("text", 0) == 0,
        .pad = number("pad", 1),
    };
    int code = open_producer(argv, client);
    if (code == 0) {
        (void)signal(SIGUSR1, on_signal);
        code = work(&job);
        stream_producer_free(producer);
    }
    stream_client_free(client);
    return code;
}
