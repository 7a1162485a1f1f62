/* Several functions enlarge one table; the peak is reached by realloc. */
#include <stdlib.h>

static char *table;

__attribute__((noinline)) static void begin(void) {
    table = realloc(NULL, 16);
}

__attribute__((noinline)) static void grow(size_t size) {
    table = realloc(table, size);
}

int main(void) {
    void *kept[64];
    begin();
    for (size_t size = 32; size <= 4000; size += 32) grow(size);
    for (int i = 0; i < 64; i++) kept[i] = malloc(16);
    kept[0] = realloc(kept[0], 8);
    grow(100);
    grow(4000);
    void *other = calloc(10, 12);
    kept[0] = realloc(kept[0], 16);
    free(other);
    for (int i = 0; i < 64; i++) free(kept[i]);
    free(table);
    return 0;
}
