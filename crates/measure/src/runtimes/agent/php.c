/* PHP: when it asks for the folder of its settings, its memory manager is initialised and no request has begun.
 * The manager gets handlers that count and call the manager. They are removed when the request ends. */
#include "agent.h"

struct sapi {
    char *name, *pretty_name;
    int (*startup)(void *), (*shutdown)(void *), (*activate)(void), (*deactivate)(void);
};
/* The status of the cycle collector. Up to PHP 8.2 its first words are runs, collected, threshold and roots; later
 * versions begin with booleans. */
struct gc_status {
    uint32_t word[64];
};
extern struct sapi sapi_module WEAK;
extern void *zend_mm_get_heap(void) WEAK;
extern void zend_mm_set_custom_handlers(void *, void *(*)(size_t), void (*)(void *), void *(*)(void *, size_t)) WEAK;
extern void *_zend_mm_alloc(void *, size_t) WEAK, *_zend_mm_realloc(void *, void *, size_t) WEAK;
extern void _zend_mm_free(void *, void *) WEAK;
extern size_t zend_memory_peak_usage(int) WEAK;
extern void zend_gc_get_status(struct gc_status *) WEAK;

enum value { CALLS, BYTES, PEAK, GC_STATUS };

static void *heap;
static struct record *record;
static int (*real_activate)(void), (*real_deactivate)(void);
static uint32_t runs_before; /* of the cycle collector, in the parent of a forked child */

static void *count_alloc(size_t size) {
    record->value[CALLS]++;
    record->value[BYTES] += size;
    return _zend_mm_alloc(heap, size);
}
static void *count_realloc(void *at, size_t size) {
    if (!at) return count_alloc(size);
    return _zend_mm_realloc(heap, at, size);
}
static void pass_free(void *at) {
    if (at != heap) _zend_mm_free(heap, at);
}

/* PHP calls this as each request begins, and once before the first. */
static int activate(void) {
    if (own(PHP)) zend_mm_set_custom_handlers(heap, count_alloc, pass_free, count_realloc);
    return real_activate ? real_activate() : 0;
}

/* PHP calls this as each request ends, while the memory manager still works. */
static int deactivate(void) {
    int result = real_deactivate ? real_deactivate() : 0;
    struct record *mine = own(PHP);
    if (mine) {
        size_t peak = zend_memory_peak_usage(0);
        if (peak > mine->value[PEAK]) mine->value[PEAK] = peak;
        if (zend_gc_get_status && mine->value[PEAK]) {
            struct gc_status status = {{0}};
            zend_gc_get_status(&status);
            for (int i = 0; i < 4; i++) mine->value[GC_STATUS + i] = status.word[i];
            mine->value[GC_STATUS] -= runs_before;
        }
        mine->flags |= REPORTED;
    }
    zend_mm_set_custom_handlers(heap, NULL, NULL, NULL);
    return result;
}

void fork_php(struct record *forked) {
    struct gc_status status = {{0}};
    record = forked;
    if (!heap || !zend_gc_get_status) return;
    zend_gc_get_status(&status);
    runs_before = status.word[0];
}

const char *ask_php(const char *user) {
    (void)user;
    if (!&sapi_module || !zend_mm_get_heap || !zend_mm_set_custom_handlers || !_zend_mm_alloc) return NULL;
    if (!_zend_mm_free || !_zend_mm_realloc || !zend_memory_peak_usage) return NULL;
    record = claim(PHP);
    heap = zend_mm_get_heap();
    if (!record || !heap) return NULL;
    record->flags |= ASKED;
    zend_mm_set_custom_handlers(heap, count_alloc, pass_free, count_realloc);
    real_activate = sapi_module.activate;
    sapi_module.activate = activate;
    real_deactivate = sapi_module.deactivate;
    sapi_module.deactivate = deactivate;
    return NULL;
}
