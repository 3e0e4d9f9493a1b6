/* The outbox in SQLite. AUTOINCREMENT: a number that was given is never given again, not even after
 * its row went. */
#include "thread/store_outbox.h"

#include "thread/store_sqlite.h"

static const char *const kinds[] = {
    [OUTBOX_CREATE] = "create",
    [OUTBOX_APPEND] = "append",
    [OUTBOX_DROP] = "drop",
};

static const char outbox_add[] =
    "INSERT INTO outbox (kind, thread_id, entry_id, entry) VALUES (?1, ?2, ?3, ?4)";
static const char outbox_list[] =
    "SELECT seq, kind, thread_id, entry_id, entry FROM outbox WHERE seq > ?1 ORDER BY seq LIMIT ?2";
static const char outbox_list_thread[] = "SELECT seq, kind, thread_id, entry_id, entry FROM outbox"
                                         " WHERE thread_id = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3";
static const char outbox_done[] = "DELETE FROM outbox WHERE seq = ?1";

void txn_outbox(struct txn *t, const struct outbox_item *items, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct outbox_item *item = &items[i];
        (void)txn_run(t, outbox_add,
                      PARAMS(T(slice_of(kinds[item->kind])), T(item->thread_id), T(item->entry_id),
                             T(item->entry)));
    }
}

int store_outbox_add(struct thread_store *s, const struct outbox_item *items, size_t count,
                     struct errmsg *msg)
{
    struct txn t;
    store_write(&t, s, NULL, msg);
    txn_outbox(&t, items, count);
    return store_end(&t, s);
}

static enum outbox_kind kind_of(const char *text)
{
    return text[0] == 'c' ? OUTBOX_CREATE : text[0] == 'a' ? OUTBOX_APPEND : OUTBOX_DROP;
}

static struct outbox_list read_items(struct txn *t, sqlite3_stmt *query, size_t limit)
{
    struct outbox_list list = {.items = txn_array(t, limit, sizeof(*list.items))};
    while (txn_step(t, query)) {
        list.items[list.count++] = (struct outbox_item){
            .seq = (uint64_t)sqlite3_column_int64(query, 0),
            .kind = kind_of(txn_word(t, query, 1)),
            .thread_id = txn_text(t, query, 2),
            .entry_id = txn_text(t, query, 3),
            .entry = txn_text(t, query, 4),
        };
    }
    return list;
}

int store_outbox_list(struct thread_store *s, uint64_t after_seq, size_t limit, struct arena *arena,
                      struct outbox_list *ret_list, struct errmsg *msg)
{
    struct txn t;
    store_read(&t, s, arena, msg);
    sqlite3_stmt *query = txn_query(&t, outbox_list,
                                    PARAMS(N((int64_t)after_seq), N((int64_t)limit)));
    struct outbox_list list = read_items(&t, query, limit);
    int code = store_end(&t, s);
    if (code == 0) {
        *ret_list = list;
    }
    return code;
}

int store_outbox_list_thread(struct thread_store *s, struct slice thread_id, uint64_t after_seq,
                             size_t limit, struct arena *arena, struct outbox_list *ret_list,
                             struct errmsg *msg)
{
    struct txn t;
    store_read(&t, s, arena, msg);
    sqlite3_stmt *query = txn_query(&t, outbox_list_thread,
                                    PARAMS(T(thread_id), N((int64_t)after_seq), N((int64_t)limit)));
    struct outbox_list list = read_items(&t, query, limit);
    int code = store_end(&t, s);
    if (code == 0) {
        *ret_list = list;
    }
    return code;
}

int store_outbox_done(struct thread_store *s, const uint64_t *seqs, size_t count,
                      struct errmsg *msg)
{
    struct txn t;
    store_write(&t, s, NULL, msg);
    for (size_t i = 0; i < count; i++) {
        (void)txn_run(&t, outbox_done, PARAMS(N((int64_t)seqs[i])));
    }
    return store_end(&t, s);
}
