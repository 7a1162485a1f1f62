/* A library whose function has no unwinding entries. It calls back. */
void bare(void (*inner)(unsigned long)) {
    volatile char room[40] = {0};
    inner(77 + (unsigned long)room[3]);
    room[0] = 1;
}
