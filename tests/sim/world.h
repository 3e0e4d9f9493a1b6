/* An engine with its surroundings under the test's control: two workers whose tasks run when the
 * test says so, a pool likewise, a disk and clocks that may be fake, and the model beside it. Every
 * record that the engine stages is shown to the model at once; every answer is compared with what
 * the model says could be answered at any moment between question and answer.
 *
 * One thread. Wrong behaviour ends in sim_fail. */
#ifndef ARBE_TESTS_SIM_WORLD_H
#define ARBE_TESTS_SIM_WORLD_H

#include "sim/fakedisk.h"
#include "sim/model.h"
#include "sim/simpool.h"

#define WORLD_WORKERS 2u
#define WORLD_NAMES   10u

struct world;

/* A request on its way. */
struct request {
    struct list link; /* on the world's requests */
    struct stream_op op;
    struct model_request said;
    struct world *world;
    unsigned number;
    char *raw;    /* owned; the body as sent */
    char *stored; /* owned; the body as kept */
    uint32_t *lens;
    char stream_seq[MODEL_SEQ_BYTES + 1];
    char producer_id[3];
    struct block *block;
    size_t start_moment;  /* all events then */
    size_t start_visible; /* durable ones */
    int64_t start_ms;
    bool staged; /* its record was seen */
    size_t staged_moment;
    struct model_stream *stream; /* that the record is about, or that a further read goes on with */
    bool further;
    bool will_wait; /* a read that becomes a live reader when it has all */
    bool read_on;   /* a read that goes on until it has all */
};

/* A live reader that sleeps. */
struct sleeper {
    struct list link; /* on the world's sleepers */
    struct stream_waiter waiter;
    struct world *world;
    struct stream *stream; /* referenced */
    struct model_stream *model_stream;
    unsigned worker;
};

struct world {
    uint64_t random;
    struct fakedisk *disk; /* NULL: the real disk */
    struct sys sys;
    char dir[64];
    char catalog_dir[64];
    struct engine_config config;
    struct engine *engine; /* NULL: down */
    struct engine_worker *workers[WORLD_WORKERS];
    struct list queues[WORLD_WORKERS]; /* struct task */
    struct pool *pool;
    const struct store_ops *real_ops;
    struct store_ops ops;
    struct model model;
    struct list requests; /* struct request */
    size_t request_count;
    struct list sleepers; /* struct sleeper */
    size_t sleeper_count;
    struct list retries; /* struct request, of producers who never heard what became of it */
    unsigned next_number;
    log_pos durable;  /* highest seen in this life */
    bool trouble;     /* the disk fails or is full, or was: errors are answers too */
    bool dying;       /* being torn down: nobody hears the answers */
    bool with_expiry; /* streams with a TTL */
    bool saving;      /* a checkpoint runs: other things happen between its calls */
    bool calm;        /* nothing happens but what the test says */
    uint64_t answers; /* checked */
    uint64_t records; /* seen */
    bool verbose;
};

/* A world on a fake disk, or on the real one below `dir`. The engine is down. */
void world_init(struct world *w, uint64_t seed, bool real_disk, bool verbose);
void world_finish(struct world *w);

/* Opens the engine and compares what it recovered; the model goes back to what survived. An error
 * is returned only if there is trouble. */
int world_open(struct world *w);

/* Takes the engine down. `checkpoint` makes a last one. */
void world_close(struct world *w, bool checkpoint);

/* Reads all there is and compares. */
void world_verify(struct world *w);

/* Runs one waiting task, chosen at random; false when there is none. */
bool world_run_task(struct world *w);

/* Runs tasks until none waits; live readers that should have been told were told. */
void world_settle(struct world *w);

/* Commits what is staged. */
void world_commit(struct world *w);

/* Commits and settles until every request has its answer. */
void world_drain(struct world *w);

/* Checkpoint and one round of compaction. */
void world_checkpoint(struct world *w);

void world_advance(struct world *w, uint64_t ms);
int64_t world_now(struct world *w);

/* Starts one random request. */
void world_start_random(struct world *w);

/* Starts one random batch of notes. */
void world_start_note(struct world *w);

/* Compares all notes and all streams that the engine shows with what there is. Not while a
 * checkpoint runs; the list alone may be looked at then, too. */
void world_survey(struct world *w);
void world_check_list(struct world *w);

/* Does anything that may happen: a request, a commit, tasks that run, time that passes, ... */
void world_act(struct world *w);

/* Sends again what producers were not answered. */
void world_retry(struct world *w);

/* Asks for metadata, or for all of a stream from the start. */
void world_start_head(struct world *w, const char *name);
void world_start_read(struct world *w, const char *name);
void world_start_delete(struct world *w, const char *name);

/* Deletes everything; every name is free again, and the disk as well. */
void world_delete_all(struct world *w);

/* For libtraffic.c and libanswer.c: */
struct request *request_create(struct world *w, enum stream_verb verb, const char *name);
void request_start(struct request *r);
void request_free(struct request *r);
void request_answered(struct request *r);
bool request_matches(struct request *r, const struct record *record);
/* Whether the record, which matches, is due to be accepted at this very moment. */
bool request_acceptable(struct request *r, const struct record *record);
log_pos world_durable(struct world *w);
/* Compares what the engine counts with what there is. */
void world_check_usage(struct world *w);
void world_name(char out[static 24], unsigned number);
void world_trace(const struct world *w, const char *format, ...) PRINTF_LIKE(2, 3);
void world_sleep(struct request *r);
void world_read_on(struct request *r, uint64_t from);

static inline uint64_t world_below(struct world *w, uint64_t limit)
{
    return fakedisk_below(&w->random, limit);
}

static inline bool world_chance(struct world *w, uint64_t in)
{
    return fakedisk_below(&w->random, in) == 0;
}

struct sim_options {
    uint64_t start;
    uint64_t seeds;
    unsigned steps;
    bool verbose;
};

/* The command line, over the defaults. */
struct sim_options sim_parse(int argc, char **argv, uint64_t seeds, unsigned steps);

/* What sim_fail says to repeat the run. */
void sim_begin(const char *program, uint64_t seed, unsigned steps);
void sim_step(unsigned step);
void sim_passed(void);
unsigned sim_finish(void); /* prints the closing line; 0 */

#endif
