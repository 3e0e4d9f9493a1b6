/* arbe stream copy: brings a stream to another place, each byte or message once.
 *
 * What has been copied is in the destination, so nothing else need be remembered: a copy begins by
 * reading both streams and comparing them; where the destination ends, it goes on. Each append
 * bears the position at which it begins, as its Stream-Seq. The destination takes a Stream-Seq only
 * when it is greater than the last one. So of two appends for the same position it takes one,
 * whoever sent them: an earlier copy that was killed, another one that runs meanwhile, or this one
 * before its connection broke. The one that is refused compares again and goes on behind.
 *
 * After each append at a place where both streams have offsets, comparing begins there. */
#include "cli/stream_call.h"

#include "base/limits.h"
#include "cli/bar.h"
#include "cli/command.h"
#include "cli/cursor.h"
#include "cli/interrupt.h"
#include "cli/profile.h"
#include "cli/progress.h"

#include <inttypes.h>

#define BATCH_BYTES       MIB
#define BATCH_BYTES_MIN   (4u * KIB) /* a destination that takes no more than this is no use */
#define BATCH_MESSAGES    1000u
#define BATCH_WORTH_BYTES (64u * KIB) /* at a page's end an append of this size is sent */
#define PAUSE_MS          200         /* before comparing again; longer each time */
#define AGAIN             (-1)        /* the append's fate is to be found out by comparing */
#define SMALLER           (-2)        /* nothing was taken; to be tried again with smaller ones */
#define POSITION_DIGITS   20

/* A place that is known in both streams. */
struct place {
    char from[STREAM_OFFSET_BYTES];
    char to[STREAM_OFFSET_BYTES];
    uint64_t position;
};

struct copy {
    struct stream_call *call;
    struct stream_peer from;
    struct stream_peer to;
    struct stream_info source;
    struct cursor cursor; /* of the source */
    bool json;
    bool closed_there;                   /* the destination takes no more */
    struct place known;                  /* where to compare from */
    uint64_t position;                   /* messages or bytes that the destination has */
    uint64_t begun;                      /* of these: before this copy */
    uint64_t bytes;                      /* appended by this copy */
    struct buf batch;                    /* the next append, which begins at `position` */
    uint64_t batch_count;                /* messages or bytes of it */
    size_t batch_max;                    /* bytes of it, but for a single message */
    char batch_end[STREAM_OFFSET_BYTES]; /* offset of the source behind it; empty: not known */
    char tail[STREAM_OFFSET_BYTES];      /* of the destination */
    struct bar bar;
    int64_t start_ms;
    struct stream_error error; /* why to compare again */
};

static const char *unit_of(const struct copy *c)
{
    return c->json ? "messages" : "bytes";
}

static void show(struct copy *c, const char *what)
{
    char text[200];
    char bytes[PROGRESS_SIZE_BYTES];
    char rate[PROGRESS_SIZE_BYTES];
    double seconds = (double)(bar_now_ms() - c->start_ms) / 1000;

    if (!bar_is_due(&c->bar)) {
        return;
    }
    (void)snprintf(text, sizeof(text), "%s  %" PRIu64 " %s  %s copied  %s/s", what, c->position,
                   unit_of(c), progress_size(c->bytes, bytes),
                   progress_size(seconds > 0 ? (uint64_t)((double)c->bytes / seconds) : 0, rate));
    bar_draw(&c->bar, bar_fraction(c->known.from, c->source.next_offset), text);
}

static int fail(struct copy *c, const struct stream_peer *peer, const struct stream_error *error)
{
    bar_clear(&c->bar);
    return stream_call_fail(c->call, peer->site.name, error);
}

static int differ(struct copy *c)
{
    bar_clear(&c->bar);
    return stream_call_conflict(
        c->call, "\"%s\" does not begin as \"%s\" does: they differ after %" PRIu64 " %s%s",
        c->to.site.name, c->from.site.name, c->position, unit_of(c),
        c->json ? " (--trust is for servers that write JSON in their own way)" : "");
}

/* The destination goes on behind the end of the source: unless that has grown since, and another
 * copy was faster, it is something else. */
static int longer(struct copy *c)
{
    struct stream_info now = {0};

    if (stream_client_head(c->from.client, c->from.site.name, &now, &c->error) != STREAM_OK) {
        return fail(c, &c->from, &c->error);
    }
    if (strcmp(now.next_offset, c->source.next_offset) == 0) {
        return differ(c);
    }
    memcpy(c->source.next_offset, now.next_offset, sizeof(now.next_offset));
    return AGAIN;
}

/* Both cursors stand at c->position. */
static void note_place(struct copy *c, const struct cursor *there)
{
    if (c->cursor.rest.len == 0 && c->cursor.next_offset != NULL && there->rest.len == 0 &&
        there->next_offset != NULL) {
        (void)snprintf(c->known.from, sizeof(c->known.from), "%s", c->cursor.next_offset);
        (void)snprintf(c->known.to, sizeof(c->known.to), "%s", there->next_offset);
        c->known.position = c->position;
    }
}

/* Compares what stands in both cursors, and uses it up. */
static bool step(struct copy *c, struct cursor *there)
{
    struct slice a = c->cursor.rest;
    struct slice b = there->rest;
    size_t len = a.len < b.len ? a.len : b.len;
    bool trust = c->call->set.trust != 0;

    if (c->json) {
        if (!trust && !cursor_same_json(a, b)) {
            return false;
        }
        cursor_use(&c->cursor, a.len);
        cursor_use(there, b.len);
        c->position++;
        return true;
    }
    if (!trust && memcmp(a.ptr, b.ptr, len) != 0) {
        return false;
    }
    cursor_use(&c->cursor, len);
    cursor_use(there, len);
    c->position += len;
    return true;
}

/* Walks over what the destination has, with the source beside it. 0, AGAIN, or an exit code. */
static int compare_with(struct copy *c, struct cursor *there)
{
    struct stream_error error = {0};

    for (;;) {
        int rc = cursor_fill(there, true, &error);

        if (rc == STREAM_END) {
            return 0;
        }
        if (rc != STREAM_OK) {
            return fail(c, &c->to, &error);
        }
        c->closed_there = there->closed;
        while (there->rest.len > 0) {
            bool at_tail = c->cursor.rest.len == 0 && c->cursor.up_to_date;

            rc = at_tail ? STREAM_END : cursor_fill(&c->cursor, true, &error);
            if (rc == STREAM_END) {
                return longer(c);
            }
            if (rc != STREAM_OK) {
                return fail(c, &c->from, &error);
            }
            if (c->cursor.rest.len > 0 && !step(c, there)) {
                return differ(c);
            }
        }
        note_place(c, there);
        show(c, "comparing");
    }
}

static struct stream_read_options options_for(const struct copy *c, const char *offset, bool live)
{
    return (struct stream_read_options){
        .offset = offset,
        .live = live ? STREAM_AUTO : STREAM_CATCH_UP,
        .unit = c->json ? STREAM_MESSAGES : STREAM_BYTES,
    };
}

/* Finds out where the destination ends, and has the cursor of the source stand there. */
static int compare(struct copy *c)
{
    struct cursor there = {.reader = NULL};
    struct stream_read_options from = options_for(c, c->known.from,
                                                  c->call->set.keep_following != 0);
    struct stream_read_options to = options_for(c, c->known.to, false);
    struct stream_error error = {0};
    int code;

    cursor_finish(&c->cursor);
    buf_clear(&c->batch);
    c->batch_count = 0;
    c->batch_end[0] = '\0';
    c->position = c->known.position;
    if (cursor_begin(&c->cursor, c->from.client, c->from.site.name, &from, &error) != STREAM_OK) {
        return fail(c, &c->from, &error);
    }
    if (cursor_begin(&there, c->to.client, c->to.site.name, &to, &error) != STREAM_OK) {
        return fail(c, &c->to, &error);
    }
    code = compare_with(c, &there);
    cursor_finish(&there);
    return code;
}

/* Whether an append that failed so may be told apart by comparing, and tried again. */
static bool is_passing(const struct stream_error *error)
{
    switch (error->code) {
    case STREAM_ERROR_SEQUENCE:
    case STREAM_ERROR_NETWORK:
    case STREAM_ERROR_TIMEOUT:
    case STREAM_ERROR_BUSY:
    case STREAM_ERROR_SERVER:
        return true;
    default:
        return error->outcome_unknown != 0 && error->code != STREAM_ERROR_ABORTED;
    }
}

/* Whether the batch was too large for the destination, and smaller ones can be made. */
static bool shrink(struct copy *c)
{
    size_t len = c->batch.len < c->batch_max ? c->batch.len : c->batch_max;

    if (c->error.status != 413 || len <= BATCH_BYTES_MIN || c->batch_count == 1) {
        return false;
    }
    c->batch_max = len / 2 > BATCH_BYTES_MIN ? len / 2 : BATCH_BYTES_MIN;
    return true;
}

/* 0, AGAIN, SMALLER, or an exit code. */
static int send_batch(struct copy *c)
{
    char seq[POSITION_DIGITS + 1];
    const struct stream_append_options options = {.content_type = c->source.content_type,
                                                  .seq = seq};
    struct stream_info info = {0};

    if (c->batch_count == 0) {
        return 0;
    }
    if (c->json) {
        buf_append_char(&c->batch, ']');
    }
    if (c->batch.failed) {
        return stream_call_cannot(c->call, "%s", err_text(ERR_NOMEM));
    }
    (void)snprintf(seq, sizeof(seq), "%020" PRIu64, c->position);
    if (stream_client_append(c->to.client, c->to.site.name, c->batch.ptr, c->batch.len, &options,
                             &info, &c->error) != STREAM_OK) {
        return is_passing(&c->error) ? AGAIN : shrink(c) ? SMALLER : fail(c, &c->to, &c->error);
    }
    c->position += c->batch_count;
    c->bytes += c->batch.len;
    if (c->batch_end[0] != '\0' && info.next_offset[0] != '\0') {
        memcpy(c->known.from, c->batch_end, sizeof(c->known.from));
        memcpy(c->known.to, info.next_offset, sizeof(c->known.to));
        c->known.position = c->position;
    }
    memcpy(c->tail, info.next_offset, sizeof(c->tail));
    buf_clear(&c->batch);
    c->batch_count = 0;
    show(c, "copying");
    return 0;
}

/* Adds what stands in the cursor, as much as one append should carry. */
static void add_to_batch(struct copy *c)
{
    struct slice rest = c->cursor.rest;

    if (c->json) {
        buf_append_char(&c->batch, c->batch_count == 0 ? '[' : ',');
        c->batch_count++;
    } else {
        size_t room = c->batch_max - c->batch.len;

        rest.len = rest.len < room ? rest.len : room;
        c->batch_count += rest.len;
    }
    buf_append(&c->batch, rest);
    cursor_use(&c->cursor, rest.len);
    c->batch_end[0] = '\0';
    if (c->cursor.rest.len == 0 && c->cursor.next_offset != NULL) {
        (void)snprintf(c->batch_end, sizeof(c->batch_end), "%s", c->cursor.next_offset);
    }
}

/* Whether what stands in the cursor would make the batch too large. */
static bool is_full(const struct copy *c)
{
    const size_t brackets = 2; /* or a comma and one */

    return c->json && c->batch_count > 0 &&
           c->batch.len + c->cursor.rest.len + brackets > c->batch_max;
}

static bool is_due(const struct copy *c)
{
    return c->batch.len >= c->batch_max || (c->json && c->batch_count >= BATCH_MESSAGES) ||
           (c->batch_end[0] != '\0' && c->batch.len >= BATCH_WORTH_BYTES);
}

/* The end of the source: what is left is sent, and a closed one closes the destination. */
static int end(struct copy *c)
{
    struct stream_error error = {0};
    struct stream_info info = {0};
    int code = send_batch(c);

    if (code != 0 || !c->cursor.closed || c->closed_there) {
        return code;
    }
    if (stream_client_close(c->to.client, c->to.site.name, &info, &error) != STREAM_OK) {
        return fail(c, &c->to, &error);
    }
    c->closed_there = true;
    return 0;
}

/* 0 when all is copied, AGAIN, SMALLER, or an exit code. */
static int pump(struct copy *c)
{
    struct stream_error error = {0};

    for (;;) {
        int rc = cursor_fill(&c->cursor, false, &error);
        int code = 0;

        if (interrupt_signal() != 0) {
            bar_clear(&c->bar);
            return COMMAND_INTERRUPTED + interrupt_signal();
        }
        if (rc == STREAM_END) {
            return end(c);
        }
        if (rc == STREAM_WAIT) {
            code = c->call->set.keep_following ? send_batch(c) : 0;
            if (code == 0) {
                stream_call_wait(&c->from, NULL);
            }
        } else if (rc != STREAM_OK) {
            return fail(c, &c->from, &error);
        } else if (c->cursor.rest.len > 0) {
            code = is_full(c) ? send_batch(c) : 0;
            if (code == 0) {
                add_to_batch(c);
                code = is_due(c) ? send_batch(c) : 0;
            }
        }
        if (code != 0) {
            return code;
        }
    }
}

/* Compares and copies until all is done, again whenever an append was refused or its fate is not
 * known. Without progress that ends, as does making batches smaller. */
static int work(struct copy *c)
{
    int tries_max = c->call->set.retries == UINT64_MAX ? STREAM_CALL_RETRIES_LONG
                                                       : (int)c->call->set.retries;
    int tries = 0;

    for (;;) {
        uint64_t before = c->known.position;
        int code = compare(c);

        if (code == AGAIN) {
            continue; /* each time the source has grown */
        }
        if (code != 0) {
            return code;
        }
        if (tries == 0 && before == 0 && c->bytes == 0) {
            c->begun = c->position;
        }
        uint64_t compared = c->position;

        code = pump(c);
        if (code == SMALLER) {
            continue;
        }
        if (code != AGAIN) {
            return code;
        }
        tries = c->position > compared ? 0 : tries + 1;
        if (tries > tries_max && !c->call->set.keep_following) {
            return fail(c, &c->to, &c->error);
        }
        (void)interrupt_poll(NULL, 0, PAUSE_MS << (tries < 6 ? tries : 6));
    }
}

/* What to copy to; made when it is not there. */
static int prepare(struct copy *c)
{
    const struct stream_create_options options = {.content_type = c->source.content_type};
    struct stream_info info = {0};
    struct stream_error error = {0};

    if (stream_client_head(c->from.client, c->from.site.name, &c->source, &error) != STREAM_OK) {
        return fail(c, &c->from, &error);
    }
    c->json = stream_call_is_json(c->source.content_type);
    if (stream_client_create(c->to.client, c->to.site.name, &options, &info, &error) == STREAM_OK) {
        return 0;
    }
    /* Whatever else it is made of, it may hold what an earlier copy brought. */
    if (error.code != STREAM_ERROR_EXISTS ||
        stream_client_head(c->to.client, c->to.site.name, &info, &error) != STREAM_OK) {
        return fail(c, &c->to, &error);
    }
    if (stream_call_is_json(info.content_type) != c->json) {
        return stream_call_conflict(c->call, "\"%s\" holds %s, and \"%s\" %s", c->from.site.name,
                                    c->source.content_type, c->to.site.name, info.content_type);
    }
    memcpy(c->source.content_type, info.content_type, sizeof(info.content_type));
    return 0;
}

static void report(struct copy *c)
{
    struct out *o = &c->call->out;

    bar_clear(&c->bar);
    if (c->call->set.json) {
        out_add(o, SLICE("{\"stream\":"));
        out_add_string(o, slice_of(c->to.site.name));
        out_format(o, ",\"%s\":%" PRIu64 ",\"copied\":%" PRIu64 ",\"closed\":%s}\n", unit_of(c),
                   c->position, c->position - c->begun, c->closed_there ? "true" : "false");
        out_end_message(o);
    } else {
        stream_call_tell(c->call,
                         "\"%s\" has all %" PRIu64 " %s of \"%s\", %" PRIu64 " of them new%s",
                         c->to.site.name, c->position, unit_of(c), c->from.site.name,
                         c->position - c->begun, c->closed_there ? "; it is closed" : "");
    }
}

/* The destination's own flags, or else the place that its name or URL says. */
static struct site_wish wish_of_destination(const struct copy *c)
{
    const struct stream_settings *set = &c->call->set;
    const char *stream = c->call->operands[1];
    bool own = set->to_url != NULL || set->to_profile != NULL;
    struct site_wish wish = {
        .stream = stream,
        .url = own ? set->to_url : set->url,
        .profile = own ? set->to_profile : set->profile,
        .secret_file = set->to_secret_file,
        .ca_file = set->to_ca_file,
        .foreign = true,
    };

    if (!own && !profile_url_covers(c->from.site.url, stream) && strstr(stream, "://") != NULL) {
        wish.url = NULL;
        wish.profile = NULL;
    }
    return wish;
}

/* The secret of the source, from a flag or from the environment, is sent to the destination only
 * when that is the same server. */
static int open_destination(struct copy *c)
{
    const struct stream_settings *set = &c->call->set;
    struct site_wish wish = wish_of_destination(c);
    struct site site;
    struct errmsg msg = {{0}};

    if (site_choose(&wish, &site, &msg) == 0 && strcmp(site.url, c->from.site.url) == 0) {
        wish.foreign = false;
        if (set->to_url == NULL && set->to_profile == NULL && wish.secret_file == NULL &&
            wish.ca_file == NULL) {
            wish.secret_file = set->secret_file;
            wish.ca_file = set->ca_file;
        }
    }
    return stream_call_open_site(c->call, &wish, STREAM_CALL_RETRIES, &c->to);
}

int stream_call_copy(struct stream_call *call)
{
    struct copy c = {.call = call, .known = {.from = "-1", .to = "-1"}, .batch_max = BATCH_BYTES};
    int patience = call->set.keep_following ? STREAM_RETRY_FOREVER : STREAM_CALL_RETRIES_LONG;
    int code = stream_call_open(call, call->operands[0], STREAM_CALL_RETRIES, &c.from);

    c.start_ms = bar_now_ms();
    bar_init(&c.bar, call->set.json != 0);
    buf_init(&c.batch, COPY_BATCH_BYTES_MAX);
    if (code == 0) {
        code = open_destination(&c);
    }
    if (code == 0) {
        code = prepare(&c);
    }
    if (code == 0) {
        code = stream_call_reopen(call, patience, &c.from);
    }
    if (code == 0) {
        code = stream_call_reopen(call, patience, &c.to);
    }
    if (code == 0) {
        code = work(&c);
    }
    if (code == 0) {
        report(&c);
    }
    bar_clear(&c.bar);
    cursor_finish(&c.cursor);
    buf_finish(&c.batch);
    stream_call_close(&c.to);
    stream_call_close(&c.from);
    return code;
}
