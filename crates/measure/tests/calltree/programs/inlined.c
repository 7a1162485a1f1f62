/* A function that is inlined, and one that is not. */
static volatile int sink;

static inline __attribute__((always_inline)) void within(int n) {
    for (int i = 0; i < n; i++)
        sink++; /* the line */
}

__attribute__((noinline)) void outside(int n) {
    within(n);
}

int main(void) {
    for (int i = 0; i < 10; i++) outside(1000);
    return 0;
}
