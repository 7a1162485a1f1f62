/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fibres: stacks between which a program switches by itself, as coroutines do. Each has a shadow stack of its own.
 *
 * A switch shows where the stack pointer is set to an address that was in memory or in another register. A stack that
 * was left is found again by its stack pointer, which is about the same when it is entered. */
#include "shadow.h"

#define BUCKETS 4096
#define PAGE 4096
/* How far the stack pointer of a stack that is entered may be from that at which it was left: less than a stack is large. */
#define NEAR 2048
/* How far above its first call a thread's stack may begin. */
#define ABOVE_FIRST_CALL 4096

/* A stack that is not in use, of a fibre or a thread. */
typedef struct Fibre {
    struct Fibre *in_bucket;
    Addr sp;    /* at which it was left */
    Addr start; /* where the stack of a fibre began; 0: it is a thread's */
    Stack stack;
} Fibre;

static Fibre *left[BUCKETS];

static Fibre **bucket_of(Addr sp) {
    return &left[sp / PAGE % BUCKETS];
}

static Addr distance(Addr one, Addr other) {
    return one > other ? one - other : other - one;
}

/* The end of the stack that has these frames. */
static Addr end_of(const Frame *frames, const Frame *top, Addr start) {
    if (start) return start;
    return top > frames ? frames[1].sp + ABOVE_FIRST_CALL : ~(Addr)0;
}

/* Finds the place of the stack that was left nearest to an address, or of one that contains it: longjmp leads further
 * up than the place where a stack was left. NULL: none. */
static Fibre **place_of(Addr sp) {
    Fibre **nearest = NULL;
    for (Int page = -1; page <= 1; page++)
        for (Fibre **place = bucket_of(sp + page * PAGE); *place; place = &(*place)->in_bucket) {
            Addr limit = nearest ? distance((*nearest)->sp, sp) : NEAR + 1;
            if (distance((*place)->sp, sp) < limit) nearest = place;
        }
    for (UInt bucket = 0; !nearest && bucket < BUCKETS; bucket++)
        for (Fibre **place = &left[bucket]; *place && !nearest; place = &(*place)->in_bucket) {
            const Stack *stack = &(*place)->stack;
            if ((*place)->sp <= sp && sp <= end_of(stack->frames, stack->top, (*place)->start)) nearest = place;
        }
    return nearest;
}

/* Whether the stack pointer moved little, or up to an address on the same stack, for example by longjmp. */
static Bool is_same_stack(Addr before, Addr sp) {
    return distance(before, sp) <= NEAR || (before <= sp && sp <= end_of(current.frames, current.top, current.fibre));
}

static Fibre *leave(Addr sp) {
    Fibre *fibre = VG_(malloc)("calltree.fibre", sizeof *fibre);
    fibre->sp = sp;
    fibre->start = current.fibre;
    leave_stack(&fibre->stack);
    return fibre;
}

/* A fibre begins: its function is called where it is entered first. */
static void begin(Addr sp, Context *caller) {
    current.fibre = sp;
    enter_context(caller, NULL, NULL);
    push(~(Addr)0, -1);
    current.top->after = 0;
}

static void keep(Fibre *fibre) {
    Fibre **bucket = bucket_of(fibre->sp);
    fibre->in_bucket = *bucket;
    *bucket = fibre;
}

static void enter(Fibre **place) {
    Fibre *to = *place;
    *place = to->in_bucket;
    take_stack(&to->stack);
    current.fibre = to->start;
    VG_(free)(to);
}

VG_REGPARM(2) void on_switch(Addr before, Addr sp) {
    if (is_same_stack(before, sp) || current.floor > 0 || current.goroutine || current.last) return;
    settle_instructions();
    Context *caller = now.context;
    Fibre *from = leave(before), **to = place_of(sp);
    if (to) {
        Addr start = (*to)->start;
        enter(to);
        /* Another fibre may have got the memory of one that has ended. */
        if (start && sp >= start) {
            current.top = current.frames;
            begin(sp, caller);
        }
    } else {
        Stack fresh = {.context = caller};
        make_stack(&fresh, 16);
        take_stack(&fresh);
        begin(sp, caller);
    }
    keep(from);
}

/* The function that entered a fibre returns: it called another one there, and restored the stack pointer from the frame
 * pointer. */
void fibre_returns(Addr sp) {
    Fibre **place = place_of(sp);
    if (!place) return;
    Fibre *ended = leave(current.fibre);
    enter(place);
    keep(ended);
}
