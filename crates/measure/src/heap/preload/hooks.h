/* What the hooks of malloc offer to those of operator new. */
#ifndef SCRUPLE_HOOKS_H
#define SCRUPLE_HOOKS_H

#include "system.h"

/* What dladdr tells of an address. */
struct place {
    const char *file;
    void *base;
    const char *symbol;
    void *address;
};

/* Whether two functions are known to be of the same program or library. */
HIDDEN int same_library(const void *a, const void *b);

/* Allocations and frees of this thread so far: whether a call that was passed on has been counted on its way. */
struct calls {
    int counting;
    uint64_t allocations, frees;
};
HIDDEN struct calls calls_so_far(void);

/* Counts a block, and returns it. */
HIDDEN void *block_came(void *block, size_t size);

/* What a block weighs that is about to go; then counts that it has gone. */
HIDDEN size_t weight_of(void *block);
HIDDEN void block_went(size_t weight);

/* What to ask for instead of `size` bytes. */
HIDDEN size_t size_to_ask_for(size_t size);

/* The malloc behind ours; null where there is none. */
HIDDEN void *malloc_behind(void);

/* Between these two, calls are not counted. */
HIDDEN uint32_t stop_counting(void);
HIDDEN void count_again(uint32_t key);

#endif
