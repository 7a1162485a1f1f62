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
    uint32_t key;       /* the epoch while `slot` is ours, else NEW_THREAD; NESTED inside a compound call */
    uint32_t slotless;  /* the epoch once this thread knows that it has no slot */
    struct slot *slot;
    struct slot own;    /* stands in where nothing is to be reported */
};
#define NEW_THREAD 1
#define NESTED 2
#define FIRST_EPOCH 3

/* `wiped.epoch` is non-zero in a process that has begun. The kernel hands a zeroed page to the child of every kind of
 * fork, so there no thread's key fits any more, and the child gets a record of its own. `gate` is the epoch where the
 * shortest way through malloc and free may be taken, else 0. */
struct wiped {
    uint32_t epoch;
    uint32_t gate;
    uint8_t fill[WIPED_SIZE - 8];
};

extern HIDDEN __thread struct thread self __attribute__((tls_model("initial-exec")));
extern HIDDEN struct wiped wiped;
extern HIDDEN struct process *process; /* null: nothing is reported */
extern HIDDEN struct header *header;

/* Whether `self.slot` is this thread's: else ask settle_in(). */
static inline int settled(void) { return likely(self.key == wiped.epoch); }

/* Whether besides nothing is special about this process: one comparison instead of two. */
static inline int ordinary(void) { return likely(self.key == wiped.gate); }

/* Finds or makes a slot. Null means that the call is not to be counted: it is part of a call that is, or comes from
 * the library's own start. `&header->common` is shared and wants atomic additions. */
HIDDEN struct slot *settle_in(void);

/* Bytes handed out by a thread, as the mode sees them. */
static inline uint64_t taken_by(const struct slot *slot) {
    return MODE == MODE_REQUESTED ? slot->bytes : slot->taken;
}
static inline int64_t net_of(const struct slot *slot) { return (int64_t)(taken_by(slot) - slot->returned); }

/* Settles the thread's live bytes with its process. Returns `result`, so that a hook may end with this call. */
HIDDEN void *settle_up(struct slot *slot, void *result);

/* Makes a peak at least so high. */
HIDDEN void raise_to(int64_t *peak, int64_t top);

/* Claims a slot of this process for `owner`, or returns null. */
HIDDEN struct slot *claim_slot(int32_t owner);

/* Live bytes of this process now. */
HIDDEN int64_t live_bytes(void);

/* Around a fork: what the child inherits is remembered before; the child's start does not wait for the kernel to
 * wipe the page, which old ones cannot. */
HIDDEN void before_fork(void);
HIDDEN void after_fork_in_child(void);
HIDDEN void forget_fork(void);

/* From now on every call takes the longer way. */
HIDDEN void close_gate(void);

/* Finds the functions that the hooks stand before. */
HIDDEN void resolve(void);
/* Whether the program's `malloc` is another one than ours. */
HIDDEN int malloc_is_foreign(void);

#endif
