/* The calling contexts of a program that an interpreter runs: what each has cost, and the calls along each edge from one
 * context to another. The libraries of Python and Ruby share this. */
#ifndef CONTEXTS_H
#define CONTEXTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEAK __attribute__((weak))
#define EXPORT __attribute__((visibility("default")))

/* No context, or no function. The context 0 is the root. */
enum { NONE = UINT32_MAX, ROOT = 0 };

struct context {
    uint64_t cost;
    uint32_t function, parent;
};

/* An edge leads to a context below the first one, or to one above it, to which recursion leads back. */
struct edge {
    uint64_t calls;
    uint32_t from, to;
};

/* What executes, the innermost last: an object of the interpreter that stands for it, and its context. */
struct entry {
    const void *of;
    uint32_t context;
};

struct stack {
    struct entry *entries;
    size_t length, capacity;
};

/* Three words that identify something. The first one is not 0. */
struct key {
    uintptr_t first, second, third;
};

/* The numbers of what keys identify: a hash table whose capacity is a power of two. */
struct numbers {
    struct numbered *entries;
    size_t count, capacity;
};

extern struct context *contexts;

/* Ends the process if there is no memory: wrong counts would be worse. */
void *grown(void *block, size_t bytes);
/* The number of what a key identifies; NONE if it has none yet. */
uint32_t number_for(const struct numbers *numbers, struct key key);
/* Gives a number to what a key identifies. */
void set_number(struct numbers *numbers, struct key key, uint32_t number);
/* The edge from a context to a function. `any_caller` says that recursion leads back to the function, whoever calls it. */
struct edge *edge_to(uint32_t from, uint32_t function, bool any_caller);
void push(struct stack *stack, const void *of, uint32_t context);
/* Whether recursive calls have contexts by caller: not if there are too many contexts. */
bool folds_by_call(void);
/* Forgets what was counted, but not the contexts. */
void clear_counts(void);
/* Appends contexts and edges to a file. */
bool append_counts(const char *path);

static inline struct entry *top_of(const struct stack *stack) {
    return stack->length ? &stack->entries[stack->length - 1] : NULL;
}

#endif
