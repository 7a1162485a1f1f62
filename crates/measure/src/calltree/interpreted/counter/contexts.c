#include "contexts.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* With more contexts than this, recursion leads back to the function's context, whoever calls it: functions that call
 * each other have as many paths as there are orders of their calls. */
enum { MOST_BY_CALL = 100000 };

static struct context root = {.function = NONE, .parent = NONE};
struct context *contexts = &root;
static size_t context_count = 1, context_capacity = 1;
static struct edge *edges;
static size_t edge_count, edge_capacity;
/* The indices of edges, by the context from which they lead, increased by one, and the function. */
static struct numbers edge_numbers;

struct numbered {
    struct key key;
    uint32_t number;
};

void *grown(void *block, size_t bytes) {
    void *larger = realloc(block, bytes);
    if (!larger) abort();
    return larger;
}

static inline size_t mixed(uint64_t word) {
    word *= UINT64_C(0x9E3779B97F4A7C15);
    return word ^ word >> 32;
}

/* Where a key stands, or may be put. */
static struct numbered *place_of(const struct numbers *numbers, struct key key) {
    for (size_t at = mixed(mixed(mixed(key.first) ^ key.second) ^ key.third);; at++) {
        struct numbered *entry = &numbers->entries[at & (numbers->capacity - 1)];
        bool is_same =
            entry->key.first == key.first && entry->key.second == key.second && entry->key.third == key.third;
        if (is_same || !entry->key.first) return entry;
    }
}

uint32_t number_for(const struct numbers *numbers, struct key key) {
    if (!numbers->capacity) return NONE;
    const struct numbered *entry = place_of(numbers, key);
    return entry->key.first ? entry->number : NONE;
}

void set_number(struct numbers *numbers, struct key key, uint32_t number) {
    if (numbers->count * 2 >= numbers->capacity) {
        struct numbers larger = {.capacity = numbers->capacity ? numbers->capacity * 2 : 1024};
        larger.entries = calloc(larger.capacity, sizeof *larger.entries);
        if (!larger.entries) abort();
        for (size_t at = 0; at < numbers->capacity; at++) {
            struct numbered entry = numbers->entries[at];
            if (entry.key.first) *place_of(&larger, entry.key) = entry;
        }
        larger.count = numbers->count;
        free(numbers->entries);
        *numbers = larger;
    }
    struct numbered *entry = place_of(numbers, key);
    numbers->count += !entry->key.first;
    *entry = (struct numbered){key, number};
}

bool folds_by_call(void) { return context_count - 1 < MOST_BY_CALL; }

/* The context to which a new edge leads. A recursive call leads back to a context that the same function has called, so
 * that its cost is apart from that of the outer call. */
static uint32_t destination(uint32_t from, uint32_t function, bool any_caller) {
    any_caller |= !folds_by_call();
    for (uint32_t above = from; above != ROOT; above = contexts[above].parent) {
        if (contexts[above].function != function) continue;
        if (any_caller || contexts[contexts[above].parent].function == contexts[from].function) return above;
    }
    if (context_count == context_capacity) {
        context_capacity = context_capacity * 2 + 255;
        contexts = grown(contexts == &root ? NULL : contexts, context_capacity * sizeof *contexts);
        if (context_count == 1) contexts[ROOT] = root;
    }
    contexts[context_count] = (struct context){.function = function, .parent = from};
    return context_count++;
}

struct edge *edge_to(uint32_t from, uint32_t function, bool any_caller) {
    struct key key = {(uintptr_t)from + 1, function, 0};
    uint32_t known = number_for(&edge_numbers, key);
    if (known != NONE) return &edges[known];
    if (edge_count == edge_capacity) {
        edge_capacity = edge_capacity * 2 + 256;
        edges = grown(edges, edge_capacity * sizeof *edges);
    }
    uint32_t to = destination(from, function, any_caller);
    edges[edge_count] = (struct edge){.from = from, .to = to};
    set_number(&edge_numbers, key, edge_count);
    return &edges[edge_count++];
}

void push(struct stack *stack, const void *of, uint32_t context) {
    if (stack->length == stack->capacity) {
        stack->capacity = stack->capacity * 2 + 64;
        stack->entries = grown(stack->entries, stack->capacity * sizeof *stack->entries);
    }
    stack->entries[stack->length++] = (struct entry){of, context};
}

void clear_counts(void) {
    for (size_t number = 0; number < context_count; number++) contexts[number].cost = 0;
    for (size_t number = 0; number < edge_count; number++) edges[number].calls = 0;
}

bool append_counts(const char *path) {
    FILE *file = fopen(path, "ae");
    if (!file) return false;
    for (size_t number = 1; number < context_count; number++) {
        const struct context *context = &contexts[number];
        fprintf(file, "c\t%" PRIu32 "\t%" PRIu32 "\t%" PRIu64 "\n", context->parent, context->function, context->cost);
    }
    for (size_t number = 0; number < edge_count; number++) {
        const struct edge *edge = &edges[number];
        fprintf(file, "e\t%" PRIu32 "\t%" PRIu32 "\t%" PRIu64 "\n", edge->from, edge->to, edge->calls);
    }
    fputs("end\n", file);
    bool failed = ferror(file);
    return !fclose(file) && !failed;
}
