/* One thread, one poll(): follows a stream and appends what is typed, by the calls that do not
 * block. Any event loop can do the same with stream_client_fd.
 *
 *   cc event_loop.c $(pkg-config --cflags --libs arbe) -o event_loop
 *   ./event_loop http://127.0.0.1:4437/v1/stream/ chat */
#include <arbe/stream_client.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int pending; /* appends under way */

/* Runs inside stream_client_step; `context` is the text, which had to live until now. */
static void on_appended(void *context, int code, const struct stream_info *info,
                        const struct stream_error *error)
{
    (void)info;
    if (code != STREAM_OK) {
        fprintf(stderr, "event_loop: %s\n", error->message);
    }
    free(context);
    pending--;
}

/* Appends what can be read from stdin. Returns 0 at its end. */
static int append_typed(struct stream_client *client, const char *name)
{
    static const struct stream_append_options options = {.content_type = "text/plain"};
    struct stream_error error;
    char *text = malloc(4096);
    ssize_t len = text == NULL ? 0 : read(STDIN_FILENO, text, 4096);

    if (len > 0 && stream_client_start_append(client, name, text, (size_t)len, &options,
                                              on_appended, text, &error) == STREAM_OK) {
        pending++;
        return 1;
    }
    free(text);
    return 0;
}

int main(int argc, char **argv)
{
    const struct stream_create_options create = {.content_type = "text/plain"};
    const struct stream_read_options options = {.live = STREAM_SSE, .unit = STREAM_BYTES};
    struct stream_client *client;
    struct stream_reader *reader;
    struct stream_piece_view piece;
    struct stream_error error;
    int rc = STREAM_WAIT;
    int typing = 1;

    if (argc != 3) {
        fprintf(stderr, "usage: event_loop URL NAME\n");
        return 2;
    }
    if (stream_client_new(argv[1], NULL, &client, &error) != STREAM_OK ||
        stream_client_create(client, argv[2], &create, NULL, &error) != STREAM_OK ||
        stream_client_read(client, argv[2], &options, &reader, &error) != STREAM_OK) {
        fprintf(stderr, "event_loop: %s\n", error.message);
        return 1; /* ending frees the rest */
    }
    while (rc == STREAM_OK || rc == STREAM_WAIT) {
        struct pollfd fds[] = {{stream_client_fd(client), POLLIN, 0},
                               {typing ? STDIN_FILENO : -1, POLLIN, 0}};

        if (rc == STREAM_WAIT && poll(fds, 2, -1) > 0 && fds[1].revents != 0) {
            typing = append_typed(client, argv[2]);
        }
        stream_client_step(client);
        rc = stream_reader_step(reader, &piece, &error);
        if (rc == STREAM_OK && piece.len > 0) {
            fwrite(piece.data, 1, piece.len, stdout);
            fflush(stdout);
        }
    }
    if (rc != STREAM_END) {
        fprintf(stderr, "event_loop: %s\n", error.message);
    }
    stream_reader_free(reader);
    stream_client_free(client);
    return rc == STREAM_END && pending == 0 ? 0 : 1;
}
