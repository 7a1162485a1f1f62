/* Live data of Java, if requested: while the program is suspended, the agent collects, lets Cleaners and WeakHashMaps remove
 * what belonged to dead objects, and adds up the sizes of all others. */
#include "java.h"

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

/* The bytes of the tables of all WeakHashMaps. Tables do not shrink: each is as large as it had to be for the most
 * entries between two collections of the program's own. */
static int64_t weak_tables(table jvmti) {
    int (*each)(table, int, void *, const void *, void *) = of(jvmti, EACH_OBJECT);
    static const void *callbacks[16] = {(void *)add_size};
    int64_t sum = 0;
    return weak_table && each(jvmti, 0, weak_table, callbacks, &sum) == 0 ? sum : 0;
}

/* A reference to an object that is dead at the next collection. */
static void *dead_object(table jni) {
    void *(*new)(table, void *, void *, const argument *) = of(jni, NEW_OBJECT);
    const char *queue = "java/lang/ref/ReferenceQueue", *reference = "java/lang/ref/WeakReference";
    void *make_object = method(jni, "java/lang/Object", "<init>", "()V"), *make_queue = method(jni, queue, "<init>", "()V");
    void *make_reference = method(jni, reference, "<init>", "(Ljava/lang/Object;Ljava/lang/ref/ReferenceQueue;)V");
    if (!make_object || !make_queue || !make_reference) return NULL;
    argument none = {0}, words[2] = {{.object = new(jni, class_of(jni, "java/lang/Object"), make_object, &none)},
                                     {.object = new(jni, class_of(jni, queue), make_queue, &none)}};
    return words[0].object && words[1].object ? new(jni, class_of(jni, reference), make_reference, words) : NULL;
}

/* Collects once, and waits until the Reference Handler has passed on what earlier collections have found dead: it takes all
 * that was found at once, so it is done with that when it comes to an object that has died since. Returns the live bytes. */
static int64_t collect_and_pass_on(table jvmti, table jni, uint64_t end) {
    unsigned char (*is)(table, void *, void *, const argument *) = of(jni, CALL_BOOLEAN);
    int (*push)(table, int) = of(jni, PUSH_FRAME);
    void *(*pop)(table, void *) = of(jni, POP_FRAME);
    const argument none = {0};
    if (push(jni, 1) != 0 || push(jni, 16) != 0) return -1;
    void *dead = pop(jni, dead_object(jni)), *is_enqueued = method(jni, "java/lang/ref/Reference", "isEnqueued", "()Z");
    int64_t live = live_bytes(jvmti, jni, 1);
    while (dead && is_enqueued && !is(jni, dead, is_enqueued, &none) && now() < end) sleep_for(1000000);
    pop(jni, NULL);
    return live;
}

enum { MOST_CLEANERS = 16, WAITS = 0x80, BLOCKED = 0x400 };

/* The most that WeakHashMaps of the library contain, and the bytes of their tables. */
enum { ENTRIES_OF_THE_LIBRARY = 256, TABLES_OF_THE_LIBRARY = 8192 };

/* The threads of the program. For a reading, all are suspended but ours and those that clean. */
struct threads {
    void **all, *cleaners[MOST_CLEANERS];
    int others, cleaning, uses_maps;
};

/* Whether one of these threads waits for a lock all the time for a while. */
static int is_blocked(table jvmti, void *const *threads, int n) {
    int (*state_of)(table, void *, int *) = of(jvmti, THREAD_STATE);
    int blocked = 1;
    for (int look = 0; look < 20 && blocked; look++) {
        if (look > 0) sleep_for(1000000);
        blocked = 0;
        for (int i = 0; i < n; i++) {
            int state = WAITS;
            state_of(jvmti, threads[i], &state);
            blocked |= state & BLOCKED;
        }
    }
    return blocked;
}

/* Lets the program remove what belonged to dead objects, until threads of a Cleaner have nothing to do and live data no
 * longer shrink. Returns 0 if that is not so at this moment, or if a Cleaner waits for a lock that a suspended thread may
 * hold. */
static int let_program_clean(table jvmti, table jni, const struct threads *threads, uint64_t end) {
    int (*state_of)(table, void *, int *) = of(jvmti, THREAD_STATE);
    int64_t least = INT64_MAX;
    int quiet = 0;
    while (quiet < 3 && now() < end) {
        if (threads->uses_maps) use_weak_maps(jvmti, jni);
        int64_t live = collect_and_pass_on(jvmti, jni, end);
        if (live < 0) return 1;
        if (is_blocked(jvmti, threads->cleaners, threads->cleaning)) return 0;
        int busy = live < least - 1024;
        for (int i = 0; i < threads->cleaning; i++) {
            int state = WAITS;
            state_of(jvmti, threads->cleaners[i], &state);
            busy |= !(state & WAITS);
        }
        quiet = busy ? 0 : quiet + 1;
        if (live < least) least = live;
        sleep_for(20000000);
    }
    return quiet == 3;
}

/* The longest time for which the program is suspended, before its last reading and for the last one. */
#define MOST_NANOSECONDS 2000000000u
#define MOST_AT_THE_END 10000000000u

/* Suspends the program, lets it clean and returns the live bytes, or -1. Objects that the program would allocate between the
 * collection and the reading would count as live. The program runs again afterwards. */
static int64_t read_suspended(table jvmti, table jni, struct threads *threads, uint64_t end, int *cleaned, int64_t *tables) {
    int (*suspend)(table, int, void **, int *) = of(jvmti, SUSPEND), (*resume)(table, int, void **, int *) = of(jvmti, RESUME);
    static int results[4096];
    *cleaned = 0;
    for (int attempt = 0; !*cleaned && (attempt == 0 || now() < end); attempt++) {
        /* A thread that holds a lock has to run before it leaves it, which may take long on a busy machine. */
        if (attempt > 0)
            resume(jvmti, threads->others, threads->all, results), sleep_for(500000u << (attempt < 7 ? attempt : 7));
        suspend(jvmti, threads->others, threads->all, results);
        if (weak_map && in_weak_map(jvmti, jni, threads->all, threads->others)) continue;
        /* A map that is empty now may have had many entries, and still has the table for them. */
        threads->uses_maps = weak_map && (use_weak_maps(jvmti, jni) > ENTRIES_OF_THE_LIBRARY ||
                                          weak_tables(jvmti) > TABLES_OF_THE_LIBRARY);
        *cleaned = (!threads->cleaning && !threads->uses_maps) || let_program_clean(jvmti, jni, threads, end);
    }
    int64_t live = live_bytes(jvmti, jni, 4);
    *tables = live > 0 && threads->uses_maps ? weak_tables(jvmti) : 0;
    resume(jvmti, threads->others, threads->all, results);
    return live;
}

/* Reads live data. A thread that is suspended in the middle of a search may hold entries that are removed then, and each
 * of these leads to the next one. So where the program cleans, the smaller of two readings counts, but for the last. */
static void look_at_live(table jvmti, table jni) {
    struct record *record = own(JVM);
    int (*all_threads)(table, int *, void ***) = of(jvmti, ALL_THREADS);
    int (*current)(table, void **) = of(jvmti, CURRENT_THREAD);
    unsigned char (*is_same)(table, void *, void *) = of(jni, IS_SAME);
    int (*push)(table, int) = of(jni, PUSH_FRAME);
    void *(*pop)(table, void *) = of(jni, POP_FRAME);
    struct threads threads = {0};
    void *self = NULL;
    int n = 0;
    if (!record || push(jni, 4200) != 0) return;
    begin_to_look();
    if (all_threads(jvmti, &n, &threads.all) == 0 && current(jvmti, &self) == 0) {
        for (int i = 0; i < n && threads.others < 4096; i++) {
            enum role role = role_of(jvmti, jni, threads.all[i]);
            if (role == CLEANS && threads.cleaning < MOST_CLEANERS) threads.cleaners[threads.cleaning++] = threads.all[i];
            if (role == OTHER && !is_same(jni, threads.all[i], self)) threads.all[threads.others++] = threads.all[i];
        }
        int cleaned = 0, is_last = over;
        uint64_t end = now() + (is_last ? MOST_AT_THE_END : MOST_NANOSECONDS);
        int64_t tables = 0, live = read_suspended(jvmti, jni, &threads, end, &cleaned, &tables);
        if (!is_last && cleaned && (threads.cleaning || threads.uses_maps) && live - tables > (int64_t)record->value[LIVE]) {
            sleep_for(2000000);
            int64_t tables_then, live_then = read_suspended(jvmti, jni, &threads, end, &cleaned, &tables_then);
            if (live_then - tables_then < live - tables) live = live_then, tables = tables_then;
        }
        /* If the cleaning did not end in time, the reading includes more than what is live. */
        if (live >= 0 && (cleaned || is_last)) {
            record->value[HAVE_LIVE] = 1;
            if (live > (int64_t)record->value[LIVE_AT_MOST]) record->value[LIVE_AT_MOST] = (uint64_t)live;
            if (live - tables > (int64_t)record->value[LIVE]) record->value[LIVE] = (uint64_t)(live - tables);
        }
    }
    __atomic_store_n(&looking, 0, __ATOMIC_RELEASE);
    if (threads.all) ((int (*)(table, void *))of(jvmti, DEALLOCATE))(jvmti, threads.all);
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
void java_thread_start(table jvmti, table jni, void *thread) {
    unsigned char (*is_same)(table, void *, void *) = of(jni, IS_SAME);
    if (!last_thread || !is_same(jni, thread, last_thread)) return;
    over = 1;
    look_at_live(jvmti, jni);
}

void java_init(table jvmti, table jni, void *main_thread) {
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
