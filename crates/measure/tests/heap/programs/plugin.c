/* A library that allocates; opened with RTLD_DEEPBIND it would bind past whatever is preloaded. */
#include <stdlib.h>
void *plugin_allocate(void) { return malloc(4321); }
