#include "sites.h"

#include <sys/uio.h>

#include "mappings.h"
#include "random.h"

/* The largest part of a stack that is recorded, in bytes. The end of a longer stack is cut at a multiple of half of
 * that, so that it rarely differs from the end in the previous record. */
#define SLICE (64 * 1024)

/* A thread's place in the records' file, and a copy of the latest stack. It belongs to the thread's slot, and
 * passes with it to a later thread. */
struct recording {
    uint8_t *piece; /* NULL: none yet */
    uint64_t place; /* of the piece in the file */
    uint64_t used;
    uint64_t low, high;   /* the latest stack in this piece; equal if there is none */
    uint8_t before[SLICE]; /* its bytes; the last one is before `high` */
    uint8_t read[SLICE];   /* a stack that the kernel read */
    struct text text;
};

__thread struct sampler sampler;

static void choose_next(struct slot *slot) {
    slot->next = header->mean > 1 ? slot->bytes + exponential(&sampler.random, header->mean) : 0;
}

void begin_sampling(struct slot *slot, uint32_t thread) {
    slot->next = UINT64_MAX;
    if (header->piece < 2 * SLICE) return;
    sampler.random = seed_of(header->seed, process->owner, thread);
    sampler.stack_low = sampler.stack_high = 0;
    sampler.is_main_stack = 0;
    choose_next(slot);
}

void lose_sample(struct slot *slot) {
    __atomic_fetch_add(&header->lost_samples, 1, __ATOMIC_RELAXED);
    choose_next(slot);
}

/* ---- the records' file ---- */

static int claim_piece(struct recording *recording) {
    uint32_t size = header->piece, index;
    if (__atomic_load_n(&header->pieces, __ATOMIC_RELAXED) >= header->most_pieces) return 0;
    index = __atomic_fetch_add(&header->pieces, 1, __ATOMIC_RELAXED);
    if (index >= header->most_pieces) return 0;
    uint64_t place = (uint64_t)index * size;
    uint8_t *fresh = map_piece(place, size);
    if (!fresh) return 0;
    if (recording->piece) system_unmap(recording->piece, size);
    struct piece *head = (struct piece *)fresh;
    head->owner = process->owner;
    head->used = recording->used = sizeof *head;
    __atomic_store_n(&head->kind, KIND_PIECE, __ATOMIC_RELEASE);
    recording->piece = fresh;
    recording->place = place;
    recording->low = recording->high = 0;
    return 1;
}

/* Room for a record of `size` bytes; NULL if there is none. */
static void *begin_record(struct recording *recording, uint64_t size) {
    if (recording->piece && recording->used + size <= header->piece) return recording->piece + recording->used;
    if (sizeof(struct piece) + size > header->piece || !claim_piece(recording)) return NULL;
    return recording->piece + recording->used;
}

/* A record counts once `used` covers it, so a process that is killed meanwhile leaves no half of one. */
static void end_record(struct recording *recording, uint64_t size) {
    recording->used += size;
    __atomic_store_n(&((struct piece *)recording->piece)->used, recording->used, __ATOMIC_RELEASE);
}

static struct recording *recording_of(struct slot *slot) {
    struct recording *recording = (struct recording *)slot->recording;
    if (recording || slot == &self.own) return recording;
    recording = system_take(sizeof *recording);
    if (!recording) return NULL;
    slot->recording = (uint64_t)recording;
    return recording;
}

/* ---- the mapped files ---- */

static uint32_t mapping_lock;       /* the process's unit while one of its threads writes the map */
static uint32_t generation, map_of; /* the latest map, and the unit of the process that wrote it */
static uint64_t map_stamp;

static void write_map(struct recording *recording, uint64_t stamp) {
    uint64_t time = nanoseconds(CLOCK_REALTIME);
    uint32_t next = generation + 1;
    int whole = begin_text(&recording->text);
    for (uint64_t size; whole && (size = next_code(&recording->text)) > 0;) {
        uint64_t all = sizeof(struct map) + ((size + 7) & ~(uint64_t)7);
        struct map *record = begin_record(recording, all);
        if (!record) {
            whole = 0;
            break;
        }
        *record = (struct map){(uint32_t)all, RECORD_MAP, 0, next, (uint32_t)size, time, (uint64_t)write_map};
        copy((uint8_t *)(record + 1), (const uint8_t *)recording->text.line, size);
        end_record(recording, all);
    }
    end_text(&recording->text);
    if (!whole) __atomic_fetch_add(&header->lost_maps, 1, __ATOMIC_RELAXED);
    map_stamp = stamp;
    map_of = process->owner;
    __atomic_store_n(&generation, next, __ATOMIC_RELEASE);
}

/* The number of a map that contains all libraries that are loaded now. While another thread writes a map, the number
 * is that of the previous one; so the reader also looks into the next map. */
static uint32_t current_map(struct recording *recording) {
    uint64_t stamp = loaded_libraries(process->origin == ORIGIN_FORK);
    uint32_t mine = process->owner, lock = __atomic_load_n(&mapping_lock, __ATOMIC_RELAXED);
    if (map_of == mine && map_stamp == stamp) return __atomic_load_n(&generation, __ATOMIC_ACQUIRE);
    if (lock == mine || !__atomic_compare_exchange_n(&mapping_lock, &lock, mine, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return generation;
    if (map_of != mine || map_stamp != stamp) write_map(recording, stamp);
    __atomic_store_n(&mapping_lock, 0, __ATOMIC_RELEASE);
    return generation;
}

/* ---- samples ---- */

/* Sets the end of the stack that begins at `low`, as far as it is recorded. */
static uint64_t end_of_stack(struct recording *recording, uint64_t low, uint16_t *flags) {
    if (low < sampler.stack_low || low >= sampler.stack_high)
        if (!mapping_around(&recording->text, low, &sampler.stack_low, &sampler.stack_high, &sampler.is_main_stack))
            return low;
    uint64_t cut = (low + SLICE) & ~(uint64_t)(SLICE / 2 - 1);
    if (cut >= sampler.stack_high) return sampler.stack_high;
    *flags |= SAMPLE_CUT;
    return cut;
}

/* Makes the stack readable from `*from` on, and returns the number of bytes. What follows a stack in its mapping may be
 * gone by now, which a system call survives. Nothing follows the main thread's. */
static uint64_t read_stack(struct recording *recording, uint64_t low, uint64_t high, const uint8_t **from) {
    *from = sampler.is_main_stack ? (const uint8_t *)low : recording->read;
    if (sampler.is_main_stack) return high - low;
    struct iovec pages[SLICE / 4096 + 1], whole = {recording->read, high - low};
    int n = 0;
    for (uint64_t at = low, next; at < high; at = next) {
        next = (at | 4095) + 1;
        if (next > high) next = high;
        pages[n++] = (struct iovec){(void *)at, next - at};
    }
    /* A child of vfork has an id of its own, and may not ask for its parent's memory. */
    long got = call6(SYS_process_vm_readv, system_pid(), (long)&whole, 1, (long)pages, n, 0);
    return got > 0 ? (uint64_t)got & ~(uint64_t)7 : 0;
}

/* The number of bytes that differ from the previous stack, which ends at the same address: all up to the first of the
 * equal bytes at the end. */
static uint64_t count_fresh(const struct recording *recording, const uint8_t *from, uint64_t low, uint64_t high) {
    if (recording->high != high || recording->low == recording->high) return high - low;
    uint64_t least = low > recording->low ? low : recording->low, at = high;
    const uint64_t *one = (const uint64_t *)(from + (high - low));
    const uint64_t *other = (const uint64_t *)(recording->before + SLICE);
    while (at > least && *--one == *--other) at -= 8;
    return at - low;
}

/* Not inlined, because the frame of the caller is recorded. */
static __attribute__((noinline)) uint64_t write_sample(struct recording *recording, struct slot *slot, size_t size,
                                                       const uint64_t *registers) {
    uint16_t flags = 0;
    uint32_t map = current_map(recording);
    uint64_t low = registers[1], wanted = end_of_stack(recording, low, &flags);
    const uint8_t *from = NULL;
    uint64_t high = low + (wanted > low ? read_stack(recording, low, wanted, &from) : 0);
    if (high == low) flags |= SAMPLE_NO_STACK;
    else if (high < wanted) flags |= SAMPLE_CUT;
    uint64_t fresh = count_fresh(recording, from, low, high), all = sizeof(struct sample) + fresh;
    int fits = recording->piece && recording->used + all <= header->piece;
    struct sample *record = fits ? begin_record(recording, all) : NULL;
    if (!record) { /* a new piece does not know the previous stack */
        fresh = high - low;
        all = sizeof(struct sample) + fresh;
        record = claim_piece(recording) ? begin_record(recording, all) : NULL;
    }
    if (!record) return 0;
    *record = (struct sample){(uint32_t)all, RECORD_SAMPLE, flags, nanoseconds(CLOCK_MONOTONIC), size,
                              process->live + net_of(slot) - slot->settled, map, (uint32_t)slot->owner,
                              (uint32_t)(high - low), (uint32_t)fresh, {0}};
    for (int i = 0; i < REGISTERS; i++) record->registers[i] = registers[i];
    copy((uint8_t *)(record + 1), from, fresh);
    copy(recording->before + SLICE - (high - low), (const uint8_t *)(record + 1), fresh);
    uint64_t place = recording->place + recording->used;
    end_record(recording, all);
    recording->low = low;
    recording->high = high;
    return place;
}

#if defined(__x86_64__)
#define READ_REGISTERS(into)                                                                       \
    __asm__ volatile("leaq 0(%%rip), %%rax\n\tmovq %%rax, (%0)\n\tmovq %%rsp, 8(%0)\n\t"            \
                     "movq %%rbp, 16(%0)\n\tmovq %%rbx, 24(%0)\n\tmovq %%r12, 32(%0)\n\t"           \
                     "movq %%r13, 40(%0)\n\tmovq %%r14, 48(%0)\n\tmovq %%r15, 56(%0)"               \
                     :: "r"(into) : "rax", "memory")
#else
#define READ_REGISTERS(into)                                                                       \
    __asm__ volatile("adr x9, .\n\tmov x10, sp\n\tstp x9, x10, [%0]\n\tstp x19, x20, [%0, 16]\n\t"  \
                     "stp x21, x22, [%0, 32]\n\tstp x23, x24, [%0, 48]\n\tstp x25, x26, [%0, 64]\n\t" \
                     "stp x27, x28, [%0, 80]\n\tstp x29, x30, [%0, 96]"                             \
                     :: "r"(into) : "x9", "x10", "memory")
#endif

__attribute__((noinline)) uint64_t record_sample(struct slot *slot, size_t size) {
    struct recording *recording = sampler.busy ? NULL : recording_of(slot);
    uint64_t registers[REGISTERS], place = 0;
    if (recording) {
        *(volatile int *)&sampler.busy = 1;
        READ_REGISTERS(registers);
        place = write_sample(recording, slot, size, registers);
        *(volatile int *)&sampler.busy = 0;
    }
    if (place) choose_next(slot);
    else lose_sample(slot);
    return place;
}

void record_free(struct slot *slot, uint64_t block) {
    struct recording *recording = slot && !sampler.busy ? recording_of(slot) : NULL;
    struct free_record *record = NULL;
    if (recording) {
        *(volatile int *)&sampler.busy = 1;
        record = begin_record(recording, sizeof *record);
        if (record) {
            *record = (struct free_record){sizeof *record, RECORD_FREE, 0, nanoseconds(CLOCK_MONOTONIC), block,
                                    process->live + net_of(slot) - slot->settled};
            end_record(recording, sizeof *record);
        }
        *(volatile int *)&sampler.busy = 0;
    }
    if (!record && header) __atomic_fetch_add(&header->lost_frees, 1, __ATOMIC_RELAXED);
}
