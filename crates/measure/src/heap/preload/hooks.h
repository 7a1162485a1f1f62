/* Functions of the malloc hooks that the hooks of operator new use. */
#ifndef SCRUPLE_HOOKS_H
#define SCRUPLE_HOOKS_H

#include "../../preload/system.h"

/* Whether two functions are known to be in the same program or library. */
HIDDEN int same_library(const void *a, const void *b);

/* The allocations and frees of this thread so far. They show whether a call to the next operator was counted. */
struct calls {
    int counting;
    uint64_t allocations, frees;
};
HIDDEN struct calls calls_so_far(void);

/* Counts a block, and returns it. */
HIDDEN void *count_allocation(void *block, size_t size);

/* size_of_block returns the size of a block that is about to be freed; count_free counts the free. */
HIDDEN size_t size_of_block(void *block);
HIDDEN void count_free(size_t weight);

/* The number of bytes to request instead of `size`. */
HIDDEN size_t size_to_request(size_t size);

/* The real malloc; NULL if there is none. */
HIDDEN void *real_malloc(void);

/* Calls between stop_counting and resume_counting are not counted. */
HIDDEN uint32_t stop_counting(void);
HIDDEN void resume_counting(uint32_t key);

#endif
