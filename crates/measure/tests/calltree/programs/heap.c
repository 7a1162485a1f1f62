/* Uses all ways to allocate, including some that fail. The expected counts are those of memcheck. */
#define _GNU_SOURCE
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void *volatile kept;

void one(size_t size) {
    kept = malloc(size);
    free(kept);
}

void grows(void) {
    void *block = realloc(NULL, 10);
    for (size_t size = 20; size < 2000; size += 100) block = realloc(block, size);
    kept = block;
    free(block);
}

int main(void) {
    for (int i = 0; i < 10; i++) one(100);
    grows();
    kept = calloc(7, 9);
    free(kept);
    free(NULL);
    kept = malloc(SIZE_MAX / 4);
    void *aligned = NULL;
    if (posix_memalign(&aligned, 64, 640) != 0) return 2;
    free(aligned);
    if (posix_memalign(&aligned, 3, 640) == 0) return 2;
    free(aligned_alloc(32, 320));
    free(memalign(16, 161));
    free(strdup("nineteen characters"));
    free(reallocarray(NULL, 6, 7));
    kept = malloc(1234);
    return 0;
}
