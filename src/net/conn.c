/* The socket is watched edge-triggered for both directions, once, so that no request costs an
 * epoll_ctl. `readable` and `blocked` remember the edges. A read that came back short has
 * emptied the socket, and later bytes make a new edge; only after the peer's FIN, which may have
 * come with the bytes, is reading gone on with until it returns 0.
 *
 * Bytes are received on the stack and shown to the owner there; what it leaves is copied to the
 * heap. So the usual request, which comes whole and is consumed whole, costs no allocation.
 *
 * Callbacks are made from two places, on_ready and on_turn, which the loop calls. Everything
 * that is found inside an owner's call (queue empty, write failed, more to read) is left as a
 * bit of `todo` for on_turn. After each callback the connection may be gone: the caller looks at
 * a flag on its own stack that conn_finish sets.
 *
 * Failures: a reset or a write error ends with CONN_END_PEER, a file that is shorter than
 * promised or a lack of memory with CONN_END_ERROR; both drop the rest of the queue, which could
 * only be sent in pieces. */
#include "net/conn.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/limits.h"

#define READ_BYTES         (16 * KIB)        /* one receive on the stack */
#define READS_PER_TURN     16                /* receives before others get their turn */
#define INPUT_BYTES_MIN    1024u             /* smallest input buffer */
#define WRITES_PER_TURN    32                /* sends before others get their turn */
#define WRITE_BYTES_TURN   ((size_t)4 * MIB) /* likewise */
#define SENDFILE_BYTES_MAX ((size_t)512 * KIB)
#define SEND_PIECES_MAX    16         /* memory pieces gathered in one send */
#define COPY_BYTES_MIN     960u       /* room in a copy piece, for small ones to share */
#define LINGER_MS          2000u      /* reading away after the last byte */
#define LINGER_BYTES_MAX   (64 * MIB) /* likewise: the rest of a refused body */
#define FLUSH_MS           30000u     /* sending what is left, without a deadline of the owner's */

enum todo {
    TODO_END = 1,     /* call `closed` with c->end */
    TODO_WRITE = 2,   /* go on sending */
    TODO_DRAINED = 4, /* call `drained` */
    TODO_READ = 8,    /* go on reading */
    TODO_INPUT = 16,  /* call `input` for buffered bytes */
};

enum output_kind {
    OUTPUT_COPY,
    OUTPUT_BLOCK,
    OUTPUT_FILE,
};

/* The head of every piece in the output queue. */
struct conn_output {
    struct conn_output *next; /* in the queue; NULL: the last */
    enum output_kind kind;    /* which of the structs below this begins */
    const char *at;           /* memory: the first byte not sent */
    size_t left;              /* bytes not sent */
};

struct output_copy {
    struct conn_output head;
    size_t room; /* bytes after the used ones */
    char data[]; /* the bytes, then the room */
};

struct output_block {
    struct conn_output head;
    struct block *block; /* one reference */
};

struct output_file {
    struct conn_output head;
    struct conn_file file; /* `offset` moves on with what is sent */
};

_Static_assert(sizeof(struct conn) < 400, "an idle connection is this struct and nothing else");

static void on_ready(struct loop_watch *watch, uint32_t events);
static void on_turn(struct task *task);
static void on_deadline(struct loop_timer *timer);

/* ----------------------------------------------------------------------------- begin and end */

int conn_init(struct conn *c, struct loop *l, int fd, const struct conn_config *config,
              const struct conn_handler *handler, void *owner)
{
    int rc;

    assert(config->input_bytes_max > 0);
    *c = (struct conn){
        .handler = handler,
        .owner = owner,
        .loop = l,
        .watch = {.fd = fd, .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .ready = on_ready},
        .deadline = {.fire = on_deadline},
        .turn = {.run = on_turn},
        .config = config,
    };
    list_init(&c->turn.link);
    rc = loop_watch_add(l, &c->watch);
    if (rc < 0) {
        (void)close(fd); /* nothing was written to it */
        return rc;
    }
    return 0;
}

/* Gives back what a piece holds. */
static void output_free(struct conn_output *piece)
{
    if (piece->kind == OUTPUT_BLOCK) {
        block_unref(container_of(piece, struct output_block, head)->block);
    } else if (piece->kind == OUTPUT_FILE) {
        const struct conn_file *file = &container_of(piece, struct output_file, head)->file;

        if (file->release != NULL) {
            file->release(file->context);
        }
    }
    free(piece);
}

static void drop_first(struct conn *c)
{
    struct conn_output *first = c->output;

    c->output = first->next;
    c->output_bytes -= first->left;
    if (c->output == NULL) {
        c->output_last = NULL;
    }
    output_free(first);
}

static void drop_output(struct conn *c)
{
    while (c->output != NULL) {
        drop_first(c);
    }
    assert(c->output_bytes == 0);
}

static void drop_input(struct conn *c)
{
    if (c->input_cap > 0) {
        free(c->input);
    }
    c->input = NULL;
    c->input_len = 0;
    c->input_at = 0;
    c->input_cap = 0;
}

void conn_finish(struct conn *c)
{
    loop_watch_remove(c->loop, &c->watch);
    loop_timer_cancel(c->loop, &c->deadline);
    loop_cancel(c->loop, &c->turn);
    (void)close(c->watch.fd); /* what is queued is given up; nobody is left to tell of an error */
    drop_output(c);
    drop_input(c);
    c->ended = true;
    if (c->finished != NULL) {
        *c->finished = true;
    }
}

/* Leaves work for the loop. */
static void leave(struct conn *c, unsigned what)
{
    c->todo |= (uint8_t)what;
    if (list_empty(&c->turn.link)) {
        loop_defer(c->loop, &c->turn);
    }
}

/* Ends the connection; `closed` follows from on_turn. */
static void end(struct conn *c, enum conn_end why)
{
    if (c->ended) {
        return;
    }
    c->ended = true;
    c->end = (uint8_t)why;
    loop_timer_disarm(c->loop, &c->deadline);
    drop_output(c);
    leave(c, TODO_END);
}

static void on_deadline(struct loop_timer *timer)
{
    struct conn *c = container_of(timer, struct conn, deadline);

    end(c, c->lingering ? CONN_END_SHUTDOWN : CONN_END_TIMEOUT);
}

static void arm(struct conn *c, uint64_t delay_ms)
{
    if (loop_timer_set(c->loop, &c->deadline, delay_ms) < 0) {
        end(c, CONN_END_ERROR);
    }
}

void conn_set_deadline(struct conn *c, uint64_t delay_ms)
{
    if (c->ended || c->lingering) {
        return;
    }
    if (delay_ms == 0) {
        loop_timer_disarm(c->loop, &c->deadline);
        return;
    }
    arm(c, delay_ms);
}

/* ------------------------------------------------------------------------------------- output */

/* Puts a piece last. */
static void enqueue(struct conn *c, struct conn_output *piece)
{
    piece->next = NULL;
    if (c->output_last == NULL) {
        c->output = piece;
    } else {
        c->output_last->next = piece;
    }
    c->output_last = piece;
    c->output_bytes += piece->left;
}

/* Adds to the last piece when that is a copy with room. */
static bool append_to_last(struct conn *c, struct slice bytes)
{
    struct output_copy *last;

    if (c->output_last == NULL || c->output_last->kind != OUTPUT_COPY) {
        return false;
    }
    last = container_of(c->output_last, struct output_copy, head);
    if (last->room < bytes.len) {
        return false;
    }
    memcpy(last->data + (last->head.at - last->data) + last->head.left, bytes.ptr, bytes.len);
    last->room -= bytes.len;
    last->head.left += bytes.len;
    c->output_bytes += bytes.len;
    return true;
}

int conn_send_copy(struct conn *c, struct slice bytes)
{
    size_t cap = bytes.len > COPY_BYTES_MIN ? bytes.len : COPY_BYTES_MIN;
    struct output_copy *piece;

    assert(!c->shutting_down);
    if (c->ended || bytes.len == 0 || append_to_last(c, bytes)) {
        return 0;
    }
    piece = malloc(sizeof(*piece) + cap);
    if (piece == NULL) {
        return ERR_NOMEM;
    }
    memcpy(piece->data, bytes.ptr, bytes.len);
    piece->head.kind = OUTPUT_COPY;
    piece->head.at = piece->data;
    piece->head.left = bytes.len;
    piece->room = cap - bytes.len;
    enqueue(c, &piece->head);
    return 0;
}

int conn_send_block(struct conn *c, struct block *b, struct slice bytes)
{
    struct output_block *piece;

    assert(!c->shutting_down);
    if (c->ended || bytes.len == 0) {
        block_unref(b);
        return 0;
    }
    piece = malloc(sizeof(*piece));
    if (piece == NULL) {
        block_unref(b);
        return ERR_NOMEM;
    }
    piece->head.kind = OUTPUT_BLOCK;
    piece->head.at = bytes.ptr;
    piece->head.left = bytes.len;
    piece->block = b;
    enqueue(c, &piece->head);
    return 0;
}

int conn_send_file(struct conn *c, const struct conn_file *file)
{
    struct output_file *piece = NULL;
    bool wanted = !c->ended && file->len > 0;

    assert(!c->shutting_down);
    if (wanted) {
        piece = malloc(sizeof(*piece));
    }
    if (piece == NULL) {
        if (file->release != NULL) {
            file->release(file->context);
        }
        return wanted ? ERR_NOMEM : 0;
    }
    piece->head.kind = OUTPUT_FILE;
    piece->head.at = NULL;
    piece->head.left = file->len;
    piece->file = *file;
    enqueue(c, &piece->head);
    return 0;
}

/* Takes `count` sent bytes off the front. */
static void dequeue(struct conn *c, size_t count)
{
    while (count > 0) {
        struct conn_output *first = c->output;
        size_t part = first->left < count ? first->left : count;

        first->left -= part;
        c->output_bytes -= part;
        count -= part;
        if (first->left == 0) {
            drop_first(c);
        } else if (first->kind == OUTPUT_FILE) {
            container_of(first, struct output_file, head)->file.offset += part;
        } else {
            first->at += part;
        }
    }
}

/* What a failed send means: the socket is full, or the connection is over. */
static void note_send_error(struct conn *c, int errno_value)
{
    if (errno_value == EAGAIN) {
        c->blocked = true;
        return;
    }
    /* EINVAL, EIO and the like come from the file, all else from the connection. */
    end(c, errno_value == EPIPE || errno_value == ECONNRESET || errno_value == ETIMEDOUT ||
                   errno_value == EHOSTUNREACH || errno_value == ENETUNREACH
               ? CONN_END_PEER
               : CONN_END_ERROR);
}

/* Sends the memory pieces at the front in one call. Bytes sent; 0: not now, or ended. */
static size_t send_memory(struct conn *c)
{
    struct iovec pieces[SEND_PIECES_MAX];
    struct msghdr message = {.msg_iov = pieces};
    struct conn_output *piece = c->output;
    int flags = MSG_NOSIGNAL;
    ssize_t sent;

    for (; piece != NULL && piece->kind != OUTPUT_FILE && message.msg_iovlen < SEND_PIECES_MAX;
         piece = piece->next) {
        /* sendmsg does not write to it; the interface predates const. */
        pieces[message.msg_iovlen++] = (struct iovec){(void *)(uintptr_t)piece->at, piece->left};
    }
    /* A head leaves in one packet with the first bytes of the file that follows. */
    flags |= piece != NULL ? MSG_MORE : 0;
    do {
        /* One piece is the usual answer, and send is the cheaper call for it. */
        sent = message.msg_iovlen == 1
                   ? send(c->watch.fd, pieces[0].iov_base, pieces[0].iov_len, flags)
                   : sendmsg(c->watch.fd, &message, flags);
    } while (sent < 0 && errno == EINTR);
    if (sent < 0) {
        note_send_error(c, errno);
        return 0;
    }
    dequeue(c, (size_t)sent);
    return (size_t)sent;
}

/* Sends a window of the file at the front. Bytes sent; 0: not now, or ended. */
static size_t send_file(struct conn *c)
{
    const struct conn_file *file = &container_of(c->output, struct output_file, head)->file;
    size_t len = c->output->left < SENDFILE_BYTES_MAX ? c->output->left : SENDFILE_BYTES_MAX;
    off_t offset = (off_t)file->offset;
    ssize_t sent;

    if (file->warm != NULL && !file->warm(file->context, c, file->offset, len)) {
        c->waiting_warm = true;
        return 0;
    }
    do {
        sent = sendfile(c->watch.fd, file->fd, &offset, len);
    } while (sent < 0 && errno == EINTR);
    if (sent < 0) {
        note_send_error(c, errno);
        return 0;
    }
    if (sent == 0) {
        end(c, CONN_END_ERROR); /* the file ends early: the promised length cannot be kept */
        return 0;
    }
    dequeue(c, (size_t)sent);
    return (size_t)sent;
}

/* The last byte went out: now the peer learns that none follows. */
static void begin_linger(struct conn *c)
{
    c->lingering = true;
    if (c->peer_closed || shutdown(c->watch.fd, SHUT_WR) != 0) {
        end(c, CONN_END_SHUTDOWN);
        return;
    }
    arm(c, LINGER_MS);
    c->readable = true; /* what was held back while paused */
    leave(c, TODO_READ);
}

static void queue_is_empty(struct conn *c)
{
    if (c->shutting_down) {
        begin_linger(c);
        return;
    }
    leave(c, c->peer_closed ? TODO_DRAINED | TODO_READ : TODO_DRAINED);
}

/* Sends until the queue is empty, the socket full, or the turn's share used up. */
static void send_queue(struct conn *c)
{
    size_t sent = 0;

    for (int calls = 0; c->output != NULL; calls++) {
        size_t part;

        if (calls == WRITES_PER_TURN || sent >= WRITE_BYTES_TURN) {
            leave(c, TODO_WRITE);
            return;
        }
        part = c->output->kind == OUTPUT_FILE ? send_file(c) : send_memory(c);
        if (part == 0) {
            return;
        }
        sent += part;
    }
    if (sent > 0) {
        queue_is_empty(c);
    }
}

void conn_flush(struct conn *c)
{
    if (!c->ended && !c->blocked && !c->waiting_warm && (c->todo & TODO_WRITE) == 0) {
        send_queue(c);
    }
}

void conn_resume(struct conn *c)
{
    if (c->waiting_warm) {
        c->waiting_warm = false;
        if (!c->ended) {
            leave(c, TODO_WRITE);
        }
    }
}

size_t conn_output_bytes(const struct conn *c)
{
    return c->output_bytes;
}

void conn_shutdown(struct conn *c)
{
    if (c->ended || c->shutting_down) {
        return;
    }
    c->shutting_down = true;
    c->into = NULL;
    c->into_len = 0;
    if (c->output == NULL) {
        begin_linger(c);
        return;
    }
    if (!loop_timer_is_armed(&c->deadline)) {
        arm(c, FLUSH_MS);
    }
    conn_flush(c);
}

/* -------------------------------------------------------------------------------------- input */

struct slice conn_input(const struct conn *c)
{
    if (c->input == NULL) {
        return (struct slice){NULL, 0};
    }
    return (struct slice){c->input + c->input_at, c->input_len - c->input_at};
}

bool conn_has_unread(const struct conn *c)
{
    char byte;

    return recv(c->watch.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

void conn_consume(struct conn *c, size_t count)
{
    assert(count <= c->input_len - c->input_at);
    c->input_at += (uint32_t)count;
    if (c->input_at == c->input_len) {
        drop_input(c);
    }
    /* Room was made: what waits in the socket may come. */
    if (count > 0 && c->readable && !c->paused) {
        leave(c, TODO_READ);
    }
}

void conn_read_into(struct conn *c, void *into, size_t len)
{
    struct slice buffered = conn_input(c);
    size_t count = buffered.len < len ? buffered.len : len;

    c->into = NULL;
    c->into_len = 0;
    if (count > 0) {
        memcpy(into, buffered.ptr, count);
        conn_consume(c, count);
    }
    if (count < len) {
        c->into = (char *)into + count;
        c->into_len = len - count;
        if (c->readable && !c->paused) {
            leave(c, TODO_READ);
        }
    }
}

size_t conn_into_missing(const struct conn *c)
{
    return c->into_len;
}

void conn_pause(struct conn *c, bool paused)
{
    if (c->paused == paused) {
        return;
    }
    c->paused = paused;
    if (paused || c->ended) {
        return;
    }
    if (c->input != NULL) {
        leave(c, TODO_INPUT);
    }
    if (c->readable || c->peer_closed) {
        leave(c, TODO_READ);
    }
}

/* Moves the bytes that are left to the heap, since the reader's stack frame ends. */
static int keep_input(struct conn *c)
{
    size_t len = c->input_len - c->input_at;
    size_t cap = len * 2 > INPUT_BYTES_MIN ? len * 2 : INPUT_BYTES_MIN;
    char *kept;

    if (cap > c->config->input_bytes_max) {
        cap = c->config->input_bytes_max;
    }
    assert(len <= cap);
    kept = malloc(cap);
    if (kept == NULL) {
        c->input = NULL;
        return ERR_NOMEM;
    }
    memcpy(kept, c->input + c->input_at, len);
    c->input = kept;
    c->input_cap = (uint32_t)cap;
    c->input_at = 0;
    c->input_len = (uint32_t)len;
    return 0;
}

/* Makes room after the bytes of the heap buffer: how much, 0 at the cap, or ERR_NOMEM. */
static long make_room(struct conn *c)
{
    size_t len = c->input_len - c->input_at;
    size_t cap = c->input_cap;
    char *grown;

    if (c->input_at > 0) {
        memmove(c->input, c->input + c->input_at, len);
        c->input_at = 0;
        c->input_len = (uint32_t)len;
    }
    if (len == cap && cap < c->config->input_bytes_max) {
        cap = cap * 2 < c->config->input_bytes_max ? cap * 2 : c->config->input_bytes_max;
        grown = realloc(c->input, cap);
        if (grown == NULL) {
            return ERR_NOMEM;
        }
        c->input = grown;
        c->input_cap = (uint32_t)cap;
    }
    return (long)(cap - len);
}

/* Receives up to `len` bytes: how many; 0 when there are none now, the peer closed, or it
 * failed. */
static size_t receive(struct conn *c, char *at, size_t len)
{
    ssize_t got;

    do {
        got = recv(c->watch.fd, at, len, 0);
    } while (got < 0 && errno == EINTR);
    if (got < 0) {
        c->readable = false;
        if (errno != EAGAIN) {
            end(c, c->lingering ? CONN_END_SHUTDOWN : CONN_END_PEER);
        }
        return 0;
    }
    if (got == 0) {
        c->readable = false;
        c->peer_closed = true;
        return 0;
    }
    if ((size_t)got < len && !c->hung_up) {
        c->readable = false;
    }
    return (size_t)got;
}

/* Calls `input`; false when the connection is finished. */
static bool call_input(struct conn *c)
{
    bool finished = false;

    assert(c->finished == NULL);
    c->finished = &finished;
    c->handler->input(c);
    if (finished) {
        return false;
    }
    c->finished = NULL;
    return true;
}

enum read_result {
    READ_FINISHED, /* the connection is gone */
    READ_STOP,     /* no more for now */
    READ_MORE,
};

/* Receives into the owner's memory. */
static enum read_result read_into(struct conn *c)
{
    size_t got = receive(c, c->into, c->into_len);

    c->into += got;
    c->into_len -= got;
    if (got > 0 && c->into_len == 0 && !call_input(c)) {
        return READ_FINISHED;
    }
    return got > 0 ? READ_MORE : READ_STOP;
}

/* Receives after what the owner left before. */
static enum read_result read_to_heap(struct conn *c)
{
    long room = make_room(c);
    size_t got;

    if (room <= 0) {
        if (room < 0) {
            end(c, CONN_END_ERROR);
        }
        return READ_STOP;
    }
    got = receive(c, c->input + c->input_len, (size_t)room);
    if (got == 0) {
        return READ_STOP;
    }
    c->input_len += (uint32_t)got;
    return call_input(c) ? READ_MORE : READ_FINISHED;
}

static enum read_result read_to_stack(struct conn *c)
{
    char stack[READ_BYTES];
    size_t cap = c->config->input_bytes_max;
    size_t got = receive(c, stack, cap < sizeof(stack) ? cap : sizeof(stack));

    if (got == 0) {
        return READ_STOP;
    }
    c->input = stack;
    c->input_len = (uint32_t)got;
    if (!call_input(c)) {
        return READ_FINISHED;
    }
    if (c->input != NULL && keep_input(c) < 0) {
        drop_input(c);
        end(c, CONN_END_ERROR);
    }
    return READ_MORE;
}

/* One receive to where the bytes belong, and `input` when that is due. */
static enum read_result read_some(struct conn *c)
{
    if (c->into_len > 0) {
        return read_into(c);
    }
    return c->input != NULL ? read_to_heap(c) : read_to_stack(c);
}

/* Throws away what still comes after the last byte was sent, so that it does not cause a reset. */
static void read_away(struct conn *c)
{
    char stack[READ_BYTES];

    for (int reads = 0; c->readable && !c->ended; reads++) {
        if (reads == READS_PER_TURN) {
            leave(c, TODO_READ);
            return;
        }
        c->drained_bytes += (uint32_t)receive(c, stack, sizeof(stack));
        if (c->peer_closed || c->drained_bytes >= LINGER_BYTES_MAX) {
            end(c, CONN_END_SHUTDOWN);
        }
    }
}

/* Reads what there is, within the turn's share. False when the connection is finished. */
static bool read_input(struct conn *c)
{
    int reads = 0;

    while (c->readable && !c->paused && !c->ended && !c->shutting_down) {
        enum read_result result;

        if (reads++ == READS_PER_TURN) {
            leave(c, TODO_READ);
            break;
        }
        result = read_some(c);
        if (result == READ_FINISHED) {
            return false;
        }
        if (result == READ_STOP) {
            break;
        }
    }
    if (c->lingering) {
        read_away(c);
    } else if (c->peer_closed && !c->paused && c->output == NULL && !c->shutting_down) {
        end(c, CONN_END_PEER);
    }
    return true;
}

/* -------------------------------------------------------------------------------------- turns */

/* Calls a callback that is not followed by more; the connection may be gone afterwards. */
static void call_closed(struct conn *c)
{
    c->todo = 0;
    c->handler->closed(c, (enum conn_end)c->end);
}

/* Calls `drained`; false when the connection is finished. */
static bool call_drained(struct conn *c)
{
    bool finished = false;

    assert(c->finished == NULL);
    c->finished = &finished;
    c->handler->drained(c);
    if (finished) {
        return false;
    }
    c->finished = NULL;
    return true;
}

static void on_turn(struct task *task)
{
    struct conn *c = container_of(task, struct conn, turn);
    unsigned todo = c->todo;

    c->todo = 0;
    if (c->ended) {
        if ((todo & TODO_END) != 0) {
            call_closed(c);
        }
        return;
    }
    if ((todo & TODO_WRITE) != 0 && !c->blocked && !c->waiting_warm) {
        send_queue(c);
    }
    if ((todo & TODO_DRAINED) != 0 && c->output == NULL && !call_drained(c)) {
        return;
    }
    if ((todo & TODO_INPUT) != 0 && c->input != NULL && !c->paused && !c->ended &&
        !c->shutting_down && !call_input(c)) {
        return;
    }
    if ((todo & TODO_READ) != 0 && !c->ended) {
        (void)read_input(c); /* the last step: finished or not makes no difference */
    }
}

static void on_ready(struct loop_watch *watch, uint32_t events)
{
    struct conn *c = container_of(watch, struct conn, watch);

    if (c->ended) {
        return;
    }
    if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) {
        c->hung_up = true;
    }
    if ((events & EPOLLOUT) != 0 && c->blocked) {
        c->blocked = false;
        conn_flush(c);
    }
    if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) {
        c->readable = true;
        if (!read_input(c)) {
            return;
        }
    }
    /* Both directions are shut or the socket failed; reading may have been paused and not seen
     * it. */
    if ((events & (EPOLLHUP | EPOLLERR)) != 0) {
        end(c, c->lingering ? CONN_END_SHUTDOWN : CONN_END_PEER);
    }
}
