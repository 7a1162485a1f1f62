/* mix N: N blocks of 16 bytes to 64 KiB, mostly small, of which 1024 live at a time; a fifth of them grow once. */
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    static char *blocks[1024];
    unsigned random = 1;
    for (long i = 0, n = argc > 1 ? atol(argv[1]) : 1; i < n; i++) {
        random = random * 1664525u + 1013904223u;
        int at = (random >> 20) & 1023;
        size_t size = 16 + ((random >> 8) & 0xfff) % (i % 64 == 0 ? 4096 * 16 : 256);
        free(blocks[at]);
        blocks[at] = malloc(size);
        if (i % 5 == 0) blocks[at] = realloc(blocks[at], size * 2);
        memset(blocks[at], 1, 16);
    }
    return 0;
}
