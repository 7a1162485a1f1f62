/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The shadow stacks of threads, and of the signal handlers that run on them. */
#include "shadow.h"

static Thread *threads; /* those that do not run */

Function signal_function = {.name = "(signal)", .id = 0, .origin = &signal_function};

static Thread *thread_of(ThreadId id) {
    if (!threads) threads = VG_(calloc)("calltree.threads", VG_N_THREADS, sizeof *threads);
    Thread *thread = id == running_id ? &current : &threads[id];
    if (thread->frames) return thread;
    Stack stack;
    make_stack(&stack, 256);
    thread->frames = stack.frames;
    thread->end = stack.end;
    thread->top = stack.top;
    thread->context = root_context();
    return thread;
}

void thread_runs(ThreadId id, ULong blocks) {
    epoch = VG_(current_DiEpoch)().n;
    if (LIKELY(id == running_id)) return;
    settle_instructions();
    current.context = now.context;
    current.function = now.function;
    if (running_id) threads[running_id] = current;
    Thread *thread = thread_of(id);
    current = *thread;
    running_id = id;
    UWord address = (UWord)&shared;
    VG_(set_shadow_regs_area)(id, 1, 0, sizeof address, (UChar *)&address);
    enter_context(current.context, current.base, current.function);
}

/* Whether Go compiled the function of a context or of one above it. */
static Bool is_of_go(const Context *context) {
    for (; context; context = context->parent)
        if (context->function && context->function->object && context->function->object->is_go) return True;
    return False;
}

/* A new thread continues in the context that starts it, so what it does counts where it was asked for. A thread of Go
 * begins at the root: it runs any goroutine, and chance decides which one starts it. */
void thread_begins(ThreadId parent, ThreadId child) {
    Thread *thread = thread_of(child);
    Bool is_called = parent != VG_INVALID_THREADID && parent == running_id && !is_of_go(now.context);
    if (thread->goroutine) {
        thread->frames = thread->own.frames;
        thread->end = thread->own.end;
        thread->goroutine = NULL;
    }
    thread->last = NULL;
    thread->fibre = 0;
    thread->top = thread->frames;
    thread->floor = 0;
    thread->allocating = NULL;
    thread->context = is_called ? now.context : root_context();
    thread->base = is_called ? current.base : NULL;
    thread->function = is_called ? now.function : NULL;
}

void signal_begins(ThreadId id, Int signal, Bool own_stack) {
    thread_runs(id, 0);
    settle_instructions();
    Addr sp = VG_(get_SP)(id);
    unwind(sp);
    /* The frame ends when the return from the handler restores the stack pointer, which shows only on the same stack. */
    push(own_stack ? ~(Addr)0 : sp - 1, current.floor);
    current.top->after = 0;
    if (own_stack) {
        current.floor = depth();
        current.low = VG_(thread_get_altstack_min)(id);
        current.high = current.low + VG_(thread_get_altstack_size)(id);
    }
    Edge *edge = follow(root_context(), &signal_function);
    edge->calls++;
    /* The handler's first instruction determines its function. */
    enter_context(edge->to, edge->to, &signal_function);
}

void signal_ends(ThreadId id, Int signal) {
    thread_runs(id, 0);
    settle_instructions();
    Frame *frame = current.top;
    while (frame > current.frames && frame->signal_floor < 0) frame--;
    /* If the handler ended by a jump, its frame was dropped already. */
    while (current.top >= frame && frame > current.frames) pop();
}
