/* main calls first() 3 times, which calls second() 5 times, which calls leaf() once; main calls leaf() 7 times itself. */
static volatile int sink;

void leaf(int n) {
    for (int i = 0; i < n; i++) sink++;
}

void second(void) {
    leaf(10);
}

void first(void) {
    for (int i = 0; i < 5; i++) second();
}

int main(void) {
    for (int i = 0; i < 3; i++) first();
    for (int i = 0; i < 7; i++) leaf(100);
    return 0;
}
