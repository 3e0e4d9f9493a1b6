/* One allocation each: the method and the payload stand behind the struct. */
#include "t3/subscriptions.h"

#include <stdlib.h>
#include <string.h>

void t3_subscription_restart(struct t3_subscription *s)
{
    s->request = 0;
    s->unacked = false;
    s->live_ms = 0;
    s->due_ms = 0;
}

void t3_subscriptions_init(struct t3_subscriptions *subscriptions)
{
    *subscriptions = (struct t3_subscriptions){.count = 0};
    list_init(&subscriptions->all);
}

void t3_subscriptions_finish(struct t3_subscriptions *subscriptions)
{
    LIST_FOR_EACH(node, &subscriptions->all)
    {
        t3_subscriptions_remove(subscriptions, t3_subscription_of(node));
    }
}

/* Writes a text and its NUL, and returns what is behind. */
static char *append_text(char *at, struct slice text)
{
    memcpy(at, text.ptr, text.len);
    at[text.len] = '\0';
    return at + text.len + 1;
}

struct t3_subscription *t3_subscriptions_add(struct t3_subscriptions *subscriptions,
                                             struct slice method, struct slice payload,
                                             const struct t3_backoff *backoff)
{
    struct t3_subscription *s = malloc(sizeof(*s) + method.len + payload.len + 2);

    if (s != NULL) {
        *s = (struct t3_subscription){.id = ++subscriptions->ids, .backoff = *backoff};
        s->payload = append_text(s->method, method);
        (void)append_text(s->method + method.len + 1, payload); /* it ends there */
        list_append(&subscriptions->all, &s->in_all);
        subscriptions->count++;
    }
    return s;
}

void t3_subscriptions_remove(struct t3_subscriptions *subscriptions,
                             struct t3_subscription *subscription)
{
    list_remove(&subscription->in_all);
    subscriptions->count--;
    free(subscription);
}

struct t3_subscription *t3_subscriptions_find(const struct t3_subscriptions *subscriptions,
                                              uint64_t id)
{
    LIST_FOR_EACH(node, &subscriptions->all)
    {
        if (t3_subscription_of(node)->id == id) {
            return t3_subscription_of(node);
        }
    }
    return NULL;
}

struct t3_subscription *t3_subscriptions_find_request(const struct t3_subscriptions *subscriptions,
                                                      uint64_t request)
{
    LIST_FOR_EACH(node, &subscriptions->all)
    {
        if (t3_subscription_of(node)->request == request) {
            return t3_subscription_of(node);
        }
    }
    return NULL;
}

void t3_subscriptions_restart(struct t3_subscriptions *subscriptions)
{
    LIST_FOR_EACH(node, &subscriptions->all)
    {
        t3_subscription_restart(t3_subscription_of(node));
    }
}

bool t3_subscriptions_live(const struct t3_subscriptions *subscriptions)
{
    LIST_FOR_EACH(node, &subscriptions->all)
    {
        if (t3_subscription_of(node)->live_ms == 0) {
            return false;
        }
    }
    return true;
}

uint64_t t3_subscriptions_due_ms(const struct t3_subscriptions *subscriptions)
{
    uint64_t first = 0;

    LIST_FOR_EACH(node, &subscriptions->all)
    {
        uint64_t due = t3_subscription_of(node)->due_ms;

        first = due != 0 && (first == 0 || due < first) ? due : first;
    }
    return first;
}
