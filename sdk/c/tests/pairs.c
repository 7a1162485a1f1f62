/* A case for every pair of scalar types. Each body is the conversion, marked by a `pause`; see disassembly.py. */

#define SCRUPLE_IMPLEMENTATION
#include "../scruple.h"

static inline __attribute__((always_inline)) void mark(void) { __asm__ volatile("pause"); }

#define TO_INTEGERS(pair, from) \
    pair(from, uint8_t) pair(from, uint16_t) pair(from, uint32_t) pair(from, uint64_t) \
    pair(from, int8_t) pair(from, int16_t) pair(from, int32_t) pair(from, int64_t)
/* The conversions between uint64_t and floating-point numbers have branches, and so more than one loop. */
#define TO_FLOATS(pair, from) pair(from, float) pair(from, double)
#define FROM_FLOAT(pair, from) \
    pair(from, uint8_t) pair(from, uint16_t) pair(from, uint32_t) \
    pair(from, int8_t) pair(from, int16_t) pair(from, int32_t) pair(from, int64_t) TO_FLOATS(pair, from)
#define ALL(pair) \
    TO_INTEGERS(pair, uint8_t) TO_INTEGERS(pair, uint16_t) TO_INTEGERS(pair, uint32_t) TO_INTEGERS(pair, uint64_t) \
    TO_INTEGERS(pair, int8_t) TO_INTEGERS(pair, int16_t) TO_INTEGERS(pair, int32_t) TO_INTEGERS(pair, int64_t) \
    TO_FLOATS(pair, uint8_t) TO_FLOATS(pair, uint16_t) TO_FLOATS(pair, uint32_t) TO_FLOATS(pair, int8_t) \
    TO_FLOATS(pair, int16_t) TO_FLOATS(pair, int32_t) TO_FLOATS(pair, int64_t) FROM_FLOAT(pair, float) \
    FROM_FLOAT(pair, double)

#ifdef __cplusplus
#define DECLARE(from, to) scruple::bench(#from " to " #to, [](from &a) -> to { mark(); return (to)a; }, (from)1);
#define DEFINE(from, to)
#else
#define DEFINE(from, to) SCRUPLE_BODY(from##_to_##to, from, a, to, (mark(), (to)a))
#define DECLARE(from, to) SCRUPLE_BENCH(#from " to " #to, from##_to_##to);
#endif

ALL(DEFINE)

int main(int argc, char **argv)
{
    ALL(DECLARE)
    return scruple_main(argc, argv);
}
