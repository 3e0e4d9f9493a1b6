/* A reader in a program of its own, for the end-to-end tests: it uses what arbe/stream_client.h has
 * and nothing else, and tells on stdout, a JSON object a line, what comes.
 *
 *   reader BASE_URL NAME [OPTION=VALUE ...]
 *
 * live=catch-up|long-poll|sse|auto  unit=bytes|messages  offset=O  poll=MS
 * form=next|step|all (blocking, with poll(2), or stream_client_read_all)  max=BYTES (of form=all)
 * ask=1: each piece only after a line on stdin
 * check=words|numbers: nothing is told of pieces; bytes must be 8-byte numbers from 0 on, messages
 * must have "n" from 0 on. until=N: ends after so many units.
 * retries=N (-1: without end) delay=MS max_delay=MS idle=MS request=MS message=BYTES
 * compression=0|1
 *
 * SIGUSR1 aborts the reader, SIGUSR2 the client. */
#include "client/program.h"

#include <arbe/stream_client.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct stream_client *client;
static struct stream_reader *reader;

struct probe {
    const char *form;
    const char *check; /* "": tell the pieces */
    bool ask;
    unsigned long long until; /* units; 0: to the end */
    size_t max;
    unsigned long long units; /* checked so far */
    unsigned char word[8];    /* cut by pieces */
    size_t word_len;
};

static void on_signal(int number)
{
    if (number == SIGUSR1) {
        stream_reader_abort(reader);
    } else {
        stream_client_abort(client);
    }
}

static void print_hex(const void *data, size_t len)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *bytes = data;

    for (size_t i = 0; i < len; i++) {
        putchar(digits[bytes[i] >> 4]);
        putchar(digits[bytes[i] & 15]);
    }
}

static void print_piece(const struct stream_piece_view *piece)
{
    printf("{\"hex\":\"");
    print_hex(piece->data, piece->len);
    putchar('"');
    if (piece->next_offset != NULL) {
        print_text("next", piece->next_offset);
    }
    printf(",\"up\":%d,\"closed\":%d}\n", piece->up_to_date, piece->closed);
}

static void print_info(const struct stream_info *info)
{
    print_text("type", info->content_type);
    print_text("cursor", info->cursor);
    print_text("etag", info->etag);
    print_text("next", info->next_offset);
    printf(",\"closed\":%d", info->closed);
}

static int print_end(const struct probe *p, int rc, const struct stream_error *error)
{
    struct stream_info info;

    stream_reader_info(reader, &info);
    printf("{\"end\":\"%s\"", rc > 0 ? stream_error_name((enum stream_error_code)rc) : "END");
    if (rc > 0) {
        print_text("message", error->message);
        printf(",\"status\":%d,\"retry_after_ms\":%ld", error->status, error->retry_after_ms);
    }
    print_info(&info);
    printf(",\"units\":%llu,\"hwm_kib\":%ld}\n", p->units, high_water());
    (void)fflush(stdout);
    return rc > 0 ? 1 : 0;
}

static bool check_words(struct probe *p, const unsigned char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        p->word[p->word_len++] = bytes[i];
        if (p->word_len == 8) {
            unsigned long long value = 0;

            for (size_t j = 0; j < 8; j++) {
                value |= (unsigned long long)p->word[j] << (8 * j);
            }
            if (value != p->units) {
                return false;
            }
            p->units++;
            p->word_len = 0;
        }
    }
    return true;
}

static bool check_number(struct probe *p, const char *text, size_t len)
{
    char wanted[40];
    int wanted_len = snprintf(wanted, sizeof(wanted), "{\"n\":%llu,", p->units);

    p->units++;
    return len > (size_t)wanted_len && memcmp(text, wanted, (size_t)wanted_len) == 0;
}

static bool check(struct probe *p, const struct stream_piece_view *piece)
{
    if (piece->len == 0) {
        return true;
    }
    return strcmp(p->check, "words") == 0 ? check_words(p, piece->data, piece->len)
                                          : check_number(p, piece->data, piece->len);
}

/* STREAM_WAIT until there is something, without blocking in the library. */
static int step(struct stream_piece_view *piece, struct stream_error *error)
{
    int rc;

    while ((rc = stream_reader_step(reader, piece, error)) == STREAM_WAIT) {
        struct pollfd fd = {.fd = stream_client_fd(client), .events = POLLIN};

        if (poll(&fd, 1, 30000) == 0) {
            printf("{\"hang\":true}\n");
            return STREAM_END;
        }
        stream_client_step(client);
    }
    return rc;
}

static int read_pieces(struct probe *p)
{
    struct stream_piece_view piece;
    struct stream_error error;
    char line[16];
    int rc;

    for (;;) {
        if (p->ask && fgets(line, sizeof(line), stdin) == NULL) {
            return print_end(p, STREAM_END, &error);
        }
        rc = strcmp(p->form, "step") == 0 ? step(&piece, &error)
                                          : stream_reader_next(reader, &piece, &error);
        if (rc != STREAM_OK) {
            return print_end(p, rc, &error);
        }
        if (p->check[0] == '\0') {
            print_piece(&piece);
            (void)fflush(stdout);
        } else if (!check(p, &piece)) {
            printf("{\"wrong_at\":%llu}\n", p->units);
            return 1;
        }
        if (p->until > 0 && p->units >= p->until) {
            return print_end(p, STREAM_END, &error);
        }
    }
}

static int read_all(const struct probe *p, const char *name, const char *offset)
{
    struct stream_error error;
    struct stream_info info;
    char *data;
    size_t len;
    int rc = stream_client_read_all(client, name, offset, p->max, &data, &len, &info, &error);

    if (rc != STREAM_OK) {
        printf("{\"end\":\"%s\"", stream_error_name((enum stream_error_code)rc));
        print_text("message", error.message);
        printf("}\n");
        return 1;
    }
    printf("{\"end\":\"END\",\"hex\":\"");
    print_hex(data, len);
    putchar('"');
    print_info(&info);
    printf("}\n");
    free(data);
    return 0;
}

static enum stream_live live_of(const char *text)
{
    return strcmp(text, "long-poll") == 0 ? STREAM_LONG_POLL
           : strcmp(text, "sse") == 0     ? STREAM_SSE
           : strcmp(text, "auto") == 0    ? STREAM_AUTO
                                          : STREAM_CATCH_UP;
}

static int open_client(const char *base_url)
{
    struct stream_client_options options;
    struct stream_error error;

    stream_client_options_init(&options);
    options.retry.max_retries = number("retries", options.retry.max_retries);
    if (options.retry.max_retries < 0) {
        options.retry.max_retries = STREAM_RETRY_FOREVER;
    }
    options.retry.initial_delay_ms = number("delay", 20);
    options.retry.max_delay_ms = number("max_delay", 200);
    options.idle_timeout_ms = number("idle", options.idle_timeout_ms);
    options.request_timeout_ms = number("request", options.request_timeout_ms);
    options.compression = number("compression", options.compression);
    options.max_message_bytes = (size_t)number("message", 64 << 20);
    if (stream_client_new(base_url, &options, &client, &error) != STREAM_OK) {
        printf("{\"end\":\"%s\"", stream_error_name(error.code));
        print_text("message", error.message);
        printf("}\n");
        return -1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct stream_error error;
    struct probe p;
    int rc;

    option_words = argv + 3;
    option_count = argc - 3;
    if (argc < 3 || open_client(argv[1]) != 0) {
        return 2;
    }
    p = (struct probe){
        .form = option("form", "next"),
        .check = option("check", ""),
        .ask = number("ask", 0) != 0,
        .until = (unsigned long long)number("until", 0),
        .max = (size_t)number("max", 1 << 30),
    };
    struct stream_read_options options = {
        .offset = option("offset", NULL),
        .live = live_of(option("live", "catch-up")),
        .unit = strcmp(option("unit", "bytes"), "messages") == 0 ? STREAM_MESSAGES : STREAM_BYTES,
        .poll_timeout_ms = number("poll", 0),
    };

    if (strcmp(p.form, "all") == 0) {
        rc = read_all(&p, argv[2], options.offset);
    } else if (stream_client_read(client, argv[2], &options, &reader, &error) != STREAM_OK) {
        printf("{\"end\":\"%s\"", stream_error_name(error.code));
        print_text("message", error.message);
        printf("}\n");
        rc = 1;
    } else {
        (void)signal(SIGUSR1, on_signal);
        (void)signal(SIGUSR2, on_signal);
        rc = read_pieces(&p);
        stream_reader_free(reader);
    }
    stream_client_free(client);
    return rc;
}
