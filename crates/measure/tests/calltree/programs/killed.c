/* Is killed by its child with a signal that cannot be caught. */
#include <signal.h>
#include <unistd.h>

int main(void) {
    if (fork() == 0) {
        kill(getppid(), SIGKILL);
        _exit(0);
    }
    for (;;) pause();
}
