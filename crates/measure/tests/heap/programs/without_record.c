/* Forks a child that cannot open any file, as one of another user could not open the counter's: it allocates, and then
 * executes the program that the first argument names. */
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void *volatile kept;

int main(int count, char **words) {
    kept = malloc(1000);
    if (fork() == 0) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_NOFILE, &none);
        kept = malloc(1000000);
        if (count > 1) execv(words[1], words + 1);
        _exit(0);
    }
    wait(NULL);
}
