/* Counts the instructions of Guile's virtual machine and the calls of a program: an extension, which contexts.scm loads. It
 * declares what it needs of Guile's interface itself, because Guile's headers are often not installed. */
#include "contexts.h"
#include <stdlib.h>

typedef uintptr_t value;

extern value scm_c_define_gsubr(const char *, int, int, int, value (*)()) WEAK;
extern value scm_frame_instruction_pointer(value) WEAK, scm_frame_address(value) WEAK;
extern value scm_call_1(value, value) WEAK, scm_car(value) WEAK, scm_cdr(value) WEAK;
extern value scm_from_uint64(uint64_t) WEAK;
extern uint64_t scm_to_uint64(value) WEAK;
extern char *scm_to_locale_string(value) WEAK;
extern value scm_gc_protect_object(value) WEAK, scm_gc_disable(void) WEAK, scm_gc_enable(void) WEAK;

enum { TRUE = 0x404, FALSE = 0x4 };

/* For each instruction, twice the number of the procedure, and 1 more if it is the procedure's first one. Addresses are
 * small numbers of Guile, which are values that can be compared. */
static struct numbers instructions;
static value describe;
/* Each entry belongs to a frame; `of` is the frame's address. */
static struct stack stack;

/* `describe` gives the number of the procedure and the address of its first instruction. Collections are disabled
 * meanwhile: with them, programs fail with values of a wrong type just after calls, presumably because the collector does
 * not see the values that a call has just returned. */
static uint32_t look_up(value instruction) {
    struct key key = {instruction, 0, 0};
    uint32_t known = number_for(&instructions, key);
    if (known != NONE) return known;
    scm_gc_disable();
    value procedure = scm_call_1(describe, instruction);
    uint32_t number = scm_to_uint64(scm_car(procedure));
    bool begins = scm_cdr(procedure) == instruction;
    scm_gc_enable();
    known = number << 1 | begins;
    set_number(&instructions, key, known);
    return known;
}

/* A tail call replaces the procedure of a frame, and is a call by the procedure that was there. After a jump out of
 * procedures, or into a continuation, the frames that no longer exist are left, and the executing one is entered without a
 * call. */
static value count(value frame) {
    uint32_t known = look_up(scm_frame_instruction_pointer(frame)), procedure = known >> 1;
    bool begins = known & 1;
    const void *address = (const void *)scm_frame_address(frame);
    while (stack.length && (intptr_t)top_of(&stack)->of > (intptr_t)address) stack.length--;
    const struct entry *top = top_of(&stack);
    bool is_same = top && top->of == address;
    if (!is_same || begins || contexts[top->context].function != procedure) {
        struct edge *edge = edge_to(top ? top->context : ROOT, procedure, false);
        if (is_same) stack.length--;
        edge->calls += begins;
        push(&stack, address, edge->to);
    }
    contexts[top_of(&stack)->context].cost++;
    return FALSE;
}

static value start(value function) {
    describe = scm_gc_protect_object(function);
    return FALSE;
}

static value clear(void) {
    clear_counts();
    return FALSE;
}

static value has_folded_by_call(void) { return folds_by_call() ? TRUE : FALSE; }

static value append(value path) {
    char *name = scm_to_locale_string(path);
    bool done = append_counts(name);
    free(name);
    return done ? TRUE : FALSE;
}

EXPORT void scruple_init_counter(void) {
    scm_c_define_gsubr("count!", 1, 0, 0, count);
    scm_c_define_gsubr("describe-by!", 1, 0, 0, start);
    scm_c_define_gsubr("clear-counts!", 0, 0, 0, clear);
    scm_c_define_gsubr("folds-by-call?", 0, 0, 0, has_folded_by_call);
    scm_c_define_gsubr("append-counts", 1, 0, 0, append);
}
