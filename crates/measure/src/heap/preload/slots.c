/* Records of processes and slots of threads in the shared data file. Everything here is off the fast path. */
#include "slots.h"

#include "../../preload/environment.h"
#include "sites.h"
#include "tree.h"

__thread struct thread self = {.key = NEW_THREAD};
struct wiped wiped __attribute__((aligned(WIPED_SIZE)));
struct process *process;
struct header *header;

/* The units of this process. The first one contains the process head; all contain slots. */
#define UNITS 2048
static uint8_t *units[UNITS];
static uint32_t unit_count;

static char path[1024]; /* of the data file, which is opened each time: the program would see an open descriptor */
static enum { NEW, STARTING, READY } state;
static uint32_t last_epoch = FIRST_EPOCH - 1;
static int gate_closed;
static int64_t fork_live = -1; /* live bytes before the current fork; -1: none */
static int64_t fork_blocks;    /* and live blocks */
static int64_t live_blocks(void);

extern char **environ __attribute__((weak));

static uint64_t offset_of_slots(const uint8_t *unit) {
    return ((const struct process *)unit)->kind == KIND_THREADS ? sizeof(struct slot) : sizeof(struct process);
}

/* ---- the data file ---- */

static const char VARIABLE[] = "SCRUPLE_HEAP=";

static void path_from_variables(char **variables) {
    for (; *variables; variables++) {
        const char *at = *variables;
        size_t i = 0;
        while (VARIABLE[i] && at[i] == VARIABLE[i]) i++;
        if (VARIABLE[i]) continue;
        size_t n = 0;
        while (at[i + n] && n < sizeof path - 1) path[n] = at[i + n], n++;
        path[at[i + n] ? 0 : n] = 0;
        return;
    }
}

/* Reads the path from the kernel: the first calls come from the dynamic linker, when glibc has not set `environ`
 * yet. */
static void path_from_kernel(void) {
    int file = system_open("/proc/self/environ", O_RDONLY);
    if (file < 0) return;
    char chunk[1024];
    size_t matched = 0; /* characters of VARIABLE seen; SIZE_MAX: skip to the next variable */
    size_t n = 0;       /* characters of the value seen */
    long got;
    while ((got = system_read(file, chunk, sizeof chunk)) > 0) {
        for (long i = 0; i < got; i++) {
            char c = chunk[i];
            if (matched == sizeof VARIABLE - 1) {
                if (n == sizeof path - 1) n = 0, c = 0; /* too long to be ours */
                path[n++] = c;
                if (!c) goto done;
            } else if (!c) {
                matched = 0;
            } else if (matched != SIZE_MAX) {
                matched = c == VARIABLE[matched] ? matched + 1 : SIZE_MAX;
            }
        }
    }
    path[0] = 0;
done:
    system_close(file);
}

static void *map_unit(uint32_t index, uint32_t size) {
    int file = system_open(path, O_RDWR);
    if (file < 0) return NULL;
    void *at = NULL;
    uint64_t offset = (uint64_t)index * size;
    /* Writing the last byte extends the file and reserves the space now. On a full disk this write fails, instead
     * of a later access raising a signal. No record uses that byte. */
    if (index == 0 || system_write_at(file, "", 1, offset + size - 1) == 1) at = system_map(file, size, offset);
    system_close(file);
    return at;
}

void *map_piece(uint64_t place, uint32_t size) {
    static const char name[] = NAME_OF_RECORDS;
    char other[sizeof path];
    size_t n = 0;
    for (; path[n]; n++) other[n] = path[n];
    if (n < sizeof name) return NULL;
    for (size_t i = 0; i < sizeof name; i++) other[n - (sizeof name - 1) + i] = name[i];
    int file = system_open(other, O_RDWR);
    if (file < 0) return NULL;
    /* As in map_unit, the space is reserved now. */
    int reserved = system_reserve(file, size, place);
    for (uint64_t end = 4096; !reserved; end += 4096) {
        if (system_write_at(file, "", 1, place + end - 1) != 1) break;
        reserved = end >= size;
    }
    void *at = reserved ? system_map(file, size, place) : NULL;
    if (at) system_advise(at, size, 23 /* MADV_POPULATE_WRITE */);
    system_close(file);
    return at;
}

static void open_data(void) {
    if (environ) path_from_variables(environ);
    else path_from_kernel();
    if (!path[0]) return;
    struct header *found = map_unit(0, 4096);
    if (!found) return;
    if (found->magic == MAGIC && found->version == VERSION && found->mode == MODE && found->unit >= 4096 &&
        found->unit <= 65536)
        header = found;
    else
        system_unmap(found, 4096);
}

static uint8_t *claim_unit(uint32_t *index) {
    uint8_t *unit = NULL;
    *index = 0;
    if (__atomic_load_n(&header->next, __ATOMIC_RELAXED) < header->limit)
        *index = __atomic_fetch_add(&header->next, 1, __ATOMIC_RELAXED);
    if (*index > 0 && *index < header->limit) unit = map_unit(*index, header->unit);
    if (!unit) __atomic_fetch_add(&header->refused, 1, __ATOMIC_RELAXED);
    return unit;
}

/* ---- processes ---- */

static void write_exe(char *to, size_t size) {
    char full[1024];
    long n = system_read_link("/proc/self/exe", full, sizeof full);
    long skip = n > (long)size - 1 ? n - ((long)size - 1) : 0;
    for (long i = skip; i < n; i++) to[i - skip] = full[i];
}

static void start_process(uint32_t origin, int64_t inherited, const struct process *parent) {
    uint32_t index;
    process = NULL;
    unit_count = 0;
    uint8_t *unit = claim_unit(&index);
    if (!unit) return;
    struct process *fresh = (struct process *)unit;
    fresh->owner = index;
    fresh->pid = system_pid();
    fresh->parent = system_parent();
    fresh->origin = origin;
    fresh->flags = (malloc_is_foreign() ? FLAG_FOREIGN_MALLOC : 0) | (sizes_are_known() ? 0 : FLAG_NO_SIZES);
    fresh->inherited = fresh->live = fresh->peak = inherited;
    if (SITES) fresh->began = nanoseconds(CLOCK_MONOTONIC);
    if (parent)
        for (size_t i = 0; i < sizeof fresh->exe - 1; i++) fresh->exe[i] = parent->exe[i];
    else
        write_exe(fresh->exe, sizeof fresh->exe);
    __atomic_store_n(&fresh->kind, KIND_PROCESS, __ATOMIC_RELEASE);
    units[0] = unit;
    unit_count = 1;
    process = fresh;
    join_tree(fresh->pid, inherited);
}

static void new_epoch(void) {
    if (++last_epoch < FIRST_EPOCH) last_epoch = FIRST_EPOCH;
    wiped.epoch = last_epoch;
    wiped.gate = gate_closed ? 0 : last_epoch;
}

void close_gate(void) {
    gate_closed = 1;
    wiped.gate = 0;
}

static void begin_forked(void) {
    int64_t inherited = fork_live >= 0 ? fork_live : live_bytes();
    int64_t blocks = fork_live >= 0 ? fork_blocks : live_blocks();
    struct process *parent = process;
    uint8_t *old[64]; /* further units stay mapped */
    uint32_t count = unit_count < 64 ? unit_count : 64;
    for (uint32_t i = 0; i < count; i++) old[i] = units[i];
    fork_live = -1;
    if (header) start_process(ORIGIN_FORK, inherited, parent);
    if (process) {
        process->inherited_blocks = blocks;
        for (uint32_t i = 0; i < count; i++)
            if (old[i]) system_unmap(old[i], header->unit);
    } else {
        /* Without a record of its own, it still announces the programs that it starts in its parent's units. */
        for (uint32_t i = 0; i < count; i++) units[i] = old[i];
        unit_count = count;
    }
    new_epoch();
}

/* Starts counting in this process. Returns false while it is already running, since the functions that it calls
 * may allocate. */
static int begin(void) {
    if (state == STARTING) return 0;
    if (state == READY) {
        begin_forked();
        return 1;
    }
    state = STARTING;
    resolve();
    open_data();
    if (header) start_process(ORIGIN_EXEC, 0, NULL);
    system_advise(&wiped, sizeof wiped, MADV_WIPEONFORK);
    new_epoch();
    state = READY;
    return 1;
}

/* Makes the record even if the program never allocates, to distinguish zero allocations from a library that was
 * not loaded. */
__attribute__((constructor)) static void start(void) {
    if (wiped.epoch == 0) begin();
    if (!header && !path[0]) {
        open_data(); /* the kernel did not give the variable early; the C library has it now */
        if (!header) return;
        start_process(ORIGIN_EXEC, 0, NULL);
        new_epoch();
    }
    if (header) hide_variables(path);
}

void before_fork(void) {
    if (wiped.epoch == 0 || !process) return;
    fork_live = live_bytes();
    fork_blocks = live_blocks();
}

void after_fork_in_child(void) { wiped.epoch = wiped.gate = 0; }

void forget_fork(void) { fork_live = -1; }

/* ---- threads ---- */

static struct slot *slot_at(uint8_t *unit, uint32_t i) {
    uint64_t offset = offset_of_slots(unit) + (uint64_t)i * sizeof(struct slot);
    return offset + sizeof(struct slot) > header->unit ? NULL : (struct slot *)(unit + offset);
}

static int take(struct slot *slot, int32_t from, int32_t owner) {
    return __atomic_compare_exchange_n(&slot->owner, &from, owner, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static struct slot *unused_slot(uint8_t *unit, int32_t owner) {
    struct slot *slot;
    for (uint32_t i = 0; (slot = slot_at(unit, i)); i++)
        if (slot->owner == OWNER_NONE && take(slot, OWNER_NONE, owner)) return slot;
    return NULL;
}

/* Searches a few slots, different ones each time, for one whose thread has ended. The search is cheap in a program
 * with many live threads, and soon succeeds in a program with many short threads. */
static struct slot *abandoned_slot(int32_t owner) {
    static uint32_t cursor;
    uint32_t slots = header->unit / sizeof(struct slot);
    for (int tries = 0; tries < 16; tries++) {
        uint32_t at = __atomic_fetch_add(&cursor, 1, __ATOMIC_RELAXED) % (unit_count * slots);
        uint8_t *unit = __atomic_load_n(&units[at / slots], __ATOMIC_ACQUIRE);
        struct slot *slot = unit ? slot_at(unit, at % slots) : NULL;
        int32_t before = slot ? slot->owner : OWNER_NOTE;
        if (before == OWNER_NOTE) continue;
        if ((before == OWNER_NONE || before == system_tid() || system_thread_gone(process->pid, before)) &&
            take(slot, before, owner))
            return slot;
    }
    return NULL;
}

struct slot *claim_slot(int32_t owner) {
    uint32_t count = __atomic_load_n(&unit_count, __ATOMIC_ACQUIRE);
    if (count == 0 || (!process && owner != OWNER_NOTE)) return NULL;
    uint8_t *last = units[count - 1];
    struct slot *slot = last ? unused_slot(last, owner) : NULL;
    if (!process) return slot;
    if (!slot && owner != OWNER_NOTE) slot = abandoned_slot(owner); /* it holds sums, so a note must not overwrite it */
    if (slot || count == UNITS) return slot;
    uint32_t index;
    uint8_t *unit = claim_unit(&index);
    if (!unit) return NULL;
    struct process *head = (struct process *)unit; /* only the first 128 bytes of this unit are the head */
    head->owner = process->owner;
    head->pid = process->pid;
    __atomic_store_n(&head->kind, KIND_THREADS, __ATOMIC_RELEASE);
    slot = slot_at(unit, 0);
    slot->owner = owner;
    uint32_t place = __atomic_load_n(&unit_count, __ATOMIC_RELAXED);
    do {
        if (place == UNITS) return slot; /* usable, but no later thread can take it over */
    } while (!__atomic_compare_exchange_n(&unit_count, &place, place + 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
    __atomic_store_n(&units[place], unit, __ATOMIC_RELEASE);
    return slot;
}

struct slot *find_slot(void) {
    if (self.key == NESTED) return NULL;
    if (wiped.epoch == 0 && !begin()) return NULL;
    uint32_t key = wiped.epoch;
    if (self.slotless == key) return &header->common;
    if (!header) {
        self.own.next = UINT64_MAX;
        self.slot = &self.own;
        self.key = key;
        return self.slot;
    }
    /* A child of vfork shares its parent's memory and `self`, so it claims the slot that the parent goes on with. A
     * slot with the child's id would look abandoned. */
    int32_t owner = process && process->pid != system_pid() ? process->pid : system_tid();
    struct slot *slot = claim_slot(owner);
    if (!slot) {
        self.slotless = key;
        return &header->common;
    }
    uint32_t before = __atomic_fetch_add(&process->threads, 1, __ATOMIC_RELAXED);
    self.slot = slot;
    self.key = key;
    if (SITES) begin_sampling(slot, before);
    return slot;
}

/* ---- sums ---- */

void raise_to(int64_t *peak, int64_t top) {
    int64_t before = __atomic_load_n(peak, __ATOMIC_RELAXED);
    while (before < top && !__atomic_compare_exchange_n(peak, &before, top, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
}

void *add_to_process(struct slot *slot, void *result) {
    int64_t net = net_of(slot), drift = net - slot->settled, crest = slot->top - slot->settled;
    slot->settled = slot->top = net;
    slot->bound = slot->returned + BATCH;
    if (!process) return result;
    raise_to(&process->peak, __atomic_fetch_add(&process->live, drift, __ATOMIC_RELAXED) + crest);
    add_to_tree(drift, crest);
    return result;
}

struct sum {
    uint64_t allocations, bytes, frees, returned;
    int64_t drift, crest; /* the sum that is not settled, and the maximum of any thread since its settlement */
};

static void add_slots(struct sum *sum) {
    uint32_t count = __atomic_load_n(&unit_count, __ATOMIC_ACQUIRE);
    for (uint32_t u = 0; u < count; u++) {
        uint8_t *unit = __atomic_load_n(&units[u], __ATOMIC_ACQUIRE);
        struct slot *slot;
        for (uint32_t i = 0; unit && (slot = slot_at(unit, i)); i++) {
            if (slot->owner == OWNER_NOTE || slot->owner == OWNER_NONE) continue;
            sum->allocations += slot->allocations;
            sum->bytes += slot->bytes;
            sum->frees += slot->frees;
            sum->returned += slot->returned;
            sum->drift += net_of(slot) - slot->settled;
            if (slot->top - slot->settled > sum->crest) sum->crest = slot->top - slot->settled;
        }
    }
}

int64_t live_bytes(void) {
    struct sum sum = {0};
    add_slots(&sum);
    return process ? process->live + sum.drift : 0;
}

static int64_t live_blocks(void) {
    struct sum sum = {0};
    add_slots(&sum);
    return process ? process->inherited_blocks + (int64_t)(sum.allocations - sum.frees) : 0;
}

/* Writes the counts of the calling process since its start: calls, requested bytes, frees, freed bytes, live
 * bytes, peak live bytes, threads, refused records. SDKs find this function as a weak symbol. A figure that this
 * build does not keep is UINT64_MAX. The function only reads the slots: no lock, no system call. */
EXPORT void scruple_heap_snapshot(uint64_t out[8]) {
    struct sum sum = {0};
    if (!has_slot()) find_slot();
    if (!process)
        for (int i = 0; i < 8; i++) out[i] = UINT64_MAX;
    if (!process) return;
    add_slots(&sum);
    int64_t live = process->live, peak = process->peak;
    if (live + sum.crest > peak) peak = live + sum.crest;
    out[0] = sum.allocations;
    out[1] = sum.bytes;
    out[2] = sum.frees;
    int has_live = MODE != MODE_COUNTS && sizes_are_known();
    out[3] = has_live ? sum.returned : UINT64_MAX;
    out[4] = has_live ? (uint64_t)(live + sum.drift) : UINT64_MAX;
    out[5] = has_live ? (uint64_t)peak : UINT64_MAX;
    out[6] = process->threads;
    out[7] = __atomic_load_n(&header->refused, __ATOMIC_RELAXED);
}
