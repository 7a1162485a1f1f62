/* Functions that allocate known amounts: planted [end] [rounds]. `many` requests half of the bytes in blocks of 50,
 * `large` three tenths in blocks of 30,000, `kept` two tenths in blocks of 200, which stay. At the end, it calls
 * _exit, kills itself, or returns. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *volatile sink;
#define FUNCTION __attribute__((noinline)) static void

FUNCTION many(void) {
    for (int i = 0; i < 1000; i++) {
        sink = malloc(50);
        free(sink);
    }
}

FUNCTION large(void) {
    sink = malloc(30000);
    free(sink);
}

FUNCTION kept(void) {
    for (int i = 0; i < 100; i++) sink = malloc(200);
}

FUNCTION work(void) {
    many();
    large();
    kept();
    sink = NULL;
}

int main(int argc, char **argv) {
    int rounds = argc > 2 ? atoi(argv[2]) : 10;
    for (int i = 0; i < rounds; i++) work();
    if (argc > 1 && !strcmp(argv[1], "_exit")) _exit(0);
    if (argc > 1 && !strcmp(argv[1], "kill")) kill(getpid(), SIGKILL);
    return 0;
}
