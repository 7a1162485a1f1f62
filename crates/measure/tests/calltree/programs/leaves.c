/* Changes its root and its user, then works in itself and in a child. Ends with 77 if the system does not allow it. */
#define _GNU_SOURCE
#include <grp.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline)) static int work(int rounds) {
    volatile int sum = 0;
    for (int i = 0; i < rounds; i++) sum += i;
    return sum;
}

int main(int count, char **words) {
    int is_root = geteuid() == 0;
    if (count < 2 || (!is_root && unshare(CLONE_NEWUSER) != 0)) return 77;
    if (chroot(words[1]) != 0 || chdir("/") != 0) return 77;
    if (is_root && (setgroups(0, 0) != 0 || setgid(65534) != 0 || setuid(65534) != 0)) return 77;
    pid_t child = fork();
    if (child < 0) return 1;
    if (child == 0) return work(3000) < 0;
    int status;
    waitpid(child, &status, 0);
    return work(1000) < 0 || status != 0;
}
