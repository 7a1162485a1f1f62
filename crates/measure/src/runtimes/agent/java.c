/* HotSpot loads this library a second time, as a JVMTI agent. The agent records how long collections stop the
 * program. When the virtual machine ends, it reads allocated bytes, collections and memory pools from the
 * management beans. */
#include "java.h"

static uint64_t started;

/* At its end the program is asked for its figures. The question itself allocates, and may cause collections that are
 * not the program's. Those that come before the numbers of collections are read are included in them. */
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

/* ---- Java objects ---- */

void *class_of(table jni, const char *name) {
    void *(*find_class)(table, const char *) = of(jni, FIND_CLASS);
    void *found = find_class(jni, name);
    ((void (*)(table))of(jni, EXCEPTION_CLEAR))(jni);
    return found;
}

void *method(table jni, const char *class, const char *name, const char *type) {
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

void *heap_usage(table jni) {
    void *memory = management(jni, "getMemoryMXBean", "()L" MANAGEMENT "MemoryMXBean;");
    return get(jni, memory, MANAGEMENT "MemoryMXBean", "getHeapMemoryUsage", "()L" MANAGEMENT "MemoryUsage;");
}

int64_t usage(table jni, void *of_memory, const char *name) {
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
    enum { MAPS = 65536, COUNTERS = 262145 };
    char path[128] = "", *maps, *counters;
    size_t size;
    if (!(maps = system_take_text("/proc/self/maps", MAPS, &size))) return;
    const char *name = find(maps, "/hsperfdata_"), *from = name;
    while (name && from > maps && from[-1] != ' ') from--;
    for (size_t i = 0; name && from[i] && from[i] != '\n' && i + 1 < sizeof path; i++) path[i] = from[i], path[i + 1] = 0;
    system_unmap(maps, MAPS);
    if (!name || !(counters = system_take_text(path, COUNTERS, &size))) return;
    if (size > 0) append(JVM, "counters\n", 9), append(JVM, counters, size);
    system_unmap(counters, COUNTERS);
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
    callbacks[EVENT_INIT - FIRST_EVENT] = (void *)java_init;
    callbacks[EVENT_DEATH - FIRST_EVENT] = (void *)death;
    callbacks[EVENT_THREAD_START - FIRST_EVENT] = (void *)java_thread_start;
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
