/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Executes on the processor what the core emulates byte by byte. The linker replaces the core's functions by these. */
#include "calltree.h"

#if defined(VGA_amd64)
#include <cpuid.h>

typedef ULong Block __attribute__((vector_size(16), aligned(8), may_alias));

#define ARGUMENTS void *guest, HWord instruction, HWord result, HWord key, HWord state

/* AES instructions, by which Go hashes the keys of its maps. `instruction` is the last byte of the opcode; the others are
 * distances from the start of the guest's registers. */
void __real_amd64g_dirtyhelper_AES(ARGUMENTS);
void __wrap_amd64g_dirtyhelper_AES(ARGUMENTS);

static Bool processor_has_aes(void) {
    UInt a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_AES);
}

#define EXECUTE(name) __asm__(name " %1, %0" : "+x"(value) : "x"(round_key))

void __wrap_amd64g_dirtyhelper_AES(ARGUMENTS) {
    static enum { UNKNOWN, HAS_AES, HAS_NONE } processor;
    if (UNLIKELY(processor == UNKNOWN)) processor = processor_has_aes() ? HAS_AES : HAS_NONE;
    if (UNLIKELY(processor == HAS_NONE)) {
        __real_amd64g_dirtyhelper_AES(guest, instruction, result, key, state);
        return;
    }
    UChar *registers = guest;
    Block round_key = *(Block *)(registers + key), value = *(Block *)(registers + state);
    switch (instruction) {
        case 0xDB: __asm__("aesimc %1, %0" : "=x"(value) : "x"(round_key)); break;
        case 0xDC: EXECUTE("aesenc"); break;
        case 0xDD: EXECUTE("aesenclast"); break;
        case 0xDE: EXECUTE("aesdec"); break;
        case 0xDF: EXECUTE("aesdeclast"); break;
        default: tl_assert(False);
    }
    *(Block *)(registers + result) = value;
}

/* The highest bits of sixteen bytes, by which strings are searched. */
UInt __wrap_h_generic_calc_GetMSBs8x16(ULong high, ULong low);
UInt __wrap_h_generic_calc_GetMSBs8x16(ULong high, ULong low) {
    Block bytes = {low, high};
    UInt bits;
    __asm__("pmovmskb %1, %0" : "=r"(bits) : "x"(bytes));
    return bits;
}
#endif
