/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tree of calling contexts, and the calls between them. */
#include "calltree.h"

Now now;
ULong cut_calls, settled_instructions;

static Context root;
static Context *first_context = &root, *last_context = &root;
static Edge *edges, **table;
static UWord slots, used;
static ULong context_count, context_limit;
static Bool fold_recursion;

void contexts_start(ULong limit, Bool fold) {
    context_limit = limit;
    fold_recursion = fold;
    root.id = 1;
    context_count = 1;
    slots = 1 << 14;
    table = VG_(calloc)("calltree.edges", slots, sizeof *table);
    now.context = &root;
}

Context *root_context(void) {
    return &root;
}

static UWord slot_of(const Context *from, const Function *function) {
    UWord mixed = ((UWord)from->id * 0x9e3779b97f4a7c15ull) ^ ((UWord)function->id * 0xc2b2ae3d27d4eb4full);
    return (mixed ^ (mixed >> 29)) & (slots - 1);
}

static void grow(void) {
    VG_(free)(table);
    slots *= 2;
    table = VG_(calloc)("calltree.edges", slots, sizeof *table);
    for (Edge *edge = edges; edge; edge = edge->next) {
        UWord at = slot_of(edge->from, edge->function);
        while (table[at]) at = (at + 1) & (slots - 1);
        table[at] = edge;
    }
}

static Context *new_context(Context *parent, Function *function) {
    Context *context = take(sizeof *context);
    context->parent = parent;
    context->function = function;
    context->id = ++context_count;
    last_context->next = context;
    last_context = context;
    return context;
}

/* The context to which a new edge leads; NULL if there are too many contexts. */
static Context *destination(Context *from, Function *function) {
    if (fold_recursion)
        for (Context *above = from; above; above = above->parent)
            if (above->function == function) return above;
    return context_count < context_limit ? new_context(from, function) : NULL;
}

/* The edge from a context to a function. Makes the edge and the context at its end if they do not exist. */
Edge *follow(Context *from, Function *function) {
    Edge *last = from->last;
    if (LIKELY(last && last->function == function)) return last;
    UWord at = slot_of(from, function);
    for (; table[at]; at = (at + 1) & (slots - 1))
        if (table[at]->function == function && table[at]->from == from) return from->last = table[at];
    Context *to = destination(from, function);
    if (!to) {
        /* Too many contexts: the function's cost is added to its caller's, and the profile counts these edges. */
        cut_calls++;
        to = from;
    }
    Edge *edge = take(sizeof *edge);
    edge->from = from;
    edge->to = to;
    edge->function = function;
    edge->next = edges;
    edges = edge;
    from->last = edge;
    table[at] = edge;
    if (++used * 2 > slots) grow();
    return edge;
}

Context *all_contexts(void) {
    return first_context;
}

Edge *all_edges(void) {
    return edges;
}

void zero_counts(void) {
    for (Context *context = first_context; context; context = context->next)
        context->self = context->allocations = context->bytes = context->frees = 0;
    for (Edge *edge = edges; edge; edge = edge->next) edge->calls = 0;
    for (Run *run = all_runs(); run; run = run->next) run->count = 0;
    now.instructions = settled_instructions = cut_calls = 0;
}
