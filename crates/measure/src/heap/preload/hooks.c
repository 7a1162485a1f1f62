/* The entry points of malloc. Each finds its thread's slot, calls the real function, and counts.
 *
 * The rule is that of valgrind's "total heap usage". A block that is returned to the program is one allocation of the
 * requested bytes; a block that is released is one free. realloc of a block to n bytes is one allocation of n bytes
 * and one free; to 0 bytes it is a free. Failed calls and free(NULL) do not count. See operators.c for C++. */
#include "hooks.h"
#include "limits.h"
#include "pool.h"
#include "sites.h"
#include "slots.h"

#define RTLD_NEXT ((void *)-1L)
#define RTLD_DEFAULT ((void *)0)
#define ERROR_NO_MEMORY 12
#define ERROR_INVALID 22

extern void *dlsym(void *, const char *) __attribute__((weak));
extern int dladdr(const void *, struct place *) __attribute__((weak));
extern int *__errno_location(void) __attribute__((weak));
extern int getpagesize(void) __attribute__((weak));
/* For versions of glibc with dlsym in a separate library, which the program may not have loaded. */
extern void *__libc_malloc(size_t) __attribute__((weak));
extern void *__libc_calloc(size_t, size_t) __attribute__((weak));
extern void *__libc_realloc(void *, size_t) __attribute__((weak));
extern void *__libc_memalign(size_t, size_t) __attribute__((weak));
extern void __libc_free(void *) __attribute__((weak));

static struct {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void *(*memalign)(size_t, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    int (*posix_memalign)(void **, size_t, size_t);
    void (*free)(void *);
    size_t (*usable)(void *);
} real;
static int foreign;

/* Whether `real.usable` may be asked. A library that only wraps malloc may put a header before each block; the C
 * library's function would take it for its own. */
static int sizes_known;

/* Whether calls take the slow path, because a block may be from the pool, or because the allocator must be asked
 * for sizes. */
static int careful = 1;

static void be_careful(void) {
    careful = 1;
    close_gate();
}

EXPORT void *malloc(size_t size);

int same_library(const void *a, const void *b) {
    struct place one, other;
    return a && b && dladdr && dladdr(a, &one) && dladdr(b, &other) && one.base == other.base;
}

void resolve(void) {
    if (!dlsym) {
        real.malloc = __libc_malloc;
        real.calloc = __libc_calloc;
        real.realloc = __libc_realloc;
        real.memalign = real.aligned_alloc = __libc_memalign;
        real.free = __libc_free;
        return;
    }
    real.malloc = dlsym(RTLD_NEXT, "malloc");
    real.calloc = dlsym(RTLD_NEXT, "calloc");
    real.realloc = dlsym(RTLD_NEXT, "realloc");
    real.memalign = dlsym(RTLD_NEXT, "memalign");
    real.aligned_alloc = dlsym(RTLD_NEXT, "aligned_alloc");
    real.posix_memalign = dlsym(RTLD_NEXT, "posix_memalign");
    real.free = dlsym(RTLD_NEXT, "free");
    real.usable = dlsym(RTLD_NEXT, "malloc_usable_size");
    foreign = dlsym(RTLD_DEFAULT, "malloc") != (void *)malloc;
    /* tcmalloc defines `__libc_malloc` too. */
    sizes_known = same_library((void *)real.usable, (void *)real.malloc);
    int of_glibc = sizes_known && real.malloc == __libc_malloc && same_library(real.malloc, __errno_location);
    look_at_limits(of_glibc);
    careful = 0;
    if (pool_used || (MODE != MODE_COUNTS && !of_glibc)) be_careful();
}

int malloc_is_foreign(void) { return foreign; }
int sizes_are_known(void) { return sizes_known; }

/* Between nest and unnest, calls that the real function makes to public entry points are not counted again (musl's
 * calloc calls malloc, tcmalloc allocates when it is first asked for a size). */
static inline uint32_t nest(void) {
    uint32_t key = self.key;
    *(volatile uint32_t *)&self.key = NESTED;
    return key;
}
static inline void unnest(uint32_t key) { *(volatile uint32_t *)&self.key = key; }

/* ---- the size of a block ---- */

/* In glibc the word before a block is its size with three flags; flag 2 marks a block with a mapping of its own.
 * Calling malloc_usable_size would cost as much as all other counting. */
static inline size_t size_before(const void *block) {
    size_t word = ((const size_t *)block)[-1];
    size_t size = (word & ~(size_t)7) - sizeof(size_t);
    return unlikely(word & 2) ? size - sizeof(size_t) : size;
}

/* Other allocators do not know sizes while they start. The address sanitizer's allocator even ends the program if
 * it is asked then. */
static int may_ask;
__attribute__((constructor)) static void allow_asking(void) { may_ask = 1; }

static inline size_t room(void *block) {
    if (likely(!careful)) return size_before(block);
    if (MODE == MODE_COUNTS || !may_ask || !sizes_known) return 0;
    uint32_t key = nest();
    size_t room = real.usable(block);
    unnest(key);
    return room;
}

/* With MODE_REQUESTED the last two bytes of a block hold the number of usable bytes that were not requested,
 * including these two. If the number does not fit, it is in the eight bytes before. A recorded block has the number
 * there in any case, and its record's place in the eight bytes before that. */
#define TRAILER 2
#define SLACK_ELSEWHERE 0xffff
#define RECORDED 0xfffe
#define LARGE_TRAILER (TRAILER + 16)

static inline size_t with_trailer(size_t size, size_t trailer) {
    return MODE == MODE_REQUESTED && size <= SIZE_MAX - trailer ? size + trailer : size;
}

static inline void seal(void *block, size_t size, size_t room) {
    size_t slack = room - size;
    uint8_t *end = (uint8_t *)block + room;
    uint16_t near = slack < RECORDED ? (uint16_t)slack : SLACK_ELSEWHERE;
    if (room < TRAILER || room < size) return;
    if (unlikely(near == SLACK_ELSEWHERE)) __builtin_memcpy(end - TRAILER - 8, &slack, 8);
    __builtin_memcpy(end - TRAILER, &near, TRAILER);
}

static inline size_t sealed(void *block, size_t room) {
    const uint8_t *end = (const uint8_t *)block + room;
    uint16_t near;
    size_t slack;
    if (room < TRAILER) return 0;
    __builtin_memcpy(&near, end - TRAILER, TRAILER);
    slack = near;
    if (unlikely(near >= RECORDED)) __builtin_memcpy(&slack, end - TRAILER - 8, 8);
    return slack <= room ? room - slack : 0;
}

/* Whether the number is elsewhere, as it is in every recorded block. */
static inline int is_sealed_elsewhere(const void *block, size_t room) {
    uint16_t near;
    if (room < TRAILER) return 0;
    __builtin_memcpy(&near, (const uint8_t *)block + room - TRAILER, TRAILER);
    return near >= RECORDED;
}

/* The place of a block's record; 0 if it has none. */
static inline uint64_t record_of(const void *block, size_t room) {
    const uint8_t *end = (const uint8_t *)block + room;
    uint16_t near = 0;
    uint64_t record = 0;
    if (!SITES || room < LARGE_TRAILER) return 0;
    __builtin_memcpy(&near, end - TRAILER, TRAILER);
    if (unlikely(near == RECORDED)) __builtin_memcpy(&record, end - LARGE_TRAILER, 8);
    return record;
}

/* Records a new block if it is chosen. `slot` is the thread's own. */
static inline void consider(struct slot *slot, void *block, size_t size, size_t room) {
    if (!SITES) return;
    if (!is_due(slot, slot->bytes)) return;
    if (room < size || room - size < LARGE_TRAILER) return lose_sample(slot);
    uint64_t record = record_sample(slot, size);
    if (!record) return;
    uint8_t *end = (uint8_t *)block + room;
    size_t slack = room - size;
    uint16_t near = RECORDED;
    __builtin_memcpy(end - LARGE_TRAILER, &record, 8);
    __builtin_memcpy(end - TRAILER - 8, &slack, 8);
    __builtin_memcpy(end - TRAILER, &near, TRAILER);
}

/* The size of a block that is about to be freed. */
static inline size_t weight(void *block, size_t room) {
    return MODE == MODE_COUNTS ? 0 : MODE == MODE_USABLE ? room : sealed(block, room);
}

/* The size of a new block; the requested size if the allocator does not know sizes yet. */
static inline size_t new_weight(void *block, size_t size, size_t room) {
    if (MODE == MODE_REQUESTED) seal(block, size, room);
    if (MODE == MODE_USABLE && unlikely(room < size)) return size;
    return MODE == MODE_COUNTS ? 0 : MODE == MODE_USABLE ? room : size;
}

/* ---- adding up ---- */

/* Both functions return `result`. They first settle the slot, which adds its live bytes to those of the process, if
 * these have changed by more than BATCH. */
static inline void *grow_live(struct slot *slot, void *result) {
    int64_t net = net_of(slot);
    if (likely(net <= slot->top)) return result;
    slot->top = net;
    return unlikely(net - slot->settled > BATCH) ? add_to_process(slot, result) : result;
}

static inline void *shrink_live(struct slot *slot, void *result) {
    return unlikely(slot->returned > slot->bound) ? add_to_process(slot, result) : result;
}

static inline void take_bytes(struct slot *slot, size_t weight) {
    if (MODE == MODE_USABLE) slot->taken += weight; /* else `bytes` has the sum */
}

static COLD void count_common(struct slot *slot, int took, size_t size, size_t weight, int gave, size_t gone) {
    __atomic_fetch_add(&slot->allocations, took, __ATOMIC_RELAXED);
    __atomic_fetch_add(&slot->bytes, size, __ATOMIC_RELAXED);
    __atomic_fetch_add(&slot->frees, gave, __ATOMIC_RELAXED);
    __atomic_fetch_add(&slot->returned, gone, __ATOMIC_RELAXED);
    if (MODE == MODE_USABLE) __atomic_fetch_add(&slot->taken, weight, __ATOMIC_RELAXED);
}

static inline int is_common(const struct slot *slot) { return header && slot == &header->common; }

/* Counts a new block outside the fast path, for any slot and any result. */
static void *count_block(struct slot *slot, void *block, size_t size) {
    if (!block) return block;
    size_t space = room(block), weight = new_weight(block, size, space);
    if (unlikely(is_common(slot))) {
        count_common(slot, 1, size, weight, 0, 0);
        return block;
    }
    slot->allocations += 1;
    slot->bytes += size;
    take_bytes(slot, weight);
    if (MODE != MODE_COUNTS) grow_live(slot, block);
    consider(slot, block, size, space);
    return block;
}

/* The number of bytes to request for a block. */
static inline size_t size_with_trailer(struct slot *slot, size_t size) {
    return with_trailer(size, is_due(slot, slot->bytes + size) ? LARGE_TRAILER : TRAILER);
}

static inline struct slot *any_slot(void) { return has_slot() ? self.slot : find_slot(); }

static void *from_pool(size_t size, size_t alignment) {
    be_careful();
    return pool_take(size, alignment);
}

/* ---- the entry points ---- */

static COLD void *malloc_slowly(size_t size) {
    struct slot *slot = any_slot();
    if (!real.malloc) return from_pool(size, 16);
    void *block = real.malloc(slot ? size_with_trailer(slot, size) : size);
    if (!careful && MODE != MODE_COUNTS && block && size_before(block) != real.usable(block)) be_careful();
    return slot ? count_block(slot, block, size) : block;
}

/* Takes back a count that was made before the call failed. */
static COLD void *uncount_block(struct slot *slot, size_t size) {
    slot->allocations -= 1;
    slot->bytes -= size;
    return NULL;
}

/* A call that cannot fail is counted before it is made. So fewer values are kept until the real function returns,
 * and with MODE_COUNTS the call is a tail call, which compiles to a jump. */
EXPORT void *malloc(size_t size) {
    if (!on_fast_path() || (!SITES && unlikely(size >= certain))) return malloc_slowly(size);
    struct slot *slot = self.slot;
    uint64_t bytes = slot->bytes + size;
    if (is_due(slot, bytes)) return malloc_slowly(size);
    slot->allocations += 1;
    slot->bytes = bytes;
    if (MODE == MODE_COUNTS) return real.malloc(size);
    void *block = real.malloc(MODE == MODE_REQUESTED ? size + TRAILER : size);
    if (unlikely(!block)) return SITES ? uncount_block(slot, size) : block;
    take_bytes(slot, new_weight(block, size, size_before(block)));
    return grow_live(slot, block);
}

static COLD void forget(struct slot *slot, uint64_t record) { record_free(is_common(slot) ? NULL : slot, record); }

static COLD void free_slowly(void *block) {
    if (!block || in_pool(block)) return;
    struct slot *slot = any_slot();
    if (!real.free) return;
    size_t space = slot ? room(block) : 0, gone = slot ? weight(block, space) : 0;
    uint64_t record = record_of(block, space);
    if (slot && is_common(slot)) {
        count_common(slot, 0, 0, 0, 1, gone);
    } else if (slot) {
        slot->frees += 1;
        slot->returned += gone;
        if (MODE != MODE_COUNTS) shrink_live(slot, NULL);
    }
    if (SITES && record) forget(slot, record);
    real.free(block);
}

static COLD void settle_and_free(struct slot *slot, void *block) { real.free(add_to_process(slot, block)); }

static inline void free_block(void *block) {
    if (!on_fast_path()) return free_slowly(block);
    if (unlikely(!block)) return;
    if (SITES && unlikely(is_sealed_elsewhere(block, size_before(block)))) return free_slowly(block);
    struct slot *slot = self.slot;
    slot->frees += 1;
    if (MODE != MODE_COUNTS) {
        uint64_t returned = slot->returned + weight(block, size_before(block));
        slot->returned = returned;
        if (unlikely(returned > slot->bound)) return settle_and_free(slot, block);
    }
    real.free(block);
}

EXPORT void free(void *block) { free_block(block); }
EXPORT void cfree(void *block) { free_block(block); }
EXPORT void free_sized(void *block, size_t size) {
    (void)size;
    free_block(block);
}
EXPORT void free_aligned_sized(void *block, size_t alignment, size_t size) {
    (void)alignment, (void)size;
    free_block(block);
}

EXPORT void *calloc(size_t count, size_t each) {
    struct slot *slot = any_slot();
    size_t size;
    if (unlikely(__builtin_mul_overflow(count, each, &size))) return real.calloc ? real.calloc(count, each) : NULL;
    if (unlikely(!real.calloc)) return from_pool(size, 16);
    if (unlikely(!slot)) return real.calloc(count, each);
    uint32_t key = nest();
    void *block = MODE == MODE_REQUESTED ? real.calloc(1, size_with_trailer(slot, size)) : real.calloc(count, each);
    unnest(key);
    return count_block(slot, block, size);
}

static COLD void *realloc_from_pool(void *block, size_t size) {
    uint8_t *fresh = malloc(size);
    size_t keep = pool_size(block) < size ? pool_size(block) : size;
    for (size_t i = 0; fresh && i < keep; i++) fresh[i] = ((uint8_t *)block)[i];
    return fresh;
}

EXPORT void *realloc(void *block, size_t size) {
    if (!block) return malloc(size);
    if (unlikely(in_pool(block))) return realloc_from_pool(block, size);
    struct slot *slot = any_slot();
    if (unlikely(!slot)) return real.realloc(block, size);
    size_t space = room(block), gone = weight(block, space);
    uint64_t record = record_of(block, space);
    uint32_t key = nest();
    void *fresh = real.realloc(block, size ? size_with_trailer(slot, size) : 0);
    unnest(key);
    if (!fresh && size) return fresh;
    space = fresh ? room(fresh) : 0;
    size_t come = fresh ? new_weight(fresh, size, space) : 0;
    if (unlikely(is_common(slot))) {
        count_common(slot, fresh != NULL, size, come, 1, gone);
        if (SITES && record) forget(slot, record);
        return fresh;
    }
    slot->frees += 1;
    slot->returned += gone;
    if (SITES && record) forget(slot, record);
    slot->allocations += fresh != NULL;
    slot->bytes += size;
    if (MODE == MODE_COUNTS) return fresh;
    take_bytes(slot, come); /* counted as if the two blocks were never live together */
    shrink_live(slot, grow_live(slot, fresh));
    if (fresh) consider(slot, fresh, size, space);
    return fresh;
}

EXPORT void *reallocarray(void *block, size_t count, size_t each) {
    size_t size;
    if (!__builtin_mul_overflow(count, each, &size)) return realloc(block, size);
    if (__errno_location) *__errno_location() = ERROR_NO_MEMORY;
    return NULL;
}

typedef void *aligned_function(size_t, size_t);

static void *aligned(aligned_function *function, size_t alignment, size_t request, size_t size) {
    struct slot *slot = any_slot();
    if (!function) return from_pool(request, alignment);
    if (!slot) return function(alignment, request);
    uint32_t key = nest();
    void *block = function(alignment, size_with_trailer(slot, request));
    unnest(key);
    return count_block(slot, block, size);
}

EXPORT void *memalign(size_t alignment, size_t size) { return aligned(real.memalign, alignment, size, size); }
EXPORT void *aligned_alloc(size_t alignment, size_t size) {
    return aligned(real.aligned_alloc, alignment, size, size);
}

/* valloc and pvalloc call memalign: musl has no pvalloc, and the program's dlerror would report a failed lookup. */
EXPORT void *valloc(size_t size) {
    size_t page = getpagesize ? (size_t)getpagesize() : 4096;
    return aligned(real.memalign, page, size, size);
}
EXPORT void *pvalloc(size_t size) {
    size_t page = getpagesize ? (size_t)getpagesize() : 4096;
    size_t whole = (size + page - 1) & ~(page - 1);
    return aligned(real.memalign, page, whole < size ? size : whole, size);
}

EXPORT int posix_memalign(void **to, size_t alignment, size_t size) {
    struct slot *slot = any_slot();
    if (!real.posix_memalign) return ERROR_INVALID;
    if (!slot) return real.posix_memalign(to, alignment, size);
    uint32_t key = nest();
    int error = real.posix_memalign(to, alignment, size_with_trailer(slot, size));
    unnest(key);
    if (!error) count_block(slot, *to, size);
    return error;
}

/* The trailer is not included, because a program may write to all the bytes that this returns. */
EXPORT size_t malloc_usable_size(void *block) {
    if (!block) return 0;
    if (in_pool(block)) return pool_size(block);
    size_t room = real.usable ? real.usable(block) : 0;
    return MODE == MODE_REQUESTED && self.key != NESTED ? sealed(block, room) : room;
}

/* ---- for operator new ---- */

struct calls calls_so_far(void) {
    struct slot *slot = any_slot();
    return slot ? (struct calls){1, slot->allocations, slot->frees} : (struct calls){0, 0, 0};
}

void *count_allocation(void *block, size_t size) {
    struct slot *slot = any_slot();
    return slot ? count_block(slot, block, size) : block;
}

size_t size_of_block(void *block) {
    size_t space = room(block);
    if (SITES) sampler.going = record_of(block, space);
    return weight(block, space);
}

void count_free(size_t weight) {
    struct slot *slot = any_slot();
    if (!slot) return;
    if (is_common(slot)) {
        count_common(slot, 0, 0, 0, 1, weight);
    } else {
        slot->frees += 1;
        slot->returned += weight;
        if (MODE != MODE_COUNTS) shrink_live(slot, NULL);
    }
    if (SITES && sampler.going) forget(slot, sampler.going);
}

size_t size_to_request(size_t size) { return with_trailer(size, SITES ? LARGE_TRAILER : TRAILER); }

void *real_malloc(void) {
    any_slot();
    return (void *)real.malloc;
}

uint32_t stop_counting(void) { return nest(); }
void resume_counting(uint32_t key) { unnest(key); }
