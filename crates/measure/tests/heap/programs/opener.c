/* Opens a library by its bare name, found by the search path of this program only, and lets it allocate. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>

int main(void) {
    void *plugin = dlopen("libscruple_test_plugin.so", RTLD_NOW | RTLD_DEEPBIND);
    if (!plugin) return 1;
    void *(*allocate)(void) = (void *(*)(void))dlsym(plugin, "plugin_allocate");
    return allocate ? allocate() == NULL : 2;
}
