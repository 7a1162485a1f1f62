/* HotSpot loads this library a second time, as a JVMTI agent. The agent records how long collections stop the
 * program. When the virtual machine ends, it reads allocated bytes, collections and memory pools from the
 * management beans. The function tables of JNI and JVMTI are indexed by position, which their specifications fix. */
#include "agent.h"

typedef void *const *const *table;
typedef union {
    int64_t number;
    int32_t integer;
    void *object;
} argument;

enum jni {
    FIND_CLASS = 6, EXCEPTION_CLEAR = 17, PUSH_FRAME = 19, POP_FRAME = 20, NEW_GLOBAL = 21, DELETE_LOCAL = 23,
    IS_SAME = 24,
    NEW_OBJECT = 30, METHOD = 33, CALL_VOID = 63, CALL_OBJECT = 36, CALL_INT = 51, CALL_LONG = 54,
    STATIC_METHOD = 113, STATIC_OBJECT = 116, TEXT = 169, RELEASE = 170
};
enum jvmti {
    SET_NOTIFICATION = 1, ALL_THREADS = 3, THREAD_INFO = 8, RUN_THREAD = 11, THREAD_STATE = 16, CURRENT_THREAD = 17,
    DEALLOCATE = 46, CLASS_OF_METHOD = 64, SUSPEND = 91, RESUME = 92, STACK_TRACE = 103, SET_TAG = 106,
    FORCE_COLLECTION = 107, TAGGED_OBJECTS = 113, EACH_OBJECT = 115, SET_CALLBACKS = 121, ADD_CAPABILITIES = 141
};
enum {
    GET_ENVIRONMENT = 6, FIRST_EVENT = 50, EVENT_INIT = 50, EVENT_DEATH = 51, EVENT_THREAD_START = 52, EVENT_GC_START = 81,
    EVENT_GC_END = 82
};
#define JVMTI_VERSION 0x30010000

enum value { ALLOCATED, STOPS, TIME, LONGEST, HAVE_BYTES, HAVE_STOPS, LIVE, HAVE_LIVE, OWN_STOPS, LIVE_AT_MOST };

static uint64_t started;

/* At its end the program is asked for its figures. What that allocates may cause collections that are not the
 * program's. Those before the numbers of collections are read are in these numbers. */
static volatile enum { RUNS, IS_ASKED, HAS_TOLD } phase;

const char *ask_java(const char *user) {
    static char answer[8192];
    char library[320], *end = library + sizeof library;
    put(put(library, end, folder), end, "/libscruple-runtimes.so");
    if (!asked_by("/libjvm.so") || !system_readable(library) || !claim(JVM)) return NULL;
    if (user && length(user) + length(library) + 20 > sizeof answer) return NULL;
    char *at = answer, *last = answer + sizeof answer;
    if (user && *user) at = put(put(at, last, user), last, " ");
    put(put(at, last, "-agentpath:"), last, library);
    listen_to(JVM, 1, user);
    own(JVM)->flags |= ASKED;
    return answer;
}

static void gc_start(void *jvmti) {
    (void)jvmti;
    started = now();
}

static void gc_end(void *jvmti) {
    (void)jvmti;
    struct record *record = own(JVM);
    if (phase == IS_ASKED && record) record->value[OWN_STOPS]++;
    if (!record || !started || phase != RUNS) return;
    uint64_t ended = now(), took = ended - started;
    note_pause(JVM, started, ended);
    started = 0;
    record->value[STOPS]++;
    record->value[TIME] += took;
    if (took > record->value[LONGEST]) record->value[LONGEST] = took;
}

static void *of(table env, int index) { return (*env)[index]; }

/* ---- Java objects ---- */

static void *class_of(table jni, const char *name) {
    void *(*find_class)(table, const char *) = of(jni, FIND_CLASS);
    void *found = find_class(jni, name);
    ((void (*)(table))of(jni, EXCEPTION_CLEAR))(jni);
    return found;
}

static void *method(table jni, const char *class, const char *name, const char *type) {
    void *(*look)(table, void *, const char *, const char *) = of(jni, METHOD);
    void *owner = class_of(jni, class);
    void *found = owner ? look(jni, owner, name, type) : NULL;
    ((void (*)(table))of(jni, EXCEPTION_CLEAR))(jni);
    return found;
}

static void *get(table jni, void *object, const char *class, const char *name, const char *type) {
    void *(*call)(table, void *, void *, const argument *) = of(jni, CALL_OBJECT);
    argument none = {0};
    void *how = object ? method(jni, class, name, type) : NULL;
    void *got = how ? call(jni, object, how, &none) : NULL;
    ((void (*)(table))of(jni, EXCEPTION_CLEAR))(jni);
    return got;
}

/* The result of a method that returns a long, or -1. */
static int64_t get_long(table jni, void *object, const char *class, const char *name) {
    int64_t (*call)(table, void *, void *, const argument *) = of(jni, CALL_LONG);
    argument none = {0};
    void *how = object ? method(jni, class, name, "()J") : NULL;
    int64_t got = how ? call(jni, object, how, &none) : -1;
    ((void (*)(table))of(jni, EXCEPTION_CLEAR))(jni);
    return got;
}

#define MANAGEMENT "java/lang/management/"

static void *management(table jni, const char *name, const char *type) {
    void *(*look)(table, void *, const char *, const char *) = of(jni, STATIC_METHOD);
    void *(*call)(table, void *, void *, const argument *) = of(jni, STATIC_OBJECT);
    argument none = {0};
    void *factory = class_of(jni, MANAGEMENT "ManagementFactory");
    void *how = factory ? look(jni, factory, name, type) : NULL;
    void *got = how ? call(jni, factory, how, &none) : NULL;
    ((void (*)(table))of(jni, EXCEPTION_CLEAR))(jni);
    return got;
}

static void *heap_usage(table jni) {
    void *memory = management(jni, "getMemoryMXBean", "()L" MANAGEMENT "MemoryMXBean;");
    return get(jni, memory, MANAGEMENT "MemoryMXBean", "getHeapMemoryUsage", "()L" MANAGEMENT "MemoryUsage;");
}

static int64_t usage(table jni, void *of_memory, const char *name) {
    return get_long(jni, of_memory, MANAGEMENT "MemoryUsage", name);
}

/* ---- the record's text: one line for each collector and each pool of the heap ---- */

static char *put_long(char *at, char *end, int64_t number) {
    return put_number(put(at, end, " "), end, number > 0 ? (uint64_t)number : 0);
}

static void keep_line(table jni, const char *word, void *name, const int64_t *numbers, int n) {
    const char *(*text)(table, void *, void *) = of(jni, TEXT);
    void (*release)(table, void *, const char *) = of(jni, RELEASE);
    char line[512], *end = line + sizeof line, *at = put(line, end, word);
    for (int i = 0; i < n; i++) at = put_long(at, end, numbers[i]);
    const char *is = name ? text(jni, name, NULL) : NULL;
    if (is) at = put(put(at, end - 1, " "), end - 1, is), release(jni, name, is);
    *at++ = '\n';
    append(JVM, line, (size_t)(at - line));
}

#define LIST "java/util/List"

static void *element(table jni, void *list, int index) {
    void *(*call)(table, void *, void *, const argument *) = of(jni, CALL_OBJECT);
    void *how = method(jni, LIST, "get", "(I)Ljava/lang/Object;");
    argument at = {.integer = index};
    return how ? call(jni, list, how, &at) : NULL;
}

static int size_of(table jni, void *list) {
    int (*call)(table, void *, void *, const argument *) = of(jni, CALL_INT);
    argument none = {0};
    void *how = list ? method(jni, LIST, "size", "()I") : NULL;
    return how ? call(jni, list, how, &none) : 0;
}

static void keep_beans(table jni) {
    int64_t of_heap[] = {usage(jni, heap_usage(jni), "getCommitted")};
    keep_line(jni, "heap", NULL, of_heap, 1);
    void *collectors = management(jni, "getGarbageCollectorMXBeans", "()Ljava/util/List;");
    for (int i = 0, n = size_of(jni, collectors); i < n && i < 16; i++) {
        void *bean = element(jni, collectors, i);
        int64_t count = get_long(jni, bean, MANAGEMENT "GarbageCollectorMXBean", "getCollectionCount");
        void *name = get(jni, bean, MANAGEMENT "MemoryManagerMXBean", "getName", "()Ljava/lang/String;");
        keep_line(jni, "collector", name, &count, 1);
    }
    phase = HAS_TOLD;
    void *pools = management(jni, "getMemoryPoolMXBeans", "()Ljava/util/List;");
    for (int i = 0, n = size_of(jni, pools); i < n && i < 32; i++) {
        const char *class = MANAGEMENT "MemoryPoolMXBean", *type = "()L" MANAGEMENT "MemoryUsage;";
        void *bean = element(jni, pools, i);
        void *kind = get(jni, bean, class, "getType", "()L" MANAGEMENT "MemoryType;");
        void *kind_name = get(jni, kind, "java/lang/Enum", "name", "()Ljava/lang/String;");
        void *name = get(jni, bean, class, "getName", "()Ljava/lang/String;");
        const char *(*text)(table, void *, void *) = of(jni, TEXT);
        const char *word = kind_name ? text(jni, kind_name, NULL) : NULL;
        int64_t numbers[] = {usage(jni, get(jni, bean, class, "getPeakUsage", type), "getCommitted"),
                             usage(jni, get(jni, bean, class, "getCollectionUsage", type), "getUsed")};
        if (word && same(word, "HEAP")) keep_line(jni, "pool", name, numbers, 2);
        if (word) ((void (*)(table, void *, const char *))of(jni, RELEASE))(jni, kind_name, word);
    }
}

/* Keeps the virtual machine's counters, which are in a mapped file that it removes at its end. */
static void keep_counters(void) {
    static char maps[65536], copy[262144];
    char path[128];
    int file = system_open("/proc/self/maps", O_RDONLY);
    long n = 0, got;
    while (file >= 0 && n < (long)sizeof maps - 1 && (got = system_read(file, maps + n, sizeof maps - 1 - (size_t)n)) > 0)
        n += got;
    if (file >= 0) system_close(file);
    maps[n > 0 ? n : 0] = 0;
    const char *name = find(maps, "/hsperfdata_");
    if (!name) return;
    const char *from = name;
    while (from > maps && from[-1] != ' ') from--;
    size_t size = 0;
    while (from[size] && from[size] != '\n' && size + 1 < sizeof path) path[size] = from[size], size++;
    path[size] = 0;
    file = system_open(path, O_RDONLY);
    if (file < 0) return;
    got = system_read(file, copy, sizeof copy);
    system_close(file);
    if (got > 0) append(JVM, "counters\n", 9), append(JVM, copy, (size_t)got);
}

/* ---- live data, if requested ---- */

static void *last_thread; /* our shutdown hook; it starts together with the program's own hooks */
static volatile int over;
static void *weak_map, *weak_table; /* the class WeakHashMap, and that of its tables */

static int add_size(int64_t class_tag, int64_t size, int64_t *tag, int length, void *sum) {
    (void)class_tag, (void)tag, (void)length;
    *(int64_t *)sum += size;
    return 0;
}

/* The sizes of all objects after a collection, in bytes; -1 if they cannot be read. What the machine calls its used memory
 * consists of whole regions for some collectors. Some collectors leave dead objects where moving the others would not pay,
 * but not for four collections in succession. */
static int64_t live_bytes(table jvmti, table jni, int collections) {
    int (*collect)(table) = of(jvmti, FORCE_COLLECTION);
    int (*each)(table, int, void *, const void *, void *) = of(jvmti, EACH_OBJECT);
    static const void *callbacks[16] = {(void *)add_size};
    int64_t sum = 0;
    for (int i = 0; i < collections; i++)
        if (collect(jvmti) != 0) return -1;
    return each(jvmti, 0, NULL, callbacks, &sum) == 0 ? sum : usage(jni, heap_usage(jni), "getUsed");
}

static volatile int looking;

static void sleep_for(uint64_t nanoseconds) {
    uint64_t time[2] = {nanoseconds / 1000000000u, nanoseconds % 1000000000u};
    call6(SYS_nanosleep, (long)time, 0, 0, 0, 0, 0);
}

/* Waits until no other thread of ours reads live data. If one suspended the other, that one would read late, while the
 * program runs again. */
static void begin_to_look(void) {
    while (__atomic_exchange_n(&looking, 1, __ATOMIC_ACQUIRE)) sleep_for(100000);
}

/* What a thread does with objects that a collection has found dead. Threads of a Cleaner remove what belonged to them. */
enum role { OTHER, PASSES_ON, CLEANS };

static enum role role_of(table jvmti, table jni, void *thread) {
    struct { char *name; int priority; unsigned char daemon; void *group, *loader; } info = {0};
    int (*ask)(table, void *, void *) = of(jvmti, THREAD_INFO);
    void (*delete_local)(table, void *) = of(jni, DELETE_LOCAL);
    if (ask(jvmti, thread, &info) != 0 || !info.name) return OTHER;
    enum role role = begins(info.name, "Cleaner-") ? CLEANS : same(info.name, "Reference Handler") ? PASSES_ON : OTHER;
    ((int (*)(table, void *))of(jvmti, DEALLOCATE))(jvmti, info.name);
    if (info.group) delete_local(jni, info.group);
    if (info.loader) delete_local(jni, info.loader);
    return role;
}

/* Whether a method of WeakHashMap runs in one of these threads, which are suspended. */
static int in_weak_map(table jvmti, table jni, void *const *threads, int n) {
    int (*stack)(table, void *, int, int, void *, int *) = of(jvmti, STACK_TRACE);
    int (*class_of_method)(table, void *, void **) = of(jvmti, CLASS_OF_METHOD);
    unsigned char (*is_same)(table, void *, void *) = of(jni, IS_SAME);
    void (*delete_local)(table, void *) = of(jni, DELETE_LOCAL);
    static struct { void *method; int64_t at; } frames[128];
    int found = 0;
    for (int i = 0; i < n && !found; i++) {
        int depth = 0;
        if (stack(jvmti, threads[i], 0, 128, frames, &depth) != 0) continue;
        for (int at = 0; at < depth && !found; at++) {
            void *class = NULL;
            if (class_of_method(jvmti, frames[at].method, &class) != 0 || !class) continue;
            found = is_same(jni, class, weak_map);
            delete_local(jni, class);
        }
    }
    return found;
}

static int mark(int64_t class_tag, int64_t size, int64_t *tag, int length, void *nothing) {
    (void)class_tag, (void)size, (void)length, (void)nothing;
    *tag = 1;
    return 0;
}

/* A WeakHashMap removes the entries of dead keys when it is next used. Asks all of them for their sizes, and returns the
 * sum. */
static int64_t use_weak_maps(table jvmti, table jni) {
    int (*each)(table, int, void *, const void *, void *) = of(jvmti, EACH_OBJECT);
    int (*marked)(table, int, const int64_t *, int *, void ***, int64_t **) = of(jvmti, TAGGED_OBJECTS);
    int (*set_tag)(table, void *, int64_t) = of(jvmti, SET_TAG);
    int (*free_memory)(table, void *) = of(jvmti, DEALLOCATE);
    int (*call)(table, void *, void *, const argument *) = of(jni, CALL_INT);
    void (*delete_local)(table, void *) = of(jni, DELETE_LOCAL);
    static const void *callbacks[16] = {(void *)mark};
    const int64_t tag = 1;
    const argument none = {0};
    void *how = method(jni, "java/util/WeakHashMap", "size", "()I"), **maps = NULL;
    int64_t sum = 0;
    int n = 0;
    if (!how || each(jvmti, 0, weak_map, callbacks, NULL) != 0 || marked(jvmti, 1, &tag, &n, &maps, NULL) != 0) return 0;
    for (int i = 0; i < n; i++) {
        set_tag(jvmti, maps[i], 0);
        sum += call(jni, maps[i], how, &none);
        delete_local(jni, maps[i]);
    }
    if (maps) free_memory(jvmti, maps);
    ((void (*)(table))of(jni, EXCEPTION_CLEAR))(jni);
    return sum;
}

/* The bytes of the tables of all WeakHashMaps. They do not shrink, and are as large as the entries between two collections
 * of the program's own once required. */
static int64_t weak_tables(table jvmti) {
    int (*each)(table, int, void *, const void *, void *) = of(jvmti, EACH_OBJECT);
    static const void *callbacks[16] = {(void *)add_size};
    int64_t sum = 0;
    return weak_table && each(jvmti, 0, weak_table, callbacks, &sum) == 0 ? sum : 0;
}

enum { MOST_CLEANERS = 16, WAITS = 0x80, BLOCKED = 0x400, OF_THE_LIBRARY = 256 };

/* Collects, and lets the program remove what belonged to dead objects: until threads of a Cleaner have nothing to do and
 * live data no longer shrink, but only for a few seconds. Returns 0 if a suspended thread holds a lock that a Cleaner needs. */
static int let_program_clean(table jvmti, table jni, void *const *cleaners, int n, int uses_maps) {
    int (*state_of)(table, void *, int *) = of(jvmti, THREAD_STATE);
    int64_t least = INT64_MAX;
    for (int round = 0, quiet = 0; round < 100 && quiet < 3; round++) {
        if (uses_maps) use_weak_maps(jvmti, jni);
        int64_t live = live_bytes(jvmti, jni, 1);
        if (live < 0) return 1;
        int busy = live < least - 1024;
        for (int i = 0; i < n; i++) {
            int state = WAITS;
            state_of(jvmti, cleaners[i], &state);
            if (state & BLOCKED) return 0;
            busy |= !(state & WAITS);
        }
        quiet = busy ? 0 : quiet + 1;
        if (live < least) least = live;
        sleep_for(20000000);
    }
    return 1;
}

/* Reads live data while the program is suspended: objects that it allocates between the collection and the reading
 * would count as live. */
static void look_at_live(table jvmti, table jni) {
    struct record *record = own(JVM);
    int (*all_threads)(table, int *, void ***) = of(jvmti, ALL_THREADS);
    int (*current)(table, void **) = of(jvmti, CURRENT_THREAD);
    int (*suspend)(table, int, void **, int *) = of(jvmti, SUSPEND), (*resume)(table, int, void **, int *) = of(jvmti, RESUME);
    unsigned char (*is_same)(table, void *, void *) = of(jni, IS_SAME);
    int (*push)(table, int) = of(jni, PUSH_FRAME);
    void *(*pop)(table, void *) = of(jni, POP_FRAME);
    static int results[4096];
    void **threads = NULL, *self = NULL;
    int n = 0, others = 0;
    if (!record || push(jni, 4200) != 0) return;
    begin_to_look();
    if (all_threads(jvmti, &n, &threads) == 0 && current(jvmti, &self) == 0) {
        void *cleaners[MOST_CLEANERS];
        int cleaning = 0;
        for (int i = 0; i < n && others < 4096; i++) {
            enum role role = role_of(jvmti, jni, threads[i]);
            if (role == CLEANS && cleaning < MOST_CLEANERS) cleaners[cleaning++] = threads[i];
            if (role == OTHER && !is_same(jni, threads[i], self)) threads[others++] = threads[i];
        }
        int uses_maps = 0, cleaned = 0;
        for (int attempt = 0; attempt < 50 && !cleaned; attempt++) {
            if (attempt > 0) resume(jvmti, others, threads, results), sleep_for(500000);
            suspend(jvmti, others, threads, results);
            if (weak_map && in_weak_map(jvmti, jni, threads, others)) continue;
            uses_maps = weak_map && use_weak_maps(jvmti, jni) > OF_THE_LIBRARY;
            cleaned = (!cleaning && !uses_maps) || let_program_clean(jvmti, jni, cleaners, cleaning, uses_maps);
        }
        int64_t live = live_bytes(jvmti, jni, 4);
        int64_t tables = live > 0 && uses_maps ? weak_tables(jvmti) : 0;
        resume(jvmti, others, threads, results);
        if (live >= 0) record->value[HAVE_LIVE] = 1;
        if (live > (int64_t)record->value[LIVE_AT_MOST]) record->value[LIVE_AT_MOST] = (uint64_t)live;
        if (live - tables > (int64_t)record->value[LIVE]) record->value[LIVE] = (uint64_t)(live - tables);
    }
    __atomic_store_n(&looking, 0, __ATOMIC_RELEASE);
    if (threads) ((int (*)(table, void *))of(jvmti, DEALLOCATE))(jvmti, threads);
    pop(jni, NULL);
}

/* Collects repeatedly, in a thread of our own that leaves nine tenths of the time to the program. */
static void collect_often(table jvmti, table jni, void *nothing) {
    (void)nothing;
    while (!over) {
        uint64_t before = now();
        look_at_live(jvmti, jni);
        uint64_t pause = (now() - before) * 9;
        if (pause < 20000000) pause = 20000000;
        sleep_for(pause);
    }
}

/* Makes the last reading when our shutdown hook starts. At the virtual machine's death event concurrent collectors
 * are already stopped and would never answer. */
static void thread_start(table jvmti, table jni, void *thread) {
    unsigned char (*is_same)(table, void *, void *) = of(jni, IS_SAME);
    if (!last_thread || !is_same(jni, thread, last_thread)) return;
    over = 1;
    look_at_live(jvmti, jni);
}

static void init(table jvmti, table jni, void *main_thread) {
    (void)main_thread;
    void *(*new)(table, void *, void *, const argument *) = of(jni, NEW_OBJECT);
    void *(*keep)(table, void *) = of(jni, NEW_GLOBAL);
    void *(*look)(table, void *, const char *, const char *) = of(jni, STATIC_METHOD);
    void *(*call_static)(table, void *, void *, const argument *) = of(jni, STATIC_OBJECT);
    void (*call)(table, void *, void *, const argument *) = of(jni, CALL_VOID);
    int (*run)(table, void *, void *, void *, int) = of(jvmti, RUN_THREAD);
    argument none = {0};
    void *class = class_of(jni, "java/lang/Thread"), *how = method(jni, "java/lang/Thread", "<init>", "()V");
    void *often = class && how ? new(jni, class, how, &none) : NULL;
    void *last = class && how ? new(jni, class, how, &none) : NULL;
    void *runtime_class = class_of(jni, "java/lang/Runtime");
    void *current = runtime_class ? look(jni, runtime_class, "getRuntime", "()Ljava/lang/Runtime;") : NULL;
    void *runtime = current ? call_static(jni, runtime_class, current, &none) : NULL;
    void *hook = method(jni, "java/lang/Runtime", "addShutdownHook", "(Ljava/lang/Thread;)V");
    if (!often || !last || !runtime || !hook) return;
    last_thread = keep(jni, last);
    weak_map = keep(jni, class_of(jni, "java/util/WeakHashMap"));
    weak_table = keep(jni, class_of(jni, "[Ljava/util/WeakHashMap$Entry;"));
    heap_usage(jni); /* loads its classes now, and not while the program is suspended */
    argument thread = {.object = last};
    call(jni, runtime, hook, &thread);
    run(jvmti, often, (void *)collect_often, NULL, 5);
}

static void death(void *jvmti, table jni) {
    (void)jvmti;
    struct record *record = own(JVM);
    int (*push)(table, int) = of(jni, PUSH_FRAME);
    void *(*pop)(table, void *) = of(jni, POP_FRAME);
    if (!record || push(jni, 512) != 0) return;
    phase = IS_ASKED;
    void *threads = management(jni, "getThreadMXBean", "()L" MANAGEMENT "ThreadMXBean;");
    int64_t bytes = get_long(jni, threads, "com/sun/management/ThreadMXBean", "getTotalThreadAllocatedBytes");
    if (bytes > 0) {
        record->value[ALLOCATED] = (uint64_t)bytes;
        record->value[HAVE_BYTES] = 1;
    }
    keep_beans(jni);
    keep_counters();
    pop(jni, NULL);
    record->flags |= REPORTED;
}

/* The virtual machine calls this as it starts. Errors are ignored: the result is always success. */
EXPORT int Agent_OnLoad(table vm, char *options, void *reserved) {
    (void)options;
    (void)reserved;
    struct record *record = own(JVM);
    int (*environment)(table, void **, int) = of(vm, GET_ENVIRONMENT);
    void *found = NULL;
    if (!record || environment(vm, &found, JVMTI_VERSION) != 0 || !found) return 0;
    table jvmti = found;
    unsigned char capabilities[16] = {0};
    capabilities[3] = 0x80; /* can_generate_garbage_collection_events */
    if (full_collections()) {
        capabilities[0] = 0x01; /* can_tag_objects, which reading the objects needs */
        capabilities[2] = 0x10; /* can_suspend */
    }
    int (*add)(table, const void *) = of(jvmti, ADD_CAPABILITIES);
    int collections = add(jvmti, capabilities) == 0;
    static void *callbacks[37];
    callbacks[EVENT_INIT - FIRST_EVENT] = (void *)init;
    callbacks[EVENT_DEATH - FIRST_EVENT] = (void *)death;
    callbacks[EVENT_THREAD_START - FIRST_EVENT] = (void *)thread_start;
    callbacks[EVENT_GC_START - FIRST_EVENT] = (void *)gc_start;
    callbacks[EVENT_GC_END - FIRST_EVENT] = (void *)gc_end;
    int (*set)(table, const void *, int) = of(jvmti, SET_CALLBACKS);
    set(jvmti, callbacks, sizeof callbacks);
    int (*notify)(table, int, int, void *, ...) = of(jvmti, SET_NOTIFICATION);
    notify(jvmti, 1, EVENT_DEATH, NULL);
    if (full_collections()) {
        notify(jvmti, 1, EVENT_INIT, NULL);
        notify(jvmti, 1, EVENT_THREAD_START, NULL);
    }
    if (collections) {
        notify(jvmti, 1, EVENT_GC_START, NULL);
        notify(jvmti, 1, EVENT_GC_END, NULL);
        record->value[HAVE_STOPS] = 1;
    }
    return 0;
}
