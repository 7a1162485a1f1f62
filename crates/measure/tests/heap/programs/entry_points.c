/* Calls every entry point; entry_points() in counts.rs has the sums. The first argument determines how the program
 * ends. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void free_sized(void *, size_t) __attribute__((weak));
void free_aligned_sized(void *, size_t, size_t) __attribute__((weak));
void cfree(void *) __attribute__((weak));

static volatile size_t huge = SIZE_MAX / 2;
static void *volatile sink;

static void check(int right) {
    if (!right) abort();
}

int main(int argc, char **argv) {
    errno = 77;
    void *a = malloc(10);
    free(a);
    sink = malloc(0);
    free(sink);
    char *b = calloc(3, 7);
    for (int i = 0; i < 21; i++) check(b[i] == 0);
    b[20] = 5;
    b = realloc(b, 100);
    check(b[20] == 5);
    b = realloc(b, 4);
    void *c = realloc(NULL, 5);
#ifndef MUSL /* where that is a block of 0 bytes */
    sink = realloc(c, 0);
#else
    free(c);
#endif
    void *d = reallocarray(NULL, 4, 25);
    free(d);
    check(errno == 77);
    check(reallocarray(NULL, huge, 4) == NULL && errno == ENOMEM);
    check(malloc(huge) == NULL);
    check(calloc(huge, 4) == NULL);
    if (!getenv("VALGRIND")) check(realloc(b, huge) == NULL); /* memcheck counts it though it fails */
    void *e = NULL;
    check(posix_memalign(&e, 64, 100) == 0 && (uintptr_t)e % 64 == 0);
    free(e);
    check(posix_memalign(&e, 3, 100) == EINVAL);
    void *f = aligned_alloc(256, 512);
    check((uintptr_t)f % 256 == 0);
    if (free_aligned_sized) free_aligned_sized(f, 256, 512);
    else free(f);
    void *g = memalign(32, 33);
    check((uintptr_t)g % 32 == 0);
    if (free_sized) free_sized(g, 33);
    else free(g);
    void *h = valloc(11);
    check((uintptr_t)h % 4096 == 0);
    if (cfree) cfree(h);
    else free(h);
#ifndef MUSL
    if (!getenv("VALGRIND")) { /* which stops at pvalloc */
        void *i = pvalloc(12);
        check((uintptr_t)i % 4096 == 0);
        free(i);
    }
#endif
    free(NULL);
    for (int i = 1; i <= 100; i++) {
        char *block = malloc(i * 100);
        memset(block, i, malloc_usable_size(block));
        if (i > 3) free(block);
        else sink = block;
    }
    char *big = malloc(1 << 20); /* a mapping of its own */
    memset(big, 1, malloc_usable_size(big));
    big = realloc(big, 3 << 20);
    check(big[(1 << 20) - 1] == 1);
    free(big);
    free(b);
    if (argc > 1 && !strcmp(argv[1], "_exit")) _exit(0);
    if (argc > 1 && !strcmp(argv[1], "kill")) raise(SIGKILL);
    return 0;
}
