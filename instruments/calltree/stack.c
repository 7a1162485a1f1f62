/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Calls, returns and jumps move between contexts; calls of allocators are counted in them. */
#include "shadow.h"

Thread current;
ThreadId running_id;
UInt epoch;

void grow_stack(void) {
    Int used = depth(), allocating = current.allocating ? current.allocating - current.frames : 0;
    SizeT room = (current.end - current.frames) * 2;
    current.frames = VG_(realloc)("calltree.frames", current.frames, room * sizeof(Frame));
    current.end = current.frames + room;
    current.top = current.frames + used;
    if (allocating) current.allocating = current.frames + allocating;
}

void make_stack(Stack *stack, UInt room) {
    stack->frames = VG_(calloc)("calltree.frames", room, sizeof(Frame));
    stack->end = stack->frames + room;
    stack->top = stack->frames;
    stack->frames->sp = ~(Addr)0;
}

void leave_stack(Stack *left) {
    *left = (Stack){current.frames, current.end, current.top, now.context, current.base, now.function};
    if (current.allocating) unseen_requests += current.heap != HEAP_FREE;
    current.allocating = NULL;
}

void take_stack(const Stack *stack) {
    current.frames = stack->frames;
    current.end = stack->end;
    current.top = stack->top;
    enter_context(stack->context, stack->base, stack->function);
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
    if (UNLIKELY(current.fibre) && depth() == 1) fibre_returns(sp);
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
