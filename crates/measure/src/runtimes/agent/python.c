/* CPython: its three allocators are wrapped before it starts, and later a function of ours is added to
 * `gc.callbacks`. No Python code runs, so `-I`, `-S` and `-E` have no effect. A forked child (multiprocessing)
 * ends by _exit and has its own record; the child is detected by a page that the kernel wipes in children. */
#include "agent.h"

struct allocator {
    void *context;
    void *(*malloc)(void *, size_t);
    void *(*calloc)(void *, size_t, size_t);
    void *(*realloc)(void *, void *, size_t);
    void (*free)(void *, void *);
};
struct method {
    const char *name;
    void *(*function)(void *, void *);
    int flags;
    const char *doc;
};
extern void PyMem_GetAllocator(int, struct allocator *) WEAK;
extern void PyMem_SetAllocator(int, struct allocator *) WEAK;
extern int Py_IsInitialized(void) WEAK, Py_AddPendingCall(int (*)(void *), void *) WEAK;
extern void *PyImport_ImportModule(const char *) WEAK, *PyObject_GetAttrString(void *, const char *) WEAK;
extern void *PyCFunction_NewEx(struct method *, void *, void *) WEAK, *PyTuple_GetItem(void *, long) WEAK;
extern void *PyDict_GetItemString(void *, const char *) WEAK, *PyList_GetItem(void *, long) WEAK;
extern void *PyObject_CallObject(void *, void *) WEAK, *PyEval_GetFrame(void) WEAK;
extern int PyList_Append(void *, void *) WEAK, PyTuple_SetItem(void *, long, void *) WEAK;
extern void *PyTuple_New(long) WEAK;
extern long PyLong_AsLong(void *) WEAK, PyList_Size(void *) WEAK;
extern const char *PyUnicode_AsUTF8(void *) WEAK;
extern void Py_IncRef(void *) WEAK, Py_DecRef(void *) WEAK, PyErr_Clear(void) WEAK;
extern char _Py_NoneStruct[] WEAK;
extern const char *Py_GetVersion(void) WEAK;

extern size_t malloc_usable_size(void *) WEAK;

enum { DOMAINS = 3, ALIVE = 1, WIPE_ON_FORK = 18 };
enum value { CALLS, BYTES = 3, COLLECTIONS = 6, TIME = 9, LONGEST, HAVE_COLLECTIONS, LIVE, HAVE_LIVE };

static struct allocator original[DOMAINS];
static struct record *record;
static volatile int *alive;
static int paused, hook_state;
static int locked; /* the interpreter's lock is held in all domains but the raw one: not in free-threaded builds */
static uint64_t started;

static void install(void);
static int look_at_live(void *);

static void begin(void) {
    uint32_t forked = record ? CHILD : 0;
    record = claim(PYTHON);
    if (record) record->flags |= CONTINUOUS | forked;
    if (record && hook_state == 2) record->value[HAVE_COLLECTIONS] = 1;
    if (alive) *alive = ALIVE;
}

static inline void count(long domain, size_t size) {
    if (__builtin_expect(!alive || *alive != ALIVE, 0)) begin();
    if (!record || paused) return;
    uint64_t *calls_at = &record->value[CALLS + domain], *bytes_at = &record->value[BYTES + domain], calls;
    if (domain && locked) {
        calls = (*calls_at)++;
        *bytes_at += size;
    } else {
        calls = __atomic_fetch_add(calls_at, 1, __ATOMIC_RELAXED);
        __atomic_fetch_add(bytes_at, size, __ATOMIC_RELAXED);
    }
    if (__builtin_expect(hook_state == 0 && domain && calls % 256 == 0, 0)) install();
}

static void *wrap_malloc(void *context, size_t size) {
    count((long)context, size);
    return original[(long)context].malloc(original[(long)context].context, size);
}
static void *wrap_calloc(void *context, size_t n, size_t size) {
    count((long)context, n * size);
    return original[(long)context].calloc(original[(long)context].context, n, size);
}
static void *wrap_realloc(void *context, void *at, size_t size) {
    if (!at) count((long)context, size);
    return original[(long)context].realloc(original[(long)context].context, at, size);
}
static void wrap_free(void *context, void *at) {
    original[(long)context].free(original[(long)context].context, at);
}

/* ---- live data, if requested ----
 *
 * All blocks then come from malloc, which knows the size of a block that is freed. */

static int64_t live, since_look;
static int look_state; /* 0 nothing, 1 asked for, 2 running */

static void *came(void *at) {
    int64_t size = at ? (int64_t)malloc_usable_size(at) : 0;
    int64_t now_live = __atomic_add_fetch(&live, size, __ATOMIC_RELAXED);
    int64_t since = __atomic_add_fetch(&since_look, size, __ATOMIC_RELAXED);
    /* Live data is read again when a quarter of the live bytes has been allocated since. */
    if (hook_state == 2 && look_state == 0 && since > 1000000 && since > now_live / 4) {
        look_state = 1;
        if (Py_AddPendingCall(look_at_live, NULL) != 0) look_state = 0;
    }
    return at;
}
static void went(void *at) {
    if (at) __atomic_sub_fetch(&live, (int64_t)malloc_usable_size(at), __ATOMIC_RELAXED);
}
static void *live_malloc(void *context, size_t size) {
    count((long)context, size);
    return came(original[0].malloc(original[0].context, size));
}
static void *live_calloc(void *context, size_t n, size_t size) {
    count((long)context, n * size);
    return came(original[0].calloc(original[0].context, n, size));
}
static void *live_realloc(void *context, void *at, size_t size) {
    if (!at) return live_malloc(context, size);
    int64_t before = (int64_t)malloc_usable_size(at);
    void *moved = original[0].realloc(original[0].context, at, size);
    if (moved) __atomic_sub_fetch(&live, before, __ATOMIC_RELAXED);
    return moved ? came(moved) : NULL;
}
static void live_free(void *context, void *at) {
    (void)context;
    went(at);
    original[0].free(original[0].context, at);
}

/* Reads live data, in the interpreter's main thread between two instructions, or as the program ends. */
static int look_at_live(void *nothing) {
    (void)nothing;
    look_state = 2;
    paused = 1;
    void *gc = PyImport_ImportModule("gc");
    void *collect = gc ? PyObject_GetAttrString(gc, "collect") : NULL;
    void *found = collect ? PyObject_CallObject(collect, NULL) : NULL;
    if (found) Py_DecRef(found);
    if (collect) Py_DecRef(collect);
    if (gc) Py_DecRef(gc);
    PyErr_Clear();
    paused = 0;
    if (record && found) {
        if (live > (int64_t)record->value[LIVE]) record->value[LIVE] = (uint64_t)live;
        record->value[HAVE_LIVE] = 1;
    }
    since_look = 0;
    look_state = 0;
    return 0;
}

static void *look_last(void *self, void *arguments) {
    (void)self;
    (void)arguments;
    look_at_live(NULL);
    look_state = 2; /* the interpreter is shutting down: no further reading */
    Py_IncRef(_Py_NoneStruct);
    return _Py_NoneStruct;
}

/* Registers the last reading with atexit, which calls the function that was registered first last. */
static void look_at_end(void) {
    static struct method method = {"scruple", look_last, 4 /* METH_NOARGS */, NULL};
    void *module = PyImport_ImportModule("atexit");
    void *enter = module ? PyObject_GetAttrString(module, "register") : NULL;
    void *function = enter ? PyCFunction_NewEx(&method, NULL, NULL) : NULL;
    void *arguments = function && PyTuple_New ? PyTuple_New(1) : NULL;
    if (arguments) {
        PyTuple_SetItem(arguments, 0, function);
        void *done = PyObject_CallObject(enter, arguments);
        if (done) Py_DecRef(done);
        Py_DecRef(arguments);
    }
    if (enter) Py_DecRef(enter);
    if (module) Py_DecRef(module);
    PyErr_Clear();
}

/* ---- collections ---- */

/* gc.callbacks calls this with the phase and a dictionary. */
static void *on_collection(void *self, void *arguments) {
    (void)self;
    const char *phase = PyUnicode_AsUTF8(PyTuple_GetItem(arguments, 0));
    if (phase && same(phase, "start")) {
        started = now();
    } else if (phase && started && record) {
        uint64_t ended = now(), took = ended - started;
        note_pause(PYTHON, started, ended);
        started = 0;
        void *generation = PyDict_GetItemString(PyTuple_GetItem(arguments, 1), "generation");
        long index = generation ? PyLong_AsLong(generation) : 0;
        if (index < 0 || index > 2) index = 2;
        record->value[COLLECTIONS + index]++;
        record->value[TIME] += took;
        if (took > record->value[LONGEST]) record->value[LONGEST] = took;
    }
    Py_IncRef(_Py_NoneStruct);
    return _Py_NoneStruct;
}

/* Adds the collections before the callback was added, whose number the interpreter knows. */
static void count_earlier(void *gc) {
    void *function = PyObject_GetAttrString(gc, "get_stats");
    void *list = function ? PyObject_CallObject(function, NULL) : NULL;
    for (long i = 0; list && i < PyList_Size(list) && i < 3; i++) {
        void *number = PyDict_GetItemString(PyList_GetItem(list, i), "collections");
        if (number) record->value[COLLECTIONS + i] += (uint64_t)PyLong_AsLong(number);
    }
    if (list) Py_DecRef(list);
    if (function) Py_DecRef(function);
}

/* Whether the interpreter is inside its import machinery. An import of ours would fail there, because each thread
 * has only one field for the module that it waits for. */
static int importing(void) {
    void *frame = PyEval_GetFrame ? PyEval_GetFrame() : NULL;
    void *code = frame ? PyObject_GetAttrString(frame, "f_code") : NULL;
    void *file = code ? PyObject_GetAttrString(code, "co_filename") : NULL;
    const char *name = file ? PyUnicode_AsUTF8(file) : NULL;
    int found = name && find(name, "importlib");
    if (file) Py_DecRef(file);
    if (code) Py_DecRef(code);
    PyErr_Clear();
    return found;
}

/* Adds our function to gc.callbacks, in the interpreter's main thread between two instructions. */
static int join_callbacks(void *nothing) {
    static struct method method = {"scruple", on_collection, 1, NULL};
    (void)nothing;
    paused = 1;
    if (importing()) {
        hook_state = 0; /* the next allocations try again */
        paused = 0;
        return 0;
    }
    void *gc = PyImport_ImportModule("gc");
    void *callbacks = gc ? PyObject_GetAttrString(gc, "callbacks") : NULL;
    void *function = callbacks ? PyCFunction_NewEx(&method, NULL, NULL) : NULL;
    if (function && PyList_Append(callbacks, function) == 0) {
        count_earlier(gc);
        record->value[HAVE_COLLECTIONS] = 1;
        if (full_collections()) look_at_end();
        hook_state = 2;
    }
    if (function) Py_DecRef(function);
    if (callbacks) Py_DecRef(callbacks);
    if (gc) Py_DecRef(gc);
    PyErr_Clear();
    paused = 0;
    return 0;
}

static void install(void) {
    if (!Py_IsInitialized || !Py_IsInitialized()) return;
    hook_state = 1;
    if (Py_AddPendingCall && PyCFunction_NewEx && &_Py_NoneStruct) Py_AddPendingCall(join_callbacks, NULL);
}

void start_python(void) {
    if (!PyMem_SetAllocator || !PyMem_GetAllocator) return;
    void *page = system_take(4096);
    if (!page || call6(SYS_madvise, (long)page, 4096, WIPE_ON_FORK, 0, 0, 0) != 0) return;
    alive = page;
    locked = Py_GetVersion && !find(Py_GetVersion(), "free-threading");
    /* Builds without a global lock need their own allocators for objects. */
    int sizes = locked && full_collections() && malloc_usable_size && PyTuple_SetItem;
    for (long domain = 0; domain < DOMAINS; domain++) {
        PyMem_GetAllocator((int)domain, &original[domain]);
        struct allocator wrapped = {(void *)domain, wrap_malloc, wrap_calloc, wrap_realloc, wrap_free};
        struct allocator sized = {(void *)domain, live_malloc, live_calloc, live_realloc, live_free};
        PyMem_SetAllocator((int)domain, sizes ? &sized : &wrapped);
    }
    begin();
}
