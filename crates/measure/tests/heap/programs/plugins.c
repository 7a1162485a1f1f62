/* plugins LIBRARY OTHER: loads a library, lets its function allocate, and unloads it; then the same with another, many
 * times. Both libraries are of the same size, so that they come to be at the same addresses. */
#include <dlfcn.h>
#include <stdlib.h>

static void *volatile sink;

static int use(const char *path, unsigned long size) {
    void *library = dlopen(path, RTLD_NOW);
    void *(*allocate)(unsigned long) = (void *(*)(unsigned long))dlsym(library, "allocate");
    if (!allocate) return 1;
    sink = allocate(size);
    return dlclose(library);
}

int main(int argc, char **argv) {
    for (int i = 0; argc > 2 && i < 20; i++)
        if (use(argv[1], 300) || use(argv[2], 500)) return 1;
    return 0;
}
