/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tree of calling contexts, and the calls between them. */
#include "calltree.h"

Shared shared;
ULong cut_calls;

static Context root;
static Context *first_context = &root, *last_context = &root;
static Edge *edges;
static struct {
    ULong key; /* the numbers of the context and of the function */
    Edge *edge;
} *table;
static UWord slots, used;
static ULong context_count, context_limit;
static Bool fold_recursion;
Bool folds_by_call = True;

/* With more contexts than this, a quarter of the limit, recursion leads back to the function's context, whoever calls it:
 * functions that call each other have as many paths as there are orders of their calls. */
static ULong most_by_call;

void contexts_start(ULong limit, Bool fold) {
    context_limit = limit;
    most_by_call = limit / 4;
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

static inline ULong key_of(const Context *from, const Function *function) {
    return (ULong)from->id << 32 | function->id;
}

/* The place of a key in the table, or the free place for it. */
static inline UWord slot_of(ULong key) {
    UWord at = (key * 0x9e3779b97f4a7c15ull) >> 32;
    for (at &= slots - 1; table[at].edge && table[at].key != key;) at = (at + 1) & (slots - 1);
    return at;
}

static void grow(void) {
    VG_(free)(table);
    slots *= 2;
    table = VG_(calloc)("calltree.edges", slots, sizeof *table);
    for (Edge *edge = edges; edge; edge = edge->next) {
        ULong key = key_of(edge->from, edge->function);
        UWord at = slot_of(key);
        table[at].key = key;
        table[at].edge = edge;
    }
}

static Context *new_context(Context *parent, Function *function) {
    Context *context = take(sizeof *context);
    context->parent = parent;
    context->function = function->origin;
    context->called = function;
    context->id = ++context_count;
    last_context->next = context;
    last_context = context;
    return context;
}

/* Whether a context is where a recursive call leads back to: a context of the called function, which the same function
 * called. So the cost of a recursive call is apart from that of the outer call. */
static Bool is_outer(const Context *context, const Context *from, const Function *function) {
    if (context->function != function->origin) return False;
    return !folds_by_call || (context->parent && context->parent->function == from->function);
}

/* The context to which a new edge leads: an ancestor if the call is recursive, else a new one; NULL if there are
 * too many. Below the root there is always room, for one context of each function. */
static Context *destination(Context *from, Function *function) {
    if (find_sites || context_count >= most_by_call) folds_by_call = False;
    if (fold_recursion)
        for (Context *above = from; above; above = above->parent)
            if (is_outer(above, from, function)) return above;
    return context_count < context_limit || from == &root ? new_context(from, function) : NULL;
}

/* The edge from a context to a function. The edge, and the context at its end, are made if they do not exist. */
Edge *find_edge(Context *from, Function *function) {
    Edge **recent = &from->recent[function->id % 4];
    ULong key = key_of(from, function);
    UWord at = slot_of(key);
    if (table[at].edge) return *recent = table[at].edge;
    Context *to = destination(from, function);
    if (!to) {
        /* There are too many contexts: the function's cost remains its own, but its callers are lost. */
        cut_calls++;
        return *recent = find_edge(&root, function);
    }
    Edge *edge = take(sizeof *edge);
    edge->from = from;
    edge->to = to;
    edge->function = function;
    edge->next = edges;
    edges = edge;
    *recent = edge;
    table[at].key = key;
    table[at].edge = edge;
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
    for (Run *run = all_runs(); run; run = run->next) *run->count = 0;
    now.instructions = cut_calls = 0;
    if (find_sites) live_restarts();
}
