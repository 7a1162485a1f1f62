/* Marks its parts with labels. */
#include "scruple-calltree.h"

static volatile int sink;

void work(int n) {
    for (int i = 0; i < n; i++) sink++;
}

int main(void) {
    work(1000);
    scruple_calltree_phase("warm");
    work(2000);
    scruple_calltree_phase("hot");
    work(3000);
    scruple_calltree_dump("hot");
    scruple_calltree_zero();
    work(4000);
    return 0;
}
