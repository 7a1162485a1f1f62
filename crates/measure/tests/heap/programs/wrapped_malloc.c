/* A library that wraps malloc and free with a header before each block, but not malloc_usable_size. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
enum { HEAD = 16 };
void *malloc(size_t size) {
    static void *(*next)(size_t);
    if (!next) next = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
    size_t *block = next(size + HEAD);
    if (!block) return NULL;
    block[1] = (size_t)1 << 40 | 2; /* where glibc keeps a size */
    return (char *)block + HEAD;
}
void free(void *block) {
    static void (*next)(void *);
    if (!next) next = (void (*)(void *))dlsym(RTLD_NEXT, "free");
    if (block) next((char *)block - HEAD);
}
