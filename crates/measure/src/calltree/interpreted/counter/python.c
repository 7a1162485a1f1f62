/* Counts the bytecode instructions and the calls of a Python program: a module, which sitecustomize.py loads. It
 * declares what it needs of CPython's stable interface itself, because Python's headers are often not installed, and so that one
 * library does for all versions. */
#include "contexts.h"

typedef struct object {
    intptr_t references;
    void *type;
} object;

struct method {
    const char *name;
    void *function;
    int flags;
    const char *description;
};

struct module_definition {
    object head;
    void *init;
    intptr_t index;
    object *copy;
    const char *name, *description;
    intptr_t size;
    struct method *methods;
    void *slots, *traverse, *clear, *free;
};

typedef int trace_function(object *, object *, int, object *);

extern object *PyModule_Create2(struct module_definition *, int) WEAK;
extern void PyEval_SetTrace(trace_function *, object *) WEAK;
extern object *PyEval_GetGlobals(void) WEAK, *PyObject_GetAttrString(object *, const char *) WEAK;
extern int PyObject_SetAttrString(object *, const char *, object *) WEAK;
extern object *PyObject_CallFunctionObjArgs(object *, ...) WEAK;
extern object *PyCFunction_NewEx(struct method *, object *, object *) WEAK;
extern void Py_IncRef(object *) WEAK, Py_DecRef(object *) WEAK, PyErr_Clear(void) WEAK;
extern unsigned long PyLong_AsUnsignedLong(object *) WEAK;
extern object *PyLong_FromLong(long) WEAK, *PyBool_FromLong(long) WEAK;
extern const char *PyUnicode_AsUTF8(object *) WEAK;
extern int PyArg_ParseTuple(object *, const char *, ...) WEAK;
extern void *PyThreadState_Get(void) WEAK;
extern object _Py_NoneStruct WEAK;
extern object *PyFrame_GetCode(object *) WEAK; /* from 3.9 on */
/* A number that a code object keeps for us. The names are those before 3.12 and from 3.12 on. */
extern intptr_t _PyEval_RequestCodeExtraIndex(void (*)(void *)) WEAK;
extern intptr_t PyUnstable_Eval_RequestCodeExtraIndex(void (*)(void *)) WEAK;
extern int _PyCode_GetExtra(object *, intptr_t, void **) WEAK, _PyCode_SetExtra(object *, intptr_t, void *) WEAK;
extern int PyUnstable_Code_GetExtra(object *, intptr_t, void **) WEAK;
extern int PyUnstable_Code_SetExtra(object *, intptr_t, void *) WEAK;

enum { WITH_ARGUMENTS = 1, WITHOUT_ARGUMENTS = 4, WITH_ONE = 8, WITH_ARRAY = 128, API_VERSION = 1013 };
enum { CALL = 0, RETURN = 3, OPCODE = 7 };
/* The number of all code of Python's import system, and the number that marks a part of the function around it. */
static const uint32_t IMPORTS = 0, PART = NONE - 1;

static object *describe; /* gives the number of a function */
static object *tracer;   /* what the program sees as the trace function */
static bool was_set_again;
static intptr_t extra;
static int (*get_extra)(object *, intptr_t, void **), (*set_extra)(object *, intptr_t, void *);

static object *none(void) {
    Py_IncRef(&_Py_NoneStruct);
    return &_Py_NoneStruct;
}

/* Each thread has a stack. */
struct thread {
    const void *state;
    struct thread *next;
    struct stack stack;
};
static struct thread *threads;

static struct stack *stack_of_thread(void) {
    const void *state = PyThreadState_Get();
    if (threads && threads->state == state) return &threads->stack;
    struct thread **at = &threads, *thread;
    while (*at && (*at)->state != state) at = &(*at)->next;
    thread = *at;
    if (thread) {
        *at = thread->next;
    } else {
        thread = grown(NULL, sizeof *thread);
        *thread = (struct thread){.state = state};
    }
    thread->next = threads;
    threads = thread;
    return &thread->stack;
}

/* The number of a function. Its code keeps it, increased by one. `frame` may be NULL for the one that executes. */
static uint32_t number_of(object *code, object *frame) {
    void *known = NULL;
    if (get_extra(code, extra, &known)) PyErr_Clear();
    if (known) return (uintptr_t)known - 1;
    object *globals = frame ? PyObject_GetAttrString(frame, "f_globals") : PyEval_GetGlobals();
    object *number = PyObject_CallFunctionObjArgs(describe, code, globals ? globals : &_Py_NoneStruct, NULL);
    if (frame && globals) Py_DecRef(globals);
    if (!number) {
        PyErr_Clear();
        return NONE;
    }
    uintptr_t value = PyLong_AsUnsignedLong(number);
    Py_DecRef(number);
    if (set_extra(code, extra, (void *)(value + 1))) PyErr_Clear();
    return value;
}

/* The edge by which a function is entered. What a module executes counts for the module that imports it: imports within
 * imports would look like recursion. */
static struct edge *entering(const struct stack *stack, uint32_t function) {
    uint32_t from = stack->length ? top_of(stack)->context : ROOT;
    if (contexts[from].function == IMPORTS && function != IMPORTS) from = contexts[from].parent;
    return edge_to(from, function, function == IMPORTS);
}

static void enter(struct stack *stack, const void *of, uint32_t function) {
    if (function == NONE) return;
    if (function == PART) {
        push(stack, of, stack->length ? top_of(stack)->context : ROOT);
        return;
    }
    struct edge *edge = entering(stack, function);
    edge->calls++;
    push(stack, of, edge->to);
}

/* The innermost entry of an object. What was running before the counting began has none. */
static struct entry *entry_of(const struct stack *stack, const void *of) {
    for (size_t at = stack->length; at-- > 0;)
        if (stack->entries[at].of == of) return &stack->entries[at];
    return NULL;
}

static void leave(struct stack *stack, const void *of) {
    const struct entry *entry = entry_of(stack, of);
    if (entry) stack->length = entry - stack->entries;
}

static void call_of_frame(object *frame) {
    object *code = PyFrame_GetCode ? PyFrame_GetCode(frame) : PyObject_GetAttrString(frame, "f_code");
    enter(stack_of_thread(), frame, number_of(code, frame));
    Py_DecRef(code);
    object *yes = PyBool_FromLong(1), *no = PyBool_FromLong(0);
    PyObject_SetAttrString(frame, "f_trace_opcodes", yes);
    PyObject_SetAttrString(frame, "f_trace_lines", no);
    Py_DecRef(yes);
    Py_DecRef(no);
}

static int trace(object *self, object *frame, int what, object *argument) {
    (void)self, (void)argument;
    if (what == OPCODE) {
        const struct entry *entry = entry_of(stack_of_thread(), frame);
        if (entry) contexts[entry->context].cost++;
    } else if (what == CALL) {
        call_of_frame(frame);
    } else if (what == RETURN) {
        leave(stack_of_thread(), frame);
    }
    return 0;
}

/* The program may take the trace function away, and set it again by sys.settrace, which then calls it for the next
 * function. What it executed in between is not counted. */
static object *trace_again(object *self, object *arguments) {
    (void)self;
    object *frame, *event, *argument;
    if (!PyArg_ParseTuple(arguments, "OOO", &frame, &event, &argument)) return NULL;
    was_set_again = true;
    PyEval_SetTrace(trace, tracer);
    call_of_frame(frame);
    return none();
}

static object *trace_thread(object *self, object *nothing) {
    (void)self, (void)nothing;
    PyEval_SetTrace(trace, tracer);
    return none();
}

/* From 3.12 on: callbacks of sys.monitoring. Their first argument is the code. */
static object *begun(object *self, object *const *arguments, intptr_t count) {
    (void)self, (void)count;
    enter(stack_of_thread(), arguments[0], number_of(arguments[0], NULL));
    return none();
}

static object *ended(object *self, object *const *arguments, intptr_t count) {
    (void)self, (void)count;
    leave(stack_of_thread(), arguments[0]);
    return none();
}

static object *executed(object *self, object *const *arguments, intptr_t count) {
    (void)self, (void)count;
    struct stack *stack = stack_of_thread();
    const struct entry *top = top_of(stack);
    uint32_t context = top ? top->context : ROOT;
    if (!top || top->of != arguments[0]) {
        uint32_t function = number_of(arguments[0], NULL);
        if (function == NONE) return none();
        /* A few instructions precede the event that a function begins. */
        if (function < PART && contexts[context].function != function) context = entering(stack, function)->to;
    }
    contexts[context].cost++;
    return none();
}

static object *clear(object *self, object *nothing) {
    (void)self, (void)nothing;
    clear_counts();
    return none();
}

static object *has_folded_by_call(object *self, object *nothing) {
    (void)self, (void)nothing;
    return PyBool_FromLong(folds_by_call());
}

static object *was_interrupted(object *self, object *nothing) {
    (void)self, (void)nothing;
    return PyBool_FromLong(was_set_again);
}

static object *append(object *self, object *path) {
    (void)self;
    const char *name = PyUnicode_AsUTF8(path);
    return name ? PyBool_FromLong(append_counts(name)) : NULL;
}

static object *start(object *self, object *function) {
    static struct method again = {"trace", trace_again, WITH_ARGUMENTS, NULL};
    bool is_new = PyUnstable_Eval_RequestCodeExtraIndex;
    get_extra = is_new ? PyUnstable_Code_GetExtra : _PyCode_GetExtra;
    set_extra = is_new ? PyUnstable_Code_SetExtra : _PyCode_SetExtra;
    extra = (is_new ? PyUnstable_Eval_RequestCodeExtraIndex : _PyEval_RequestCodeExtraIndex)(NULL);
    Py_IncRef(function);
    describe = function;
    tracer = PyCFunction_NewEx(&again, self, NULL);
    if (!tracer) return NULL;
    Py_IncRef(tracer);
    return tracer;
}

EXPORT object *PyInit_scruple_count(void) {
    static struct method methods[] = {
        {"start", start, WITH_ONE, NULL},
        {"trace_thread", trace_thread, WITHOUT_ARGUMENTS, NULL},
        {"begun", begun, WITH_ARRAY, NULL},
        {"ended", ended, WITH_ARRAY, NULL},
        {"executed", executed, WITH_ARRAY, NULL},
        {"clear", clear, WITHOUT_ARGUMENTS, NULL},
        {"was_interrupted", was_interrupted, WITHOUT_ARGUMENTS, NULL},
        {"folds_by_call", has_folded_by_call, WITHOUT_ARGUMENTS, NULL},
        {"append", append, WITH_ONE, NULL},
        {NULL, NULL, 0, NULL},
    };
    static struct module_definition definition = {
        .head = {.references = 1}, .name = "scruple_count", .size = -1, .methods = methods};
    return PyModule_Create2(&definition, API_VERSION);
}
