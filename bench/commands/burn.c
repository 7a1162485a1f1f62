/* Uses processor time by a number of steps, not by the clock, so that its cost is the same on a busy machine.
   burn STEPS      takes that many steps and ends
   burn forever    takes steps until its parent has ended: keeps a core busy
   burn STEPS N    also touches N bytes of memory
   With PEAK set it ends by printing the kernel's own account of its peak memory. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static volatile unsigned long sink;

static void print_peak(void) {
    static char status[8192];
    int file = open("/proc/self/status", O_RDONLY);
    long length = read(file, status, sizeof status - 1);
    char *line = length > 0 ? strstr(status, "VmHWM:") : 0;
    if (line && write(1, line, strcspn(line, "\n"))) {}
}

int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "forever")) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) sink++;
    }
    unsigned long steps = argc > 1 ? strtoul(argv[1], 0, 10) : 0;
    unsigned long x = 88172645463325252UL;
    for (unsigned long i = 0; i < steps; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    sink = x;
    unsigned long bytes = argc > 2 ? strtoul(argv[2], 0, 10) : 0;
    char *volatile kept = bytes ? malloc(bytes) : 0;
    if (kept) memset(kept, 1, bytes);
    if (getenv("PEAK")) print_peak();
    return kept && kept[bytes / 2] != 1;
}
