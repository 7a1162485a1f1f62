/* Distances between chosen bytes. */
#ifndef SCRUPLE_RANDOM_H
#define SCRUPLE_RANDOM_H

#include <stdint.h>

/* SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014). */
static inline uint64_t mixed(uint64_t x) {
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}
static inline uint64_t next_random(uint64_t *state) { return mixed(*state += UINT64_C(0x9e3779b97f4a7c15)); }

/* The start of a thread's own sequence. */
static inline uint64_t seed_of(uint64_t seed, uint32_t process, uint32_t thread) {
    return mixed(mixed(seed + process) + thread);
}

/* The natural logarithm of x > 0. With m in [sqrt(1/2), sqrt(2)), ln m = 2 artanh((m-1)/(m+1)), whose series to the
 * 17th power leaves an error below 1e-15. */
static inline double logarithm(double x) {
    union {
        double value;
        uint64_t bits;
    } parts = {x};
    int exponent = (int)(parts.bits >> 52) - 1023;
    parts.bits = (parts.bits & ((UINT64_C(1) << 52) - 1)) | (UINT64_C(1023) << 52);
    if (parts.value > 1.4142135623730951) parts.value /= 2, exponent++;
    double t = (parts.value - 1) / (parts.value + 1), square = t * t, sum = 0;
    for (int power = 17; power >= 1; power -= 2) sum = sum * square + 1.0 / power;
    return 2 * t * sum + exponent * 0.6931471805599453;
}

/* The number of bytes up to and including the next chosen one: an exponential variable, rounded up. */
static inline uint64_t exponential(uint64_t *state, uint64_t mean) {
    double uniform = (double)((next_random(state) >> 11) + 1) * 0x1p-53; /* above 0, up to 1 */
    double distance = -logarithm(uniform) * (double)mean;
    return distance < 0x1p62 ? (uint64_t)distance + 1 : UINT64_C(1) << 62;
}

#endif
