/* Calls an allocator that is linked in with a prefix. */
#include <stddef.h>

void *_rjem_malloc(size_t);

int main(void) { return _rjem_malloc(100) == NULL; }
