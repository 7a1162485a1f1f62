/* Calls at the end of a function, which the compiler turns into jumps. */
static volatile int sink;

__attribute__((noinline)) void target(int n) {
    for (int i = 0; i < n; i++) sink++;
}

__attribute__((noinline)) void forward(int n) {
    sink++;
    target(n);
}

__attribute__((noinline)) void caller(void) {
    forward(50);
    sink++;
}

int main(void) {
    for (int i = 0; i < 40; i++) caller();
    return 0;
}
