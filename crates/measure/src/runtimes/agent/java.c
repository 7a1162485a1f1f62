/* HotSpot: loaded a second time as the virtual machine's own agent, this library counts collections and their pauses,
 * and as the machine ends asks it for the bytes that all threads have allocated. The tables of the two interfaces are
 * addressed by position, which their specifications fix. */
#include "agent.h"

typedef void *const *const *table;
typedef union {
    int64_t number;
    void *object;
} argument;

enum { FIND_CLASS = 6, EXCEPTION_CLEAR = 17, METHOD = 33, CALL_LONG = 54, STATIC_METHOD = 113, STATIC_OBJECT = 116 };
enum { GET_ENVIRONMENT = 6, SET_NOTIFICATION = 1, SET_CALLBACKS = 121, ADD_CAPABILITIES = 141 };
enum { EVENT_DEATH = 51, EVENT_GC_START = 81, EVENT_GC_END = 82, FIRST_EVENT = 50 };
#define JVMTI_VERSION 0x30010000

enum value { ALLOCATED, GCS, TIME, LONGEST, HAVE_BYTES, HAVE_COLLECTIONS };

static uint64_t started;

const char *ask_java(const char *user) {
    static char answer[8192];
    char library[320], *end = library + sizeof library;
    put(put(library, end, folder), end, "/libscruple-runtimes.so");
    if (!asked_by("/libjvm.so") || !readable(library) || !claim(JVM)) return NULL;
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
    if (!record || !started) return;
    uint64_t ended = now(), took = ended - started;
    note_pause(JVM, started, ended);
    started = 0;
    record->value[GCS]++;
    record->value[TIME] += took;
    if (took > record->value[LONGEST]) record->value[LONGEST] = took;
}

static void *of(table env, int index) { return (*env)[index]; }

/* The machine's counters of its collectors lie in a file that it maps, and removes as it ends. */
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
    if (got > 0) append(JVM, copy, (size_t)got);
}

static void death(void *jvmti, table jni) {
    struct record *record = own(JVM);
    (void)jvmti;
    if (!record) return;
    void *(*find_class)(table, const char *) = of(jni, FIND_CLASS);
    void *(*method)(table, void *, const char *, const char *) = of(jni, METHOD);
    void *(*static_method)(table, void *, const char *, const char *) = of(jni, STATIC_METHOD);
    void *(*static_object)(table, void *, void *, const argument *) = of(jni, STATIC_OBJECT);
    int64_t (*call_long)(table, void *, void *, const argument *) = of(jni, CALL_LONG);
    void (*clear)(table) = of(jni, EXCEPTION_CLEAR);
    argument none = {0};
    void *factory = find_class(jni, "java/lang/management/ManagementFactory");
    void *get = factory ? static_method(jni, factory, "getThreadMXBean", "()Ljava/lang/management/ThreadMXBean;") : NULL;
    void *threads = get ? static_object(jni, factory, get, &none) : NULL;
    void *extended = threads ? find_class(jni, "com/sun/management/ThreadMXBean") : NULL;
    void *total = extended ? method(jni, extended, "getTotalThreadAllocatedBytes", "()J") : NULL;
    int64_t bytes = total ? call_long(jni, threads, total, &none) : -1;
    clear(jni);
    if (bytes > 0) {
        record->value[ALLOCATED] = (uint64_t)bytes;
        record->value[HAVE_BYTES] = 1;
    }
    keep_counters();
    record->flags |= REPORTED;
}

/* Called by the virtual machine as it starts. Whatever fails, it is told that all is well. */
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
    int (*add)(table, const void *) = of(jvmti, ADD_CAPABILITIES);
    int collections = add(jvmti, capabilities) == 0;
    static void *callbacks[37];
    callbacks[EVENT_DEATH - FIRST_EVENT] = (void *)death;
    callbacks[EVENT_GC_START - FIRST_EVENT] = (void *)gc_start;
    callbacks[EVENT_GC_END - FIRST_EVENT] = (void *)gc_end;
    int (*set)(table, const void *, int) = of(jvmti, SET_CALLBACKS);
    set(jvmti, callbacks, sizeof callbacks);
    int (*notify)(table, int, int, void *, ...) = of(jvmti, SET_NOTIFICATION);
    notify(jvmti, 1, EVENT_DEATH, NULL);
    if (collections) {
        notify(jvmti, 1, EVENT_GC_START, NULL);
        notify(jvmti, 1, EVENT_GC_END, NULL);
        record->value[HAVE_COLLECTIONS] = 1;
    }
    return 0;
}
