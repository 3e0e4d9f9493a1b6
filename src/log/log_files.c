/* Files come and go while a server runs: one that is gone when it is opened is passed over, one
 * that is listed under two names is taken once. */
#include "log/log_files.h"

#include <stdlib.h>

#include "base/bytes.h"

struct names {
    uint64_t *numbers; /* owned */
    size_t count;
    size_t cap;
};

static int add_name(void *context, const char *name)
{
    struct names *n = context;
    uint64_t number = 0;
    if (!segment_parse_name(name, &number)) {
        return 0;
    }
    if (n->count == n->cap) {
        size_t cap = n->cap ? n->cap * 2 : 64;
        uint64_t *numbers = realloc(n->numbers, cap * sizeof(numbers[0]));
        if (!numbers) {
            return ERR_NOMEM;
        }
        n->numbers = numbers;
        n->cap = cap;
    }
    n->numbers[n->count++] = number;
    return 0;
}

static struct segment *segment_of(struct list *node)
{
    return container_of(node, struct segment, link);
}

/* Puts `s` into `found`, ascending by start; false when one of that start is there. */
static bool insert(struct list *found, struct segment *s)
{
    struct list *after = found->prev;
    while (after != found && segment_of(after)->start > s->start) {
        after = after->prev;
    }
    if (after != found && segment_of(after)->start == s->start) {
        return false;
    }
    list_append(after->next, &s->link); /* behind its successor as head is in front of it */
    return true;
}

struct opening {
    struct log_files *files;
    struct list found;
    log_fact_fn fact;
    void *context;
};

static void open_one(struct opening *o, uint64_t number)
{
    static const enum log_fact facts[] = {
        [SEGMENT_UNFINISHED] = LOG_FILE_UNFINISHED,
        [SEGMENT_DAMAGED] = LOG_FILE_DAMAGED,
        [SEGMENT_FOREIGN] = LOG_FILE_FOREIGN,
        [SEGMENT_FORMAT] = LOG_FILE_FORMAT,
    };
    char name[SEGMENT_PATH_MAX];
    segment_format_name(number, name);
    enum segment_state state = SEGMENT_GOOD;
    struct segment *s = NULL;
    int rc = segment_open(&o->files->dir, name, &state, &s);
    if (rc == ERR_NOTFOUND) {
        return;
    }
    if (rc) {
        o->fact(o->context, LOG_FILE_UNREADABLE, name, rc);
        return;
    }
    if (state != SEGMENT_GOOD) {
        o->fact(o->context, facts[state], name, 0);
        return;
    }
    o->files->file_count++;
    o->files->file_bytes += s->file_bytes;
    if (!insert(&o->found, s)) {
        segment_close(&o->files->dir, s);
    }
}

/* Keeps what the log needs from `start` on. */
static void keep(struct opening *o, log_pos start)
{
    struct chain *chain = &o->files->chain;
    LIST_FOR_EACH(node, &o->found)
    {
        struct segment *s = segment_of(node);
        bool first = list_empty(&chain->segments);
        bool old = segment_end(s) < start || (segment_end(s) == start && node->next != &o->found);
        bool next = first ? s->start <= start : s->start == chain_end(chain);
        list_remove(node);
        if (old || !next) {
            char name[SEGMENT_PATH_MAX];
            segment_format_name(s->name, name);
            if (!old) {
                o->fact(o->context, LOG_FILE_UNREACHABLE, name, 0);
            }
            segment_close(&o->files->dir, s);
            continue;
        }
        uint64_t whole = s->bytes + SEGMENT_HEADER_BYTES;
        if (s->file_bytes < whole) {
            char name[SEGMENT_PATH_MAX];
            segment_format_name(s->name, name);
            o->fact(o->context, LOG_FILE_SHORT, name, (int64_t)(whole - s->file_bytes));
        }
        chain_append(chain, s);
    }
}

int log_files_open(struct log_files *l, struct sys *sys, const char *path,
                   const uint8_t uuid[static 16], log_pos start, log_fact_fn fact, void *context)
{
    struct names names = {0};
    *l = (struct log_files){.dir = {.sys = sys, .path = path, .read_only = true}};
    memcpy(l->dir.uuid, uuid, sizeof(l->dir.uuid));
    chain_init(&l->chain, &l->dir);
    struct opening o = {.files = l, .fact = fact, .context = context};
    list_init(&o.found);
    int rc = sys->list_dir(sys->context, path, add_name, &names);
    for (size_t i = 0; i < names.count && rc == 0; i++) {
        open_one(&o, names.numbers[i]);
    }
    keep(&o, start);
    free(names.numbers);
    return rc;
}

void log_files_finish(struct log_files *l)
{
    chain_finish(&l->chain);
}
