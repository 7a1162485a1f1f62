/* Sets variables while another thread runs a shell. No variable may be lost, and none of the counter's may be
 * visible. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int up[2], down[2];

/* The shell prints that it runs, and waits. */
static void *run_shell(void *unused) {
    char command[100];
    snprintf(command, sizeof command, "echo >&%d; read line <&%d", up[1], down[0]);
    return system(command) == 0 ? unused : NULL;
}

int main(void) {
    pthread_t thread;
    char byte, *said = "no answer";
    setenv("EARLIER", "1", 1);
    if (pipe(up) || pipe(down) || pthread_create(&thread, NULL, run_shell, said)) return 2;
    if (read(up[0], &byte, 1) != 1) return 3;
    setenv("DURING", "2", 1);
    if (write(down[1], "\n", 1) != 1 || pthread_join(thread, (void **)&said) || !said) return 4;
    if (!getenv("EARLIER") || !getenv("DURING")) return 5;
    return getenv("LD_PRELOAD") || getenv("SCRUPLE_HEAP") ? 6 : 0;
}
