/* Is ended by its child in a way that nothing can catch. */
#include <signal.h>
#include <unistd.h>

int main(void) {
    if (fork() == 0) {
        kill(getppid(), SIGKILL);
        _exit(0);
    }
    for (;;) pause();
}
