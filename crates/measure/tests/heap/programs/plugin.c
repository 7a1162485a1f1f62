/* A library that allocates. Opened with RTLD_DEEPBIND it would be bound past preloaded libraries. */
#include <stdlib.h>
void *plugin_allocate(void) { return malloc(4321); }
