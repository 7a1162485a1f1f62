/* Two coroutines that are resumed in turn by two functions, and work below functions of their own; then ten that end, one
 * after the other, on the same stack. */
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
    }
    return 0;
}
