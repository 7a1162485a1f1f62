/* One function that calls itself 100,000 deep, two that call each other 1000 deep, and one that branches. */
static volatile int sink;

int down(int n) {
    int below = n ? down(n - 1) : 0;
    return below + sink;
}

int odd(int n);

int even(int n) {
    return n ? odd(n - 1) + sink : 1;
}

int odd(int n) {
    return n ? even(n - 1) + sink : 0;
}

int branching(int n) {
    return n < 2 ? n : branching(n - 1) + branching(n - 2) + sink;
}

int main(void) {
    int result = down(100000);
    result += even(1000);
    result += branching(15);
    return result == 0;
}
