/* Takes the address of malloc in a way that gives the program its own entry for malloc. */
#include <stdlib.h>

void *(*const allocate)(size_t) = malloc;

int main(void) {
    void *volatile block = allocate(10);
    free(block);
    return 0;
}
