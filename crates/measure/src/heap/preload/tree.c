#include "tree.h"

static struct member *mine;

static int claim_member(struct member *member, int from, int pid) {
    return __atomic_compare_exchange_n(&member->pid, &from, pid, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static uint32_t members(void) {
    uint32_t count = __atomic_load_n(&header->members, __ATOMIC_ACQUIRE);
    return count < MEMBERS ? count : MEMBERS;
}

/* The member that this process had before exec, else a free one, else one whose process was killed. */
static struct member *find_member(int pid) {
    for (uint32_t i = 0; i < members(); i++)
        if (header->member[i].pid == pid) return &header->member[i];
    for (uint32_t i = 0; i < MEMBERS; i++)
        if (header->member[i].pid == 0 && claim_member(&header->member[i], 0, pid)) return &header->member[i];
    for (uint32_t i = 0; i < MEMBERS; i++) {
        int other = header->member[i].pid;
        if (system_process_gone(other) && claim_member(&header->member[i], other, pid)) return &header->member[i];
    }
    return NULL;
}

static void raise_word(uint32_t *word, uint32_t to) {
    uint32_t before = __atomic_load_n(word, __ATOMIC_RELAXED);
    while (before < to && !__atomic_compare_exchange_n(word, &before, to, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
}

/* The number of this process's namespace of process ids; 0 if it is unknown. */
static uint32_t namespace_of_ids(void) {
    char text[32];
    uint32_t number = 0;
    long n = system_read_link("/proc/self/ns/pid", text, sizeof text);
    for (long i = 0; i < n; i++)
        if (text[i] >= '0' && text[i] <= '9') number = 10 * number + (uint32_t)(text[i] - '0');
    return number;
}

/* Whether ids of processes mean the same here as to the other members. */
static int knows_members(void) {
    uint32_t here = namespace_of_ids(), first = 0;
    return __atomic_compare_exchange_n(&header->namespace, &first, here, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED) ||
           first == here;
}

void join_tree(int pid, int64_t inherited) {
    mine = NULL;
    if (MODE == MODE_COUNTS) return;
    struct member *member = knows_members() ? find_member(pid) : NULL;
    if (!member) {
        __atomic_fetch_add(&header->turned_away, 1, __ATOMIC_RELAXED);
        return;
    }
    member->inherited = inherited;
    member->live = inherited;
    raise_word(&header->members, (uint32_t)(member - header->member) + 1);
    uint32_t used = 0;
    for (uint32_t i = 0; i < members(); i++) used += header->member[i].pid != 0;
    raise_word(&header->at_once, used);
    mine = member;
}

void leave_tree(void) {
    struct member *member = mine;
    /* A child of vfork must not release its parent's member. */
    if (!member || !process || process->pid != system_pid()) return;
    mine = NULL;
    member->live = member->inherited = 0;
    __atomic_store_n(&member->pid, 0, __ATOMIC_RELEASE);
}

__attribute__((destructor)) static void leave(void) { leave_tree(); }

/* The live bytes of a process without those that it inherited, which count for its parent even if the child freed
 * them. */
static int64_t own_bytes(int64_t live, int64_t inherited) { return live > inherited ? live - inherited : 0; }

static int64_t others(int alive_only) {
    int64_t sum = 0;
    for (uint32_t i = 0; i < members(); i++) {
        struct member *member = &header->member[i];
        int pid = member->pid;
        if (member == mine || pid == 0) continue;
        int64_t bytes = own_bytes(__atomic_load_n(&member->live, __ATOMIC_RELAXED), member->inherited);
        if (bytes && !(alive_only && system_process_gone(pid))) sum += bytes;
    }
    return sum;
}

void add_to_tree(int64_t drift, int64_t crest) {
    struct member *member = mine;
    if (!member) return;
    int64_t live = __atomic_fetch_add(&member->live, drift, __ATOMIC_RELAXED) + crest;
    int64_t own = own_bytes(live, member->inherited);
    /* A killed process has not left the tree. The kernel is only asked for such processes if the sum is a new
     * peak. */
    if (own + others(0) <= __atomic_load_n(&header->tree_peak, __ATOMIC_RELAXED)) return;
    raise_to(&header->tree_peak, own + others(1));
}
