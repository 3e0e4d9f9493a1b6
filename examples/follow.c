/* Follows a stream of JSON messages and prints each on a line, through all breaks of the
 * connection; an interrupt ends it at once. With an offset it goes on from there.
 *
 *   cc follow.c $(pkg-config --cflags --libs arbe) -o follow
 *   ./follow http://127.0.0.1:4437/v1/stream/ news */
#include <arbe/stream_client.h>

#include <signal.h>
#include <stdio.h>

static struct stream_client *client;

static void on_signal(int number)
{
    (void)number;
    stream_client_abort(client);
}

int main(int argc, char **argv)
{
    struct stream_client_options options;
    struct stream_read_options read = {.live = STREAM_AUTO, .unit = STREAM_MESSAGES};
    struct stream_reader *reader = NULL;
    struct stream_piece_view piece;
    struct stream_error error;
    int rc;

    if (argc != 3 && argc != 4) {
        fprintf(stderr, "usage: follow URL NAME [OFFSET]\n");
        return 2;
    }
    stream_client_options_init(&options);
    options.retry.max_retries = STREAM_RETRY_FOREVER; /* a server that is started anew is no end */
    read.offset = argc == 4 ? argv[3] : NULL;
    rc = stream_client_new(argv[1], &options, &client, &error);
    if (rc == STREAM_OK) {
        signal(SIGINT, on_signal);
        rc = stream_client_read(client, argv[2], &read, &reader, &error);
    }
    while (rc == STREAM_OK) {
        rc = stream_reader_next(reader, &piece, &error);
        if (rc == STREAM_OK && piece.len > 0) {
            printf("%.*s\n", (int)piece.len, (const char *)piece.data);
            fflush(stdout);
        }
    }
    if (rc != STREAM_END && rc != STREAM_ERROR_ABORTED) {
        fprintf(stderr, "follow: %s\n", error.message);
    }
    stream_reader_free(reader);
    signal(SIGINT, SIG_DFL); /* before the client is gone */
    stream_client_free(client);
    return rc == STREAM_END ? 0 : 1;
}
