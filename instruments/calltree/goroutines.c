/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Goroutines. Each has its own stack, and they run on threads in turn. Go moves a stack when it grows, but the distances
 * of its frames from its upper bound stay the same. */
#include "shadow.h"

#include "pub_tool_aspacemgr.h"

/* A goroutine of Go. */
typedef struct Goroutine {
    struct Goroutine *in_bucket;
    const Addr *g;  /* the runtime's record of it, which begins with the bounds of its stack */
    Addr high;      /* the upper bound of its stack when it ran last */
    Context *start; /* the context that started it */
    Stack stack;
} Goroutine;

#define GOROUTINE_BUCKETS 16384

/* Where Go's records of goroutines and threads refer to each other, in words; the same since Go 1.5. */
enum { LOW_OF_G = 0, HIGH_OF_G = 1, M_OF_G = 6, G0_OF_M = 0 };

static Bool is_readable(const Addr *words, UWord count) {
    return words && VG_(am_is_valid_for_client)((Addr)words, count * sizeof(Addr), VKI_PROT_READ);
}

/* The goroutine with this record; it is added if `g` was not known. */
static Goroutine *goroutine_of(const Addr *g) {
    static Goroutine *buckets[GOROUTINE_BUCKETS];
    Goroutine **bucket = &buckets[((Addr)g >> 5) * 0x9e3779b97f4a7c15ull >> 50];
    Goroutine *found = *bucket;
    while (found && found->g != g) found = found->in_bucket;
    if (found) return found;
    found = take(sizeof *found);
    found->g = g;
    found->start = root_context();
    make_stack(&found->stack, 8);
    found->in_bucket = *bucket;
    return *bucket = found;
}

static Bool has_on_stack(const Addr *g, Addr sp) {
    return g[LOW_OF_G] < sp && sp <= g[HIGH_OF_G];
}

/* The goroutine on whose stack an address is, given what the register for the current one contains; NULL: it is on the
 * thread's own stack, which Go calls that of `g0`. */
static Goroutine *goroutine_on(Addr sp, const Addr *g) {
    if (is_readable(g, M_OF_G + 1) && has_on_stack(g, sp)) {
        const Addr *m = (const Addr *)g[M_OF_G];
        return is_readable(m, 1) && m[G0_OF_M] == (Addr)g ? NULL : goroutine_of(g);
    }
    /* Go's runtime sets the register after the return to a goroutine's stack. */
    Goroutine *last = current.last;
    return last && is_readable(last->g, 2) && has_on_stack(last->g, sp) ? last : NULL;
}

static void leave(void) {
    leave_stack(current.goroutine ? &current.goroutine->stack : &current.own);
    if (current.goroutine) current.last = current.goroutine;
}

static void enter_goroutine(Goroutine *to, Addr sp) {
    Addr high = to->g[HIGH_OF_G];
    for (Frame *frame = to->stack.frames + 1; frame <= to->stack.top; frame++) frame->sp += high - to->high;
    to->high = high;
    leave();
    take_stack(&to->stack);
    current.goroutine = to;
    unwind(sp);
    if (depth()) return;
    /* It begins. Its function is called from where it was started. */
    enter_context(to->start, NULL, NULL);
    push(sp, -1);
    current.top->after = 0;
}

/* A function of Go's runtime that runs on the thread's stack is called from the goroutine. */
static void enter_own_stack(Addr sp, Bool returns) {
    Context *context = now.context, *base = current.base;
    Function *function = now.function;
    leave();
    take_stack(&current.own);
    current.goroutine = NULL;
    unwind(sp);
    if (returns) return;
    push(sp - 1, -1);
    current.top->after = 0;
    enter_context(context, base, function);
}

/* The stack pointer was set to an address that was in memory or in another register. */
VG_REGPARM(3) void on_other_stack(Addr sp, Addr g, UWord returns) {
    if (current.floor > 0) return;
    Goroutine *to = goroutine_on(sp, (const Addr *)g);
    if (to == current.goroutine) return;
    settle_instructions();
    if (to) enter_goroutine(to, sp);
    else enter_own_stack(sp, returns);
}

/* A goroutine was made by `runtime.newproc1`. Its functions are shown below the function with the statement `go`, but
 * those of goroutines that the runtime started, or a timer, below the root: chance decides where they were started. */
VG_REGPARM(1) void on_new_goroutine(Addr g) {
    if (!is_readable((const Addr *)g, M_OF_G + 1)) return;
    Context *start = now.context;
    while (start && (!start->function || start->function->role != GO_STARTS)) start = start->parent;
    if (start) start = start->parent;
    Bool is_by_program = start && start->function && start->function->role == GO_NONE;
    for (Context *above = start; above && is_by_program; above = above->parent)
        if (above->function && above->function->role == GO_SCHEDULES) is_by_program = False;
    Goroutine *goroutine = goroutine_of((const Addr *)g);
    goroutine->start = is_by_program ? start : root_context();
    if (goroutine != current.goroutine) goroutine->stack.top = goroutine->stack.frames;
}
