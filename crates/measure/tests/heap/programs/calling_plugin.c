/* A library whose function NAME, called by `allocate`, allocates. */
#include <stdlib.h>
static void *volatile sink;
__attribute__((noinline)) static void NAME(unsigned long size) { sink = malloc(size); }
void *allocate(unsigned long size) {
    NAME(size);
    return sink;
}
