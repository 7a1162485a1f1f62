/* Takes the address of malloc in a way that gives the program an entry of its own for it. */
#include <stdlib.h>

void *(*const allocate)(size_t) = malloc;

int main(void) {
    void *volatile block = allocate(10);
    free(block);
    return 0;
}
