/* Calls itself N times, then allocates 1000 bytes: deep N. Half of the levels are functions that keep other values in
 * the register that is the frame pointer elsewhere. */
#include <stdlib.h>

static void *volatile sink;
static volatile long zero;

__attribute__((noinline)) static void leaf(long n) {
    sink = malloc(1000 + n);
    zero = 0;
}

__attribute__((noinline)) static long even(long n, long a, long b, long c, long d, long e);

__attribute__((noinline)) static long odd(long n, long a, long b, long c, long d, long e) {
    long f = a * 3 + zero, g = b * 5 + zero, h = c * 7 + zero, i = d * 11 + zero, j = e * 13 + zero;
    if (n <= 1) leaf(zero);
    else f += even(n - 1, f, g, h, i, j);
    return a + b + c + d + e + f + g + h + i + j + n;
}

__attribute__((noinline)) static long even(long n, long a, long b, long c, long d, long e) {
    char room[64];
    room[n % 64] = (char)a;
    zero = room[(n + 1) % 64] & 0;
    if (n <= 1) leaf(zero);
    else a += odd(n - 1, a + 1, b + 2, c + 3, d + 4, e + 5);
    return a + b + c + d + e + n;
}

int main(int argc, char **argv) {
    long n = argc > 1 ? atol(argv[1]) : 100;
    return odd(n, n, 2, 3, 4, 5) == 42;
}
