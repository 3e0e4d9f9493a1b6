/* Appends each line of standard input as a JSON string, exactly once and in order, although the
 * server may be killed and started anew meanwhile; then closes the stream.
 *
 *   cc produce.c $(pkg-config --cflags --libs arbe) -o produce
 *   seq 1 100000 | ./produce http://127.0.0.1:4437/v1/stream/ numbers */
#include <arbe/producer.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

/* A JSON string of what is no control character; the caller frees it. */
static char *quote(const char *line, size_t len)
{
    char *text = malloc(2 * len + 3);
    char *end = text;

    if (text == NULL) {
        return NULL;
    }
    *end++ = '"';
    for (size_t i = 0; i < len; i++) {
        if (line[i] == '"' || line[i] == '\\') {
            *end++ = '\\';
        }
        if ((unsigned char)line[i] >= 0x20) {
            *end++ = line[i];
        }
    }
    *end++ = '"';
    *end = '\0';
    return text;
}

static int produce(struct stream_producer *producer, struct stream_error *error)
{
    char *line = NULL;
    size_t size = 0;
    ssize_t len;
    int rc = STREAM_OK;

    while (rc == STREAM_OK && (len = getline(&line, &size, stdin)) > 0) {
        char *message = quote(line, (size_t)len);

        if (message == NULL) {
            break;
        }
        rc = stream_producer_append(producer, message, strlen(message), error);
        free(message);
    }
    free(line);
    return rc == STREAM_OK ? stream_producer_close(producer, NULL, 0, NULL, error) : rc;
}

int main(int argc, char **argv)
{
    const struct stream_create_options create = {.content_type = "application/json"};
    struct stream_client_options options;
    struct stream_producer_options how;
    struct stream_client *client = NULL;
    struct stream_producer *producer = NULL;
    struct stream_error error;
    uint64_t stored = 0;
    int rc;

    if (argc != 3) {
        fprintf(stderr, "usage: produce URL NAME\n");
        return 2;
    }
    stream_client_options_init(&options);
    options.retry.max_retries = STREAM_RETRY_FOREVER;
    stream_producer_options_init(&how);
    how.auto_claim = 1; /* nothing is kept from one start to the next */
    rc = stream_client_new(argv[1], &options, &client, &error);
    if (rc == STREAM_OK) {
        rc = stream_client_create(client, argv[2], &create, NULL, &error);
    }
    if (rc == STREAM_OK) {
        rc = stream_producer_new(client, argv[2], "produce", &how, &producer, &error);
    }
    if (rc == STREAM_OK) {
        rc = produce(producer, &error);
        stream_producer_counts(producer, NULL, &stored, NULL);
        fprintf(stderr, "%llu messages are stored\n", (unsigned long long)stored);
    }
    if (rc != STREAM_OK) {
        fprintf(stderr, "produce: %s\n", error.message);
    }
    stream_producer_free(producer);
    stream_client_free(client);
    return rc == STREAM_OK ? 0 : 1;
}
