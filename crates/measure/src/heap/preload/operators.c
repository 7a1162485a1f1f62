/* C++'s operator new and delete. The operators of the C++ library call malloc and free, which count, so the hooks
 * only jump to them. The operators of an allocator (jemalloc, tcmalloc, mimalloc) do not call malloc, so the hooks
 * count them. */
#include "hooks.h"

#define RTLD_NEXT ((void *)-1L)
#define RTLD_LAZY 1
#define RTLD_NOLOAD 4

extern void *dlsym(void *, const char *) __attribute__((weak));
extern char *dlerror(void) __attribute__((weak));
extern int dladdr(const void *, struct place *) __attribute__((weak));
extern void *dlopen(const char *, int);
extern void *malloc(size_t);
extern void *aligned_alloc(size_t, size_t);
extern void free(void *);

/* A handle of the library that contains the address, so that it stays loaded; NULL if there is none. */
static void *hold(const void *address) {
    struct place place;
    return dladdr && dladdr(address, &place) && place.file ? dlopen(place.file, RTLD_LAZY | RTLD_NOLOAD) : NULL;
}

static void free_uncounted(void *block) {
    uint32_t key = stop_counting();
    free(block);
    resume_counting(key);
}

/* The function that the program would call without this library. If only a plugin has loaded the C++ library, the
 * lookup starts from the plugin. */
static void *find_next(const char *name, const void *caller) {
    uint32_t key = stop_counting();
    void *found = dlsym ? dlsym(RTLD_NEXT, name) : NULL;
    if (!found && dlsym) {
        if (dlerror) dlerror(); /* the program must not see this error */
        void *plugin = hold(caller);
        if (plugin) found = dlsym(plugin, name);
        if (found) hold(found);
    }
    resume_counting(key);
    return found;
}

/* Whether an operator is in the same library as malloc, so that it may reach malloc without the public name. */
static int is_separate(void *function) { return same_library(function, real_malloc()); }

/* Allocates for an operator if no C++ library is found. A failure cannot be thrown then. */
static void *without_library(size_t size, size_t alignment, int may_fail) {
    void *block = alignment ? aligned_alloc(alignment, size) : malloc(size ? size : 1);
    if (!block && !may_fail) __builtin_trap();
    return block;
}

/* Each operator jumps through a pointer. It first points to a function that chooses the target: the next operator,
 * if its calls pass a hook of malloc, else a function that counts and calls the next one. The choice is made by
 * trying one call, because even an allocator's operator may call a public entry point (jemalloc's aligned `new`
 * does). */
#define ENTRY(result, name, parameters, arguments)               \
    static result(*next_##name) parameters;                      \
    static COLD result first_##name parameters;                  \
    static result(*jump_##name) parameters = first_##name;       \
    EXPORT result name parameters { return jump_##name arguments; }

#define FIND_NEXT(name) (next_##name = (typeof(next_##name))find_next(#name, __builtin_return_address(0)))

#define NEW(name, parameters, arguments, changed, boundary, may_fail)                        \
    ENTRY(void *, name, parameters, arguments)                                               \
    static void *counted_##name parameters { return count_allocation(next_##name changed, size); } \
    static void *first_##name parameters {                                                   \
        if (!FIND_NEXT(name)) return without_library(size, boundary, may_fail);              \
        struct calls before = calls_so_far();                                                \
        void *block = next_##name arguments;                                                 \
        if (!block || !before.counting) return block;                                        \
        if (is_separate((void *)next_##name) && calls_so_far().allocations == before.allocations) { \
            jump_##name = counted_##name;                                                    \
            if (size_to_request(size) == size) return count_allocation(block, size);               \
            free_uncounted(block); /* it may be too small */                              \
            return counted_##name arguments;                                                 \
        }                                                                                    \
        jump_##name = next_##name;                                                           \
        return block;                                                                        \
    }

#define DELETE(name, parameters, arguments, changed)              \
    ENTRY(void, name, parameters, arguments)                      \
    static void counted_##name parameters {                       \
        size_t weight = block ? size_of_block(block) : 0;             \
        next_##name changed;                                      \
        if (block) count_free(weight);                            \
    }                                                             \
    static void first_##name parameters {                         \
        if (!block) return;                                       \
        if (!FIND_NEXT(name)) return free(block);                 \
        struct calls before = calls_so_far();                     \
        int separate = is_separate((void *)next_##name);          \
        size_t weight = separate ? size_of_block(block) : 0;          \
        if (separate) next_##name changed;                        \
        else next_##name arguments;                               \
        if (!before.counting) return;                             \
        separate = separate && calls_so_far().frees == before.frees; \
        jump_##name = separate ? counted_##name : next_##name;    \
        if (separate) count_free(weight);                         \
    }

#define ASKED size_to_request(size)
typedef const void *nothrow;

#define PLAIN (size_t size)
#define NOTHROW (size_t size, nothrow tag)
#define ALIGNED (size_t size, size_t alignment)
#define ALIGNED_NOTHROW (size_t size, size_t alignment, nothrow tag)

NEW(_Znwm, PLAIN, (size), (ASKED), 0, 0)
NEW(_Znam, PLAIN, (size), (ASKED), 0, 0)
NEW(_ZnwmRKSt9nothrow_t, NOTHROW, (size, tag), (ASKED, tag), 0, 1)
NEW(_ZnamRKSt9nothrow_t, NOTHROW, (size, tag), (ASKED, tag), 0, 1)
NEW(_ZnwmSt11align_val_t, ALIGNED, (size, alignment), (ASKED, alignment), alignment, 0)
NEW(_ZnamSt11align_val_t, ALIGNED, (size, alignment), (ASKED, alignment), alignment, 0)
NEW(_ZnwmSt11align_val_tRKSt9nothrow_t, ALIGNED_NOTHROW, (size, alignment, tag), (ASKED, alignment, tag), alignment, 1)
NEW(_ZnamSt11align_val_tRKSt9nothrow_t, ALIGNED_NOTHROW, (size, alignment, tag), (ASKED, alignment, tag), alignment, 1)

DELETE(_ZdlPv, (void *block), (block), (block))
DELETE(_ZdaPv, (void *block), (block), (block))
DELETE(_ZdlPvRKSt9nothrow_t, (void *block, nothrow tag), (block, tag), (block, tag))
DELETE(_ZdaPvRKSt9nothrow_t, (void *block, nothrow tag), (block, tag), (block, tag))
DELETE(_ZdlPvm, (void *block, size_t size), (block, size), (block, ASKED))
DELETE(_ZdaPvm, (void *block, size_t size), (block, size), (block, ASKED))
DELETE(_ZdlPvSt11align_val_t, (void *block, size_t alignment), (block, alignment), (block, alignment))
DELETE(_ZdaPvSt11align_val_t, (void *block, size_t alignment), (block, alignment), (block, alignment))
DELETE(_ZdlPvSt11align_val_tRKSt9nothrow_t, (void *block, size_t alignment, nothrow tag), (block, alignment, tag),
       (block, alignment, tag))
DELETE(_ZdaPvSt11align_val_tRKSt9nothrow_t, (void *block, size_t alignment, nothrow tag), (block, alignment, tag),
       (block, alignment, tag))
DELETE(_ZdlPvmSt11align_val_t, (void *block, size_t size, size_t alignment), (block, size, alignment),
       (block, ASKED, alignment))
DELETE(_ZdaPvmSt11align_val_t, (void *block, size_t size, size_t alignment), (block, size, alignment),
       (block, ASKED, alignment))
