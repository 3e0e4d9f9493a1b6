/* Prints what changes on the board of a T3 Code server, through all breaks of the connection, until
 * the server refuses. The token is the only line of a file, which is read before each connection,
 * or T3_TOKEN of the environment; `arbe t3 login` brings one.
 *
 *   cc t3_board.c $(pkg-config --cflags --libs arbe) -o t3_board
 *   ./t3_board http://127.0.0.1:3773 ~/.config/arbe/t3-tokens/mac */
#include <arbe/t3_board.h>
#include <arbe/t3_reader.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Called before each connection; `context` is the name of the file, or NULL. */
static int read_token(void *context, char token[T3_READER_TOKEN_BYTES],
                      char message[T3_RPC_MESSAGE_BYTES])
{
    const char *name = context;
    const char *set = getenv("T3_TOKEN");
    FILE *file;

    if (name == NULL) {
        snprintf(token, T3_READER_TOKEN_BYTES, "%s", set != NULL ? set : "");
        return 0;
    }
    file = fopen(name, "r");
    if (file == NULL) {
        snprintf(message, T3_RPC_MESSAGE_BYTES, "cannot read %s: %s", name, strerror(errno));
        return -1;
    }
    if (fgets(token, T3_READER_TOKEN_BYTES, file) != NULL) {
        token[strcspn(token, "\r\n")] = '\0';
    }
    fclose(file);
    return 0;
}

/* Titles and snippets are other people's: no control character of theirs reaches a terminal. */
static void print_text(struct t3_board_text text)
{
    size_t i;

    for (i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.data[i];

        putchar(byte < ' ' || byte == 127 ? ' ' : byte);
    }
}

static void on_change(void *context, const struct t3_board_row *row, int gone)
{
    (void)context;
    printf("%s\t", gone ? "gone" : "row");
    print_text(row->thread_id);
    printf("\t");
    print_text(row->state); /* a text that is absent has no bytes */
    printf("\t");
    print_text(row->title);
    printf("\t");
    print_text(row->last_message_snippet);
    printf("\n");
}

/* Folds a chunk and acknowledges it: 0, or -1 and a sentence when it is of no use. */
static int take_chunk(struct t3_reader *reader, struct t3_board *board,
                      const struct t3_reader_event *event)
{
    struct t3_board_error error;
    int rc = t3_board_apply(board, "t3", event->json, event->len, on_change, NULL, NULL, &error);

    fflush(stdout);
    if (rc == T3_BOARD_OK || rc == T3_BOARD_ERROR_LIMIT) { /* the rows there is room for */
        t3_reader_ack(reader, event->id);
        return 0;
    }
    fprintf(stderr, "t3_board: %s\n", error.message);
    return -1;
}

/* Returns when there is nothing more to come. */
static void follow(struct t3_reader *reader, struct t3_board *board)
{
    struct t3_reader_event event;

    while (t3_reader_next(reader, -1, &event)) {
        if (event.kind == T3_READER_EVENT_CHUNK) {
            if (take_chunk(reader, board, &event) != 0) {
                return;
            }
        } else if (event.kind == T3_READER_EVENT_ERROR || event.state == T3_READER_REFUSED) {
            fprintf(stderr, "t3_board: %s\n", event.error.message); /* would wait for ever */
            return;
        } else {
            fprintf(stderr, "%s%s%s\n", t3_reader_state_name(event.state),
                    event.error.message[0] != '\0' ? ": " : "", event.error.message);
        }
    }
}

int main(int argc, char **argv)
{
    struct t3_reader_options options;
    struct t3_reader *reader = NULL;
    struct t3_board *board = NULL;
    struct t3_board_error board_error;
    struct t3_rpc_error error;
    uint64_t id;

    if (argc != 2 && argc != 3) {
        fprintf(stderr, "usage: t3_board URL [TOKEN-FILE]\n");
        return 2;
    }
    t3_reader_options_init(&options);
    options.token = read_token;
    options.context = argc == 3 ? argv[2] : NULL;
    if (t3_board_new(NULL, &board, &board_error) != T3_BOARD_OK) {
        fprintf(stderr, "t3_board: %s\n", board_error.message);
    } else if (t3_reader_new(argv[1], &options, &reader, &error) != T3_RPC_OK ||
               t3_reader_subscribe(reader, "orchestration.subscribeShell", NULL, &id, &error) !=
                   T3_RPC_OK) {
        fprintf(stderr, "t3_board: %s\n", error.message);
    } else {
        follow(reader, board);
    }
    t3_reader_free(reader);
    t3_board_free(board);
    return 1; /* only what goes wrong ends it */
}
