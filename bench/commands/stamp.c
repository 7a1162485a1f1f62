/* Stamps its first and its last instruction with CLOCK_MONOTONIC into a shared file, without a C library around it.
   stamp FILE STEPS    the file holds a counter and then pairs of times in nanoseconds, and must be large enough */
#include <asm/unistd.h>

struct log { long used; long times[]; };
struct time { long s, ns; };

#if defined(__x86_64__)
static long call(long n, long a, long b, long c, long d, long e, long f) {
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall" : "=a"(result) : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}
__asm__(".globl _start\n_start:\n mov %rsp, %rdi\n and $-16, %rsp\n call begin\n");
#elif defined(__aarch64__)
static long call(long n, long a, long b, long c, long d, long e, long f) {
    register long x8 __asm__("x8") = n;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
}
__asm__(".globl _start\n_start:\n mov x0, sp\n bl begin\n");
#else
#error no system calls for this architecture
#endif

static long now(void) {
    struct time t;
    call(__NR_clock_gettime, 1, (long)&t, 0, 0, 0, 0);
    return t.s * 1000000000 + t.ns;
}

__attribute__((used)) void begin(long *stack) {
    long first = now();
    char **argv = (char **)(stack + 1);
    unsigned long steps = 0;
    for (const char *p = stack[0] > 2 ? argv[2] : ""; *p; p++) steps = steps * 10 + (unsigned long)(*p - '0');
    long fd = call(__NR_openat, -100, (long)argv[1], 2, 0, 0, 0);
    struct log *log = (struct log *)call(__NR_mmap, 0, 1 << 20, 3, 1, fd, 0);
    long slot = __atomic_fetch_add(&log->used, 2, __ATOMIC_RELAXED);
    log->times[slot] = first;
    volatile unsigned long sink = 0;
    for (unsigned long i = 0; i < steps; i++) sink += i;
    log->times[slot + 1] = now();
    for (;;) call(__NR_exit_group, 0, 0, 0, 0, 0, 0);
}
