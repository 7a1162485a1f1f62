/* many N: has N children, one after the other, that allocate 7 bytes each. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void *volatile sink;

int main(int argc, char **argv) {
    for (int i = 0, n = argc > 1 ? atoi(argv[1]) : 1; i < n; i++) {
        int child = fork();
        if (child == 0) {
            sink = malloc(7);
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
    return 0;
}
