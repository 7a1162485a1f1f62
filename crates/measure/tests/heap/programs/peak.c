/* Blocks of many sizes are allocated, grown, shrunk and freed. Prints the highest sum of live usable bytes, the
 * sum at the end, and the freed bytes, by malloc_usable_size and by a second account in this program. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

static long live, peak, freed;

static void moved(long by) {
    live += by;
    if (live > peak) peak = live;
}

int main(void) {
    static void *blocks[512];
    unsigned random = 12345;
    static char buffer[BUFSIZ];
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    for (int i = 0; i < 200000; i++) {
        random = random * 1103515245u + 12345u;
        int at = (random >> 16) % 512;
        random = random * 1103515245u + 12345u;
        size_t size = (random >> 16) % (i % 1000 == 0 ? 400000 : i % 50 == 0 ? 9000 : 300);
        long before = blocks[at] ? malloc_usable_size(blocks[at]) : 0;
        if (blocks[at] && size % 3 == 0) {
            free(blocks[at]);
            blocks[at] = NULL;
            moved(-before);
            freed += before;
        } else {
            freed += before;
            blocks[at] = realloc(blocks[at], size + 1);
            moved((long)malloc_usable_size(blocks[at]) - before);
        }
    }
    printf("%ld %ld %ld\n", peak, live, freed);
    return 0;
}
