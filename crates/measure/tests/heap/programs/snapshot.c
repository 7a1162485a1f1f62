/* Reads its own counts as an SDK does and prints them, or prints "none" if there is no counter. */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

void scruple_heap_snapshot(uint64_t out[8]) __attribute__((weak));

int main(void) {
    uint64_t before[8], after[8];
    if (!scruple_heap_snapshot) {
        puts("none");
        return 0;
    }
    scruple_heap_snapshot(before);
    void *volatile block = malloc(1000);
    free(block);
    block = malloc(24);
    scruple_heap_snapshot(after);
    for (int i = 0; i < 8; i++) printf("%" PRId64 " ", (int64_t)(after[i] - before[i]));
    puts("");
    return 0;
}
