/* A program with an allocator of its own. */
#include <stddef.h>
#include <string.h>

static char memory[1 << 20];
static size_t used;

void *malloc(size_t size) {
    void *block = memory + used;
    used += (size + 15) & ~(size_t)15;
    return block;
}
void free(void *block) { (void)block; }
void *calloc(size_t a, size_t b) { return malloc(a * b); }
void *realloc(void *block, size_t size) {
    void *fresh = malloc(size);
    return block ? memcpy(fresh, block, size) : fresh;
}

int main(void) {
    void *volatile block = malloc(10);
    free(block);
    return 0;
}
