/* scruple.h: declares cases that Scruple weighs, and implements its bench protocol. C99 or C++11 and later, GCC or
 * Clang, a Unix with POSIX threads. MIT OR Apache-2.0.
 *
 * Include it anywhere. In one file of the program, before any other include, write
 *
 *     #define SCRUPLE_IMPLEMENTATION
 *     #include "scruple.h"
 *
 *     SCRUPLE_BODY(fnv, uint32_t, h, uint32_t, (h ^ 7) * 16777619u)
 *
 *     int main(int argc, char **argv)
 *     {
 *         uint32_t seed = 2166136261u;
 *         scruple_data(SCRUPLE_BENCH("fnv/one step", fnv), &seed);
 *         return scruple_main(argc, argv);
 *     }
 *
 * and run the program with `scruple bench -- ./program`. */
#ifndef SCRUPLE_H
#define SCRUPLE_H

#if defined SCRUPLE_IMPLEMENTATION && !defined _POSIX_C_SOURCE && !defined _GNU_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SCRUPLE_VERSION "0.1.0"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct scruple_case scruple_case;

/* The argument of a loop: the number of iterations and their input. The other fields are private. */
typedef struct scruple_batch {
    uint64_t iterations;
    void *input;   /* from scruple_data or the setup, or NULL */
    void **inputs; /* one for each iteration, if the case has scruple_input */
    void *context; /* from scruple_bench_loops */
    int throughput; /* iterations must not wait for each other: see scruple_timing */
    uint64_t wall[2], cpu[2];
    uint64_t waited[2]; /* how long its thread waited for a core so far, in a team */
    struct scruple_team *team;
} scruple_batch;

typedef void (*scruple_loop)(scruple_batch *);

/* A queue under test. `put` and `get` return 1, or 0 if the queue is full or empty: they are then called again. They
 * may also block. `close`, if not NULL, is called once when all producers have ended; after that `get` must not block.
 * */
typedef struct scruple_queue {
    void *(*create)(size_t capacity);
    int (*put)(void *queue, uint64_t element);
    int (*get)(void *queue, uint64_t *element);
    void (*close)(void *queue);
    void (*destroy)(void *queue);
} scruple_queue;

/* Declare a case. The body is called through a pointer with the case's input; see also SCRUPLE_BODY below. */
scruple_case *scruple_bench(const char *name, void (*body)(void *input));
scruple_case *scruple_bench_loops(const char *name, scruple_loop loop, scruple_loop tare, void *context);
scruple_case *scruple_bench_queue(const char *name, const scruple_queue *queue, unsigned producers,
                                  unsigned consumers, size_t capacity);

/* The case's input: a pointer, or the result of a setup, or a new object for every iteration. */
void scruple_data(scruple_case *, void *input);
void scruple_setup(scruple_case *, void *(*setup)(const scruple_case *), void (*teardown)(void *));
void scruple_input(scruple_case *, void *(*make)(const scruple_case *), void (*destroy)(void *), uint64_t max);

/* Sets a check, which examines the input after one run of the body. It returns 1 and may write a digest to `text`, or
 * returns 0 and writes the reason to `text`. */
void scruple_check(scruple_case *, int (*check)(void *input, char *text, size_t size));

/* Optional properties of a case. */
void scruple_param(scruple_case *, const char *key, double value);
void scruple_param_text(scruple_case *, const char *key, const char *value);
double scruple_param_of(const scruple_case *, const char *key);
void scruple_throughput(scruple_case *, const char *unit, double amount); /* "bytes" or "items" */
/* The time of an iteration: from argument to result (every iteration waits for the previous one), or from one result to
 * the next (iterations may overlap). The first is the default of SCRUPLE_BODY, and is available only there. */
enum scruple_timing { SCRUPLE_LATENCY, SCRUPLE_THROUGHPUT };
void scruple_timing(scruple_case *, enum scruple_timing);
void scruple_chains_(scruple_case *); /* for the macros and templates below */
void scruple_threads(scruple_case *, unsigned threads);                   /* once for each number */
void scruple_budget(scruple_case *, const char *metric, double max);
void scruple_budget_against(scruple_case *, const char *metric, const char *max, const char *against);
void scruple_tag(scruple_case *, const char *tag);
void scruple_group(scruple_case *, const char *group);
void scruple_shape(scruple_case *, const char *shape);
void scruple_fresh(scruple_case *);
void scruple_time_limit(scruple_case *, uint64_t nanoseconds);
void scruple_max_iterations(scruple_case *, uint64_t most); /* of one batch */
void scruple_queue_options(scruple_case *, uint64_t once_elements, uint64_t stall_nanoseconds);
scruple_case *scruple_source(scruple_case *, const char *file, int line);

/* Ends the current body, setup or check: the case fails with this message. */
#if defined __GNUC__
__attribute__((noreturn))
#endif
void scruple_fail(const char *message);

/* Ends the current body, setup or check, because the case cannot run here: it is shown as skipped, with this reason. */
#if defined __GNUC__
__attribute__((noreturn))
#endif
void scruple_skip(const char *why);

/* Serves the protocol. If the program was started by hand, it executes `scruple bench` with itself. */
int scruple_main(int argc, char **argv);

/* For loops written by hand: the timed code is between these two calls. */
void scruple_start(scruple_batch *);
void scruple_stop(scruple_batch *);

#ifdef __cplusplus
}
#endif

/* Cases that are declared by these macros also record the line of their declaration. */
#define scruple_bench(name, body) scruple_source(scruple_bench(name, body), __FILE__, __LINE__)
#define scruple_bench_queue(name, queue, producers, consumers, capacity) \
    scruple_source(scruple_bench_queue(name, queue, producers, consumers, capacity), __FILE__, __LINE__)

/* The compiler must assume that the variable is changed here, or that the value and all memory are read here. */
#define SCRUPLE_OPAQUE(variable) __asm__ volatile("" : "+rm"(variable) : : "memory")
#define SCRUPLE_KEEP(value) __asm__ volatile("" : : "rm"(value) : "memory")

/* Convert a scalar to an integer in a register, and back. Of a longer scalar, only the first eight bytes are used. */
#define SCRUPLE_TO_BITS_(bits, value)                                                                                  \
    do {                                                                                                               \
        (bits) = 0;                                                                                                    \
        memcpy(&(bits), &(value), sizeof(value) < sizeof(bits) ? sizeof(value) : sizeof(bits));                        \
    } while (0)
#define SCRUPLE_FROM_BITS_(value, bits) \
    memcpy(&(value), &(bits), sizeof(value) < sizeof(bits) ? sizeof(value) : sizeof(bits))

/* Aligns the next loop to a cache line: a loop across two lines sometimes takes half as long again. */
#define SCRUPLE_ALIGN_ __asm__ volatile(".p2align 6")

/* The instructions around a body. The compiler cannot merge them with the body's or with each other. The argument's
 * bits get a register of their own. The next argument depends on the result and on this argument, so that a body that
 * ignores its argument takes as long as the tare. The mask is zero, unknown to compiler and processor; it also clears
 * the upper bits of a short result's register. On other architectures the compiler chooses the instructions, as it does
 * in tests that define SCRUPLE_ANY_ARCHITECTURE_. */
#if defined __x86_64__ && !defined SCRUPLE_ANY_ARCHITECTURE_
#define SCRUPLE_ARGUMENT_(raw, bits) __asm__ volatile("mov %1, %0" : "=r"(raw) : "r"(bits) : "memory")
#define SCRUPLE_NEXT_(bits, first, mask, value)                                                                        \
    __asm__ volatile("or %q1, %0\n\tand %2, %0\n\tadd %3, %0"                                                          \
                     : "+&r"(bits)                                                                                     \
                     : "r"(value), "r"(mask), "r"(first)                                                               \
                     : "memory", "cc")
#define SCRUPLE_NEXT_FLOAT_(bits, first, mask, value)                                                                  \
    do {                                                                                                               \
        uint64_t scruple_moved;                                                                                        \
        __asm__ volatile("movq %2, %1\n\tor %1, %0\n\tand %3, %0\n\tadd %4, %0"                                       \
                         : "+&r"(bits), "=&r"(scruple_moved)                                                           \
                         : "x"(value), "r"(mask), "r"(first)                                                           \
                         : "memory", "cc");                                                                            \
    } while (0)
#define SCRUPLE_PIN_FLOAT_(value) __asm__ volatile("" : "+x"(value))
#else
#define SCRUPLE_ARGUMENT_(raw, bits)                                                                                   \
    do {                                                                                                               \
        __asm__ volatile("" : "+r"(bits) : : "memory");                                                                \
        (raw) = (bits);                                                                                                \
    } while (0)
#define SCRUPLE_NEXT_(bits, first, mask, value)                                                                        \
    do {                                                                                                               \
        const __typeof__(value) scruple_copied = value;                                                                \
        uint64_t scruple_value;                                                                                        \
        SCRUPLE_TO_BITS_(scruple_value, scruple_copied);                                                               \
        __asm__ volatile("" : "+r"(scruple_value) : : "memory");                                                       \
        (bits) = (first) + ((scruple_value | (bits)) & (mask));                                                        \
    } while (0)
#define SCRUPLE_NEXT_FLOAT_ SCRUPLE_NEXT_
#define SCRUPLE_PIN_FLOAT_(value) SCRUPLE_OPAQUE(value)
#endif

/* The instructions around a body for scalars of any type. Of a scalar longer than a register, only the first eight
 * bytes are used. */
#if defined __cplusplus
#define SCRUPLE_IS_FLOAT_(type) (std::is_same<type, float>::value || std::is_same<type, double>::value)
#define SCRUPLE_PIN_(type, value) scruple::pin(value)
#define SCRUPLE_TAKE_(type, bits, first, mask, value) scruple::take(bits, first, mask, value)
#define SCRUPLE_LEAVE_(type, value) scruple::leave(value)
#else
#define SCRUPLE_IS_FLOAT_(type) \
    (__builtin_types_compatible_p(type, float) || __builtin_types_compatible_p(type, double))
#define SCRUPLE_PIN_(type, value)                                                                                      \
    do {                                                                                                               \
        double scruple_none = 0;                                                                                       \
        SCRUPLE_PIN_FLOAT_(*__builtin_choose_expr(SCRUPLE_IS_FLOAT_(type), &(value), &scruple_none));                  \
    } while (0)
#define SCRUPLE_TAKE_(type, bits, first, mask, value)                                                                  \
    do {                                                                                                               \
        uint64_t scruple_long = 0;                                                                                     \
        if (sizeof(value) > sizeof(uint64_t)) SCRUPLE_TO_BITS_(scruple_long, value);                                   \
        if (SCRUPLE_IS_FLOAT_(type))                                                                                   \
            SCRUPLE_NEXT_FLOAT_(bits, first, mask, __builtin_choose_expr(SCRUPLE_IS_FLOAT_(type), value, 0.0));        \
        else                                                                                                           \
            SCRUPLE_NEXT_(bits, first, mask,                                                                           \
                          __builtin_choose_expr(!SCRUPLE_IS_FLOAT_(type) && sizeof(value) <= sizeof(uint64_t), value,  \
                                                scruple_long));                                                        \
    } while (0)
#define SCRUPLE_LEAVE_(type, value)                                                                                    \
    do {                                                                                                               \
        SCRUPLE_PIN_(type, value);                                                                                     \
        if (sizeof(value) > sizeof(uint64_t)) SCRUPLE_KEEP(&(value));                                                  \
        __asm__ volatile("" : : "r"(__builtin_choose_expr(                                                             \
            !SCRUPLE_IS_FLOAT_(type) && sizeof(value) <= sizeof(uint64_t), value, 0)));                                \
    } while (0)
#endif

/* The loops of a case whose body is an expression, which can be inlined: NAME, type and name of the argument, type of
 * the result, and the expression. The input points to the argument. Types must be scalar.
 *
 * For latency, each iteration waits for the result of the previous one. For throughput (scruple_timing), iterations are
 * independent and overlap in the processor. */
#define SCRUPLE_LOOP_(function, in_type, in, out_type, step, body)                                                        \
    static void function(scruple_batch *scruple_b)                                                                     \
    {                                                                                                                  \
        in_type in = scruple_b->input ? *(const in_type *)scruple_b->input : (in_type)0;                               \
        const uint64_t scruple_n = scruple_b->iterations;                                                              \
        uint64_t scruple_i = 0, scruple_first, scruple_bits, scruple_raw, scruple_mask = 0;                            \
        out_type scruple_out;                                                                                          \
        __asm__ volatile("" : "+r"(scruple_mask));                                                                     \
        SCRUPLE_TO_BITS_(scruple_first, in);                                                                           \
        scruple_bits = scruple_first;                                                                                  \
        if (scruple_b->throughput) {                                                                                   \
            scruple_start(scruple_b);                                                                                  \
            SCRUPLE_ALIGN_;                                                                                            \
            do {                                                                                                       \
                SCRUPLE_ARGUMENT_(scruple_raw, scruple_bits);                                                          \
                step(in_type, in, out_type, body) SCRUPLE_LEAVE_(out_type, scruple_out);                               \
            } while (++scruple_i < scruple_n);                                                                         \
        } else {                                                                                                       \
            scruple_start(scruple_b);                                                                                  \
            SCRUPLE_ALIGN_;                                                                                            \
            do {                                                                                                       \
                SCRUPLE_ARGUMENT_(scruple_raw, scruple_bits);                                                          \
                step(in_type, in, out_type, body) SCRUPLE_PIN_(out_type, scruple_out);                                 \
                SCRUPLE_TAKE_(out_type, scruple_bits, scruple_first, scruple_mask, scruple_out);                       \
            } while (++scruple_i < scruple_n);                                                                         \
        }                                                                                                              \
        scruple_stop(scruple_b);                                                                                       \
    }
#define SCRUPLE_GIVEN_(type, in)                                                                                       \
    SCRUPLE_FROM_BITS_(in, scruple_raw);                                                                               \
    SCRUPLE_PIN_(type, in);
#define SCRUPLE_COMPUTED_(in_type, in, out_type, body)                                                                 \
    SCRUPLE_GIVEN_(in_type, in)                                                                                        \
    scruple_out = body(in);
/* The tare uses the register of the argument as the result. It takes an instruction, a move of the bits, only between
 * an integer and a floating-point number. */
#define SCRUPLE_CARRIED_(in_type, in, out_type, body)                                                                  \
    if (SCRUPLE_IS_FLOAT_(in_type) && !SCRUPLE_IS_FLOAT_(out_type)) {                                                  \
        SCRUPLE_GIVEN_(in_type, in)                                                                                    \
        SCRUPLE_TO_BITS_(scruple_raw, in);                                                                             \
    }                                                                                                                  \
    if (sizeof(out_type) > sizeof(scruple_raw)) scruple_out = (out_type)0;                                             \
    SCRUPLE_FROM_BITS_(scruple_out, scruple_raw);
#define SCRUPLE_BODY(name, in_type, in, out_type, expression)                                                          \
    static inline __attribute__((always_inline)) out_type scruple_body_##name(in_type in)                             \
    {                                                                                                                  \
        (void)in;                                                                                                      \
        return (expression);                                                                                           \
    }                                                                                                                  \
    SCRUPLE_LOOP_(scruple_case_##name, in_type, in, out_type, SCRUPLE_COMPUTED_, scruple_body_##name)                  \
    SCRUPLE_LOOP_(scruple_tare_##name, in_type, in, out_type, SCRUPLE_CARRIED_, )                                      \
    static const char *const scruple_shape_##name = #in_type " -> " #out_type;

/* Declares a case with the loops of SCRUPLE_BODY. */
#define SCRUPLE_BENCH(title, name)                                                                                     \
    scruple_source(scruple_shaped_(scruple_bench_loops(title, scruple_case_##name, scruple_tare_##name, NULL),        \
                                   scruple_shape_##name),                                                              \
                   __FILE__, __LINE__)
static inline scruple_case *scruple_shaped_(scruple_case *c, const char *shape)
{
    scruple_shape(c, shape);
    scruple_chains_(c);
    return c;
}

#ifdef __cplusplus
#include <functional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace scruple {

/* Numbers and pointers are kept in a register, everything else in memory. */
template <class T> using small = std::integral_constant<bool, std::is_scalar<T>::value>;
template <class T> inline void look(const T &value, std::true_type) { SCRUPLE_KEEP(value); }
template <class T> inline void look(const T &value, std::false_type) { SCRUPLE_KEEP(&value); }
template <class T> inline void keep(const T &value) { look(value, small<T>()); }

/* The parts of a loop for scalars of any type; see SCRUPLE_LOOP_. */
inline void pin(float &value) { SCRUPLE_PIN_FLOAT_(value); }
inline void pin(double &value) { SCRUPLE_PIN_FLOAT_(value); }
template <class T> inline void pin(T &) {}
template <class T> using in_register = std::integral_constant<bool, std::is_scalar<T>::value && sizeof(T) <= sizeof(uint64_t)>;
template <class T> inline void take(uint64_t &bits, uint64_t first, uint64_t mask, const T &value, std::true_type)
{
    SCRUPLE_NEXT_(bits, first, mask, value);
}
template <class T> inline void take(uint64_t &bits, uint64_t first, uint64_t mask, const T &value, std::false_type)
{
    uint64_t raw;
    SCRUPLE_TO_BITS_(raw, value);
    SCRUPLE_NEXT_(bits, first, mask, raw);
}
inline void take(uint64_t &bits, uint64_t first, uint64_t mask, float value) { SCRUPLE_NEXT_FLOAT_(bits, first, mask, value); }
inline void take(uint64_t &bits, uint64_t first, uint64_t mask, double value) { SCRUPLE_NEXT_FLOAT_(bits, first, mask, value); }
template <class T> inline void take(uint64_t &bits, uint64_t first, uint64_t mask, const T &value)
{
    take(bits, first, mask, value, in_register<T>());
}
inline void leave(float &value) { pin(value); }
inline void leave(double &value) { pin(value); }
template <class T> inline void leave(T &value) { keep(value); }

/* Uses the result of an iteration. With `Chained`, the next argument depends on it. */
template <bool Chained, class R> inline void close(uint64_t &bits, uint64_t first, uint64_t mask, R &r, std::true_type)
{
    pin(r);
    if (Chained) take(bits, first, mask, r);
    else leave(r);
}
template <bool Chained, class R> inline void close(uint64_t &bits, uint64_t first, uint64_t mask, R &r, std::false_type)
{
    keep(r);
    if (Chained) take(bits, first, mask, bits);
}

/* Returns the argument's bits as the result, or a value-initialised result. */
template <class R, class A> inline R stand_in(A &a, uint64_t raw, std::true_type)
{
    R r = R();
    if (SCRUPLE_IS_FLOAT_(A) && !SCRUPLE_IS_FLOAT_(R)) {
        SCRUPLE_FROM_BITS_(a, raw);
        pin(a);
        SCRUPLE_TO_BITS_(raw, a);
    }
    SCRUPLE_FROM_BITS_(r, raw);
    return r;
}
template <class R, class A> inline R stand_in(A &, uint64_t, std::false_type) { return R(); }

/* Calls the body or the tare's function and keeps the result, if it returns one. */
template <class R> struct caller {
    template <class F, class A> static void body(F &f, A &a) { R r = f(a); keep(r); }
    template <class A> static void tare(A &a) { plain(a, std::is_same<R, A>(), std::is_default_constructible<R>()); }
    template <class A, class D> static void plain(A &a, std::true_type, D) { keep(a); }
    template <class A> static void plain(A &, std::false_type, std::true_type) { R r = R(); keep(r); }
    template <class A> static void plain(A &a, std::false_type, std::false_type) { keep(a); }

    template <bool Chained, class F, class A> static void step(F &f, A &a, uint64_t raw, uint64_t &bits, uint64_t first, uint64_t mask)
    {
        SCRUPLE_FROM_BITS_(a, raw);
        pin(a);
        R r = f(a);
        close<Chained>(bits, first, mask, r, small<R>());
    }
    template <bool Chained, class A> static void tare_step(A &a, uint64_t raw, uint64_t &bits, uint64_t first, uint64_t mask)
    {
        tare_of<Chained>(a, raw, bits, first, mask, std::is_default_constructible<R>());
    }
    template <bool Chained, class A> static void tare_of(A &a, uint64_t raw, uint64_t &bits, uint64_t first, uint64_t mask, std::true_type)
    {
        R r = stand_in<R>(a, raw, small<R>());
        close<Chained>(bits, first, mask, r, small<R>());
    }
    template <bool Chained, class A> static void tare_of(A &a, uint64_t raw, uint64_t &bits, uint64_t first, uint64_t mask, std::false_type)
    {
        SCRUPLE_FROM_BITS_(a, raw);
        close<Chained>(bits, first, mask, a, std::false_type());
    }
    template <class F, class A> static std::string once(F &f, A &a, std::function<std::string(R &)> &check)
    {
        R r = f(a);
        return check ? check(r) : std::string();
    }
};
template <> struct caller<void> {
    template <class F, class A> static void body(F &f, A &a) { f(a); }
    template <class A> static void tare(A &) {}
    template <bool Chained, class F, class A> static void step(F &f, A &a, uint64_t raw, uint64_t &bits, uint64_t first, uint64_t mask)
    {
        SCRUPLE_FROM_BITS_(a, raw);
        pin(a);
        f(a);
        if (Chained) take(bits, first, mask, bits);
    }
    template <bool Chained, class A> static void tare_step(A &a, uint64_t raw, uint64_t &bits, uint64_t first, uint64_t mask)
    {
        SCRUPLE_FROM_BITS_(a, raw);
        pin(a);
        if (Chained) take(bits, first, mask, bits);
    }
    template <class F, class A> static std::string once(F &f, A &a, std::function<std::string()> &check)
    {
        f(a);
        return check ? check() : std::string();
    }
};
template <class R> struct checking { typedef std::function<std::string(R &)> type; };
template <> struct checking<void> { typedef std::function<std::string()> type; };

/* A body, its argument's maker, and its check. */
template <class A, class R, class F, class Make> struct held {
    F f;
    Make make;
    typename checking<R>::type check;

    template <bool Tare> static void once(F &f, A &a)
    {
        if (Tare) caller<R>::tare(a);
        else caller<R>::body(f, a);
    }

    /* A small argument is a copy. It waits for the result of the previous iteration, as in SCRUPLE_LOOP_, or for
     * nothing. Any other argument is passed by reference. */
    template <bool Tare, bool Chained> static void rounds(scruple_batch *b, F &f, A a)
    {
        const uint64_t n = b->iterations;
        uint64_t first, bits, raw, mask = 0;
        __asm__ volatile("" : "+r"(mask));
        SCRUPLE_TO_BITS_(first, a);
        bits = first;
        scruple_start(b);
        uint64_t i = 0;
        SCRUPLE_ALIGN_;
        do {
            SCRUPLE_ARGUMENT_(raw, bits);
            if (Tare) caller<R>::template tare_step<Chained>(a, raw, bits, first, mask);
            else caller<R>::template step<Chained>(f, a, raw, bits, first, mask);
        } while (++i < n);
        scruple_stop(b);
    }
    template <bool Tare> static void around(scruple_batch *b, F &f, A &from, std::true_type)
    {
        if (b->throughput) rounds<Tare, false>(b, f, from);
        else rounds<Tare, true>(b, f, from);
    }
    template <bool Tare> static void around(scruple_batch *b, F &f, A &from, std::false_type)
    {
        const uint64_t n = b->iterations;
        scruple_start(b);
        for (uint64_t i = 0; i < n; i++) {
            SCRUPLE_KEEP(&from);
            once<Tare>(f, from);
        }
        scruple_stop(b);
    }
    template <bool Tare> static void loop(scruple_batch *b)
    {
        held &h = *static_cast<held *>(b->context);
        around<Tare>(b, h.f, *static_cast<A *>(b->input), small<A>());
    }
    template <bool Tare> static void each(scruple_batch *b)
    {
        held &h = *static_cast<held *>(b->context);
        F &f = h.f;
        void **const inputs = b->inputs;
        const uint64_t n = b->iterations;
        scruple_start(b);
        for (uint64_t i = 0; i < n; i++) {
            A &a = *static_cast<A *>(inputs[i]);
            SCRUPLE_KEEP(&a);
            once<Tare>(f, a);
        }
        scruple_stop(b);
    }
};

/* A case's template functions as pointers. */
struct hooks {
    std::function<void *()> make;
    std::function<void(void *)> destroy;
    std::function<std::string(void *)> once;
    bool checked;
    hooks() : checked(false) {}
};
hooks *attach(scruple_case *c, hooks *h, bool each);

/* The handle that a declaration returns; each method sets one property. A check gets the result (no argument if there
 * is none), returns a digest or an empty string, and throws if the result is wrong. */
template <class R> class Case {
    scruple_case *c;
    typename checking<R>::type *checker;
    hooks *h;

  public:
    Case(scruple_case *of, typename checking<R>::type *check, hooks *with) : c(of), checker(check), h(with) {}
    Case &check(typename checking<R>::type f) { *checker = f; h->checked = true; return *this; }
    template <class N, class = typename std::enable_if<std::is_arithmetic<N>::value>::type>
    Case &param(const char *key, N value) { scruple_param(c, key, static_cast<double>(value)); return *this; }
    Case &param(const char *key, const char *value) { scruple_param_text(c, key, value); return *this; }
    Case &throughput_bytes(double n) { scruple_throughput(c, "bytes", n); return *this; }
    Case &throughput_items(double n) { scruple_throughput(c, "items", n); return *this; }
    Case &timing(enum scruple_timing t) { scruple_timing(c, t); return *this; }
    Case &threads(std::vector<unsigned> list) { for (unsigned n : list) scruple_threads(c, n); return *this; }
    /* A template, since a literal 0 would be a pointer as well. */
    template <class N, class = typename std::enable_if<std::is_arithmetic<N>::value>::type>
    Case &budget(const char *metric, N max) { scruple_budget(c, metric, static_cast<double>(max)); return *this; }
    Case &budget(const char *metric, const char *max, const char *against = "baseline") { scruple_budget_against(c, metric, max, against); return *this; }
    Case &tag(const char *tag) { scruple_tag(c, tag); return *this; }
    Case &group(const char *group) { scruple_group(c, group); return *this; }
    Case &shape(const char *shape) { scruple_shape(c, shape); return *this; }
    Case &max_iterations(uint64_t n) { scruple_max_iterations(c, n); return *this; }
    Case &fresh() { scruple_fresh(c); return *this; }
    Case &time_limit(uint64_t nanoseconds) { scruple_time_limit(c, nanoseconds); return *this; }
};

/* The types of argument and result as the compiler spells them, such as `A = int; R = void`. */
template <class A, class R> std::string shape_of()
{
    const std::string whole = __PRETTY_FUNCTION__;
    const size_t from = whole.find("A = ");
    return whole.substr(from, whole.find_first_of(";]", whole.find("R = ")) - from);
}

template <class A, class R, class F, class Make>
Case<R> declare(const char *name, Make make, F f, bool each, const char *file, int line)
{
    typedef held<A, R, F, Make> H;
    H *held_ = new H{std::move(f), std::move(make), nullptr};
    scruple_loop loop = each ? H::template each<false> : H::template loop<false>;
    scruple_loop tare = each ? H::template each<true> : H::template loop<true>;
    scruple_case *c = scruple_source(scruple_bench_loops(name, loop, tare, held_), file, line);
    hooks *h = attach(c, new hooks, each);
    scruple_shape(c, shape_of<A, R>().c_str());
    if (!each && small<A>::value && small<R>::value) scruple_chains_(c);
    h->make = [held_]() -> void * { return new A(held_->make()); };
    h->destroy = [](void *a) { delete static_cast<A *>(a); };
    h->once = [held_](void *a) { return caller<R>::once(held_->f, *static_cast<A *>(a), held_->check); };
    return Case<R>(c, &held_->check, h);
}

struct nothing {};

/* Declares a case whose body is f(). */
template <class F, class R = decltype(std::declval<F &>()())>
Case<R> bench(const char *name, F f, const char *file = __builtin_FILE(), int line = __builtin_LINE())
{
    auto call = [f](nothing &) mutable -> R { return f(); };
    return declare<nothing, R>(name, [] { return nothing(); }, call, false, file, line);
}
/* Declares a case whose body is f(a). A number is passed as a copy, any other argument by reference. */
template <class F, class A, class R = decltype(std::declval<F &>()(std::declval<A &>()))>
Case<R> bench(const char *name, F f, A a, const char *file = __builtin_FILE(), int line = __builtin_LINE())
{
    return declare<A, R>(name, [a] { return a; }, std::move(f), false, file, line);
}
/* Declares a case whose body is f(a), with an argument that is made at the first request for the case. */
template <class Make, class F, class A = decltype(std::declval<Make &>()()),
          class R = decltype(std::declval<F &>()(std::declval<A &>()))>
Case<R> bench_setup(const char *name, Make make, F f, const char *file = __builtin_FILE(), int line = __builtin_LINE())
{
    return declare<A, R>(name, std::move(make), std::move(f), false, file, line);
}
/* Declares a case whose body is f(a), with a separate argument for every iteration. */
template <class Make, class F, class A = decltype(std::declval<Make &>()()),
          class R = decltype(std::declval<F &>()(std::declval<A &>()))>
Case<R> bench_input(const char *name, Make make, F f, const char *file = __builtin_FILE(), int line = __builtin_LINE())
{
    return declare<A, R>(name, std::move(make), std::move(f), true, file, line);
}

} /* namespace scruple */
#endif

/* ------------------------------------------------------------------------------------------------------------------ */
#if defined SCRUPLE_IMPLEMENTATION && !defined SCRUPLE_IMPLEMENTED
#define SCRUPLE_IMPLEMENTED

#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#ifdef __cplusplus
#include <exception>
extern "C" {
#endif

/* A function of Scruple's preload library; NULL without it. It is looked up by dlsym, because linkers resolve a weak
 * reference without a definition to NULL at link time. dlsym is weak, because older C libraries have it in libdl. */
#pragma weak dlsym
static void (*scruple_heap)(uint64_t *);

static void scruple_find_heap(void)
{
    void *found = dlsym != NULL ? dlsym(NULL, "scruple_heap_snapshot") : NULL;
    memcpy(&scruple_heap, &found, sizeof found);
}

#define SCRUPLE_WHY 256
#define SCRUPLE_MOST UINT64_C(9007199254740992)

struct scruple_text {
    char *at;
    size_t length, room;
};

struct scruple_number {
    const char *key;
    double value;
    struct scruple_number *next;
};

struct scruple_case {
    const char *name;
    struct scruple_text params, budgets, tags, threads, group, shape, source, throughput; /* as JSON */
    struct scruple_number *numbers;
    scruple_loop loop, tare;
    void (*body)(void *);
    void *context, *input, *hooks;
    void *(*setup)(const scruple_case *);
    void (*teardown)(void *);
    void *(*make)(const scruple_case *);
    void (*destroy)(void *);
    int (*check)(void *, char *, size_t);
    int ready, each, fresh, chains, loose; /* chains: iterations can wait for each other */
    uint64_t max_iterations, time_limit;
    const scruple_queue *queue;
    unsigned producers, consumers;
    size_t capacity;
    uint64_t once_elements, stall;
};

#define SCRUPLE_CORES 1024
#define SCRUPLE_WORD ((int)(8 * sizeof(long)))
#define SCRUPLE_COUNT 16
#define SCRUPLE_OPEN UINT64_MAX

/* The threads of one batch: they meet at a barrier, start together, and are joined. `call` is the barrier's state: the
 * number of a call and, in its last SCRUPLE_COUNT bits, how many threads have answered it; or SCRUPLE_OPEN. */
struct scruple_team {
    unsigned size, ready, go, done, caller;
    uint64_t call;
    unsigned char on_core[SCRUPLE_CORES]; /* whether a thread of the team is on that core */
    pthread_mutex_t lock;
    pthread_cond_t ended;
};

struct scruple_flow;

struct scruple_worker {
    scruple_batch batch;
    scruple_loop loop;
    pthread_t thread;
    int failed;
    char why[SCRUPLE_WHY];
    struct scruple_flow *flow; /* in a concurrency case; `who` is the number within its role */
    unsigned who;
    uint64_t *log, *stamps, *ends, room;
    char padding[64];
    uint64_t moved;
    char more_padding[64];
};

static scruple_case **scruple_cases;
static size_t scruple_count;
static struct scruple_text scruple_reply;
static FILE *scruple_replies;
static uint64_t scruple_heap_at[2][8];
static pid_t scruple_process;
static const scruple_case *scruple_current; /* whose code runs */

/* ---- Text and JSON ---- */

static void *scruple_memory(size_t size)
{
    void *memory = calloc(1, size ? size : 1);
    if (!memory) {
        fprintf(stderr, "scruple: out of memory\n");
        exit(1);
    }
    return memory;
}

static void scruple_room(struct scruple_text *t, size_t more)
{
    if (t->length + more + 1 > t->room) {
        t->room = (t->length + more + 1) * 2;
        t->at = (char *)realloc(t->at, t->room);
        if (!t->at) {
            fprintf(stderr, "scruple: out of memory\n");
            exit(1);
        }
    }
}

__attribute__((format(printf, 2, 3))) static void scruple_put(struct scruple_text *t, const char *format, ...)
{
    va_list arguments;
    int needed;
    va_start(arguments, format);
    needed = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    scruple_room(t, (size_t)needed);
    va_start(arguments, format);
    vsnprintf(t->at + t->length, (size_t)needed + 1, format, arguments);
    va_end(arguments);
    t->length += (size_t)needed;
}

/* The length of the valid UTF-8 character at s, or 0. */
static size_t scruple_utf8(const unsigned char *s)
{
    size_t i, n = s[0] < 0x80 ? 1 : s[0] < 0xC2 ? 0 : s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : s[0] < 0xF5 ? 4 : 0;
    for (i = 1; i < n; i++)
        if ((s[i] & 0xC0) != 0x80) return 0;
    if (s[0] == 0xE0 && s[1] < 0xA0) return 0;
    if (s[0] == 0xED && s[1] > 0x9F) return 0; /* surrogates */
    if (s[0] == 0xF0 && s[1] < 0x90) return 0;
    if (s[0] == 0xF4 && s[1] > 0x8F) return 0;
    return n;
}

static void scruple_string(struct scruple_text *t, const char *s)
{
    const unsigned char *u = (const unsigned char *)s;
    scruple_put(t, "\"");
    while (*u) {
        size_t n = scruple_utf8(u);
        if (n == 0) {
            scruple_put(t, "\xEF\xBF\xBD");
            n = 1;
        } else if (*u == '"' || *u == '\\')
            scruple_put(t, "\\%c", *u);
        else if (*u < 0x20)
            scruple_put(t, "\\u%04x", *u);
        else
            scruple_put(t, "%.*s", (int)n, (const char *)u);
        u += n;
    }
    scruple_put(t, "\"");
}

/* A number in JSON; a number that JSON cannot represent becomes a string. */
static void scruple_json_number(struct scruple_text *t, double value)
{
    if (value - value != 0) scruple_put(t, "\"%g\"", value);
    else if (value >= -(double)SCRUPLE_MOST && value <= (double)SCRUPLE_MOST && value == (double)(int64_t)value)
        scruple_put(t, "%.0f", value);
    else scruple_put(t, "%.12g", value);
}

static void scruple_say(void)
{
    scruple_put(&scruple_reply, "\n");
    fwrite(scruple_reply.at, 1, scruple_reply.length, scruple_replies);
    scruple_reply.length = 0;
}

#define SCRUPLE_SKIPPED '\1' /* begins the message of a failure that is a skip */

static void scruple_error(const char *kind, long long id, const char *text, const char *more)
{
    if (text[0] == SCRUPLE_SKIPPED) {
        kind = "skipped";
        text++;
    }
    scruple_reply.length = 0;
    scruple_put(&scruple_reply, "{\"error\":");
    scruple_string(&scruple_reply, text);
    scruple_put(&scruple_reply, ",\"kind\":\"%s\"", kind);
    if (id >= 0) scruple_put(&scruple_reply, ",\"id\":%lld", id);
    scruple_put(&scruple_reply, "%s}", more);
    scruple_say();
}

/* ---- Declarations ---- */

static scruple_case *scruple_new(const char *name)
{
    scruple_case *c = (scruple_case *)scruple_memory(sizeof *c);
    char *copy = (char *)scruple_memory(strlen(name) + 1);
    strcpy(copy, name);
    c->name = copy;
    if ((scruple_count & (scruple_count - 1)) == 0) {
        size_t room = scruple_count ? 2 * scruple_count : 1;
        scruple_cases = (scruple_case **)realloc(scruple_cases, room * sizeof *scruple_cases);
        if (!scruple_cases) exit(1);
    }
    scruple_cases[scruple_count++] = c;
    return c;
}

/* Not inlined, so that case and tare run the same instructions and differ only by the called function. */
__attribute__((noinline)) static void scruple_call_body(scruple_batch *b)
{
    void (*volatile through)(void *) = ((scruple_case *)b->context)->body;
    void (*const body)(void *) = through;
    const uint64_t n = b->iterations;
    uint64_t i;
    scruple_start(b);
    if (b->inputs)
        for (i = 0; i < n; i++) body(b->inputs[i]);
    else
        for (i = 0; i < n; i++) body(b->input);
    scruple_stop(b);
}

static void scruple_no_body(void *input) { SCRUPLE_KEEP(input); }

static void scruple_call_nothing(scruple_batch *b)
{
    scruple_case nobody = *(scruple_case *)b->context;
    nobody.body = scruple_no_body;
    b->context = &nobody;
    scruple_call_body(b);
    b->context = NULL;
}

scruple_case *scruple_bench_loops(const char *name, scruple_loop loop, scruple_loop tare, void *context)
{
    scruple_case *c = scruple_new(name);
    c->loose = 1;
    c->loop = loop;
    c->tare = tare;
    c->context = context;
    return c;
}

scruple_case *(scruple_bench)(const char *name, void (*body)(void *))
{
    scruple_case *c = scruple_bench_loops(name, scruple_call_body, scruple_call_nothing, NULL);
    c->context = c;
    c->body = body;
    scruple_shape(c, "void (*)(void *)");
    return c;
}

scruple_case *(scruple_bench_queue)(const char *name, const scruple_queue *queue, unsigned producers,
                                    unsigned consumers, size_t capacity)
{
    scruple_case *c = scruple_new(name);
    c->queue = queue;
    c->producers = producers ? producers : 1;
    c->consumers = consumers ? consumers : 1;
    c->capacity = capacity;
    c->max_iterations = 1000000;
    c->once_elements = 20000;
    c->stall = 1000000000;
    return c;
}

void scruple_data(scruple_case *c, void *input) { c->input = input; }

void scruple_setup(scruple_case *c, void *(*setup)(const scruple_case *), void (*teardown)(void *))
{
    c->setup = setup;
    c->teardown = teardown;
}

void scruple_input(scruple_case *c, void *(*make)(const scruple_case *), void (*destroy)(void *), uint64_t max)
{
    c->each = 1;
    c->make = make;
    c->destroy = destroy;
    c->max_iterations = max ? max : 1000;
}

void scruple_check(scruple_case *c, int (*check)(void *, char *, size_t)) { c->check = check; }

static void scruple_key(struct scruple_text *t, const char *key)
{
    if (t->length) scruple_put(t, ",");
    scruple_string(t, key);
}

void scruple_param(scruple_case *c, const char *key, double value)
{
    struct scruple_number *number = (struct scruple_number *)scruple_memory(sizeof *number);
    scruple_key(&c->params, key);
    scruple_put(&c->params, ":");
    scruple_json_number(&c->params, value);
    number->key = key;
    number->value = value;
    number->next = c->numbers;
    c->numbers = number;
}

void scruple_param_text(scruple_case *c, const char *key, const char *value)
{
    scruple_key(&c->params, key);
    scruple_put(&c->params, ":");
    scruple_string(&c->params, value);
}

double scruple_param_of(const scruple_case *c, const char *key)
{
    const struct scruple_number *number = c->numbers;
    while (number && strcmp(number->key, key)) number = number->next;
    if (!number) scruple_fail("the case has no such numeric param");
    return number->value;
}

void scruple_threads(scruple_case *c, unsigned threads)
{
    scruple_put(&c->threads, "%s%u", c->threads.length ? "," : "", threads);
}

void scruple_tag(scruple_case *c, const char *tag) { scruple_key(&c->tags, tag); }

void scruple_budget(scruple_case *c, const char *metric, double max)
{
    scruple_key(&c->budgets, metric);
    scruple_put(&c->budgets, ":{\"max\":");
    scruple_json_number(&c->budgets, max);
    scruple_put(&c->budgets, "}");
}

void scruple_budget_against(scruple_case *c, const char *metric, const char *max, const char *against)
{
    scruple_key(&c->budgets, metric);
    scruple_put(&c->budgets, ":{\"max\":");
    scruple_string(&c->budgets, max);
    scruple_put(&c->budgets, ",\"against\":");
    scruple_string(&c->budgets, against);
    scruple_put(&c->budgets, "}");
}

static void scruple_set(struct scruple_text *field, const char *value)
{
    field->length = 0;
    scruple_string(field, value);
}

void scruple_group(scruple_case *c, const char *group) { scruple_set(&c->group, group); }
void scruple_shape(scruple_case *c, const char *shape) { scruple_set(&c->shape, shape); }
void scruple_fresh(scruple_case *c) { c->fresh = 1; }
void scruple_time_limit(scruple_case *c, uint64_t nanoseconds) { c->time_limit = nanoseconds; }
void scruple_max_iterations(scruple_case *c, uint64_t most) { c->max_iterations = most; }

void scruple_chains_(scruple_case *c)
{
    c->chains = 1;
    c->loose = 0;
}

void scruple_timing(scruple_case *c, enum scruple_timing timing)
{
    if (timing == SCRUPLE_LATENCY && !c->chains) {
        fprintf(stderr, "‘%s’ has no latency: argument and result must be scalars that the SDK knows\n", c->name);
        exit(2);
    }
    c->loose = timing == SCRUPLE_THROUGHPUT;
}

void scruple_throughput(scruple_case *c, const char *unit, double amount)
{
    c->throughput.length = 0;
    scruple_put(&c->throughput, "{\"unit\":");
    scruple_string(&c->throughput, unit);
    scruple_put(&c->throughput, ",\"amount\":");
    scruple_json_number(&c->throughput, amount);
    scruple_put(&c->throughput, "}");
}

void scruple_queue_options(scruple_case *c, uint64_t once_elements, uint64_t stall_nanoseconds)
{
    if (once_elements) c->once_elements = once_elements;
    if (stall_nanoseconds) c->stall = stall_nanoseconds;
}

scruple_case *scruple_source(scruple_case *c, const char *file, int line)
{
    scruple_set(&c->source, file);
    c->source.length--; /* the closing quote */
    scruple_put(&c->source, ":%d\"", line);
    return c;
}

/* ---- Failing ---- */

#ifdef __cplusplus
void scruple_fail(const char *message) { throw std::runtime_error(message); }

static int scruple_caught(void (*f)(void *), void *argument, char *why)
{
    const char *text = "something that is not a std::exception was thrown";
    try {
        f(argument);
        return 1;
    } catch (const std::exception &e) {
        snprintf(why, SCRUPLE_WHY, "%s", e.what());
        return 0;
    } catch (const std::string &s) {
        snprintf(why, SCRUPLE_WHY, "%s", s.c_str());
        return 0;
    } catch (const char *s) {
        text = s;
    } catch (...) {
    }
    snprintf(why, SCRUPLE_WHY, "%s", text);
    return 0;
}
#else
static __thread jmp_buf *scruple_escape;
static __thread char scruple_message[SCRUPLE_WHY];

void scruple_fail(const char *message)
{
    if (!scruple_escape) {
        fprintf(stderr, "scruple: %s\n", message);
        exit(2);
    }
    snprintf(scruple_message, sizeof scruple_message, "%s", message);
    longjmp(*scruple_escape, 1);
}

static int scruple_caught(void (*f)(void *), void *argument, char *why)
{
    jmp_buf here, *volatile outer = scruple_escape;
    volatile int fine = 0;
    scruple_escape = &here;
    if (setjmp(here) == 0) {
        f(argument);
        fine = 1;
    } else
        snprintf(why, SCRUPLE_WHY, "%s", scruple_message);
    scruple_escape = outer;
    return fine;
}
#endif

/* Calls code of the current case. Ends a child process that the case has forked and that came back from it: it must not
 * answer as well. */
static int scruple_guarded(void (*f)(void *), void *argument, char *why)
{
    const int fine = scruple_caught(f, argument, why);
    struct scruple_text text = {NULL, 0, 0};
    size_t id = 0;
    if (getpid() == scruple_process) return fine;
    while (scruple_cases[id] != scruple_current) id++;
    scruple_put(&text, "a child that the case forked %s%s; it must end in the case, as by _exit",
                fine ? "returned from it" : "left it with ", fine ? "" : why);
    scruple_error("exception", (long long)id, text.at, ",\"fatal\":true");
    fflush(scruple_replies);
    _exit(1);
}

void scruple_skip(const char *why)
{
    char message[SCRUPLE_WHY];
    snprintf(message, sizeof message, "%c%s", SCRUPLE_SKIPPED, why);
    scruple_fail(message);
}

/* ---- Clocks, counters and the timed part ---- */

static uint64_t scruple_clock(clockid_t which)
{
    struct timespec t;
    clock_gettime(which, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t scruple_wall(void) { return scruple_clock(CLOCK_MONOTONIC); }

#ifdef __linux__
/* Names of our own, because the headers declare these functions only with _GNU_SOURCE. */
extern int scruple_core(void) __asm__("sched_getcpu");
extern int scruple_allowed(int thread, size_t size, void *cores) __asm__("sched_getaffinity");
extern int scruple_allow(int thread, size_t size, const void *cores) __asm__("sched_setaffinity");

/* Makes this thread leave its core if another thread of the team is there: the kernel chooses one of the others. Returns
 * the core that is now this thread's, or -1; `mine` is the result of the previous call. */
static int scruple_own_core(struct scruple_team *team, int mine)
{
    unsigned long all[SCRUPLE_CORES / SCRUPLE_WORD] = {0}, other[SCRUPLE_CORES / SCRUPLE_WORD], left = 0;
    int core = scruple_core(), i;
    if (core == mine || core < 0 || core >= SCRUPLE_CORES) return mine;
    if (mine >= 0) __atomic_store_n(&team->on_core[mine], 0, __ATOMIC_RELEASE);
    if (!__atomic_exchange_n(&team->on_core[core], 1, __ATOMIC_ACQ_REL)) return core;
    if (scruple_allowed(0, sizeof all, all) < 0) return -1;
    memcpy(other, all, sizeof all);
    for (i = 0; i < SCRUPLE_CORES; i++)
        if (__atomic_load_n(&team->on_core[i], __ATOMIC_ACQUIRE)) other[i / SCRUPLE_WORD] &= ~(1ul << i % SCRUPLE_WORD);
    for (i = 0; i < SCRUPLE_CORES / SCRUPLE_WORD; i++) left |= other[i];
    if (left && scruple_allow(0, sizeof other, other) == 0) scruple_allow(0, sizeof all, all);
    return -1;
}
#else
static int scruple_own_core(struct scruple_team *team, int mine) { return (void)team, mine; }
#endif

/* Waits a moment, after some time of spinning, so that other programs let this thread run when it is awake. */
static void scruple_nap(struct scruple_team *team, uint64_t *since, int *core)
{
    const struct timespec nap = {0, 50000};
    if (scruple_wall() - *since < 100000) return;
    nanosleep(&nap, NULL);
    *core = scruple_own_core(team, *core);
    *since = scruple_wall();
}

/* Opens the barrier when all threads have a core at the same time, so that none starts late: when all have answered a
 * call within 2 us. After 5 ms it opens in any case. The first thread to come calls, the others answer. */
static void scruple_meet(struct scruple_team *team)
{
    uint64_t since = scruple_wall(), until = since + 5000000, call, answered = 0, asked, now;
    int core = scruple_own_core(team, -1), caller = !__atomic_fetch_add(&team->caller, 1, __ATOMIC_ACQ_REL), all = 0;
    for (call = 1; caller && !all && since < until; call++) {
        __atomic_store_n(&team->call, call << SCRUPLE_COUNT, __ATOMIC_RELEASE);
        asked = scruple_wall();
        do {
            all = __atomic_load_n(&team->call, __ATOMIC_ACQUIRE) == (call << SCRUPLE_COUNT | (team->size - 1));
            now = scruple_wall() - asked;
        } while (!all && now < 2000);
        all = all && now < 2000;
        if (!all) scruple_nap(team, &since, &core);
    }
    if (caller) __atomic_store_n(&team->call, SCRUPLE_OPEN, __ATOMIC_RELEASE);
    while ((call = __atomic_load_n(&team->call, __ATOMIC_ACQUIRE)) != SCRUPLE_OPEN) {
        if (call >> SCRUPLE_COUNT == answered)
            scruple_nap(team, &since, &core);
        else if (__atomic_compare_exchange_n(&team->call, &call, call + 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            answered = call >> SCRUPLE_COUNT;
    }
}

/* How long this thread was ready but waited for a core so far, in ns; UINT64_MAX if the kernel does not tell. */
static uint64_t scruple_waited_so_far(void)
{
    char text[64];
    uint64_t ran, waited = UINT64_MAX;
    const int file = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    const ssize_t length = file < 0 ? 0 : read(file, text, sizeof text - 1);
    if (file >= 0) close(file);
    text[length > 0 ? length : 0] = 0;
    return sscanf(text, "%" SCNu64 " %" SCNu64, &ran, &waited) == 2 ? waited : UINT64_MAX;
}

__attribute__((noinline)) void scruple_start(scruple_batch *b)
{
    struct scruple_team *team = b->team;
    if (team) {
        unsigned spins = 0;
        __atomic_add_fetch(&team->ready, 1, __ATOMIC_ACQ_REL);
        while (!__atomic_load_n(&team->go, __ATOMIC_ACQUIRE))
            if (++spins > 1000) sched_yield();
        b->waited[0] = scruple_waited_so_far();
        scruple_meet(team);
    } else if (scruple_heap)
        scruple_heap(scruple_heap_at[0]);
    b->cpu[0] = scruple_clock(CLOCK_THREAD_CPUTIME_ID);
    b->wall[0] = scruple_wall();
}

__attribute__((noinline)) void scruple_stop(scruple_batch *b)
{
    b->wall[1] = scruple_wall();
    b->cpu[1] = scruple_clock(CLOCK_THREAD_CPUTIME_ID);
    if (b->team) b->waited[1] = scruple_waited_so_far();
    else if (scruple_heap) scruple_heap(scruple_heap_at[1]);
}

static void scruple_turn(void *argument)
{
    struct scruple_worker *w = (struct scruple_worker *)argument;
    w->loop(&w->batch);
}

static void *scruple_work(void *argument)
{
    struct scruple_worker *w = (struct scruple_worker *)argument;
    struct scruple_team *team = w->batch.team;
    w->failed = !scruple_guarded(scruple_turn, w, w->why);
    if (!w->batch.wall[0]) __atomic_add_fetch(&team->ready, 1, __ATOMIC_ACQ_REL);
    pthread_mutex_lock(&team->lock);
    team->done++;
    pthread_cond_signal(&team->ended);
    pthread_mutex_unlock(&team->lock);
    return NULL;
}

static struct scruple_worker *scruple_hire(unsigned size)
{
    struct scruple_worker *workers = (struct scruple_worker *)scruple_memory(size * sizeof *workers);
    struct scruple_team *team = (struct scruple_team *)scruple_memory(sizeof *team);
    unsigned i;
    team->size = size;
    pthread_mutex_init(&team->lock, NULL);
    pthread_cond_init(&team->ended, NULL);
    for (i = 0; i < size; i++) workers[i].batch.team = team;
    return workers;
}

static void scruple_let_go(struct scruple_worker *workers)
{
    struct scruple_team *team = workers[0].batch.team;
    unsigned i;
    for (i = 0; i < team->size; i++) {
        free(workers[i].log);
        free(workers[i].stamps);
        free(workers[i].ends);
    }
    pthread_mutex_destroy(&team->lock);
    pthread_cond_destroy(&team->ended);
    free(team);
    free(workers);
}

static uint64_t scruple_moved(const struct scruple_worker *workers, unsigned from, unsigned to)
{
    uint64_t sum = 0;
    for (; from < to; from++) sum += __atomic_load_n(&workers[from].moved, __ATOMIC_RELAXED);
    return sum;
}

/* What to do when the team makes no progress. */
struct scruple_watch {
    uint64_t stall; /* How long it may last, in nanoseconds, until `tell` is called, and called again. */
    void (*tell)(void *context, uint64_t since);
    void *context;
};

/* Waits for the team. */
static void scruple_await(struct scruple_worker *workers, const struct scruple_watch *watch)
{
    struct scruple_team *team = workers[0].batch.team;
    uint64_t since = scruple_wall(), told = since, last = 0;
    pthread_mutex_lock(&team->lock);
    while (team->done < team->size) {
        struct timespec until;
        uint64_t moved, now;
        if (!watch) {
            pthread_cond_wait(&team->ended, &team->lock);
            continue;
        }
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 50000000;
        if (until.tv_nsec >= 1000000000) {
            until.tv_nsec -= 1000000000;
            until.tv_sec++;
        }
        pthread_cond_timedwait(&team->ended, &team->lock, &until);
        moved = scruple_moved(workers, 0, team->size) + team->done;
        now = scruple_wall();
        if (moved != last) {
            last = moved;
            since = told = now;
        } else if (now - told > watch->stall && team->done < team->size) {
            told = now;
            watch->tell(watch->context, since);
        }
    }
    pthread_mutex_unlock(&team->lock);
}

/* Starts the workers' threads, releases them together, and waits. */
static void scruple_run_team(struct scruple_worker *workers, const struct scruple_watch *watch)
{
    struct scruple_team *team = workers[0].batch.team;
    unsigned i;
    for (i = 0; i < team->size; i++)
        if (pthread_create(&workers[i].thread, NULL, scruple_work, &workers[i])) {
            fprintf(stderr, "scruple: cannot start thread %u of %u\n", i + 1, team->size);
            exit(1);
        }
    while (__atomic_load_n(&team->ready, __ATOMIC_ACQUIRE) < team->size) sched_yield();
    if (scruple_heap) scruple_heap(scruple_heap_at[0]);
    __atomic_store_n(&team->go, 1, __ATOMIC_RELEASE);
    scruple_await(workers, watch);
    if (scruple_heap) scruple_heap(scruple_heap_at[1]);
    for (i = 0; i < team->size; i++) pthread_join(workers[i].thread, NULL);
}

/* ---- Concurrency cases ---- */

struct scruple_flow {
    const scruple_queue *operations;
    void *queue;
    unsigned producers_left;
    char padding[64];
    int over;
    char more_padding[64];
};

#define SCRUPLE_SEQUENCE_BITS 40

/* Waits: spins a few times, then yields. */
static inline void scruple_wait(unsigned *turns)
{
    if (++*turns > 100) sched_yield();
}

static inline void scruple_moved_one(struct scruple_worker *w, uint64_t moved)
{
    __atomic_store_n(&w->moved, moved, __ATOMIC_RELAXED);
}

static inline void scruple_produce(scruple_batch *b, int stamped)
{
    struct scruple_worker *w = (struct scruple_worker *)b->context;
    const scruple_queue *q = w->flow->operations;
    void *queue = w->flow->queue;
    const uint64_t first = (uint64_t)w->who << SCRUPLE_SEQUENCE_BITS, n = b->iterations;
    uint64_t i;
    scruple_start(b);
    for (i = 0; i < n; i++) {
        unsigned turns = 0;
        if (stamped) w->stamps[i] = scruple_wall();
        while (!q->put(queue, first | i)) scruple_wait(&turns);
        scruple_moved_one(w, i + 1);
    }
    scruple_stop(b);
    if (__atomic_sub_fetch(&w->flow->producers_left, 1, __ATOMIC_ACQ_REL) == 0) {
        __atomic_store_n(&w->flow->over, 1, __ATOMIC_RELEASE);
        if (q->close) q->close(queue);
    }
}

static inline void scruple_consume(scruple_batch *b, int stamped)
{
    struct scruple_worker *w = (struct scruple_worker *)b->context;
    const scruple_queue *q = w->flow->operations;
    void *queue = w->flow->queue;
    uint64_t got = 0, element, start = 0;
    unsigned turns = 0;
    scruple_start(b);
    for (;;) {
        /* `over` is read before the attempt, because a queue that is empty after the end stays empty. */
        const int over = __atomic_load_n(&w->flow->over, __ATOMIC_ACQUIRE);
        if (stamped) start = scruple_wall();
        if (q->get(queue, &element)) {
            if (got < w->room) {
                w->log[got] = element;
                if (stamped) {
                    w->stamps[got] = start;
                    w->ends[got] = scruple_wall();
                }
            }
            scruple_moved_one(w, ++got);
            turns = 0;
        } else if (over)
            break;
        else
            scruple_wait(&turns);
    }
    scruple_stop(b);
}

static void scruple_produce_plain(scruple_batch *b) { scruple_produce(b, 0); }
static void scruple_produce_stamped(scruple_batch *b) { scruple_produce(b, 1); }
static void scruple_consume_plain(scruple_batch *b) { scruple_consume(b, 0); }
static void scruple_consume_stamped(scruple_batch *b) { scruple_consume(b, 1); }

/* The tare of both roles: elements are made up and kept or recorded, without a queue. */
static void scruple_pretend(scruple_batch *b)
{
    struct scruple_worker *w = (struct scruple_worker *)b->context;
    const uint64_t first = (uint64_t)w->who << SCRUPLE_SEQUENCE_BITS, n = b->iterations;
    uint64_t i;
    scruple_start(b);
    for (i = 0; i < n; i++) {
        uint64_t element = first | i;
        SCRUPLE_OPAQUE(element);
        if (w->log) w->log[i] = element;
        scruple_moved_one(w, i + 1);
    }
    scruple_stop(b);
}

struct scruple_ledger {
    uint64_t put, got, lost, duplicated, invented, order_broken;
    double balance[2], parallelism;
};

/* The share of member i when n elements are divided evenly. */
static uint64_t scruple_share(uint64_t n, unsigned members, unsigned i) { return n / members + (i < n % members); }

static double scruple_jain(const struct scruple_worker *workers, unsigned from, unsigned to)
{
    double sum = 0, squares = 0;
    unsigned i;
    for (i = from; i < to; i++) {
        sum += (double)workers[i].moved;
        squares += (double)workers[i].moved * (double)workers[i].moved;
    }
    return squares > 0 ? sum * sum / ((to - from) * squares) : 1;
}

static struct scruple_ledger scruple_cast(const struct scruple_case *c, const struct scruple_worker *workers)
{
    struct scruple_ledger l;
    const unsigned p = c->producers, all = p + c->consumers;
    unsigned char **seen = (unsigned char **)scruple_memory(p * sizeof *seen);
    uint64_t *last = (uint64_t *)scruple_memory(p * sizeof *last), i, distinct = 0;
    unsigned w;
    memset(&l, 0, sizeof l);
    for (w = 0; w < p; w++) {
        l.put += workers[w].moved;
        seen[w] = (unsigned char *)scruple_memory(workers[w].moved);
    }
    for (w = p; w < all; w++) {
        const uint64_t kept = workers[w].moved < workers[w].room ? workers[w].moved : workers[w].room;
        l.got += workers[w].moved;
        l.invented += workers[w].moved - kept; /* beyond the log's room only the number is known */
        memset(last, 0, p * sizeof *last);
        for (i = 0; i < kept; i++) {
            const uint64_t from = workers[w].log[i] >> SCRUPLE_SEQUENCE_BITS;
            const uint64_t sequence = workers[w].log[i] & ((UINT64_C(1) << SCRUPLE_SEQUENCE_BITS) - 1);
            if (from >= p || sequence >= workers[from].moved) {
                l.invented++;
                continue;
            }
            if (seen[from][sequence]) l.duplicated++;
            else distinct++;
            seen[from][sequence] = 1;
            if (sequence + 1 < last[from]) l.order_broken++;
            else last[from] = sequence + 1;
        }
    }
    l.lost = l.put - distinct;
    l.balance[0] = scruple_jain(workers, 0, p);
    l.balance[1] = scruple_jain(workers, p, all);
    for (w = 0; w < p; w++) free(seen[w]);
    free(seen);
    free(last);
    return l;
}

/* The times of one element: start of its put, start and end of its get. */
struct scruple_passage {
    uint64_t put, get, end, rank;
};

static int scruple_by_number(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static int scruple_by_put(const void *a, const void *b)
{
    return scruple_by_number(&((const struct scruple_passage *)a)->put, &((const struct scruple_passage *)b)->put);
}

/* A Fenwick tree: counts by rank, with sums over prefixes in O(log n). */
static void scruple_fenwick_add(uint64_t *tree, uint64_t n, uint64_t rank)
{
    for (; rank <= n; rank += rank & (~rank + 1)) tree[rank]++;
}

static uint64_t scruple_fenwick_sum(const uint64_t *tree, uint64_t rank)
{
    uint64_t sum = 0;
    for (; rank; rank -= rank & (~rank + 1)) sum += tree[rank];
    return sum;
}

/* Lateness: how many elements put later were got earlier (from the last put backwards). Age: how many put earlier were
 * got later (from the first put on). Elements put at the same instant are all queried before one of them is added. */
static void scruple_overtaking(const struct scruple_passage *p, uint64_t n, int late, uint64_t *figures)
{
    uint64_t *tree = (uint64_t *)scruple_memory((n + 1) * sizeof *tree);
    uint64_t i = 0, j, k, added = 0;
    while (i < n) {
        for (j = i; j < n && p[late ? n - 1 - j : j].put == p[late ? n - 1 - i : i].put; j++) {
            const uint64_t rank = p[late ? n - 1 - j : j].rank;
            figures[j] = late ? scruple_fenwick_sum(tree, rank - 1) : added - scruple_fenwick_sum(tree, rank);
        }
        for (k = i; k < j; k++) scruple_fenwick_add(tree, n, p[late ? n - 1 - k : k].rank);
        added += j - i;
        i = j;
    }
    qsort(figures, n, sizeof *figures, scruple_by_number);
    free(tree);
}

static uint64_t scruple_percentile(const uint64_t *sorted, uint64_t n, unsigned percent)
{
    return n ? sorted[(n * percent + 99) / 100 - 1] : 0;
}

static void scruple_spread(const char *key, const uint64_t *sorted, uint64_t n)
{
    double sum = 0;
    uint64_t i, above = 0;
    for (i = 0; i < n; i++) {
        sum += (double)sorted[i];
        above += sorted[i] > 0;
    }
    if (!n) return;
    if (!strcmp(key, "late")) scruple_put(&scruple_reply, ",\"queue.late.share\":%.9g", (double)above / (double)n);
    scruple_put(&scruple_reply, ",\"queue.%s.mean\":%.9g,\"queue.%s.p99\":%llu,\"queue.%s.max\":%llu", key,
                sum / (double)n, key, (unsigned long long)scruple_percentile(sorted, n, 99), key,
                (unsigned long long)sorted[n - 1]);
}

static void scruple_fairness(const struct scruple_case *c, const struct scruple_worker *workers)
{
    const unsigned all = c->producers + c->consumers;
    uint64_t n = 0, i, j, *figures;
    struct scruple_passage *passages;
    unsigned w;
    for (w = c->producers; w < all; w++) n += workers[w].moved < workers[w].room ? workers[w].moved : workers[w].room;
    passages = (struct scruple_passage *)scruple_memory(n * sizeof *passages);
    figures = (uint64_t *)scruple_memory(n * sizeof *figures);
    for (w = c->producers, j = 0; w < all; w++)
        for (i = 0; i < workers[w].moved && i < workers[w].room; i++) {
            const uint64_t from = workers[w].log[i] >> SCRUPLE_SEQUENCE_BITS;
            const uint64_t sequence = workers[w].log[i] & ((UINT64_C(1) << SCRUPLE_SEQUENCE_BITS) - 1);
            if (from >= c->producers || sequence >= workers[from].moved) continue;
            passages[j].put = workers[from].stamps[sequence];
            passages[j].get = workers[w].stamps[i];
            passages[j].end = workers[w].ends[i];
            figures[j] = passages[j].get;
            j++;
        }
    n = j;
    qsort(figures, n, sizeof *figures, scruple_by_number);
    for (i = 0; i < n; i++) { /* the rank of the first of equals, from 1 */
        uint64_t low = 0, high = n;
        while (low < high) {
            const uint64_t middle = low + (high - low) / 2;
            if (figures[middle] < passages[i].get) low = middle + 1;
            else high = middle;
        }
        passages[i].rank = low + 1;
    }
    qsort(passages, n, sizeof *passages, scruple_by_put);
    scruple_overtaking(passages, n, 1, figures);
    scruple_spread("late", figures, n);
    scruple_overtaking(passages, n, 0, figures);
    scruple_spread("age", figures, n);
    for (i = 0; i < n; i++) figures[i] = passages[i].end - passages[i].put;
    qsort(figures, n, sizeof *figures, scruple_by_number);
    if (n)
        scruple_put(&scruple_reply, ",\"queue.sojourn.p50\":%llu,\"queue.sojourn.p99\":%llu,\"queue.sojourn.max\":%llu",
                    (unsigned long long)scruple_percentile(figures, n, 50),
                    (unsigned long long)scruple_percentile(figures, n, 99), (unsigned long long)figures[n - 1]);
    free(passages);
    free(figures);
}

static void scruple_put_ledger(const struct scruple_ledger *l)
{
    scruple_put(&scruple_reply,
                ",\"queue.put\":%llu,\"queue.got\":%llu,\"queue.lost\":%llu,\"queue.duplicated\":%llu,"
                "\"queue.invented\":%llu,\"queue.order_broken\":%llu,\"queue.balance.producers\":%.6g,"
                "\"queue.balance.consumers\":%.6g,\"queue.parallelism\":%.6g",
                (unsigned long long)l->put, (unsigned long long)l->got, (unsigned long long)l->lost,
                (unsigned long long)l->duplicated, (unsigned long long)l->invented,
                (unsigned long long)l->order_broken, l->balance[0], l->balance[1], l->parallelism);
}

static const char scruple_queue_readings[] =
    ",\"readings\":["
#define SCRUPLE_READING(key, unit) \
    "{\"key\":\"queue." key "\",\"unit\":\"" unit "\",\"quality\":\"exact\",\"per\":\"batch\"}"
    SCRUPLE_READING("put", "count") "," SCRUPLE_READING("got", "count") ","
    SCRUPLE_READING("lost", "count") "," SCRUPLE_READING("duplicated", "count") ","
    SCRUPLE_READING("invented", "count") "," SCRUPLE_READING("order_broken", "count") ","
    SCRUPLE_READING("balance.producers", "ratio") "," SCRUPLE_READING("balance.consumers", "ratio") ","
    SCRUPLE_READING("parallelism", "ratio") "," SCRUPLE_READING("late.share", "ratio") ","
    SCRUPLE_READING("late.mean", "count") "," SCRUPLE_READING("late.p99", "count") ","
    SCRUPLE_READING("late.max", "count") "," SCRUPLE_READING("age.mean", "count") ","
    SCRUPLE_READING("age.p99", "count") "," SCRUPLE_READING("age.max", "count") ","
    SCRUPLE_READING("sojourn.p50", "ns") "," SCRUPLE_READING("sojourn.p99", "ns") ","
    SCRUPLE_READING("sojourn.max", "ns") "]";

/* ---- Running batches ---- */

#ifdef __cplusplus
#define SCRUPLE_HOOKS(c) static_cast<scruple::hooks *>((c)->hooks)
#endif

static void *scruple_make_one(scruple_case *c)
{
#ifdef __cplusplus
    if (c->hooks) return SCRUPLE_HOOKS(c)->make();
#endif
    return c->make(c);
}

static void scruple_destroy_one(scruple_case *c, void *input)
{
#ifdef __cplusplus
    if (c->hooks) {
        SCRUPLE_HOOKS(c)->destroy(input);
        return;
    }
#endif
    if (c->destroy) c->destroy(input);
}

static void scruple_do_setup(void *argument)
{
    scruple_case *c = (scruple_case *)argument;
    if (c->setup) c->input = c->setup(c);
    c->ready = 1;
}

static void scruple_do_teardown(void *argument)
{
    scruple_case *c = (scruple_case *)argument;
    c->ready = 0;
    if (c->teardown) c->teardown(c->input);
#ifdef __cplusplus
    if (c->hooks && !c->each) scruple_destroy_one(c, c->input);
#endif
}

struct scruple_asked {
    scruple_case *c;
    uint64_t id, iterations;
    unsigned threads;
    char kind;
    scruple_batch *batch;
};

static void scruple_do_inputs(void *argument)
{
    struct scruple_asked *a = (struct scruple_asked *)argument;
    uint64_t i;
    for (i = 0; i < a->batch->iterations; i++) a->batch->inputs[i] = scruple_make_one(a->c);
}

static void scruple_do_destroy(void *argument)
{
    struct scruple_asked *a = (struct scruple_asked *)argument;
    uint64_t i;
    for (i = 0; i < a->batch->iterations; i++)
        if (a->batch->inputs[i]) scruple_destroy_one(a->c, a->batch->inputs[i]);
    free(a->batch->inputs);
    a->batch->inputs = NULL;
}

/* Makes the inputs of a batch. */
static int scruple_furnish(struct scruple_asked *a, scruple_batch *b, char *why)
{
    b->iterations = a->iterations;
    b->context = a->c->context;
    b->throughput = a->c->loose;
    b->input = a->c->input;
    a->batch = b;
    if (!a->c->each) return 1;
    b->inputs = (void **)scruple_memory(b->iterations * sizeof *b->inputs);
    return scruple_guarded(scruple_do_inputs, a, why);
}

/* The preload library's figures, and the index of each in its totals. The peak is last. */
static const struct {
    const char *key, *unit;
} scruple_counters[] = {{"count", "count"}, {"bytes", "bytes"}, {"frees", "count"}, {"freed_bytes", "bytes"}};

static int scruple_kept(int total) { return scruple_heap && scruple_heap_at[1][total] != UINT64_MAX; }

static void scruple_put_counters(void)
{
    const uint64_t *old = scruple_heap_at[0], *now = scruple_heap_at[1];
    int i;
    for (i = 0; i < 4; i++)
        if (scruple_kept(i))
            scruple_put(&scruple_reply, ",\"malloc.%s\":%llu", scruple_counters[i].key,
                        (unsigned long long)(now[i] - old[i]));
    if (scruple_kept(5) && now[5] > old[5] && now[5] > old[4])
        scruple_put(&scruple_reply, ",\"malloc.peak\":%llu", (unsigned long long)(now[5] - old[4]));
}

static void scruple_announce_counters(void)
{
    const char *between = "";
    int i;
    if (scruple_heap) scruple_heap(scruple_heap_at[1]);
    for (i = 0; i < 4; i++)
        if (scruple_kept(i)) {
            scruple_put(&scruple_reply, "%s{\"key\":\"malloc.%s\",\"unit\":\"%s\",\"quality\":\"exact\"}", between,
                        scruple_counters[i].key, scruple_counters[i].unit);
            between = ",";
        }
    if (scruple_kept(5))
        scruple_put(&scruple_reply, "%s{\"key\":\"malloc.peak\",\"unit\":\"bytes\",\"quality\":\"exact\",\"per\":\"batch\"}",
                    between);
}

/* The kernel's number of this thread, which is the last part of a link; 0 if the kernel does not tell. */
static unsigned long scruple_own_thread(void)
{
    char link[64];
    const ssize_t length = readlink("/proc/thread-self", link, sizeof link - 1);
    const char *last;
    if (length <= 0) return 0;
    link[length] = 0;
    last = strrchr(link, '/');
    return last ? strtoul(last + 1, NULL, 10) : 0;
}

static void scruple_put_times(uint64_t iterations, uint64_t wall, uint64_t cpu)
{
    scruple_put(&scruple_reply, "\"iterations\":%llu,\"time.wall\":%llu,\"time.cpu\":%llu",
                (unsigned long long)iterations, (unsigned long long)wall, (unsigned long long)cpu);
}

/* Writes the beginning of an entry, with a team's times: from the first start to the last end. */
static void scruple_put_whole(const struct scruple_asked *a, const struct scruple_worker *w, unsigned size,
                              uint64_t iterations, struct scruple_ledger *ledger)
{
    const unsigned long own_thread = size > 1 ? 0 : scruple_own_thread();
    uint64_t start = UINT64_MAX, end = 0, cpu = 0;
    unsigned i;
    for (i = 0; i < size; i++) {
        if (w[i].batch.wall[0] < start) start = w[i].batch.wall[0];
        if (w[i].batch.wall[1] > end) end = w[i].batch.wall[1];
        cpu += w[i].batch.cpu[1] - w[i].batch.cpu[0];
    }
    scruple_put(&scruple_reply, "{\"id\":%llu,\"kind\":\"%c\",", (unsigned long long)a->id, a->kind);
    scruple_put_times(iterations, end - start, cpu);
    scruple_put_counters();
    if (ledger) {
        ledger->parallelism = end > start ? (double)cpu / (double)(end - start) : 0;
        scruple_put_ledger(ledger);
    }
    if (size > 1) {
        for (i = 0; i < size; i++) {
            scruple_put(&scruple_reply, i ? ",{" : ",\"threads\":[{");
            if (a->c->queue)
                scruple_put(&scruple_reply, "\"role\":\"%s\",", i < a->c->producers ? "producer" : "consumer");
            scruple_put_times(a->c->queue ? w[i].moved : w[i].batch.iterations, w[i].batch.wall[1] - w[i].batch.wall[0],
                              w[i].batch.cpu[1] - w[i].batch.cpu[0]);
            /* The threads of a queue also wait for each other. */
            if (!a->c->queue && w[i].batch.waited[0] != UINT64_MAX && w[i].batch.waited[1] != UINT64_MAX)
                scruple_put(&scruple_reply, ",\"waited\":%llu",
                            (unsigned long long)(w[i].batch.waited[1] - w[i].batch.waited[0]));
            scruple_put(&scruple_reply, "}");
        }
        scruple_put(&scruple_reply, "]");
    } else if (own_thread) {
        scruple_put(&scruple_reply, ",\"thread\":%lu", own_thread);
    }
    scruple_put(&scruple_reply, "}");
}

static const char *scruple_first_failure(const struct scruple_worker *workers, unsigned size)
{
    unsigned i;
    for (i = 0; i < size; i++)
        if (workers[i].failed) return workers[i].why;
    return NULL;
}

struct scruple_stalled {
    const struct scruple_asked *asked;
    const struct scruple_worker *workers;
};

/* Tells the host that no element moves, so that it can see what the threads do. A thread that has failed is the reason;
 * the others cannot be ended, so the program ends. */
static void scruple_tell_stall(void *context, uint64_t since)
{
    const struct scruple_stalled *s = (const struct scruple_stalled *)context;
    const unsigned p = s->asked->c->producers, all = p + s->asked->c->consumers;
    const char *failure = scruple_first_failure(s->workers, all);
    if (failure) {
        scruple_error("exception", (long long)s->asked->id, failure, ",\"fatal\":true");
        fflush(scruple_replies);
        _exit(1);
    }
    fprintf(scruple_replies, "{\"stalled\":%llu,\"seconds\":%.3f,\"put\":%llu,\"got\":%llu}\n",
            (unsigned long long)s->asked->id, (double)(scruple_wall() - since) / 1e9,
            (unsigned long long)scruple_moved(s->workers, 0, p),
            (unsigned long long)scruple_moved(s->workers, p, all));
    if (fflush(scruple_replies)) _exit(1);
}

/* Passes n elements through a new queue. Returns 1 with a ledger; 0 after an error reply. */
static int scruple_pass(const struct scruple_asked *a, uint64_t n, int stamped, struct scruple_worker **out,
                        struct scruple_ledger *ledger)
{
    const scruple_case *c = a->c;
    const unsigned p = c->producers, all = p + c->consumers;
    struct scruple_worker *workers = scruple_hire(all);
    struct scruple_flow *flow = (struct scruple_flow *)scruple_memory(sizeof *flow);
    const struct scruple_stalled stalled = {a, workers};
    const struct scruple_watch watch = {c->stall, scruple_tell_stall, (void *)&stalled};
    const char *failure;
    unsigned i;
    flow->operations = c->queue;
    flow->queue = a->kind == 'c' && c->queue->create ? c->queue->create(c->capacity) : NULL;
    flow->producers_left = p;
    for (i = 0; i < all; i++) {
        struct scruple_worker *w = &workers[i];
        const int consumes = i >= p;
        w->flow = flow;
        w->who = consumes ? i - p : i;
        w->batch.context = w;
        w->batch.iterations = consumes ? scruple_share(n, c->consumers, i - p) : scruple_share(n, p, i);
        w->room = consumes ? n : w->batch.iterations;
        if (consumes) w->log = (uint64_t *)memset(scruple_memory(n * 8), 1, n * 8);
        if (stamped) w->stamps = (uint64_t *)memset(scruple_memory(w->room * 8), 1, w->room * 8);
        if (stamped && consumes) w->ends = (uint64_t *)memset(scruple_memory(n * 8), 1, n * 8);
        if (a->kind == 't') w->loop = scruple_pretend;
        else if (consumes) w->loop = stamped ? scruple_consume_stamped : scruple_consume_plain;
        else w->loop = stamped ? scruple_produce_stamped : scruple_produce_plain;
    }
    scruple_run_team(workers, &watch);
    failure = scruple_first_failure(workers, all);
    if (flow->queue && c->queue->destroy) c->queue->destroy(flow->queue);
    free(flow);
    if (failure) {
        scruple_error("exception", (long long)a->id, failure, "");
        scruple_let_go(workers);
        return 0;
    }
    if (a->kind == 'c') *ledger = scruple_cast(c, workers);
    *out = workers;
    return 1;
}

/* Writes the reason why the figures are invalid, or an empty text if they are valid. */
static void scruple_verdict(const struct scruple_ledger *l, char *why)
{
    why[0] = 0;
    if (l->lost || l->duplicated || l->invented)
        snprintf(why, SCRUPLE_WHY, "%llu lost, %llu duplicated, %llu invented of %llu elements",
                 (unsigned long long)l->lost, (unsigned long long)l->duplicated, (unsigned long long)l->invented,
                 (unsigned long long)l->put);
}

static int scruple_run_queue(const struct scruple_asked *a)
{
    struct scruple_worker *workers;
    struct scruple_ledger ledger;
    const size_t before = scruple_reply.length;
    char why[SCRUPLE_WHY] = "";
    if (!scruple_pass(a, a->iterations, 0, &workers, &ledger)) return 0;
    scruple_put_whole(a, workers, a->c->producers + a->c->consumers, a->iterations, a->kind == 'c' ? &ledger : NULL);
    scruple_let_go(workers);
    if (a->kind == 'c') scruple_verdict(&ledger, why);
    if (why[0]) {
        struct scruple_text batch = {NULL, 0, 0};
        scruple_put(&batch, ",\"batch\":%s", scruple_reply.at + before);
        scruple_error("ledger", (long long)a->id, why, batch.at);
        free(batch.at);
    }
    return !why[0];
}

/* Runs one batch and appends its entry. Returns 0 after an error reply. */
static int scruple_run(struct scruple_asked *a)
{
    struct scruple_worker *workers;
    char why[SCRUPLE_WHY] = "", late[SCRUPLE_WHY];
    unsigned i, furnished = 0;
    int fine = 1;
    scruple_current = a->c;
    if (a->c->queue) return scruple_run_queue(a);
    workers = scruple_hire(a->threads);
    for (; furnished < a->threads && fine; furnished++) {
        struct scruple_worker *w = &workers[furnished];
        fine = scruple_furnish(a, &w->batch, why);
        w->loop = a->kind == 'c' ? a->c->loop : a->c->tare;
    }
    if (fine && a->threads == 1) {
        struct scruple_team *team = workers[0].batch.team;
        workers[0].batch.team = NULL;
        fine = scruple_guarded(scruple_turn, &workers[0], why);
        workers[0].batch.team = team;
    } else if (fine) {
        const char *failure;
        scruple_run_team(workers, NULL);
        failure = scruple_first_failure(workers, a->threads);
        if (failure) snprintf(why, sizeof why, "%s", failure);
        fine = !failure;
    }
    if (fine) scruple_put_whole(a, workers, a->threads, a->iterations * a->threads, NULL);
    for (i = 0; i < furnished; i++)
        if (workers[i].batch.inputs) {
            a->batch = &workers[i].batch;
            scruple_guarded(scruple_do_destroy, a, late);
        }
    scruple_let_go(workers);
    if (!fine) scruple_error("exception", (long long)a->id, why, "");
    return fine;
}

/* ---- Requests ---- */

/* Reads digits up to the end or a colon. Returns 0 at any other character, or if there are too many digits. */
static int scruple_whole(const char **at, uint64_t *value)
{
    int digits = 0;
    *value = 0;
    for (; **at >= '0' && **at <= '9' && digits < 17; ++*at, digits++) *value = *value * 10 + (uint64_t)(**at - '0');
    return digits > 0 && *value <= SCRUPLE_MOST && (**at == 0 || **at == ':');
}

static void scruple_refuse(const char *kind, long long id, const char *text, const char *word)
{
    struct scruple_text whole = {NULL, 0, 0};
    scruple_put(&whole, "%s: %s", text, word);
    scruple_error(kind, id, whole.at, "");
    free(whole.at);
}

static int scruple_parse(const char *word, struct scruple_asked *a)
{
    const char *at = word;
    uint64_t threads = 1;
    int fine = scruple_whole(&at, &a->id) && *at++ == ':' && (*at == 'c' || *at == 't');
    if (fine) a->kind = *at++;
    fine = fine && *at++ == ':' && scruple_whole(&at, &a->iterations);
    if (fine && *at == ':') fine = ++at && scruple_whole(&at, &threads);
    if (!fine || *at) {
        scruple_refuse("request", -1, "not ID:KIND:ITERATIONS[:THREADS]", word);
        return 0;
    }
    if (a->id >= scruple_count) {
        scruple_refuse("unknown-case", (long long)a->id, "there is no case of this id", word);
        return 0;
    }
    a->c = scruple_cases[a->id];
    a->threads = (unsigned)threads;
    if (a->iterations < 1 || threads < 1 || threads > 4096) {
        scruple_refuse("request", (long long)a->id, "iterations and threads begin at 1, threads end at 4096", word);
        return 0;
    }
    if (a->c->max_iterations && a->iterations > a->c->max_iterations) {
        scruple_refuse("request", (long long)a->id, "more iterations than the case's max_iterations", word);
        return 0;
    }
    if (a->c->queue && threads != 1 && threads != (uint64_t)a->c->producers + a->c->consumers) {
        scruple_refuse("request", (long long)a->id, "a concurrency case has its own number of threads", word);
        return 0;
    }
    return 1;
}

static int scruple_prepare(scruple_case *c, uint64_t id)
{
    char why[SCRUPLE_WHY];
    scruple_current = c;
    if (c->ready || scruple_guarded(scruple_do_setup, c, why)) return 1;
    scruple_error("exception", (long long)id, why, "");
    return 0;
}

static void scruple_block(char *words)
{
    struct scruple_asked *asked = NULL;
    size_t n = 0, room = 0, i;
    uint64_t lost = 0;
    int fine = 1;
    while (words && fine) {
        char *space = strchr(words, ' ');
        if (space) *space++ = 0;
        if (n == room) {
            room = room ? 2 * room : 16;
            asked = (struct scruple_asked *)realloc(asked, room * sizeof *asked);
            if (!asked) exit(1);
        }
        memset(&asked[n], 0, sizeof asked[n]);
        fine = scruple_parse(words, &asked[n++]);
        words = space;
    }
    for (i = 0; i < n && fine; i++) fine = scruple_prepare(asked[i].c, asked[i].id);
    scruple_put(&scruple_reply, "{\"block\":[");
    for (i = 0; i < n && fine; i++) {
        if (i) scruple_put(&scruple_reply, ",");
        fine = scruple_run(&asked[i]);
        lost += scruple_heap_at[1][7] - scruple_heap_at[0][7];
    }
    free(asked);
    if (fine) {
        scruple_put(&scruple_reply, "],\"lost\":%llu}", (unsigned long long)lost);
        scruple_say();
    }
    scruple_reply.length = 0;
}

struct scruple_once {
    scruple_case *c;
    int ok;
    char text[SCRUPLE_WHY];
    scruple_batch batch;
};

static void scruple_do_once(void *argument)
{
    struct scruple_once *o = (struct scruple_once *)argument;
    scruple_case *c = o->c;
    void *fresh = NULL;
    o->ok = 1;
    o->batch.iterations = 1;
    o->batch.context = c->context;
    o->batch.input = c->input;
    if (c->each) {
        fresh = scruple_make_one(c);
        o->batch.inputs = &fresh;
    }
#ifdef __cplusplus
    if (c->hooks) {
        void *input = c->each ? fresh : c->input;
        try {
            snprintf(o->text, sizeof o->text, "%s", SCRUPLE_HOOKS(c)->once(input).c_str());
        } catch (const std::exception &e) {
            if (!SCRUPLE_HOOKS(c)->checked || e.what()[0] == SCRUPLE_SKIPPED) throw;
            o->ok = 0;
            snprintf(o->text, sizeof o->text, "%s", e.what());
        }
        if (fresh) scruple_destroy_one(c, fresh);
        return;
    }
#endif
    c->loop(&o->batch);
    if (c->check) o->ok = c->check(fresh ? fresh : c->input, o->text, sizeof o->text);
    if (fresh) scruple_destroy_one(c, fresh);
}

static void scruple_once_queue(scruple_case *c, uint64_t id)
{
    struct scruple_asked a;
    struct scruple_worker *workers;
    struct scruple_ledger ledger;
    char why[SCRUPLE_WHY];
    memset(&a, 0, sizeof a);
    a.c = c;
    a.id = id;
    a.kind = 'c';
    if (!scruple_pass(&a, c->once_elements, 1, &workers, &ledger)) return;
    scruple_verdict(&ledger, why);
    scruple_put(&scruple_reply, "{\"once\":%llu,\"ok\":%s,\"checked\":true", (unsigned long long)id, why[0] ? "false" : "true");
    if (why[0]) {
        scruple_put(&scruple_reply, ",\"why\":");
        scruple_string(&scruple_reply, why);
    }
    scruple_fairness(c, workers);
    scruple_put(&scruple_reply, "}");
    scruple_say();
    scruple_let_go(workers);
}

static void scruple_run_once(scruple_case *c, uint64_t id)
{
    struct scruple_once o;
    int checked = c->check || c->queue;
    char why[SCRUPLE_WHY];
    if (!scruple_prepare(c, id)) return;
    if (c->queue) {
        scruple_once_queue(c, id);
        return;
    }
#ifdef __cplusplus
    if (c->hooks) checked = SCRUPLE_HOOKS(c)->checked;
#endif
    memset(&o, 0, sizeof o);
    o.c = c;
    if (!scruple_guarded(scruple_do_once, &o, why)) {
        scruple_error("exception", (long long)id, why, "");
        return;
    }
    scruple_put(&scruple_reply, "{\"once\":%llu,\"ok\":%s,\"checked\":%s", (unsigned long long)id,
                o.ok ? "true" : "false", checked ? "true" : "false");
    if (!o.ok || o.text[0]) {
        scruple_put(&scruple_reply, o.ok ? ",\"digest\":" : ",\"why\":");
        scruple_string(&scruple_reply, o.text[0] ? o.text : "the check said no");
    }
    scruple_put(&scruple_reply, "}");
    scruple_say();
}

static int scruple_dismiss(scruple_case *c, char *why)
{
    scruple_current = c;
    return !c->ready || scruple_guarded(scruple_do_teardown, c, why);
}

static void scruple_reset(scruple_case *c, uint64_t id)
{
    char why[SCRUPLE_WHY];
    if (!scruple_dismiss(c, why)) {
        scruple_error("exception", (long long)id, why, "");
        return;
    }
    if (!scruple_prepare(c, id)) return;
    scruple_put(&scruple_reply, "{\"reset\":%llu}", (unsigned long long)id);
    scruple_say();
}

static void scruple_hello(const char *version)
{
    uint64_t number;
    if (!version || !scruple_whole(&version, &number) || *version) {
        scruple_error("request", -1, "hello takes one version number", "");
        return;
    }
#ifdef __cplusplus
    scruple_put(&scruple_reply, "{\"scruple\":1,\"sdk\":\"scruple-c " SCRUPLE_VERSION "\",\"language\":\"c++\",\"runtime\":");
#else
    scruple_put(&scruple_reply, "{\"scruple\":1,\"sdk\":\"scruple-c " SCRUPLE_VERSION "\",\"language\":\"c\",\"runtime\":");
#endif
#ifdef __clang__
    scruple_string(&scruple_reply, "clang " __clang_version__);
#else
    scruple_string(&scruple_reply, "gcc " __VERSION__);
#endif
    scruple_put(&scruple_reply, ",\"clocks\":{\"time.wall\":{\"resolution\":1},\"time.cpu\":{\"resolution\":1,\"scope\":"
                                "\"thread\"}},\"features\":[\"threads\",\"queues\"],\"counters\":[");
    scruple_announce_counters();
    scruple_put(&scruple_reply, "]}");
    scruple_say();
}

static void scruple_put_part(const char *open, const struct scruple_text *part, const char *close)
{
    if (part->length) scruple_put(&scruple_reply, "%s%s%s", open, part->at, close);
}

static void scruple_list(void)
{
    size_t i;
    for (i = 0; i < scruple_count; i++) {
        const scruple_case *c = scruple_cases[i];
        int checked = c->check || c->queue;
#ifdef __cplusplus
        if (c->hooks) checked = SCRUPLE_HOOKS(c)->checked;
#endif
        scruple_put(&scruple_reply, "{\"case\":{\"id\":%llu,\"name\":", (unsigned long long)i);
        scruple_string(&scruple_reply, c->name);
        scruple_put_part(",\"group\":", &c->group, "");
        /* A loop over separate inputs has another tare. */
        if (c->each && c->shape.length) scruple_put(&scruple_reply, ",\"shape\":\"each %s", c->shape.at + 1);
        else scruple_put_part(",\"shape\":", &c->shape, "");
        scruple_put_part(",\"source\":", &c->source, "");
        scruple_put_part(",\"throughput\":", &c->throughput, "");
        if (c->queue == NULL) scruple_put(&scruple_reply, c->loose ? ",\"timing\":\"throughput\"" : ",\"timing\":\"latency\"");
        scruple_put_part(",\"params\":{", &c->params, "}");
        scruple_put_part(",\"threads\":[", &c->threads, "]");
        scruple_put_part(",\"budgets\":{", &c->budgets, "}");
        scruple_put_part(",\"tags\":[", &c->tags, "]");
        if (c->each) scruple_put(&scruple_reply, ",\"per_iteration_input\":true");
        if (c->max_iterations) scruple_put(&scruple_reply, ",\"max_iterations\":%llu", (unsigned long long)c->max_iterations);
        if (c->time_limit) scruple_put(&scruple_reply, ",\"time_limit\":%llu", (unsigned long long)c->time_limit);
        if (c->fresh) scruple_put(&scruple_reply, ",\"fresh\":true");
        if (checked) scruple_put(&scruple_reply, ",\"checked\":true");
        if (c->queue) {
            scruple_put(&scruple_reply, ",\"concurrency\":{\"producers\":%u,\"consumers\":%u", c->producers, c->consumers);
            if (c->capacity) scruple_put(&scruple_reply, ",\"capacity\":%llu", (unsigned long long)c->capacity);
            scruple_put(&scruple_reply, "}%s", scruple_queue_readings);
        }
        scruple_put(&scruple_reply, "}}");
        scruple_say();
    }
    scruple_put(&scruple_reply, "{\"end\":\"cases\",\"count\":%llu}", (unsigned long long)scruple_count);
    scruple_say();
}

/* Answers one request. Returns 0 after bye. */
static int scruple_answer(char *line)
{
    struct scruple_text asked = {NULL, 0, 0};
    char *rest = strchr(line, ' ');
    uint64_t id;
    int on = 1;
    scruple_put(&asked, "unknown request: %s", line);
    if (rest) *rest++ = 0;
    if (!strcmp(line, "hello")) scruple_hello(rest);
    else if (!strcmp(line, "cases") && !rest) scruple_list();
    else if (!strcmp(line, "block") && rest) scruple_block(rest);
    else if ((!strcmp(line, "once") || !strcmp(line, "reset")) && rest) {
        const char *at = rest;
        if (!scruple_whole(&at, &id) || *at) scruple_error("request", -1, "this request takes one case id", "");
        else if (id >= scruple_count) scruple_refuse("unknown-case", (long long)id, "there is no case of this id", rest);
        else if (line[0] == 'o') scruple_run_once(scruple_cases[id], id);
        else scruple_reset(scruple_cases[id], id);
    } else if (!strcmp(line, "bye") && !rest) {
        on = 0;
    } else
        scruple_error("request", -1, asked.at, "");
    free(asked.at);
    return on;
}

static int scruple_by_name(const void *a, const void *b)
{
    const scruple_case *x = *(scruple_case *const *)a, *y = *(scruple_case *const *)b;
    const int order = strcmp(x->name, y->name);
    return order ? order : strcmp(x->params.at ? x->params.at : "", y->params.at ? y->params.at : "");
}

static int scruple_end(const char *program, const char *text, const char *more)
{
    fprintf(stderr, "%s: %s%s\n", program, text, more);
    return 2;
}

static int scruple_by_hand(char **argv, int argc)
{
    struct scruple_text how = {NULL, 0, 0};
    int i, code;
    if (!getenv("SCRUPLE_BENCH_HAND")) {
        char **arguments = (char **)scruple_memory(((size_t)argc + 4) * sizeof *arguments);
        static char words[3][8] = {"scruple", "bench", "--"};
        for (i = 0; i < 3; i++) arguments[i] = words[i];
        for (i = 0; i < argc; i++) arguments[i + 3] = argv[i];
        setenv("SCRUPLE_BENCH_HAND", "1", 1);
        execvp(arguments[0], arguments);
        free(arguments);
    }
    for (i = 0; i < argc; i++) scruple_put(&how, " %s", argv[i]);
    code = scruple_end(argv[0], "this is a bench program; run it with: scruple bench --", how.at);
    free(how.at);
    return code;
}

/* Opens a path of the host. If it names a descriptor, the program's children must not inherit that. */
static FILE *scruple_open(const char *path, int flags, const char *mode)
{
    const int fd = open(path, flags | O_CLOEXEC);
    int inherited;
    if (sscanf(path, "/dev/fd/%d", &inherited) == 1) fcntl(inherited, F_SETFD, FD_CLOEXEC);
    return fd < 0 ? NULL : fdopen(fd, mode);
}

int scruple_main(int argc, char **argv)
{
    const char *in = getenv("SCRUPLE_BENCH_IN"), *out = getenv("SCRUPLE_BENCH_OUT"), *same = NULL;
    FILE *requests;
    char *line = NULL, why[SCRUPLE_WHY];
    size_t room = 0, i;
    ssize_t length;
    int on = 1;
    scruple_case **sorted = (scruple_case **)scruple_memory(scruple_count * sizeof *sorted);
    if (scruple_count) memcpy(sorted, scruple_cases, scruple_count * sizeof *sorted);
    qsort(sorted, scruple_count, sizeof *sorted, scruple_by_name);
    for (i = 1; i < scruple_count && !same; i++)
        if (!scruple_by_name(&sorted[i - 1], &sorted[i])) same = sorted[i]->name;
    free(sorted);
    if (same) return scruple_end(argv[0], "two cases have the same name and params: ", same);
    if (!in && !out) return scruple_by_hand(argv, argc);
    if (!in || !out) return scruple_end(argv[0], "only one of SCRUPLE_BENCH_IN and SCRUPLE_BENCH_OUT is set", "");
    if (!(requests = scruple_open(in, O_RDONLY, "r"))) return scruple_end(argv[0], "cannot open ", in);
    if (!(scruple_replies = scruple_open(out, O_WRONLY, "w"))) return scruple_end(argv[0], "cannot open ", out);
    scruple_find_heap();
    scruple_process = getpid();
    unsetenv("SCRUPLE_BENCH_IN");
    unsetenv("SCRUPLE_BENCH_OUT");
    while (on && (length = getline(&line, &room, requests)) > 0 && line[length - 1] == '\n') {
        line[length - 1] = 0;
        on = scruple_answer(line);
        fflush(scruple_replies);
    }
    for (i = 0; i < scruple_count; i++)
        if (!scruple_dismiss(scruple_cases[i], why)) scruple_end(scruple_cases[i]->name, "teardown: ", why);
    if (!on) {
        scruple_put(&scruple_reply, "{\"bye\":true}");
        scruple_say();
    }
    free(line);
    return fclose(scruple_replies) ? 1 : 0;
}

#ifdef __cplusplus
} /* extern "C" */

namespace scruple {
static void *hooked_setup(const scruple_case *c) { return SCRUPLE_HOOKS(c)->make(); }
static void no_destroy(void *) {}
hooks *attach(scruple_case *c, hooks *h, bool each)
{
    c->hooks = h;
    if (each) scruple_input(c, nullptr, no_destroy, 1000);
    else c->setup = hooked_setup;
    return h;
}
} /* namespace scruple */
#endif
#endif
#endif
