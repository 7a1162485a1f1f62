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

/* Finds the stack that was left nearest to an address, and removes it from those that are not in use; NULL: none. */
static Fibre *take_fibre(Addr sp) {
    Fibre **nearest = NULL;
    for (Int page = -1; page <= 1; page++)
        for (Fibre **place = bucket_of(sp + page * PAGE); *place; place = &(*place)->in_bucket) {
            Addr limit = nearest ? distance((*nearest)->sp, sp) : NEAR + 1;
            if (distance((*place)->sp, sp) < limit) nearest = place;
        }
    if (!nearest) return NULL;
    Fibre *found = *nearest;
    *nearest = found->in_bucket;
    return found;
}

/* Whether the stack pointer moved little, or up to an address on the same stack, for example by longjmp. */
static Bool is_same_stack(Addr before, Addr sp) {
    if (distance(before, sp) <= NEAR) return True;
    Addr end = current.fibre;
    if (!end) end = depth() ? current.frames[1].sp + ABOVE_FIRST_CALL : ~(Addr)0;
    return before <= sp && sp <= end;
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

VG_REGPARM(2) void on_switch(Addr before, Addr sp) {
    if (is_same_stack(before, sp) || current.floor > 0 || current.goroutine || current.last) return;
    settle_instructions();
    Context *caller = now.context;
    Fibre *from = leave(before), *to = take_fibre(sp);
    from->in_bucket = *bucket_of(before);
    *bucket_of(before) = from;
    if (!to) {
        Stack fresh = {.context = caller};
        make_stack(&fresh, 16);
        take_stack(&fresh);
        begin(sp, caller);
        return;
    }
    take_stack(&to->stack);
    current.fibre = to->start;
    /* Another fibre has got the memory of one that has ended. */
    if (to->start && sp >= to->start) {
        current.top = current.frames;
        begin(sp, caller);
    }
    VG_(free)(to);
}
