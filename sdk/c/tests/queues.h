/* Queues for the conformance program: one is correct, one loses elements, two get stuck. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

struct ring {
    pthread_mutex_t lock;
    uint64_t *slots;
    size_t capacity, first, count, puts;
};

static void *ring_new(size_t capacity)
{
    struct ring *r = (struct ring *)calloc(1, sizeof *r);
    r->capacity = capacity;
    r->slots = (uint64_t *)calloc(capacity, sizeof *r->slots);
    pthread_mutex_init(&r->lock, NULL);
    return r;
}

static int ring_put(void *queue, uint64_t element)
{
    struct ring *r = (struct ring *)queue;
    int room;
    pthread_mutex_lock(&r->lock);
    room = r->count < r->capacity;
    if (room) r->slots[(r->first + r->count++) % r->capacity] = element;
    pthread_mutex_unlock(&r->lock);
    return room;
}

static int ring_put_most(void *queue, uint64_t element)
{
    struct ring *r = (struct ring *)queue;
    return __atomic_add_fetch(&r->puts, 1, __ATOMIC_RELAXED) % 100 == 0 || ring_put(queue, element);
}

static int ring_get(void *queue, uint64_t *element)
{
    struct ring *r = (struct ring *)queue;
    int some;
    pthread_mutex_lock(&r->lock);
    some = r->count > 0;
    if (some) {
        *element = r->slots[r->first];
        r->first = (r->first + 1) % r->capacity;
        r->count--;
    }
    pthread_mutex_unlock(&r->lock);
    return some;
}

static int get_idle(void *queue, uint64_t *element)
{
    (void)queue;
    (void)element;
    for (;;) pause();
    return 0;
}

static int get_busy(void *queue, uint64_t *element)
{
    (void)queue;
    for (;;) __asm__ volatile("" : : "r"(element) : "memory");
    return 0;
}

static void ring_free(void *queue)
{
    struct ring *r = (struct ring *)queue;
    pthread_mutex_destroy(&r->lock);
    free(r->slots);
    free(r);
}

/* The put of the queue that gets stuck without load: producers must not be busy either when it is full. */
static int ring_put_or_sleep(void *queue, uint64_t element)
{
    if (!ring_put(queue, element)) pause();
    return 1;
}

static const scruple_queue fifo = {ring_new, ring_put, ring_get, NULL, ring_free};
static const scruple_queue lossy = {ring_new, ring_put_most, ring_get, NULL, ring_free};
static const scruple_queue stuck_idle = {ring_new, ring_put_or_sleep, get_idle, NULL, ring_free};
static const scruple_queue stuck_busy = {ring_new, ring_put, get_busy, NULL, ring_free};
