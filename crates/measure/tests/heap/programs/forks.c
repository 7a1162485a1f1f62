/* A parent with 10 blocks of 1000 bytes has a child of the given kind, which allocates 3 blocks of 50 bytes and
 * has a child of the same kind, which allocates 2 blocks of 70 bytes. With `vfork`, a child allocates 5 blocks of 50
 * bytes; with `vfork-first`, they are the first blocks in the memory that it shares with its parent. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

pid_t _Fork(void) __attribute__((weak));
static void *volatile sink;

static void take(int blocks, size_t size) {
    for (int i = 0; i < blocks; i++) sink = malloc(size);
}

static int copy(const char *kind) {
    if (!strcmp(kind, "_Fork") && _Fork) return _Fork();
    if (!strcmp(kind, "clone")) return syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    return fork();
}

int main(int argc, char **argv) {
    const char *kind = argc > 1 ? argv[1] : "fork";
    if (strcmp(kind, "vfork-first")) take(10, 1000);
    if (!strncmp(kind, "vfork", 5)) {
        int child = vfork();
        if (child == 0) {
            take(5, 50);
            _exit(0);
        }
        waitpid(child, NULL, 0);
        return 0;
    }
    int child = copy(kind);
    if (child == 0) {
        take(3, 50);
        int grandchild = copy(kind);
        if (grandchild == 0) {
            take(2, 70);
            _exit(0);
        }
        waitpid(grandchild, NULL, 0);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    return 0;
}
