/* Handles faults and continues after them, as the runtimes of Go and of Java do. It fails if a handler is given the
 * address of another instruction than the one that failed. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

extern char load_begins[], load_ends[];
static int faults;

__attribute__((noinline)) void skips(void) { faults++; }

/* Continues after the load, if the fault is at the load. */
static void handle(int signal, siginfo_t *info, void *context) {
    ucontext_t *at = context;
#if defined(__x86_64__)
    unsigned long *pc = (unsigned long *)&at->uc_mcontext.gregs[REG_RIP];
#else
    unsigned long *pc = (unsigned long *)&at->uc_mcontext.pc;
#endif
    if (*pc != (unsigned long)load_begins) _Exit(3);
    skips();
    *pc = (unsigned long)load_ends;
}

__attribute__((noinline)) int load(int *from) {
    int value = 0;
#if defined(__x86_64__)
    __asm__ volatile("nop\n nop\n .globl load_begins, load_ends\n load_begins: movl (%1), %0\n load_ends: nop"
                     : "+r"(value) : "r"(from));
#else
    __asm__ volatile("nop\n nop\n .globl load_begins, load_ends\n load_begins: ldr %w0, [%1]\n load_ends: nop"
                     : "+r"(value) : "r"(from));
#endif
    return value;
}

int main(void) {
    int value = 7, sum = 0;
    /* Its code exists before the program says that it handles faults. */
    for (int i = 0; i < 50; i++) sum += load(&value);
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    for (int i = 0; i < 50; i++) sum += load(NULL);
    return sum == 350 && faults == 50 ? 0 : 1;
}
