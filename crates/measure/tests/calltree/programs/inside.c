/* Functions that jump into the loop of another function, always or on a condition, as hand-written assembly does. */
void loops(int turns);
void jumps(int turns);
void branches(int turns);

#if defined(__x86_64__)
__asm__(".text\n"
        ".type loops, @function\nloops:\n  mov %edi, %ecx\n"
        "0: sub $1, %ecx\n  jne 0b\n  ret\n.size loops, . - loops\n"
        ".type jumps, @function\njumps:\n  mov %edi, %ecx\n  jmp 0b\n.size jumps, . - jumps\n"
        ".type branches, @function\nbranches:\n  mov %edi, %ecx\n  test %edi, %edi\n  jne 0b\n  ret\n"
        ".size branches, . - branches\n");
#elif defined(__aarch64__)
__asm__(".text\n"
        ".type loops, %function\nloops:\n  mov w1, w0\n"
        "0: subs w1, w1, #1\n  b.ne 0b\n  ret\n.size loops, . - loops\n"
        ".type jumps, %function\njumps:\n  mov w1, w0\n  b 0b\n.size jumps, . - jumps\n"
        ".type branches, %function\nbranches:\n  mov w1, w0\n  cmp w0, #0\n  b.ne 0b\n  ret\n"
        ".size branches, . - branches\n");
#endif

int main(void) {
    for (int i = 0; i < 20; i++) loops(10);
    for (int i = 0; i < 30; i++) jumps(20);
    for (int i = 0; i < 40; i++) branches(i % 2 ? 30 : 0);
    return 0;
}
