/* Texts without a C library. */
#ifndef SCRUPLE_TEXT_H
#define SCRUPLE_TEXT_H

#include <stddef.h>

static inline size_t length(const char *text) {
    size_t n = 0;
    while (text[n]) n++;
    return n;
}
static inline int begins(const char *text, const char *with) {
    while (*with && *text == *with) text++, with++;
    return !*with;
}

#endif
