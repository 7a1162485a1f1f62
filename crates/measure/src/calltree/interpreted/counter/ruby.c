/* Counts the executed lines and the calls of a Ruby program: a library, which scruple_count.rb loads. It declares what it
 * needs of Ruby's interface itself, because Ruby's headers are often not installed. */
#include "contexts.h"
#include <stdlib.h>
#include <string.h>

typedef uintptr_t value;
typedef struct trace_argument trace_argument;
typedef void hook(value, const trace_argument *);

struct data_type {
    const char *name;
    struct {
        void (*mark)(void *), (*free)(void *);
        size_t (*size)(const void *);
        void (*compact)(void *);
        void *reserved[1];
    } functions;
    const void *parent;
    void *data;
    value flags;
};

extern void rb_add_event_hook2(hook *, uint32_t, value, int) WEAK;
extern int rb_remove_event_hook(hook *) WEAK;
extern uint32_t rb_tracearg_event_flag(const trace_argument *) WEAK;
extern value rb_tracearg_path(const trace_argument *) WEAK, rb_tracearg_lineno(const trace_argument *) WEAK;
extern value rb_tracearg_defined_class(const trace_argument *) WEAK, rb_tracearg_method_id(const trace_argument *) WEAK;
extern value rb_fiber_current(void) WEAK;
extern uintptr_t rb_intern(const char *) WEAK;
extern value rb_data_typed_object_wrap(value, void *, const struct data_type *) WEAK;
extern void *rb_check_typeddata(value, const struct data_type *) WEAK;
extern char *rb_string_value_ptr(volatile value *) WEAK, *rb_string_value_cstr(volatile value *) WEAK;
extern value rb_str_new_cstr(const char *) WEAK, rb_ivar_get(value, uintptr_t) WEAK;
extern value rb_ivar_set(value, uintptr_t, value) WEAK;
extern value rb_funcall(value, uintptr_t, int, ...) WEAK;
extern long rb_num2long(value) WEAK;
extern void rb_gc_register_mark_object(value) WEAK;
extern value rb_define_module(const char *) WEAK, rb_cObject WEAK;
extern void rb_define_singleton_method(value, const char *, value (*)(), int) WEAK;

/* Versions of Ruby have other values of nil and true; false is always 0. */
static value nil, yes;
enum { FALSE };

enum { LINE = 0x1, CALL = 0x8, RETURN = 0x10, C_CALL = 0x20, C_RETURN = 0x40, B_CALL = 0x100, B_RETURN = 0x200 };
enum { EVENTS = LINE | CALL | RETURN | C_CALL | C_RETURN | B_CALL | B_RETURN };
enum { SAFE = 1, RAW_ARGUMENT = 4 };
enum kind { METHOD, BLOCK, TOP };
enum { SMALLEST_PAGE = 4096 };

struct path {
    struct path *next;
    bool internal;
    char text[];
};

static value module;
static uintptr_t stack_name, describe_name;
static struct path *paths[1024];
static const char *own_path;
/* Functions: a method by its class, name and line, other code by its path and line. */
static struct numbers functions;

static void free_stack(void *stack) {
    free(((struct stack *)stack)->entries);
    free(stack);
}

static const struct data_type stack_type = {.name = "scruple_stack", .functions = {.free = free_stack}};

/* The fiber keeps its stack under a name that Ruby does not show. The thread may be frozen, and shows what it keeps. */
static struct stack *find_stack(value fiber) {
    value kept = rb_ivar_get(fiber, stack_name);
    if (kept != nil) return rb_check_typeddata(kept, &stack_type);
    struct stack *stack = grown(NULL, sizeof *stack);
    *stack = (struct stack){0};
    push(stack, NULL, ROOT);
    rb_ivar_set(fiber, stack_name, rb_data_typed_object_wrap(rb_cObject, stack, &stack_type));
    return stack;
}

/* Each fiber has a stack of its own, and so has each thread. Before a fiber can get the address of one that has ended,
 * or its machine stack, something is counted in the fiber that makes it. So while the page of the machine stack is the
 * same, the fiber is the same. To ask Ruby would take longer than all the rest. */
static struct stack *stack_of_fiber(void) {
    static uintptr_t last_page;
    static value last;
    static struct stack *of_last;
    uintptr_t page = (uintptr_t)__builtin_frame_address(0) / SMALLEST_PAGE;
    if (page == last_page) return of_last;
    last_page = page;
    value fiber = rb_fiber_current();
    if (fiber != last) {
        of_last = find_stack(fiber);
        last = fiber;
    }
    return of_last;
}

static const char *text_of_path(const trace_argument *argument) {
    value text = rb_tracearg_path(argument);
    return text == nil ? "" : rb_string_value_ptr(&text);
}

static const struct path *path_of(const char *text) {
    uint32_t hash = 0;
    for (const char *at = text; *at; at++) hash = (hash ^ (unsigned char)*at) * 16777619;
    struct path **bucket = &paths[(hash ^ hash >> 16) % 1024];
    for (struct path *path = *bucket; path; path = path->next)
        if (!strcmp(path->text, text)) return path;
    size_t length = strlen(text) + 1;
    struct path *path = grown(NULL, sizeof *path + length);
    path->internal = !strncmp(text, "<internal:", 10) || !strcmp(text, own_path);
    memcpy(path->text, text, length);
    path->next = *bucket;
    return *bucket = path;
}

/* The number of a function, which `ScrupleCount.describe` gives to one that is new. */
static uint32_t function(enum kind kind, const struct path *path, value line, value owner, value name) {
    struct key key = {kind == METHOD ? owner : (uintptr_t)path, name, line << 2 | kind};
    uint32_t known = number_for(&functions, key);
    if (known != NONE) return known;
    if (kind == METHOD) {
        /* They stay where they are, so that no other class or name gets the same number. */
        rb_gc_register_mark_object(owner);
        rb_gc_register_mark_object(name);
    }
    value text = rb_str_new_cstr(path->text);
    uint32_t number =
        rb_num2long(rb_funcall(module, describe_name, 5, (value)kind << 1 | 1, text, line, owner, name));
    set_number(&functions, key, number);
    return number;
}

static void enter(struct stack *stack, const struct path *path, uint32_t number) {
    struct edge *edge = edge_to(top_of(stack)->context, number, false);
    edge->calls++;
    contexts[edge->to].cost++;
    push(stack, path, edge->to);
}

/* The context of code outside all methods and blocks: the program's own, or that of a file which it loads. */
static uint32_t top_level(uint32_t from, const struct path *path) {
    struct edge *edge = edge_to(from, function(TOP, path, 1, nil, nil), true);
    edge->calls = 1;
    return edge->to;
}

static void line(struct stack *stack, const char *text) {
    struct entry *top = top_of(stack);
    const struct path *around = top->of;
    if (!around || strcmp(around->text, text)) {
        const struct path *path = path_of(text);
        /* The first line of a file that is loaded, or of the program itself. */
        if (!path->internal) *top = (struct entry){path, top_level(top->context, path)};
    }
    contexts[top->context].cost++;
}

static void count(value data, const trace_argument *argument) {
    (void)data;
    struct stack *stack = stack_of_fiber();
    uint32_t event = rb_tracearg_event_flag(argument);
    if (event == LINE) {
        line(stack, text_of_path(argument));
    } else if (event == C_CALL) {
        /* What a built-in method calls belongs to who called the built-in method. */
        uint32_t around = top_of(stack)->context;
        contexts[around].cost++;
        push(stack, NULL, around);
    } else if (event & (CALL | B_CALL)) {
        const struct path *path = path_of(text_of_path(argument));
        if (path->internal) {
            /* Part of Ruby itself, like methods that are written in C. */
            uint32_t around = top_of(stack)->context;
            contexts[around].cost++;
            push(stack, path, around);
        } else if (event == CALL) {
            value owner = rb_tracearg_defined_class(argument), name = rb_tracearg_method_id(argument);
            enter(stack, path, function(METHOD, path, rb_tracearg_lineno(argument), owner, name));
        } else {
            enter(stack, path, function(BLOCK, path, rb_tracearg_lineno(argument), nil, nil));
        }
    } else if (stack->length > 1) {
        stack->length--;
    }
}

static value start(value self, value own) {
    (void)self;
    own_path = strdup(rb_string_value_cstr(&own));
    if (!own_path) abort();
    rb_add_event_hook2(count, EVENTS, nil, SAFE | RAW_ARGUMENT);
    return nil;
}

static value stop(value self) {
    (void)self;
    rb_remove_event_hook(count);
    return nil;
}

static value clear(value self) {
    (void)self;
    clear_counts();
    return nil;
}

static value has_folded_by_call(value self) {
    (void)self;
    return folds_by_call() ? yes : FALSE;
}

static value append(value self, value path) {
    (void)self;
    return append_counts(rb_string_value_cstr(&path)) ? yes : FALSE;
}

EXPORT void Init_scruple_counter(void) {
    module = rb_define_module("ScrupleCount");
    nil = rb_ivar_get(module, rb_intern("@none"));
    yes = rb_funcall(module, rb_intern("=="), 1, module);
    stack_name = rb_intern("__scruple_stack");
    describe_name = rb_intern("describe");
    rb_define_singleton_method(module, "start_counting", start, 1);
    rb_define_singleton_method(module, "stop_counting", stop, 0);
    rb_define_singleton_method(module, "clear_counts", clear, 0);
    rb_define_singleton_method(module, "folds_by_call?", has_folded_by_call, 0);
    rb_define_singleton_method(module, "append_counts", append, 1);
}
