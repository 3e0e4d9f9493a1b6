/* One counter after the other: each is right for some moment. */
#include "serve/tally.h"

static void add(struct counter *sum, const struct counter *more)
{
    counter_add(sum, counter_get(more));
}

static void add_histogram(struct histogram *sum, const struct histogram *more)
{
    for (unsigned i = 0; i <= HISTOGRAM_BOUNDS; i++) {
        add(&sum->counts[i], &more->counts[i]);
    }
    add(&sum->sum, &more->sum);
}

void tally_add(struct tally *t, const struct tally *more)
{
    for (unsigned method = 0; method < HTTP_METHOD_COUNT; method++) {
        for (unsigned i = 0; i <= HTTP_STATUS_COUNT; i++) {
            add(&t->requests[method][i], &more->requests[method][i]);
        }
    }
    for (unsigned i = 0; i < ERR_INDEX_COUNT; i++) {
        add(&t->errors[i], &more->errors[i]);
    }
    add(&t->accepted, &more->accepted);
    add(&t->refused, &more->refused);
    add(&t->request_bytes, &more->request_bytes);
    add(&t->response_bytes, &more->response_bytes);
    add(&t->long_polls, &more->long_polls);
    add(&t->sse_streams, &more->sse_streams);
    add_histogram(&t->append_us, &more->append_us);
}
