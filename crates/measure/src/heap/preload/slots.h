/* Finds the slot of the calling thread with one comparison. */
#ifndef SCRUPLE_SLOTS_H
#define SCRUPLE_SLOTS_H

#include "layout.h"
#include "../../preload/system.h"

/* The largest page size on this architecture. */
#if defined(__x86_64__)
#define WIPED_SIZE 4096
#else
#define WIPED_SIZE 65536
#endif

struct thread {
    uint32_t key;       /* the epoch while `slot` is this thread's, else NEW_THREAD; NESTED inside a counted call */
    uint32_t slotless;  /* the epoch once this thread knows that it has no slot */
    struct slot *slot;
    struct slot own;    /* used if nothing is reported */
};
#define NEW_THREAD 1
#define NESTED 2
#define FIRST_EPOCH 3

/* `wiped.epoch` is non-zero in a process that has begun to count. The kernel zeroes the page in the child of every
 * kind of fork, so that no thread's key matches there and the child gets its own record. `gate` is the epoch if
 * the fast path through malloc and free is allowed, else 0. */
struct wiped {
    uint32_t epoch;
    uint32_t gate;
    uint8_t fill[WIPED_SIZE - 8];
};

extern HIDDEN __thread struct thread self __attribute__((tls_model("initial-exec")));
extern HIDDEN struct wiped wiped;
extern HIDDEN struct process *process; /* null: nothing is reported */
extern HIDDEN struct header *header;

/* Whether `self.slot` is this thread's; if not, call find_slot(). */
static inline int has_slot(void) { return likely(self.key == wiped.epoch); }

/* Whether `self.slot` is this thread's and the fast path is allowed, with one comparison instead of two. */
static inline int on_fast_path(void) { return likely(self.key == wiped.gate); }

/* Finds or makes a slot. NULL means that the call must not be counted, because it is part of a counted call or of
 * the library's own start. `&header->common` is shared and needs atomic additions. */
HIDDEN struct slot *find_slot(void);

/* The number of bytes that a thread allocated, usable or requested by mode. */
static inline uint64_t taken_by(const struct slot *slot) {
    return MODE == MODE_REQUESTED ? slot->bytes : slot->taken;
}
static inline int64_t net_of(const struct slot *slot) { return (int64_t)(taken_by(slot) - slot->returned); }

/* Adds the thread's live bytes to its process's. Returns `result`, so that a hook may end with this call. */
HIDDEN void *add_to_process(struct slot *slot, void *result);

/* Raises `*peak` to at least `top`. */
HIDDEN void raise_to(int64_t *peak, int64_t top);

/* Maps a piece of the records' file, at a place for which nothing is written yet; NULL if it fails. */
HIDDEN void *map_piece(uint64_t place, uint32_t size);

/* Claims a slot of this process for `owner`; NULL if there is none. */
HIDDEN struct slot *claim_slot(int32_t owner);

/* The current number of live bytes of this process. */
HIDDEN int64_t live_bytes(void);

/* These are called around a fork. before_fork notes the bytes that the child inherits. The child clears the epoch
 * itself, because old kernels cannot wipe the page. */
HIDDEN void before_fork(void);
HIDDEN void after_fork_in_child(void);
HIDDEN void forget_fork(void);

/* Makes all further calls take the slow path. */
HIDDEN void close_gate(void);

/* Looks up the real functions. */
HIDDEN void resolve(void);
/* Whether the program's `malloc` is not ours. */
HIDDEN int malloc_is_foreign(void);
/* Whether the allocator tells the sizes of its blocks. */
HIDDEN int sizes_are_known(void);

#endif
