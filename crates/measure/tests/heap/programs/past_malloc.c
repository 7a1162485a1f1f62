/* Calls mimalloc by its own names. */
#include <stddef.h>

void *mi_malloc(size_t);

int main(void) { return mi_malloc(100) == NULL; }
