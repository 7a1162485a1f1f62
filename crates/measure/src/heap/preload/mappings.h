/* What the kernel says about the process's mapped files and stacks. */
#ifndef SCRUPLE_MAPPINGS_H
#define SCRUPLE_MAPPINGS_H

#include "../../preload/system.h"

/* A reader of /proc/self/maps, line by line. */
struct text {
    int file;
    uint32_t at, end; /* what is left of `chunk` */
    char chunk[4096];
    char line[4096 + 128];
};

/* Begins at the first line; 0 if the kernel shows none. */
HIDDEN int begin_text(struct text *text);
HIDDEN void end_text(struct text *text);

/* Reads on to the next mapping of code; returns the length of its line, 0 after the last. */
HIDDEN uint64_t next_code(struct text *text);

/* Finds the mapping that contains an address. `is_main` says whether it is the main thread's stack. */
HIDDEN int mapping_around(struct text *text, uint64_t address, uint64_t *low, uint64_t *high, int *is_main);

/* A number that changes when a library is loaded or unloaded. The C library is not asked in a forked process: another
 * thread of the parent may have held its lock, which nobody would release. There, only calls of dlopen count. */
HIDDEN uint64_t loaded_libraries(int forked);

extern HIDDEN uint64_t calls_of_dlopen;

static inline void copy(uint8_t *to, const uint8_t *from, uint64_t size) {
    for (uint64_t i = 0; i + 8 <= size; i += 8) __builtin_memcpy(to + i, from + i, 8);
    for (uint64_t i = size & ~(uint64_t)7; i < size; i++) to[i] = from[i];
}

#endif
