/* Executes the instructions whose results the call tree lets the processor compute, with operands in registers and in
 * memory, and prints the results. */
#include <stdio.h>
#include <string.h>

typedef unsigned long long Block __attribute__((vector_size(16)));

int main(void) {
    Block state = {0x0123456789abcdefull, 0xfedcba9876543210ull}, key = {0x5555aaaa3333ccccull, 0x1111222233334444ull};
    unsigned bits, mask = 0;
    for (int i = 0; i < 1000; i++) {
        Block mixed;
        __asm__ volatile("aesenc %1, %0" : "+x"(state) : "x"(key));
        __asm__ volatile("aesdec %1, %0" : "+x"(key) : "m"(state));
        __asm__ volatile("aesenclast %1, %0" : "+x"(state) : "x"(key));
        __asm__ volatile("aesdeclast %1, %0" : "+x"(key) : "x"(state));
        __asm__ volatile("aesimc %1, %0" : "=x"(mixed) : "x"(state));
        key ^= mixed;
        __asm__ volatile("pmovmskb %1, %0" : "=r"(bits) : "x"(state));
        mask = mask * 31 + bits;
    }
    unsigned long long words[4];
    memcpy(words, &state, sizeof state);
    memcpy(words + 2, &key, sizeof key);
    printf("%016llx %016llx %016llx %016llx %08x\n", words[0], words[1], words[2], words[3], mask);
    return 0;
}
