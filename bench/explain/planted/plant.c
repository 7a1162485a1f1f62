/* Hashes words in C or C++. planted.py sets ROUNDS, TIMES, EXTRA and HASH. */
#include <stdio.h>
#include <stdlib.h>

#define NOINLINE __attribute__((noinline))

#ifdef LIBRARY
unsigned HASH(const char *text, unsigned length);
#else
#ifndef INLINE
NOINLINE
#else
static inline __attribute__((always_inline))
#endif
unsigned HASH(const char *text, unsigned length)
{
    unsigned hash = 2166136261u, round, i;
    for (round = 0; round < ROUNDS; round++)
        for (i = 0; i < length; i++) hash = (hash ^ (unsigned char)text[i]) * 16777619u;
    __asm__ volatile("" : "+r"(hash));
    return hash;
}
#endif

#ifndef ONLY_LIBRARY
NOINLINE unsigned parse(const char *text)
{
    unsigned all = 0, time;
    EXTRA
    for (time = 0; time < TIMES; time++) all ^= HASH(text, 11);
    return all & 1;
}

NOINLINE unsigned print(unsigned count)
{
    volatile unsigned sum = 0;
    unsigned i;
    for (i = 0; i < count; i++) sum += i;
    return sum & 1;
}

int main(int argc, char **argv)
{
    unsigned all = 0;
    int i, count = argc > 1 ? atoi(argv[1]) : 4000;
    for (i = 0; i < count; i++) all += parse("hello world");
    all += print(2000000);
    return all > 100000;
}
#endif
