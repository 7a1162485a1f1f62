/* pair N SIZE: N times malloc(SIZE) and free, the fastest operations of an allocator. */
#include <stdlib.h>

int main(int argc, char **argv) {
    long n = argc > 1 ? atol(argv[1]) : 1;
    size_t size = argc > 2 ? atol(argv[2]) : 64;
    for (long i = 0; i < n; i++) {
        void *volatile block = malloc(size);
        free(block);
    }
    return 0;
}
