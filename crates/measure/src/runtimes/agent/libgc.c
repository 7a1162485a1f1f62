/* The Boehm-Demers-Weiser collector, which Guile and many other programs use. It reports its collections and
 * counts the allocated bytes. This file never takes the collector's lock, which another thread may hold when the
 * process ends. */
#include "agent.h"

/* The collector's structure of statistics. The collector's version determines how many fields it fills. */
struct profile {
    size_t heap, free, unmapped, since_gc, before_gc, non_gc, gcs, markers, reclaimed_since, reclaimed_before,
        free_since, from_system, more[8];
};
extern size_t GC_get_prof_stats_unsafe(struct profile *, size_t) WEAK;
extern void GC_set_on_collection_event(void (*)(int)) WEAK;
extern void (*GC_get_on_collection_event(void))(int) WEAK;
extern void GC_gcollect(void) WEAK;
extern void GC_set_free_space_divisor(size_t) WEAK;
extern void GC_enumerate_reachable_objects_inner(void (*)(void *, size_t, void *), void *) WEAK;

enum { EVENT_START = 0, EVENT_END = 5 };
enum value { ALLOCATED, GCS, TIME, LONGEST, LIVE, PEAK, REACHABLE };

static void (*user_handler)(int);
static uint64_t started, allocated_before, gcs_before;

static int profile(struct profile *profile) {
    for (size_t i = 0; i < sizeof *profile / sizeof(size_t); i++) ((size_t *)profile)[i] = 0;
    return GC_get_prof_stats_unsafe(profile, sizeof *profile) >= 7 * sizeof(size_t);
}

static void update(struct record *record, const struct profile *is) {
    record->value[ALLOCATED] = is->before_gc + is->since_gc - allocated_before;
    record->value[GCS] = is->gcs - gcs_before;
    if (is->heap > record->value[PEAK]) record->value[PEAK] = is->heap;
}

static void add_size(void *object, size_t size, void *total) {
    (void)object;
    *(uint64_t *)total += size;
}

/* Reads live data. It is called right after a collection, when all live objects are marked and the collector's
 * lock is held. */
static void look_at_live(struct record *record) {
    uint64_t total = 0;
    if (!full_collections() || !GC_enumerate_reachable_objects_inner) return;
    GC_enumerate_reachable_objects_inner(add_size, &total);
    if (total > record->value[REACHABLE]) record->value[REACHABLE] = total;
}

static void on_event(int event) {
    struct record *record = claim(LIBGC);
    struct profile heap;
    if (record && event == EVENT_START && profile(&heap)) {
        /* The bytes in use without those allocated since the last collection are the bytes that it left alive. */
        update(record, &heap);
        uint64_t used = heap.heap - heap.free;
        uint64_t live = used > heap.since_gc ? used - heap.since_gc : 0;
        if (live > record->value[LIVE]) record->value[LIVE] = live;
        started = now();
    } else if (record && event == EVENT_END && started) {
        uint64_t ended = now(), took = ended - started;
        note_pause(LIBGC, started, ended);
        started = 0;
        record->value[TIME] += took;
        if (took > record->value[LONGEST]) record->value[LONGEST] = took;
        look_at_live(record);
    }
    if (record && event == EVENT_START && full_collections() && GC_set_free_space_divisor) GC_set_free_space_divisor(20);
    if (user_handler) user_handler(event);
}

void start_libgc(void) {
    if (!GC_get_prof_stats_unsafe || !GC_set_on_collection_event) return;
    if (GC_get_on_collection_event) user_handler = GC_get_on_collection_event();
    GC_set_on_collection_event(on_event);
    follow_forks();
}

void fork_libgc(struct record *record) {
    struct profile heap;
    (void)record;
    if (!profile(&heap)) return;
    allocated_before = heap.before_gc + heap.since_gc;
    gcs_before = heap.gcs;
}

void finish_libgc(struct record *record) {
    struct profile heap;
    if (!profile(&heap)) return;
    /* A forked process that has collected nothing may lack the threads that mark for the collector. */
    int collects = record->value[GCS] || (heap.heap && !allocated_before);
    if (full_collections() && GC_gcollect && collects) {
        GC_gcollect();
        if (!profile(&heap)) return;
    }
    update(record, &heap);
    record->flags |= REPORTED;
}
