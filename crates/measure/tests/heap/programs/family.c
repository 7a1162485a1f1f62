/* Processes that hold memory at the same time or one after the other. Blocks are 10,000,000 bytes and are never
 * written to. The first argument selects the way. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCK 10000000

static void *volatile held[8];

static void hold(int n) {
    for (int i = 0; i < n; i++) held[i] = malloc(BLOCK);
}

/* Starts a child that holds `n` blocks, reports that, waits until it may continue, and ends in its way. */
static int child(int n, const char *end, int tell, int wait_for) {
    int pid = fork();
    if (pid) return pid;
    char byte = 0;
    hold(n);
    if (write(tell, &byte, 1) != 1 || read(wait_for, &byte, 1) != 1) _exit(3);
    if (!strcmp(end, "_exit")) _exit(0);
    if (!strcmp(end, "kill")) raise(SIGKILL);
    exit(0);
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "together", *end = argc > 2 ? argv[2] : "exit";
    int up[2], down[2], status;
    char bytes[8] = {0};
    if (pipe(up) || pipe(down)) return 2;
    if (!strcmp(how, "together")) {
        hold(1);
        child(2, end, up[1], down[0]);
        child(3, end, up[1], down[0]);
        for (int i = 0; i < 2; i++)
            if (read(up[0], bytes, 1) != 1) return 2;
        if (write(down[1], bytes, 2) != 2) return 2;
        while (wait(&status) > 0) {}
    } else if (!strcmp(how, "in turn")) {
        hold(1);
        for (int i = 0; i < 3; i++) {
            child(3, end, up[1], down[0]);
            if (read(up[0], bytes, 1) != 1 || write(down[1], bytes, 1) != 1) return 2;
            wait(&status);
        }
    } else if (!strcmp(how, "exec")) { /* becomes another program, twice */
        hold(4);
        if (!strcmp(end, "0")) return 0;
        execl(argv[0], argv[0], "exec", !strcmp(end, "2") ? "1" : "0", (char *)NULL);
    }
    return 0;
}
