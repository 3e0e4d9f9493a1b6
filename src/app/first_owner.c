/* One transaction of the store, so that there is never an owner without a house. */
#include "app/first_owner.h"

#include "app/app.h"
#include "app/wall_clock.h"
#include "base/limits.h"
#include "thread/api_key.h"
#include "thread/outbox.h"
#include "thread/recency.h"
#include "thread/store_house.h"

#include <stdlib.h>
#include <sys/random.h>

#define OWNER_NAME       "Owner"
#define OWNER_HANDLE     "owner"
#define HOUSE_NAME       "Home"
#define MEMORY_BYTES_MAX (64ull * KIB)

/* All that comes to be. */
struct first {
    struct arena memory;
    int64_t now_ms;
    struct slice agent_id;
    struct slice key_id;
    struct slice house_id;
    struct slice thread_id;
    struct outbox_item items[3];
    char key[API_KEY_BYTES];
    char hash[API_KEY_HASH_BYTES];
};

static bool make_id(struct app *app, struct first *f, struct slice *ret_id)
{
    char *text = arena_try_alloc(&f->memory, UUID_TEXT_BYTES);
    struct uuid id;

    if (text == NULL || uuid_source_next(&app->ids, (uint64_t)f->now_ms, &id) != 0) {
        return false;
    }
    uuid_format(&id, text);
    *ret_id = slice_of(text);
    return true;
}

static bool make_key(struct first *f)
{
    unsigned char random[API_KEY_RANDOM_BYTES];
    bool good = getrandom(random, sizeof(random), 0) == (ssize_t)sizeof(random);

    if (good) {
        api_key_make(random, f->key);
        good = api_key_hash(slice_of(f->key), f->hash);
    }
    explicit_bzero(random, sizeof(random));
    return good;
}

/* What the house's own thread tells first. */
static bool make_signals(struct app *app, struct first *f)
{
    struct thread_signal signal = {
        .thread_id = f->thread_id, .author_id = f->agent_id, .ts = f->now_ms};

    f->items[0] = (struct outbox_item){.kind = OUTBOX_CREATE, .thread_id = f->thread_id};
    signal.type = "signal.house.created";
    if (!make_id(app, f, &signal.entry_id) || !outbox_signal(&signal, &f->memory, &f->items[1])) {
        return false;
    }
    signal.type = "signal.thread.created";
    return make_id(app, f, &signal.entry_id) && outbox_signal(&signal, &f->memory, &f->items[2]);
}

static bool make_all(struct app *app, struct first *f)
{
    return make_id(app, f, &f->agent_id) && make_id(app, f, &f->key_id) &&
           make_id(app, f, &f->house_id) && make_id(app, f, &f->thread_id) && make_key(f) &&
           make_signals(app, f);
}

static int keep(struct app *app, const struct first *f, struct errmsg *msg)
{
    const struct agent_record agent = {.id = f->agent_id,
                                       .kind = AGENT_HUMAN,
                                       .name = SLICE(OWNER_NAME),
                                       .handle = SLICE(OWNER_HANDLE),
                                       .created_ms = f->now_ms};
    const struct key_record key = {.id = f->key_id,
                                   .agent_id = f->agent_id,
                                   .name = SLICE("first start"),
                                   .hash = slice_of(f->hash),
                                   .created_ms = f->now_ms};
    const struct house_create house = {.id = f->house_id,
                                       .name = SLICE(HOUSE_NAME),
                                       .primary_thread_id = f->thread_id,
                                       .thread_name = SLICE(HOUSE_NAME),
                                       .owner_id = f->agent_id,
                                       .now_ms = f->now_ms};

    return store_first_owner(app->store, &agent, &key, &house, f->items, ARRAY_COUNT(f->items),
                             msg);
}

static int stop_at_first(void *context, const char *name, const struct stream_info *info)
{
    bool *found = context;

    (void)name;
    (void)info;
    *found = true;
    return 1;
}

/* Streams of threads without any record: the records were lost, and this is no first start. Where
 * the streams cannot be listed, that is not known. */
static int check_is_first(struct app *app, struct errmsg *msg)
{
    bool found = false;

    (void)stream_client_list(app->streams, THREAD_STREAM, stop_at_first, &found, NULL);
    return found ? err_set(msg, ERR_MISMATCH,
                           "there are streams of threads, but app.db has no records: it was lost. "
                           "Bring it back from a backup; or begin anew with another --data")
                 : 0;
}

int first_owner_make(struct app *app, struct errmsg *msg)
{
    const struct app_config *config = &app->config;
    struct first f = {.now_ms = wall_clock_ms()};
    bool any = false;
    int code = store_agent_any(app->store, &any, msg);

    if (code != 0 || any) {
        return code;
    }
    code = check_is_first(app, msg);
    if (code != 0) {
        return code;
    }
    arena_init(&f.memory, MEMORY_BYTES_MAX);
    if (!make_all(app, &f)) {
        code = err_set(msg, ERR_NOMEM, "the first owner's key cannot be made");
    }
    if (code == 0 && !config->tell_key(config->tell_context, OWNER_NAME, HOUSE_NAME, f.key)) {
        code = err_set(msg, ERR_IO, "the first owner's key cannot be told, so none was made");
    }
    code = code == 0 ? keep(app, &f, msg) : code;
    explicit_bzero(f.key, sizeof(f.key));
    arena_finish(&f.memory);
    return code;
}
