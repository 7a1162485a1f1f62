/* Records where memory is allocated: at some allocations, or at all, the registers and the stack are written to the
 * records' file, from which the reader finds the callers. The recorded allocations are chosen by a Poisson process over
 * the requested bytes: every byte is as likely as any other to be chosen, whatever came before. */
#ifndef SCRUPLE_SITES_H
#define SCRUPLE_SITES_H

#include "slots.h"

#ifndef SITES
#define SITES 0
#endif

/* What a thread needs beside its slot to choose and record blocks. */
struct sampler {
    uint64_t random;
    uint64_t stack_low, stack_high; /* the mapping that the stack pointer was in */
    int is_main_stack;
    uint64_t going;                 /* the chosen block that is being freed */
    int busy;                       /* a signal handler that allocates meanwhile leaves no record */
};
extern HIDDEN __thread struct sampler sampler __attribute__((tls_model("initial-exec")));

/* Whether a block is chosen that brings the slot's bytes to this sum. */
static inline int is_due(const struct slot *slot, uint64_t bytes) { return SITES && unlikely(bytes >= slot->next); }

/* Prepares the calling thread, the n-th of its process that counts. */
HIDDEN void begin_sampling(struct slot *slot, uint32_t thread);

/* Records that this thread allocated a block of `size` bytes. Returns the record's place, which names the block; 0 if
 * there is no record. */
HIDDEN uint64_t record_sample(struct slot *slot, size_t size);

/* Records that a chosen block was freed. `slot` is NULL if the thread has none. */
HIDDEN void record_free(struct slot *slot, uint64_t block);

/* Counts a chosen allocation without a record, and chooses the next. */
HIDDEN void lose_sample(struct slot *slot);

#endif
