/* Works, forks a child that works less and ends, and forks a child that executes another program. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int sink;

void parent_work(void) {
    for (int i = 0; i < 100000; i++) sink++;
}

void child_work(void) {
    for (int i = 0; i < 1000; i++) sink++;
}

int main(int argc, char **argv) {
    (void)argc;
    parent_work();
    if (fork() == 0) {
        child_work();
        _exit(0);
    }
    if (fork() == 0) {
        execv("/nowhere/at/all", argv);
        execv(argv[1], argv + 1);
        _exit(3);
    }
    while (wait(NULL) > 0) {}
    if (argv[2]) abort();
    return 0;
}
