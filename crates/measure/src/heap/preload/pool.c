#include "pool.h"

uint8_t pool[POOL_SIZE] __attribute__((aligned(64)));
size_t pool_used;

void *pool_take(size_t size, size_t alignment) {
    if (alignment < 16) alignment = 16;
    if (size > POOL_SIZE || alignment > POOL_SIZE) return NULL;
    size_t before = __atomic_load_n(&pool_used, __ATOMIC_RELAXED), at, end;
    do {
        at = (size_t)((((uintptr_t)pool + before + 16 + alignment - 1) & ~(alignment - 1)) - (uintptr_t)pool);
        end = at + ((size + 15) & ~(size_t)15);
        if (end > POOL_SIZE) return NULL;
    } while (!__atomic_compare_exchange_n(&pool_used, &before, end, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    *(size_t *)(pool + at - 16) = size;
    return pool + at;
}

size_t pool_size(const void *block) { return *(const size_t *)((uintptr_t)block - 16); }
