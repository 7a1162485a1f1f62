/* 2 to the power of 16 paths: each level calls the next one through either of two functions. FIRST may name a lower level,
 * from which there are fewer. */
#ifndef FIRST
#define FIRST level16
#endif

static volatile unsigned sink;

#define LEVEL(n, next)                  \
    static void a##n(void), b##n(void); \
    static void level##n(void) {        \
        a##n();                         \
        b##n();                         \
    }                                   \
    static void a##n(void) { next(); }  \
    static void b##n(void) {            \
        next();                         \
        sink++;                         \
    }

static void end(void) {
    sink++;
}
LEVEL(1, end)
LEVEL(2, level1)
LEVEL(3, level2)
LEVEL(4, level3)
LEVEL(5, level4)
LEVEL(6, level5)
LEVEL(7, level6)
LEVEL(8, level7)
LEVEL(9, level8)
LEVEL(10, level9)
LEVEL(11, level10)
LEVEL(12, level11)
LEVEL(13, level12)
LEVEL(14, level13)
LEVEL(15, level14)
LEVEL(16, level15)

int main(void) {
    FIRST();
    return sink == 0;
}
