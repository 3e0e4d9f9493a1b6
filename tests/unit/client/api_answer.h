/* Answers of an API and of the thread proxy, for turns of a scripted server. They live until
 * api_answers_clear, which each test calls at its end. */
#ifndef ARBE_TESTS_UNIT_CLIENT_API_ANSWER_H
#define ARBE_TESTS_UNIT_CLIENT_API_ANSWER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit/base/unit.h"

#define API_ANSWERS 64

static char *api_answers[API_ANSWERS];
static size_t api_answer_count;

/* An answer with `head` ("Name: value\r\n" lines, perhaps none) and a body. */
static inline const char *api_answer_with(const char *status, const char *head, const char *body)
{
    size_t size = strlen(status) + strlen(head) + strlen(body) + 100;
    char *text = malloc(size);

    assert_non_null(text);
    assert_true(api_answer_count < API_ANSWERS);
    (void)snprintf(text, size,
                   "HTTP/1.1 %s\r\nContent-Type: application/json\r\n%sContent-Length: %zu\r\n\r\n"
                   "%s",
                   status, head, strlen(body), body);
    api_answers[api_answer_count++] = text;
    return text;
}

static inline const char *api_answer(const char *status, const char *body)
{
    return api_answer_with(status, "", body);
}

/* A page of the stream, or what a long-poll brings: entries as a JSON array. */
static inline const char *api_page(const char *next_offset, const char *entries, int up_to_date)
{
    char head[200];

    (void)snprintf(head, sizeof(head), "Stream-Next-Offset: %s\r\nStream-Cursor: c%s\r\n%s",
                   next_offset, next_offset, up_to_date ? "Stream-Up-To-Date: true\r\n" : "");
    return api_answer_with("200 OK", head, entries);
}

static inline void api_answers_clear(void)
{
    while (api_answer_count > 0) {
        free(api_answers[--api_answer_count]);
    }
}

#endif
