/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The shadow stacks: the current context of each thread, goroutine and fibre.
 *
 * A frame is identified by the stack pointer right after its call, and has ended once the stack pointer is above that
 * value. So longjmp, exceptions and calls that never return need no special cases. */
#ifndef CALLTREE_SHADOW_H
#define CALLTREE_SHADOW_H

#include "calltree.h"

/* A call or a signal. */
typedef struct {
    Addr sp;
    Context *context, *base; /* of the caller */
    Function *function;
    ULong key;
    Int signal_floor;        /* -1 for a call; else the floor below a signal */
    Addr after;              /* the address after a call whose target was not known at once */
} Frame;

/* A stack that is not in use. */
typedef struct {
    Frame *frames, *end, *top;
    Context *context, *base;
    Function *function;
} Stack;

typedef struct {
    Frame *frames, *end; /* the first frame never ends */
    Frame *top;
    Int floor;           /* frames below it are not on the stack of the running signal handler */
    Addr low, high;      /* that handler's stack */
    Context *context;    /* while another thread runs */
    Function *function;
    Context *base;       /* the context where the current frame began; NULL: not known yet */
    struct Goroutine *goroutine; /* that runs now; NULL: the thread is on its own stack */
    struct Goroutine *last;      /* that ran last */
    Stack own;                   /* the thread's own stack while a goroutine runs */
    Addr fibre;          /* where the stack of the fibre that runs began; 0: the thread is on its own stack */
    Frame *allocating;   /* of the current call of an allocator, or NULL */
    HeapKind heap;
    ULong size;
    Bool resizes;        /* a block was given to realloc */
    Context *allocator;
    EndingBlock ending;  /* the block that was given to it */
    UWord *result;       /* where posix_memalign puts the address of the block */
} Thread;

/* The thread that runs, and the number of changes of the files in memory, which change in system calls only. */
extern Thread current;
extern ThreadId running_id;
extern UInt epoch;
/* A pseudo-function that is shown as the caller of all signal handlers. */
extern Function signal_function;

void grow_stack(void);
/* Makes a stack whose first frame never ends. */
void make_stack(Stack *stack, UInt room);
/* Writes the stack that is in use to `left`. */
void leave_stack(Stack *left);
void take_stack(const Stack *stack);
/* A return on the stack of a fibre on which nothing was called, or all that was called has returned. */
void fibre_returns(Addr sp);

static inline void enter_context(Context *context, Context *base, Function *function) {
    now.context = context;
    current.base = base;
    now.function = function;
    now.key = function ? function->key : 0;
}

static inline Int depth(void) {
    return current.top - current.frames;
}

static inline void pop(void) {
    Frame *frame = current.top--;
    if (UNLIKELY(frame->signal_floor >= 0)) current.floor = frame->signal_floor;
    now.context = frame->context;
    current.base = frame->base;
    now.function = frame->function;
    now.key = frame->key;
}

static inline void push(Addr sp, Int signal_floor) {
    if (UNLIKELY(current.top + 1 == current.end)) grow_stack();
    Frame *frame = ++current.top;
    frame->sp = sp;
    frame->context = now.context;
    frame->base = current.base;
    frame->function = now.function;
    frame->key = now.key;
    frame->signal_floor = signal_floor;
}

static inline void forget_allocation(void) {
    if (LIKELY(current.top >= current.allocating)) return;
    unseen_requests += current.heap != HEAP_FREE;
    current.allocating = NULL;
}

/* Drops the frames that have ended, as the stack pointer shows. */
static inline void unwind(Addr sp) {
    if (UNLIKELY(current.floor > 0) && (sp < current.low || sp > current.high)) {
        /* The handler ended without a return. */
        Int floor = current.floor;
        while (depth() >= floor) pop();
    }
    while (current.top->sp < sp) pop();
}

#endif
