/* Calls a function of the C library, through the stub that the linker makes for it. */
#include <stdlib.h>

int main(void) {
    long sum = 0;
    for (long i = 0; i < 1000; i++) sum += labs(i - 500);
    return sum == 250000 ? 0 : 1;
}
