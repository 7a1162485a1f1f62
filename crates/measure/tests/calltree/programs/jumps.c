/* Leaves functions without returning from them. */
#include <setjmp.h>

static jmp_buf back;
static volatile int sink;

void deep(int n) {
    if (n == 0) longjmp(back, 1);
    deep(n - 1);
    sink++;
}

void after(void) {
    sink++;
}

void attempt(void) {
    if (setjmp(back) == 0) deep(20);
    after();
}

int main(void) {
    for (int i = 0; i < 100; i++) attempt();
    return 0;
}
