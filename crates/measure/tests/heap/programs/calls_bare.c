/* Has `bare` call `inner`, which allocates. */
#include <stdlib.h>
void bare(void (*inner)(unsigned long));
static void *volatile sink;
__attribute__((noinline)) static void inner(unsigned long size) {
    sink = malloc(size);
    sink = NULL;
}
int main(void) {
    bare(inner);
    return 0;
}
