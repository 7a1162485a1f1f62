/* Allocates 111 bytes in a signal handler, which interrupts `interrupted`, and 222 bytes in a handler with a stack of
 * its own. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static void *volatile sink;
static volatile int seen;
static char stack[65536];

__attribute__((noinline)) static void allocate(size_t size) {
    sink = malloc(size);
    seen++;
}

static void on_same_stack(int signal) { allocate(111 + (size_t)signal * 0); }
static void on_other_stack(int signal) { allocate(222 + (size_t)signal * 0); }

__attribute__((noinline)) static void interrupted(int signal) {
    raise(signal);
    seen++;
}

int main(void) {
    stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_handler = on_same_stack};
    sigaction(SIGUSR1, &action, NULL);
    action.sa_handler = on_other_stack;
    action.sa_flags = SA_ONSTACK;
    sigaltstack(&other, NULL);
    sigaction(SIGUSR2, &action, NULL);
    interrupted(SIGUSR1);
    interrupted(SIGUSR2);
    return 0;
}
