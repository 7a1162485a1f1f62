/* Who counts where: the slot of the calling thread, found by one comparison. */
#ifndef SCRUPLE_SLOTS_H
#define SCRUPLE_SLOTS_H

#include "layout.h"
#include "system.h"

/* A whole page of the largest size there is. */
#if defined(__x86_64__)
#define WIPED_SIZE 4096
#else
#define WIPED_SIZE 65536
#endif

struct thread {
    uint32_t key;       /* epoch + 1 while `slot` is ours, NESTED inside a compound call */
    uint32_t slotless;  /* epoch + 1 once this thread knows that it has no slot */
    struct slot *slot;
    struct slot own;    /* stands in where nothing is to be reported */
};
#define NESTED UINT32_MAX

/* `wiped.epoch` is non-zero in a process that has a record. The kernel hands a zeroed page to the child of every
 * kind of fork, so there no thread's key fits any more, and the child gets a record of its own. */
struct wiped {
    uint32_t epoch;
    uint8_t fill[WIPED_SIZE - 4];
};

extern HIDDEN __thread struct thread self __attribute__((tls_model("initial-exec")));
extern HIDDEN struct wiped wiped;
extern HIDDEN struct process *process; /* null: nothing is reported */
extern HIDDEN struct header *header;

/* Whether `self.slot` is this thread's: else ask settle_in(). */
static inline int settled(void) { return likely(self.key == wiped.epoch + 1); }

/* Finds or makes a slot. Null means that the call is not to be counted: it is part of a call that is, or comes from
 * the library's own start. `&header->common` is shared and wants atomic additions. */
HIDDEN struct slot *settle_in(void);

/* Settles the thread's live bytes with its process. Returns `result`, so that a hook may end with this call. */
HIDDEN void *settle_up(struct slot *slot, void *result);

/* Claims a slot of this process for `owner`, or returns null. */
HIDDEN struct slot *claim_slot(int32_t owner);

/* Live bytes of this process now. */
HIDDEN int64_t live_bytes(void);

/* Around a fork: what the child inherits is remembered before; the child's start does not wait for the kernel to
 * wipe the page, which old ones cannot. */
HIDDEN void before_fork(void);
HIDDEN void after_fork_in_child(void);
HIDDEN void forget_fork(void);

/* Finds the functions that the hooks stand before. */
HIDDEN void resolve(void);
/* Whether the program's `malloc` is another one than ours. */
HIDDEN int malloc_is_foreign(void);

#endif
