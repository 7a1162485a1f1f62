/* Two coroutines that are resumed in turn by two functions, and work below functions of their own; then ten that end, one
 * after the other, on the same stack; functions that are called on another stack, and leave it by return or longjmp. */
#include <setjmp.h>
#include <stdlib.h>
#include <ucontext.h>

#define STACK 65536

static ucontext_t scheduler, routines[2];
static volatile unsigned sink;

__attribute__((noinline)) void work(unsigned turns) {
    for (unsigned i = 0; i < turns; i++) sink += i;
}

__attribute__((noinline)) void yield(int which) {
    swapcontext(&routines[which], &scheduler);
}

__attribute__((noinline)) void first_part(void) {
    work(10);
    yield(0);
    work(20);
}

__attribute__((noinline)) void second_part(void) {
    yield(1);
    work(30);
}

void first_routine(void) {
    for (;;) {
        first_part();
        yield(0);
    }
}

void second_routine(void) {
    for (;;) {
        second_part();
        yield(1);
    }
}

__attribute__((noinline)) void resume(int which) {
    swapcontext(&scheduler, &routines[which]);
}

__attribute__((noinline)) void one(void) {
    resume(0);
    work(40);
}

__attribute__((noinline)) void other(void) {
    resume(1);
    work(50);
}

__attribute__((noinline)) void short_part(void) {
    yield(0);
    sink++;
}

void short_routine(void) {
    short_part();
    yield(0);
}

__attribute__((noinline)) void last(void) {
    resume(0);
    resume(0);
}

/* Calls a function on another stack, as compilers do for deep recursion. */
void on_stack(void *top, void (*function)(void));
#if defined(__x86_64__)
__asm__(".text\n.type on_stack, @function\non_stack:\n  push %rbp\n  mov %rsp, %rbp\n  mov %rdi, %rsp\n  call *%rsi\n"
        "  mov %rbp, %rsp\n  pop %rbp\n  ret\n.size on_stack, . - on_stack\n");
#elif defined(__aarch64__)
__asm__(".text\n.type on_stack, %function\non_stack:\n  stp x29, x30, [sp, #-16]!\n  mov x29, sp\n  mov sp, x0\n  blr x1\n"
        "  mov sp, x29\n  ldp x29, x30, [sp], #16\n  ret\n.size on_stack, . - on_stack\n");
#endif

static jmp_buf back;
static volatile int jumps;
static char deep_stack[STACK] __attribute__((aligned(16)));

void deep_part(void) {
    work(5);
    if (jumps) longjmp(back, 1);
}

__attribute__((noinline)) void deeper(void) {
    jumps = 0;
    on_stack(deep_stack + STACK, deep_part);
    work(60);
}

__attribute__((noinline)) void leaves(void) {
    char room[8192];
    room[sink % 8192] = 1;
    jumps = 1;
    on_stack(deep_stack + STACK, deep_part);
}

__attribute__((noinline)) void after(void) {
    if (setjmp(back) == 0) leaves();
    work(70);
}

static void make(int which, void (*function)(void)) {
    getcontext(&routines[which]);
    static char *stacks[2];
    if (!stacks[which]) stacks[which] = malloc(STACK);
    routines[which].uc_stack.ss_sp = stacks[which];
    routines[which].uc_stack.ss_size = STACK;
    makecontext(&routines[which], function, 0);
}

int main(void) {
    make(0, first_routine);
    make(1, second_routine);
    for (int i = 0; i < 100; i++) {
        one();
        other();
    }
    for (int i = 0; i < 10; i++) {
        make(0, short_routine);
        last();
        deeper();
        after();
    }
    return 0;
}
