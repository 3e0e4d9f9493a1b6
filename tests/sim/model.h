/* A naive model of streams: every state that each stream ever had, one per log record, so that a
 * test can ask what was true at any moment and go back to any of them. It is told each record when
 * it is staged, and judges by itself whether that record may be and what any request would be
 * answered.
 *
 * A moment is a number of events (records since the directory was made): moment k is the state
 * after the first k. Single-threaded; wrong behaviour ends in sim_fail. */
#ifndef ARBE_TESTS_SIM_MODEL_H
#define ARBE_TESTS_SIM_MODEL_H

#include "log/record.h"
#include "stream/engine.h"

#define MODEL_PRODUCERS 4u
#define MODEL_SEQ_BYTES 8u

/* Ends the program, with the seed and the place in a line. */
NO_RETURN void sim_fail(const char *format, ...) PRINTF_LIKE(1, 2);

#define CHECK(condition, ...)                      \
    do {                                           \
        if (!(condition)) {                        \
            sim_fail(#condition ": " __VA_ARGS__); \
        }                                          \
    } while (0)

enum model_life {
    MODEL_ALIVE,
    MODEL_SOFT,
    MODEL_GONE
};

struct model_producer {
    bool known;
    uint64_t epoch;
    uint64_t seq;
};

/* State of one generation of a stream after one event. */
struct model_version {
    size_t moment; /* number of events after which it holds */
    log_pos end;   /* of the event */
    uint64_t tail;
    bool closed;
    enum model_life life;
    bool expired; /* that is why it is not alive: it stays so, whatever becomes of the record */
    unsigned fork_refs;
    int64_t accessed_ms; /* last logged access */
    struct model_producer producers[MODEL_PRODUCERS];
    unsigned closer; /* producer number and one; 0: none */
    struct model_producer closer_state;
    bool has_seq;
    size_t seq_len;
    char seq[MODEL_SEQ_BYTES];
};

struct model_mark {
    uint64_t end;
    bool append_end;
};

/* One generation of a name. */
struct model_stream {
    stream_id id;
    char name[24];
    const char *type;
    bool json;
    uint64_t ttl_seconds;
    int64_t expires_at_ms;
    struct model_stream *source; /* NULL: not a fork */
    uint64_t fork_offset;
    uint64_t fork_anchor;
    uint64_t fork_sub;
    bool fork_explicit;
    unsigned depth;
    char *bytes; /* owned; inherited ones included */
    size_t cap;
    struct model_mark *marks; /* owned */
    size_t mark_count;
    size_t mark_cap;
    struct model_version *versions; /* owned; ascending */
    size_t version_count;
    size_t version_cap;
    int64_t accessed_min_ms; /* it lives at least until a TTL after this */
    int64_t accessed_max_ms; /* and at most until a TTL after this */
    unsigned waiters;        /* live readers, which keep it */
};

/* One change to a key of the notes. */
struct model_note {
    char key[16];
    size_t moment; /* number of events after which it holds */
    bool put;      /* false: the key went */
    char *value;   /* owned */
    size_t len;    /* bytes */
};

struct model {
    struct model_note *notes; /* owned; all changes in order */
    size_t note_count;
    size_t note_cap;
    struct model_stream **streams; /* owned; by creation */
    size_t count;
    size_t cap;
    log_pos *ends; /* owned; of each event */
    size_t moment; /* number of events */
    size_t end_cap;
};

/* What the test asks for, in the terms of the engine, with what the model has to know besides. */
struct model_request {
    enum stream_verb verb;
    const char *name;
    /* Create and append. */
    const char *type;   /* NULL: none was sent */
    const char *stored; /* body as it is to be stored */
    size_t stored_len;
    const uint32_t *message_lens; /* of `stored` */
    size_t message_count;
    bool malformed; /* not acceptable to a stream in JSON mode */
    bool body_empty;
    bool close;
    int producer; /* number; below 0: none */
    uint64_t epoch;
    uint64_t seq;
    const char *stream_seq; /* NULL: none */
    /* Create. */
    struct stream_expiry expiry;
    const char *source; /* name; NULL: not a fork */
    bool has_fork_offset;
    struct offset fork_offset;
    bool has_sub_offset;
    uint64_t sub_offset;
};

/* What the answer must be. */
struct model_verdict {
    int code;      /* 0: as `accepted` and `duplicate` say */
    bool accepted; /* the request changes something: there is a record of it */
    bool duplicate;
    bool seq_gap;
    bool seq_conflict;
    bool stale_epoch;
    const struct model_stream *stream;   /* that it is about, or NULL */
    const struct model_version *version; /* of it */
};

void model_init(struct model *m);
void model_finish(struct model *m);

/* The newest generation of the name that exists at the moment; NULL for none, or when it is
 * gone. */
struct model_stream *model_find(const struct model *m, const char *name, size_t moment);
struct model_stream *model_by_id(const struct model *m, stream_id id);

/* Its state at the moment; NULL before its creation. */
const struct model_version *model_at(const struct model_stream *s, size_t moment);

/* The newest moment whose events all end at or before `durable`. */
size_t model_moment(const struct model *m, log_pos durable);

/* How a request fares if it is judged at that moment, all expiries left aside. For forks
 * `source_tail` is the source's end as readers see it. */
struct model_verdict model_judge(const struct model *m, const struct model_request *r,
                                 size_t moment, uint64_t source_tail);

/* Whether the place where the fork is to begin is none, whatever else may be wrong. */
bool model_fork_invalid(const struct model *m, const struct model_request *r, size_t moment,
                        uint64_t source_tail);

/* Where a fork begins, by the marks: 0, or ERR_INVALID. */
int model_locate(const struct model_stream *s, uint64_t anchor, uint64_t sub, uint64_t tail,
                 uint64_t *ret_offset);

/* Whether `position` is between messages of a JSON stream. */
bool model_boundary(const struct model_stream *s, uint64_t position);

/* Where a page from `from` ends. */
uint64_t model_page_end(const struct model_stream *s, uint64_t from, uint64_t tail,
                        uint64_t bytes_max);

/* A record was staged. It is checked against what a deletion or a fork must say, and applied. */
void model_apply(struct model *m, const struct record *r, log_pos end, int64_t now_ms);

/* Back to a moment: what came later never was. */
void model_rewind(struct model *m, size_t moment);

/* The part of the above that is about notes; in libnotes.c. */
void model_apply_notes(struct model *m, const struct record_note *r);
void model_rewind_notes(struct model *m, size_t moment);
void model_finish_notes(struct model *m);

/* Streams that are not gone at the moment, and the bytes of their own that they hold. */
struct model_usage {
    uint64_t streams;
    uint64_t bytes;
};
struct model_usage model_usage(const struct model *m, size_t moment);

/* Streams that are alive at the moment. */
size_t model_stream_count(const struct model *m, size_t moment);

/* The earliest and the latest time at which the stream may be taken for expired; INT64_MAX:
 * never. */
int64_t model_deadline_min(const struct model_stream *s);
int64_t model_deadline_max(const struct model_stream *s);

#endif
