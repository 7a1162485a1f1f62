/* The minimal cost of hooking malloc and free: calls are passed on, and with COUNT three counters of the process are
 * kept, without support for threads, forks or failures. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

static void *(*real_malloc)(size_t);
static void (*real_free)(void *);
static unsigned long allocations, bytes, frees;

__attribute__((constructor)) static void start(void) {
    real_malloc = dlsym(RTLD_NEXT, "malloc");
    real_free = dlsym(RTLD_NEXT, "free");
}

void *malloc(size_t size) {
    if (__builtin_expect(!real_malloc, 0)) start();
    void *block = real_malloc(size);
#ifdef COUNT
    if (block) allocations++, bytes += size;
#endif
    return block;
}

void free(void *block) {
    if (__builtin_expect(!real_free, 0)) start();
#ifdef COUNT
    if (block) frees++;
#endif
    real_free(block);
}
