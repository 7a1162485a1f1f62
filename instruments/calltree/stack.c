/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The shadow stack: the current context of each thread.
 *
 * A frame is identified by the stack pointer right after its call, and has ended once the stack pointer is above that
 * value. So longjmp, exceptions and calls that never return need no special cases. */
#include "calltree.h"

#include "pub_tool_aspacemgr.h"

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

/* A goroutine of Go. */
typedef struct Goroutine {
    struct Goroutine *in_bucket;
    const Addr *g;  /* the runtime's record of it, which begins with the bounds of its stack */
    Addr high;      /* the upper bound of its stack when it ran last */
    Context *start; /* the context that started it */
    Stack stack;
} Goroutine;

typedef struct {
    Frame *frames, *end; /* the first frame never ends */
    Frame *top;
    Int floor;           /* frames below it are not on the stack of the running signal handler */
    Addr low, high;      /* that handler's stack */
    Context *context;    /* while another thread runs */
    Function *function;
    Context *base;       /* the context where the current frame began; NULL: not known yet */
    Goroutine *goroutine; /* that runs now; NULL: the thread is on its own stack */
    Goroutine *last;      /* that ran last */
    Stack own;            /* the thread's own stack while a goroutine runs */
    Frame *allocating;   /* of the current call of an allocator, or NULL */
    HeapKind heap;
    ULong size;
    Bool resizes;        /* a block was given to realloc */
    Context *allocator;
    EndingBlock ending;  /* the block that was given to it */
    UWord *result;       /* where posix_memalign puts the address of the block */
} Thread;

static Thread *threads; /* those that do not run */
static Thread current;
static ThreadId running_id;
static UInt epoch; /* of the files in memory; it changes in system calls only */

/* A pseudo-function that is shown as the caller of all signal handlers. */
static Function signal_function = {.name = "(signal)", .id = 0, .origin = &signal_function};

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

static void grow_stack(void) {
    Int used = depth(), allocating = current.allocating ? current.allocating - current.frames : 0;
    SizeT room = (current.end - current.frames) * 2;
    current.frames = VG_(realloc)("calltree.frames", current.frames, room * sizeof(Frame));
    current.end = current.frames + room;
    current.top = current.frames + used;
    if (allocating) current.allocating = current.frames + allocating;
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

/* Handles a call for which call() needs more than the site knows. */
static __attribute__((noinline)) void call_slowly(CallSite *site, Addr sp, UInt in_stub) {
    unwind(sp + 1);
    forget_allocation();
    push(sp, -1);
    current.top->after = site->after;
    if (!site->function) {
        /* The target is a stub: the caller's context continues until the called function is known. */
        enter_context(now.context, NULL, NULL);
        return;
    }
    now.context->self += in_stub;
    now.instructions -= in_stub;
    site->from = now.context;
    site->edge = follow(now.context, site->function);
    site->edge->calls++;
    enter_context(site->edge->to, site->edge->to, site->function);
}

/* Handles a call. The instructions of the stub between caller and called function count for the caller. */
static __attribute__((always_inline)) inline void call(CallSite *site, Addr sp, UInt in_stub) {
    Context *context = now.context;
    Function *function = site->function;
    Bool is_known = function && current.top->sp > sp && current.floor == 0 && current.top + 1 != current.end;
    Edge *edge = site->edge;
    if (site->from != context && is_known) edge = context->recent[function->id % 4];
    if (UNLIKELY(!is_known || !edge || edge->function != function)) {
        settle_instructions();
        call_slowly(site, sp, in_stub);
        return;
    }
    context->self += now.instructions + in_stub;
    now.instructions = -(ULong)in_stub;
    push(sp, -1);
    edge->calls++;
    site->from = context;
    site->edge = edge;
    enter_context(edge->to, edge->to, function);
}

VG_REGPARM(2) void on_call(CallSite *site, Addr sp) {
    call(site, sp, 0);
}

static inline void find_target(CallSite *site, Addr target) {
    /* Another file may be at these addresses now, if a file was unloaded. */
    if (LIKELY(site->target == target && site->epoch == epoch)) return;
    site->function = known_place(target)->function;
    if (site->function) site->function = called_from(site->function, site->after);
    site->target = target;
    site->epoch = epoch;
    site->from = NULL;
}

VG_REGPARM(3) void on_call_by_address(CallSite *site, Addr sp, Addr target) {
    find_target(site, target);
    call(site, sp, 0);
}

/* The stub's target is the called function, unless it leads to the dynamic linker, which has to find that first. */
VG_REGPARM(2) void on_call_of_stub(CallSite *site, Addr sp) {
    find_target(site, *site->slot);
    call(site, sp, site->in_stub);
}

static void settle_allocation(UWord result) {
    Context *context = current.allocator;
    Bool failed = current.heap == HEAP_SIZE_THIRD ? result != 0 : result == 0;
    current.allocating = NULL;
    if (current.heap == HEAP_FREE) return;
    if (failed) {
        if (current.resizes) block_stays(&current.ending);
        return;
    }
    if (find_sites && current.heap == HEAP_WORDS_SECOND) return;
    context->allocations++;
    context->bytes += current.size;
    context->frees += current.resizes;
    if (!find_sites) return;
    if (current.heap == HEAP_SIZE_THIRD) result = *current.result;
    block_begins(result, context, current.size, current.resizes ? &current.ending : NULL);
}

VG_REGPARM(1) void on_return(Addr sp) {
    settle_instructions();
    unwind(sp);
    if (UNLIKELY(current.top < current.allocating)) {
        UWord result;
        VG_(get_shadow_regs_area)(running_id, (UChar *)&result, 0, result_register, sizeof result);
        settle_allocation(result);
    }
}

/* Handles a jump: instructions of another function are executed, at its start or in its middle, without a call.
 * The target belongs to the same frame, and is shown as called by the function with which the frame began. */
static inline void go_to(CallSite *place, Addr sp, Bool is_call) {
    Function *function = place->function;
    settle_instructions();
    unwind(sp);
    forget_allocation();
    if (now.key == function->key) return;
    Context *base = current.base, *from = base;
    if (base && base->function == function) {
        enter_context(base, base, function);
        return;
    }
    Bool replaces = !base || (base->function && base->function->is_resolver);
    if (!base) from = now.context;
    else if (replaces) from = depth() ? current.top->context : root_context();
    if (UNLIKELY(place->from != from)) {
        Bool is_call_of_stub = replaces && depth();
        place->from = find_sites ? NULL : from;
        place->edge = follow(from, is_call_of_stub ? called_from(function, current.top->after) : function);
    }
    Edge *edge = place->edge;
    /* A goroutine whose function has returned continues in the middle of the runtime's function that ends it. */
    Bool ends = current.goroutine && !depth();
    if (is_call || (base && replaces) || ends) edge->calls++;
    enter_context(edge->to, replaces ? edge->to : base, function);
}

static inline Addr value_in(const UChar *registers, Int offset) {
    return *(const Addr *)(registers + offset);
}

/* A block that begins in the middle of a function other than the current one begins, or code without a symbol. */
VG_REGPARM(1) void on_other_function(const UChar *registers) {
    Place *place = known_place(value_in(registers, ip_register));
    CallSite site = {.function = place->function};
    if (place->function) go_to(&site, value_in(registers, sp_register), place->is_entry);
}

/* The first block of a function other than the current one begins. */
VG_REGPARM(2) void on_entry(CallSite *entry, const UChar *registers) {
    go_to(entry, value_in(registers, sp_register), True);
}

/* A jump into the middle of another function. */
VG_REGPARM(2) void on_jump_inside(CallSite *place, const UChar *registers) {
    go_to(place, value_in(registers, sp_register), False);
}

VG_REGPARM(3) void on_heap(UWord kind, UWord first, UWord second) {
    /* An allocator that calls this one is already counted. */
    if (current.allocating) return;
    Context *context = now.context;
    if (kind == HEAP_RESIZE && first && !second) kind = HEAP_FREE;
    if (kind == HEAP_FREE && first) context->frees++;
    if (find_sites && first && (kind == HEAP_FREE || kind == HEAP_RESIZE)) {
        block_begins_to_end(first, &current.ending);
        if (kind == HEAP_FREE) block_ended(&current.ending);
    }
    current.result = (UWord *)first;
    current.heap = kind;
    current.allocator = context;
    current.resizes = kind == HEAP_RESIZE && first != 0;
    current.size = kind == HEAP_SIZE_FIRST ? first : kind == HEAP_PRODUCT ? first * second : second;
    if (kind == HEAP_WORDS_SECOND) current.size *= sizeof(UWord);
    if (depth()) current.allocating = current.top;
    /* The result is known when the frame ends. Without a frame the call is assumed to succeed, but where the block is
     * remains unknown. */
    else if (find_sites) unseen_requests += kind != HEAP_FREE;
    else settle_allocation(kind != HEAP_SIZE_THIRD);
}

static Thread *thread_of(ThreadId id) {
    if (!threads) threads = VG_(calloc)("calltree.threads", VG_N_THREADS, sizeof *threads);
    Thread *thread = id == running_id ? &current : &threads[id];
    if (thread->frames) return thread;
    thread->frames = VG_(calloc)("calltree.frames", 256, sizeof(Frame));
    thread->end = thread->frames + 256;
    thread->top = thread->frames;
    thread->frames->sp = ~(Addr)0;
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

/* A new thread begins at the root, so that threads with the same function share one tree. */
void thread_begins(ThreadId parent, ThreadId child) {
    Thread *thread = thread_of(child);
    if (thread->goroutine) {
        thread->frames = thread->own.frames;
        thread->end = thread->own.end;
        thread->goroutine = NULL;
    }
    thread->last = NULL;
    thread->top = thread->frames;
    thread->floor = 0;
    thread->allocating = NULL;
    thread->context = root_context();
    thread->base = NULL;
    thread->function = NULL;
}

/* Goroutines. Each has its own stack, and they run on threads in turn. Go moves a stack when it grows, but the distances
 * of its frames from its upper bound stay the same. */
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
    found->stack.frames = VG_(calloc)("calltree.frames", 8, sizeof(Frame));
    found->stack.end = found->stack.frames + 8;
    found->stack.top = found->stack.frames;
    found->stack.frames->sp = ~(Addr)0;
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

static void leave_stack(void) {
    Stack *left = current.goroutine ? &current.goroutine->stack : &current.own;
    *left = (Stack){current.frames, current.end, current.top, now.context, current.base, now.function};
    if (current.goroutine) current.last = current.goroutine;
    if (current.allocating) unseen_requests += current.heap != HEAP_FREE;
    current.allocating = NULL;
}

static void take_stack(const Stack *stack, Goroutine *goroutine) {
    current.frames = stack->frames;
    current.end = stack->end;
    current.top = stack->top;
    current.goroutine = goroutine;
    enter_context(stack->context, stack->base, stack->function);
}

static void enter_goroutine(Goroutine *to, Addr sp) {
    Addr high = to->g[HIGH_OF_G];
    for (Frame *frame = to->stack.frames + 1; frame <= to->stack.top; frame++) frame->sp += high - to->high;
    to->high = high;
    leave_stack();
    take_stack(&to->stack, to);
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
    leave_stack();
    take_stack(&current.own, NULL);
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
        if (above->function && above->function->role == GO_PARKS) is_by_program = False;
    Goroutine *goroutine = goroutine_of((const Addr *)g);
    goroutine->start = is_by_program ? start : root_context();
    if (goroutine != current.goroutine) goroutine->stack.top = goroutine->stack.frames;
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
