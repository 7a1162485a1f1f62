/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The shadow stack: the current context of each thread.
 *
 * A frame is identified by the stack pointer right after its call, and has ended once the stack pointer is above that
 * value. So longjmp, exceptions and calls that never return need no special cases. */
#include "calltree.h"

/* A call or a signal. */
typedef struct {
    Addr sp;
    Context *context, *base; /* of the caller */
    Function *function;
    Int signal_floor;        /* -1 for a call; else the floor below a signal */
} Frame;

typedef struct {
    Frame *frames;
    Int depth, room;
    Int floor;           /* frames below it are not on the stack of the running signal handler */
    Addr low, high;      /* that handler's stack */
    Context *context;    /* while another thread runs */
    Function *function;
    Context *base;       /* the context where the current frame began; NULL: not known yet */
    Int allocating;      /* depth of the current call of an allocator; 0: none */
    HeapKind heap;
    ULong size;
    Bool resizes;        /* a block was given to realloc */
    Context *allocator;
} Thread;

static Thread *threads, *running;
static ThreadId running_id;
static UInt epoch; /* of the files in memory; it changes in system calls only */

/* A pseudo-function that is shown as the caller of all signal handlers. */
static Function signal_function = {.name = "(signal)", .id = 0};

static inline void enter_context(Thread *thread, Context *context, Context *base, Function *function) {
    now.context = context;
    thread->base = base;
    now.function = function;
    now.key = function ? function->key : 0;
}

static inline void pop(Thread *thread) {
    Frame *frame = &thread->frames[--thread->depth];
    if (UNLIKELY(frame->signal_floor >= 0)) thread->floor = frame->signal_floor;
    enter_context(thread, frame->context, frame->base, frame->function);
}

static inline void push(Thread *thread, Addr sp, Int signal_floor) {
    if (UNLIKELY(thread->depth == thread->room)) {
        thread->room = thread->room ? thread->room * 2 : 256;
        thread->frames = VG_(realloc)("calltree.frames", thread->frames, thread->room * sizeof(Frame));
    }
    thread->frames[thread->depth++] = (Frame){.sp = sp,
                                              .context = now.context,
                                              .base = thread->base,
                                              .function = now.function,
                                              .signal_floor = signal_floor};
}

static inline void forget_allocation(Thread *thread) {
    if (UNLIKELY(thread->depth < thread->allocating)) thread->allocating = 0;
}

/* Drops the frames that have ended, as the stack pointer shows. */
static inline void unwind(Thread *thread, Addr sp) {
    if (UNLIKELY(thread->floor > 0) && (sp < thread->low || sp > thread->high)) {
        /* The handler ended without a return. */
        Int floor = thread->floor;
        while (thread->depth >= floor) pop(thread);
    }
    while (thread->depth > thread->floor && thread->frames[thread->depth - 1].sp < sp) pop(thread);
}

#define KNOWN 16384

/* What is at an address. */
typedef struct {
    Addr address;
    Function *function; /* NULL: a stub */
    Bool is_entry;      /* or code without a symbol */
} Place;

static Place *known_place(Addr address) {
    static Place known[KNOWN];
    static UInt known_epoch;
    if (UNLIKELY(epoch != known_epoch)) {
        VG_(memset)(known, 0, sizeof known);
        known_epoch = epoch;
    }
    Place *place = &known[(address ^ (address >> 14)) % KNOWN];
    if (UNLIKELY(place->address != address)) {
        Bool is_entry;
        place->function = function_at(address, &is_entry);
        place->is_entry = is_entry;
        place->address = address;
    }
    return place;
}

static inline void call(CallSite *site, Addr sp) {
    Thread *thread = running;
    settle_instructions();
    unwind(thread, sp + 1);
    forget_allocation(thread);
    push(thread, sp, -1);
    if (UNLIKELY(!site->function)) {
        /* The target is a stub: the caller's context continues until the called function is known. */
        enter_context(thread, now.context, NULL, NULL);
        return;
    }
    if (UNLIKELY(site->from != now.context)) {
        site->from = now.context;
        site->edge = follow(now.context, site->function);
    }
    site->edge->calls++;
    enter_context(thread, site->edge->to, site->edge->to, site->function);
}

VG_REGPARM(2) void on_call(CallSite *site, Addr sp) {
    call(site, sp);
}

VG_REGPARM(3) void on_call_by_address(CallSite *site, Addr sp, Addr target) {
    /* Another file may be at these addresses now, if a file was unloaded. */
    if (UNLIKELY(site->target != target || site->epoch != epoch)) {
        site->function = known_place(target)->function;
        site->target = target;
        site->epoch = epoch;
        site->from = NULL;
    }
    call(site, sp);
}

/* The stub's target is the called function, unless it leads to the dynamic linker, which has to find that first. */
VG_REGPARM(2) void on_call_of_stub(CallSite *site, Addr sp) {
    Context *caller = now.context;
    on_call_by_address(site, sp, *site->slot);
    if (LIKELY(site->function)) {
        caller->self += site->in_stub;
        settled_instructions += site->in_stub;
    }
}

static void settle_allocation(Thread *thread, UWord result) {
    Context *context = thread->allocator;
    Bool failed = thread->heap == HEAP_SIZE_THIRD ? result != 0 : result == 0;
    thread->allocating = 0;
    if (failed || thread->heap == HEAP_FREE) return;
    context->allocations++;
    context->bytes += thread->size;
    context->frees += thread->resizes;
}

VG_REGPARM(1) void on_return(Addr sp) {
    Thread *thread = running;
    settle_instructions();
    unwind(thread, sp);
    if (UNLIKELY(thread->depth < thread->allocating)) {
        UWord result;
        VG_(get_shadow_regs_area)(running_id, (UChar *)&result, 0, result_register, sizeof result);
        settle_allocation(thread, result);
    }
}

/* Handles a jump: instructions of another function are executed, at its start or in its middle, without a call.
 * The target belongs to the same frame, and is shown as called by the function with which the frame began. */
static void go_to(Function *function, Addr sp, Bool is_call) {
    Thread *thread = running;
    settle_instructions();
    unwind(thread, sp);
    forget_allocation(thread);
    if (now.key == function->key) return;
    Context *base = thread->base, *from = base;
    if (base && base->function == function) {
        enter_context(thread, base, base, function);
        return;
    }
    Bool replaces = !base || (base->function && base->function->is_resolver);
    if (!base) from = now.context;
    else if (replaces) from = thread->depth ? thread->frames[thread->depth - 1].context : root_context();
    Edge *edge = follow(from, function);
    if (is_call || replaces) edge->calls++;
    enter_context(thread, edge->to, replaces ? edge->to : base, function);
}

/* A block of another function than the current one begins. */
void on_other_function(void) {
    Place *place = known_place(VG_(get_IP)(running_id));
    if (place->function) go_to(place->function, VG_(get_SP)(running_id), place->is_entry);
}

VG_REGPARM(3) void on_heap(UWord kind, UWord first, UWord second) {
    Thread *thread = running;
    /* An allocator that calls this one is already counted. */
    if (thread->allocating) return;
    Context *context = now.context;
    if (kind == HEAP_RESIZE && first && !second) kind = HEAP_FREE;
    if (kind == HEAP_FREE && first) context->frees++;
    thread->heap = kind;
    thread->allocator = context;
    thread->allocating = thread->depth;
    thread->resizes = kind == HEAP_RESIZE && first != 0;
    thread->size = kind == HEAP_SIZE_FIRST ? first : kind == HEAP_PRODUCT ? first * second : second;
    /* The result is known when the frame ends. Without a frame the call is assumed to succeed. */
    if (!thread->depth) settle_allocation(thread, kind != HEAP_SIZE_THIRD);
}

static Thread *thread_of(ThreadId id) {
    if (!threads) threads = VG_(calloc)("calltree.threads", VG_N_THREADS, sizeof *threads);
    if (!threads[id].context) threads[id].context = root_context();
    return &threads[id];
}

void thread_runs(ThreadId id, ULong blocks) {
    epoch = VG_(current_DiEpoch)().n;
    if (LIKELY(id == running_id)) return;
    settle_instructions();
    if (running) {
        running->context = now.context;
        running->function = now.function;
    }
    running = thread_of(id);
    running_id = id;
    UWord address = (UWord)&shared;
    VG_(set_shadow_regs_area)(id, 1, 0, sizeof address, (UChar *)&address);
    enter_context(running, running->context, running->base, running->function);
}

/* A new thread begins at the root, so that threads with the same function share one tree. */
void thread_begins(ThreadId parent, ThreadId child) {
    Thread *thread = thread_of(child);
    thread->depth = thread->floor = thread->allocating = 0;
    thread->context = root_context();
    thread->base = NULL;
    thread->function = NULL;
}

void signal_begins(ThreadId id, Int signal, Bool own_stack) {
    thread_runs(id, 0);
    Thread *thread = running;
    settle_instructions();
    Addr sp = VG_(get_SP)(id);
    unwind(thread, sp);
    /* The frame ends when the return from the handler restores the stack pointer. */
    push(thread, sp - 1, thread->floor);
    if (own_stack) {
        thread->floor = thread->depth;
        thread->low = VG_(thread_get_altstack_min)(id);
        thread->high = thread->low + VG_(thread_get_altstack_size)(id);
    }
    Edge *edge = follow(root_context(), &signal_function);
    edge->calls++;
    /* The handler's first instruction determines its function. */
    enter_context(thread, edge->to, edge->to, &signal_function);
}

void signal_ends(ThreadId id, Int signal) {
    thread_runs(id, 0);
    Thread *thread = running;
    settle_instructions();
    Int at = thread->depth;
    while (at > 0 && thread->frames[at - 1].signal_floor < 0) at--;
    /* If the handler ended by a jump, its frame was dropped already. */
    if (at == 0) return;
    while (thread->depth >= at) pop(thread);
}
