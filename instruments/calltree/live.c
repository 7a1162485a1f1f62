/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Live blocks: which contexts they come from, now and at the peak, and their bytes over the course of the process. */
#include "calltree.h"

Bool find_sites;
Live live_total, live_peak, live_inherited;
ULong peak_at, reused_blocks, unseen_requests;

/* A block in use. */
typedef struct {
    Addr address; /* 0: this slot of the table is free */
    LiveBlocks *owner;
    ULong size;
} Block;

static Block *table;
static UWord slots, used;

/* The number of the latest peak. It rises with each event that reaches a new peak, or the same again; a context's figures
 * at the peak are saved when it is first changed afterwards. So an event costs the same however many contexts there are. */
static ULong peak_number = 1;

static inline UWord slot_of(Addr address) {
    return ((address >> 4) * 0x9e3779b97f4a7c15ull >> 32) & (slots - 1);
}

static inline UWord find(Addr address) {
    UWord at = slot_of(address);
    while (table[at].address && table[at].address != address) at = (at + 1) & (slots - 1);
    return at;
}

static void grow(void) {
    Block *old = table;
    UWord count = slots;
    slots = slots ? slots * 2 : 1 << 14;
    table = VG_(calloc)("calltree.blocks", slots, sizeof *table);
    for (UWord i = 0; i < count; i++)
        if (old[i].address) table[find(old[i].address)] = old[i];
    if (old) VG_(free)(old);
}

/* Frees a slot, and moves blocks that collided with it so that they are still found. */
static void clear(UWord hole) {
    used--;
    for (UWord at = (hole + 1) & (slots - 1); table[at].address; at = (at + 1) & (slots - 1)) {
        UWord distance = (at - slot_of(table[at].address)) & (slots - 1);
        if (distance >= ((at - hole) & (slots - 1))) {
            table[hole] = table[at];
            hole = at;
        }
    }
    table[hole].address = 0;
}

static void change(LiveBlocks *owner, Long blocks, Long bytes) {
    if (owner->settled != peak_number) {
        owner->at_peak = owner->live;
        owner->settled = peak_number;
    }
    owner->live.blocks += blocks;
    owner->live.bytes += bytes;
    live_total.blocks += blocks;
    live_total.bytes += bytes;
}

static void reach_peak(void) {
    if (live_total.bytes < live_peak.bytes) return;
    live_peak = live_total;
    peak_at = now.executed;
    peak_number++;
}

/* The course: the most live bytes in each of up to COURSE intervals of equally many instructions. Intervals double when
 * they would become too many. As each keeps its largest value, the peak is always among them. */
static CoursePoint course[COURSE];
static UInt course_used = 1;
static ULong interval = 1024;

static void course_starts(void) {
    interval = 1024;
    course_used = 1;
    course[0] = (CoursePoint){.at = 0, .bytes = live_total.bytes};
}

static void halve_course(void) {
    UInt count = (course_used + 1) / 2;
    for (UInt i = 0; i < count; i++) {
        CoursePoint one = course[2 * i];
        if (2 * i + 1 < course_used && course[2 * i + 1].bytes >= one.bytes) one = course[2 * i + 1];
        course[i] = one;
    }
    course_used = count;
    interval *= 2;
}

/* Begins the intervals up to the present one. They begin with the bytes that are live now, before the next change. */
static void course_goes_on(void) {
    while (now.executed / interval >= COURSE) halve_course();
    for (UInt last = now.executed / interval; course_used <= last; course_used++)
        course[course_used] = (CoursePoint){.at = course_used * interval, .bytes = live_total.bytes};
}

static void course_reaches(void) {
    CoursePoint *point = &course[course_used - 1];
    if (live_total.bytes >= point->bytes) *point = (CoursePoint){.at = now.executed, .bytes = live_total.bytes};
}

const CoursePoint *course_points(UInt *count) {
    course_goes_on();
    *count = course_used;
    return course;
}

static LiveBlocks *live_of(Context *context) {
    if (!context->live) context->live = take(sizeof *context->live);
    return context->live;
}

/* The blocks of a context that were live at the peak. */
Live live_at_peak(const Context *context) {
    return context->live->settled == peak_number ? context->live->at_peak : context->live->live;
}

void block_begins_to_end(Addr address, EndingBlock *ending) {
    UWord at = slots ? find(address) : 0;
    ending->owner = NULL;
    /* glibc frees the blocks in a thread's cache a second time when the thread ends. */
    if (!slots || !table[at].address) return;
    *ending = (EndingBlock){.address = address, .owner = table[at].owner, .size = table[at].size};
    clear(at);
}

void block_ended(const EndingBlock *ending) {
    if (!ending->owner) return;
    course_goes_on();
    change(ending->owner, -1, -(Long)ending->size);
}

static void insert(Addr address, LiveBlocks *owner, ULong size) {
    if (used * 4 >= slots * 3) grow();
    UWord at = find(address);
    if (table[at].address) {
        /* A function that is not known as an allocator's has freed it. */
        reused_blocks++;
        change(table[at].owner, -1, -(Long)table[at].size);
    } else {
        used++;
    }
    table[at] = (Block){.address = address, .owner = owner, .size = size};
}

void block_stays(const EndingBlock *ending) {
    if (ending->owner) insert(ending->address, ending->owner, ending->size);
}

void block_begins(Addr address, Context *context, ULong size, const EndingBlock *replaced) {
    LiveBlocks *owner = live_of(context);
    course_goes_on();
    if (replaced && replaced->owner) change(replaced->owner, -1, -(Long)replaced->size);
    insert(address, owner, size);
    change(owner, 1, size);
    reach_peak();
    course_reaches();
}

/* Counts anew from here. The present blocks stay: a forked process has those of its parent. */
void live_restarts(void) {
    live_inherited = live_peak = live_total;
    now.executed = peak_at = reused_blocks = unseen_requests = 0;
    peak_number++;
    course_starts();
}
