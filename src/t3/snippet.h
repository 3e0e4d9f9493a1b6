/* The snippet of a message: one line, of at most so many graphemes, which are what people take for
 * one character whatever it is made of (UAX 29, by utf8proc). Pure. */
#ifndef ARBE_T3_SNIPPET_H
#define ARBE_T3_SNIPPET_H

#include "base/buf.h"

/* Appends the snippet of `text`, which is UTF-8: runs of white space (Unicode's White_Space) become
 * one space, those at the ends go, and what is left is cut behind `graphemes_max` graphemes, or
 * before the one that would not fit into T3_GRAPHEME_BYTES_MAX times as many bytes. Nothing is put
 * in the place of what is cut off. Failure sticks to the buffer. */
void t3_snippet_append(struct slice text, size_t graphemes_max, struct buf *out);

#endif
