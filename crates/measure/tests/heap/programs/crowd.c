/* crowd N: has N children at once, each with a block. */
#include <stdlib.h>
#include <unistd.h>
#include <sys/wait.h>

static void *volatile block;

int main(int argc, char **argv) {
    int up[2], down[2], n = argc > 1 ? atoi(argv[1]) : 1;
    char byte = 0;
    if (pipe(up) || pipe(down)) return 2;
    block = malloc(10);
    for (int i = 0; i < n; i++) {
        if (fork()) continue;
        block = malloc(10);
        if (write(up[1], &byte, 1) != 1) _exit(3);
        close(down[1]);
        while (read(down[0], &byte, 1) > 0) {} /* until the parent closes it */
        _exit(0);
    }
    for (int i = 0; i < n; i++)
        if (read(up[0], &byte, 1) != 1) return 2;
    close(down[1]);
    while (wait(NULL) > 0) {}
    return 0;
}
