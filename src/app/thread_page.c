/* Two lists are merged: the store's, without the threads that memory knows to be ahead, and those,
 * at the places that memory gives them. Both are walked only as far as the page needs: the store is
 * not asked for what lies behind the next thread that is ahead, and of threads that are ahead,
 * those of other houses are told by their house, which is known by heart. However many are ahead,
 * what is kept of records is a page of the store's and one more. */
#include "app/thread_page.h"

#include "app/app.h"
#include "app/grants.h"
#include "app/paging.h"
#include "app/record_json.h"
#include "base/number.h"
#include "thread/recency.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#define RECORDS_BYTES_MAX (4ull * MIB) /* of a page of the store's list */

/* A place in the order of the list: newest first, and of one time the greater id first. */
struct place {
    int64_t ts;
    char id[STORE_ID_BYTES];
};

static int compare(const struct place *a, const struct place *b)
{
    if (a->ts != b->ts) {
        return a->ts > b->ts ? -1 : 1;
    }
    return strcmp(b->id, a->id);
}

/* The threads that are ahead, in the order of the list. */
struct ahead {
    struct recency_ahead *all; /* owned */
    size_t count;
    size_t at;                   /* the next candidate */
    struct thread_record record; /* of the candidate, once it is found to belong here */
    struct arena memory;         /* of the record */
    bool found;
};

/* The store's list. */
struct stored {
    struct thread_list list; /* a page of it */
    size_t at;               /* the next candidate */
    struct arena memory;     /* of the page */
    struct place last;       /* of the page: what comes after it is behind that place */
    bool asked;              /* there has been a page */
    bool ended;
    char after[STORE_CURSOR_BYTES];
};

struct merge {
    struct api_call *c;
    const struct thread_query *query;
    size_t limit;
    struct ahead ahead;
    struct stored stored;
};

static struct place make_place(int64_t ts, struct slice id)
{
    struct place place = {.ts = ts};

    assert(id.len < sizeof(place.id));
    memcpy(place.id, id.ptr, id.len);
    return place;
}

static struct place place_of(const struct recency_ahead *a)
{
    return make_place(a->ts, slice_of(a->thread_id));
}

static struct place place_of_record(const struct thread_record *thread)
{
    return make_place(thread->last_entry_ts != 0 ? thread->last_entry_ts : thread->created_ms,
                      thread->id);
}

static int by_place(const void *a, const void *b)
{
    const struct recency_ahead *first = a;
    const struct recency_ahead *second = b;

    if (first->ts != second->ts) {
        return first->ts > second->ts ? -1 : 1;
    }
    return strcmp(second->thread_id, first->thread_id);
}

static int by_id(const void *a, const void *b)
{
    const struct recency_ahead *first = a;
    const struct recency_ahead *second = b;

    return strcmp(first->thread_id, second->thread_id);
}

/* Whether a thread is among those that are ahead: they are few, and looked through by time. */
static bool is_ahead(const struct recency_ahead *sorted, size_t count, struct slice id)
{
    struct recency_ahead wanted = {.ts = 0};

    if (id.len >= sizeof(wanted.thread_id)) {
        return false;
    }
    memcpy(wanted.thread_id, id.ptr, id.len);
    return bsearch(&wanted, sorted, count, sizeof(*sorted), by_id) != NULL;
}

static bool fits_tag(const struct thread_record *thread, struct slice tag)
{
    for (size_t i = 0; i < thread->tag_count; i++) {
        if (slice_equal(thread->tags[i], tag)) {
            return true;
        }
    }
    return tag.ptr == NULL;
}

static bool fits(const struct thread_record *thread, const struct thread_query *query)
{
    return slice_equal(thread->house_id, query->house_id) &&
           (query->parent_id.ptr == NULL || slice_equal(thread->parent_id, query->parent_id)) &&
           (!query->with_status || thread->status == query->status) &&
           (!query->pinned || thread->pinned_ms != 0) && fits_tag(thread, query->tag);
}

/* Whether it may be of the house: surely not is what is known by heart. */
static bool may_belong(struct merge *m, struct slice thread_id)
{
    char house_id[STORE_ID_BYTES];

    return !grants_find_house(m->c->app->grants, thread_id, house_id) ||
           slice_equal(slice_of(house_id), m->query->house_id);
}

/* Asks the records about a thread: 0, or ERR_NOTFOUND when it is not to be listed. */
static int look_ahead(struct merge *m, struct slice id, struct errmsg *msg)
{
    struct ahead *a = &m->ahead;

    if (!may_belong(m, id)) {
        return ERR_NOTFOUND;
    }
    arena_finish(&a->memory);
    int code = store_thread_get(m->c->app->store, id, &a->memory, &a->record, msg);

    if (code == 0) {
        grants_keep_house(m->c->app->grants, id, a->record.house_id);
    }
    return code == 0 && !fits(&a->record, m->query) ? ERR_NOTFOUND : code;
}

/* Finds the next candidate that belongs to the list; a->found stays false at the end of them. */
static int find_ahead(struct merge *m)
{
    struct ahead *a = &m->ahead;
    struct errmsg msg = {{0}};

    while (!a->found && a->at < a->count) {
        int code = look_ahead(m, slice_of(a->all[a->at].thread_id), &msg);

        if (code != 0 && code != ERR_NOTFOUND) {
            return api_fail(m->c, code, &msg, "thread");
        }
        a->found = code == 0;
        a->at += !a->found;
    }
    return API_DONE;
}

/* Reads the next page of the store's list. Those after the first, of which nothing was of use, are
 * large. */
static int read_stored(struct merge *m)
{
    struct stored *s = &m->stored;
    const struct store_page page = {.after = slice_of(s->after),
                                    .limit = s->asked ? STORE_PAGE_MAX : m->limit};
    struct errmsg msg = {{0}};

    arena_finish(&s->memory);
    s->list = (struct thread_list){.count = 0};
    s->at = 0;
    int code = store_thread_list(m->c->app->store, m->query, &page, &s->memory, &s->list, &msg);

    if (code != 0) {
        return api_fail(m->c, code, &msg, "page");
    }
    s->asked = true;
    s->ended = s->list.next.ptr == NULL;
    if (s->list.count > 0) {
        s->last = place_of_record(&s->list.items[s->list.count - 1]);
    }
    (void)snprintf(s->after, sizeof(s->after), "%.*s", (int)s->list.next.len,
                   s->ended ? "" : s->list.next.ptr);
    return API_DONE;
}

/* Whether the thread that is ahead comes before all that the store has not told yet. */
static bool is_next(const struct merge *m)
{
    if (!m->ahead.found || !m->stored.asked) {
        return false;
    }
    struct place place = place_of(&m->ahead.all[m->ahead.at]);

    return compare(&place, &m->stored.last) < 0;
}

/* Finds the store's next thread that is not ahead, if it is needed to tell which is next. `sorted`
 * are those that are ahead, by id. */
static int find_stored(struct merge *m, const struct recency_ahead *sorted, size_t count)
{
    struct stored *s = &m->stored;

    for (;;) {
        while (s->at < s->list.count && is_ahead(sorted, count, s->list.items[s->at].id)) {
            s->at++;
        }
        if (s->at < s->list.count || s->ended || is_next(m)) {
            return API_DONE;
        }
        if (read_stored(m) != API_DONE) {
            return API_FAILED;
        }
    }
}

/* Puts the next thread, which there is. Its place. */
static struct place put_next(struct merge *m)
{
    struct place ahead = {.ts = 0};
    struct place stored = {.ts = 0};
    const struct thread_record *record = NULL;

    if (m->ahead.found) {
        ahead = place_of(&m->ahead.all[m->ahead.at]);
    }
    if (m->stored.at < m->stored.list.count) {
        record = &m->stored.list.items[m->stored.at];
        stored = place_of_record(record);
    }
    if (m->ahead.found && (record == NULL || compare(&ahead, &stored) < 0)) {
        /* The record may know of a newer entry by now, but it has this place in the list. */
        m->ahead.record.last_entry_ts = ahead.ts;
        json_put_thread(&m->c->answer, &m->ahead.record, 0);
        m->ahead.found = false;
        m->ahead.at++;
        return ahead;
    }
    json_put_thread(&m->c->answer, record, 0);
    m->stored.at++;
    return stored;
}

/* Puts the page, and where it ended. */
static int put_page(struct merge *m, const struct recency_ahead *sorted, size_t count,
                    char next[static STORE_CURSOR_BYTES])
{
    struct place last = {.ts = 0};

    next[0] = '\0';
    for (size_t i = 0;; i++) {
        if (find_ahead(m) != API_DONE || find_stored(m, sorted, count) != API_DONE) {
            return API_FAILED;
        }
        if (!m->ahead.found && m->stored.at == m->stored.list.count) {
            return API_DONE;
        }
        if (i == m->limit || paging_is_full(m->c)) {
            store_thread_cursor(last.ts, slice_of(last.id), next);
            return API_DONE;
        }
        paging_item(m->c, i);
        last = put_next(m);
    }
}

/* Candidates begin behind the cursor, which is the store's and says a time and an id. */
static void skip_to(struct merge *m, struct slice cursor)
{
    struct slice rest = cursor;
    struct slice number;
    uint64_t ts = 0;

    if (cursor.len == 0 || !slice_split(&rest, '.', &number) || rest.ptr == NULL ||
        rest.len >= STORE_ID_BYTES || !number_parse_u64(number, INT64_MAX, false, &ts)) {
        return; /* the store refuses it */
    }
    struct place from = make_place((int64_t)ts, rest);

    while (m->ahead.at < m->ahead.count) {
        struct place place = place_of(&m->ahead.all[m->ahead.at]);

        if (compare(&from, &place) < 0) {
            break;
        }
        m->ahead.at++;
    }
}

/* The threads ahead once more, by id; NULL when there is no memory. */
static struct recency_ahead *sort_by_id(const struct ahead *a)
{
    struct recency_ahead *sorted = malloc((a->count + 1) * sizeof(*sorted));

    if (sorted != NULL && a->count > 0) {
        memcpy(sorted, a->all, a->count * sizeof(*sorted));
        qsort(sorted, a->count, sizeof(*sorted), by_id);
    }
    return sorted;
}

int thread_page_answer(struct api_call *c, const struct thread_query *query,
                       const struct store_page *page)
{
    struct merge m = {.c = c, .query = query, .limit = page->limit};
    char next[STORE_CURSOR_BYTES] = "";

    if (page->after.len >= sizeof(next)) {
        return api_refuse(c, API_INVALID_INPUT, "cursor must be a nextCursor that was told before");
    }
    int code = recency_get_ahead(c->app->recency, &m.ahead.all, &m.ahead.count);
    struct recency_ahead *sorted = code == 0 ? sort_by_id(&m.ahead) : NULL;

    if (sorted == NULL) {
        free(m.ahead.all);
        return api_refuse(c, API_BUSY, "the server has no memory for this just now");
    }
    if (m.ahead.count > 0) {
        qsort(m.ahead.all, m.ahead.count, sizeof(*m.ahead.all), by_place);
    }
    skip_to(&m, page->after);
    (void)snprintf(m.stored.after, sizeof(m.stored.after), "%.*s", (int)page->after.len,
                   page->after.len == 0 ? "" : page->after.ptr);
    arena_init(&m.ahead.memory, RECORDS_BYTES_MAX);
    arena_init(&m.stored.memory, RECORDS_BYTES_MAX);
    paging_begin(c, "threads");
    int result = put_page(&m, sorted, m.ahead.count, next);

    arena_finish(&m.ahead.memory);
    arena_finish(&m.stored.memory);
    free(sorted);
    free(m.ahead.all);
    return result != API_DONE
               ? result
               : paging_end(c, next[0] == '\0' ? (struct slice){NULL, 0} : slice_of(next));
}
