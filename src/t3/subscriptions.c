/* One allocation each: the method and the payload stand behind the struct. */
#include "t3/subscriptions.h"

#include <stdlib.h>
#include <string.h>

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
                                             struct slice method, struct slice payload)
{
    struct t3_subscription *s = malloc(sizeof(*s) + method.len + payload.len + 2);

    if (s != NULL) {
        *s = (struct t3_subscription){.id = ++subscriptions->ids};
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
        struct t3_subscription *s = t3_subscription_of(node);

        s->request = 0;
        s->unacked = false;
        s->live = false;
    }
}

bool t3_subscriptions_live(const struct t3_subscriptions *subscriptions)
{
    LIST_FOR_EACH(node, &subscriptions->all)
    {
        if (!t3_subscription_of(node)->live) {
            return false;
        }
    }
    return true;
}
