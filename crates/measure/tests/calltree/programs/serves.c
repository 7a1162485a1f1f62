/* Works for each byte that it reads, then answers with it. */
#include <unistd.h>

static volatile int sink;

void work(int n) {
    for (int i = 0; i < n; i++) sink++;
}

int main(void) {
    char byte;
    while (read(0, &byte, 1) == 1) {
        work(1000 * (byte - '0'));
        if (write(1, &byte, 1) != 1) return 1;
    }
    return 0;
}
