/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where functions without a symbol begin and end: from the unwinding table, which C, C++ and Rust programs keep when
 * they are stripped, and from Go's table of functions. */
#include "calltree.h"

#include <elf.h>

typedef struct Extent {
    Addr begin, end;
    const HChar *name; /* NULL: the table has none */
} Extent;

/* A part of a file in memory, and the position of its reader. */
typedef struct {
    const UChar *bytes;
    SizeT size, at;
    Bool is_damaged; /* the reader passed the end */
} Piece;

static ULong number(Piece *piece, UInt size) {
    ULong value = 0;
    if (piece->at > piece->size || piece->size - piece->at < size) {
        piece->is_damaged = True;
        return 0;
    }
    for (UInt i = 0; i < size; i++) value |= (ULong)piece->bytes[piece->at++] << (8 * i);
    return value;
}

static ULong number_at(Piece *piece, SizeT at, UInt size) {
    piece->at = at;
    return number(piece, size);
}

/* A number of variable length (LEB128). Its sign is not needed. */
static ULong long_number(Piece *piece) {
    ULong value = 0, byte;
    UInt shift = 0;
    do {
        byte = number(piece, 1);
        if (shift < 64) value |= (byte & 0x7f) << shift;
        shift += 7;
    } while (byte & 0x80);
    return value;
}

/* Reads a part of a file. The caller frees it. */
static Piece part_of(Int file, ULong at, SizeT size) {
    Piece piece = {NULL, 0, 0, False};
    if (size == 0 || size > (1u << 30)) return piece;
    UChar *bytes = VG_(malloc)("calltree.part", size);
    SizeT done = 0;
    if (VG_(lseek)(file, at, VKI_SEEK_SET) == (Off64T)at) {
        while (done < size) {
            Int got = VG_(read)(file, bytes + done, size - done);
            if (got <= 0) break;
            done += got;
        }
    }
    piece.bytes = bytes;
    piece.size = done;
    return piece;
}

static void release(Piece piece) {
    if (piece.bytes) VG_(free)((void *)piece.bytes);
}

/* The size of addresses in an encoding; 0 for those that unwinding tables do not use. */
static UInt size_of(UInt encoding) {
    static const UChar sizes[16] = {8, 0, 2, 4, 8, 0, 0, 0, 0, 0, 2, 4, 8, 0, 0, 0};
    return sizes[encoding & 15];
}

/* The encoding of addresses in the entries that share this common entry; -1 if it cannot be determined. */
static Int encoding_of(Piece *frames, SizeT common) {
    UChar version = number_at(frames, common + 8, 1);
    SizeT augmentation = frames->at;
    while (number(frames, 1)) {}
    long_number(frames);
    long_number(frames);
    if (version == 1) number(frames, 1);
    else long_number(frames);
    if (frames->is_damaged) return -1;
    const HChar *letters = (const HChar *)frames->bytes + augmentation;
    if (!letters[0]) return 0;
    if (*letters++ != 'z') return -1;
    long_number(frames);
    for (; *letters; letters++) {
        if (*letters == 'R') return number(frames, 1);
        if (*letters == 'L') number(frames, 1);
        if (*letters == 'P') number(frames, size_of(number(frames, 1)));
    }
    return 0;
}

static Int by_begin(const void *one, const void *other) {
    Addr a = ((const Extent *)one)->begin, b = ((const Extent *)other)->begin;
    return a < b ? -1 : a > b;
}

/* Takes the functions of an unwinding table that is at this address. */
static void read_frames(Extents *extents, Piece frames, Addr at) {
    Extent *all = VG_(malloc)("calltree.extents", (frames.size / 16 + 1) * sizeof *all);
    UWord used = 0;
    SizeT next, known = ~(SizeT)0;
    Int encoding = -1;
    for (SizeT entry = 0; entry + 8 <= frames.size; entry = next) {
        ULong length = number_at(&frames, entry, 4), back = number(&frames, 4);
        next = entry + 4 + length;
        if (length == 0xffffffff) break;
        if (length < 4 || back == 0 || back > entry + 4) continue;
        SizeT common = entry + 4 - back;
        if (common != known) encoding = encoding_of(&frames, common);
        known = common;
        UInt size = encoding < 0 ? 0 : size_of(encoding);
        if (!size || (encoding & 0xf0 & ~0x10)) continue;
        ULong begin = number_at(&frames, entry + 8, size), bytes = number(&frames, size);
        if (frames.is_damaged) break;
        if (encoding & 8) begin = (Long)(begin << (64 - 8 * size)) >> (64 - 8 * size);
        if (encoding & 0x10) begin += at + entry + 8;
        if (!begin || !bytes) continue;
        all[used].name = NULL;
        all[used].begin = begin;
        all[used++].end = begin + bytes;
    }
    VG_(ssort)(all, used, sizeof *all, by_begin);
    extents->all = take((used + 1) * sizeof *all);
    for (UWord i = 0; i < used; i++)
        if (!extents->count || all[i].begin >= extents->all[extents->count - 1].end)
            extents->all[extents->count++] = all[i];
    VG_(free)(all);
}

/* The name of the function in this place of Go's table. */
static const HChar *go_name(Piece *functions, SizeT entries, UWord place) {
    SizeT record = entries + number_at(functions, entries + 8 * place + 4, 4);
    SizeT at = number_at(functions, 32, 8) + number_at(functions, record + 4, 4), end = at;
    while (end < functions->size && functions->bytes[end]) end++;
    if (end >= functions->size || end == at) return NULL;
    HChar *name = take(end - at + 1);
    VG_(memcpy)(name, functions->bytes + at, end - at);
    return name;
}

/* Takes the functions of Go's table (since Go 1.18). */
static void read_go(Extents *extents, Piece functions, Addr text, Addr entry) {
    ULong magic = number_at(&functions, 0, 4);
    UWord count = number_at(&functions, 8, 8);
    Addr begin_of_text = number_at(&functions, 24, 8);
    SizeT entries = number_at(&functions, 64, 8);
    if ((magic != 0xfffffff0 && magic != 0xfffffff1) || functions.is_damaged) return;
    if (entries >= functions.size || count >= (functions.size - entries) / 8) return;
    /* Since Go 1.26 the table does not say where the code begins. If the first instruction of the program begins a
     * function, it is known. */
    Addr start = begin_of_text ? begin_of_text : text;
    Bool is_right = begin_of_text != 0;
    extents->all = take((count + 1) * sizeof *extents->all);
    for (UWord i = 0; i < count; i++) {
        Extent *one = &extents->all[i];
        one->begin = start + number_at(&functions, entries + 8 * i, 4);
        one->end = start + number_at(&functions, entries + 8 * (i + 1), 4);
        one->name = go_name(&functions, entries, i);
        if (one->begin == entry) is_right = True;
        if (one->end < one->begin || (i && one->begin < one[-1].end)) return;
    }
    if (is_right && !functions.is_damaged) extents->count = count;
}

/* Takes the functions of the tables in a file's sections. */
static void read_sections(Object *object, Int file, const Elf64_Ehdr *head, const Elf64_Shdr *all, Piece names) {
    Addr text = 0;
    for (UInt i = 0; i < head->e_shnum; i++)
        if (all[i].sh_name < names.size && VG_(strcmp)((const HChar *)names.bytes + all[i].sh_name, ".text") == 0)
            text = all[i].sh_addr;
    for (UInt i = 0; i < head->e_shnum; i++) {
        if (all[i].sh_name >= names.size || all[i].sh_type == SHT_NOBITS) continue;
        const HChar *name = (const HChar *)names.bytes + all[i].sh_name;
        Bool is_frames = VG_(strcmp)(name, ".eh_frame") == 0;
        Bool is_go = VG_(strcmp)(name, ".gopclntab") == 0 || VG_(strcmp)(name, ".data.rel.ro.gopclntab") == 0;
        if (!is_frames && !is_go) continue;
        Piece table = part_of(file, all[i].sh_offset, all[i].sh_size);
        if (is_frames && !object->unwinding.all) read_frames(&object->unwinding, table, all[i].sh_addr);
        if (is_go && !object->go.all) read_go(&object->go, table, text, head->e_entry);
        release(table);
    }
}

static void read_extents(Object *object) {
    object->has_extents = True;
    SysRes opened = VG_(open)(object->path, VKI_O_RDONLY, 0);
    if (sr_isError(opened)) return;
    Int file = sr_Res(opened);
    Elf64_Ehdr head;
    Piece start = part_of(file, 0, sizeof head);
    Bool is_known = start.size == sizeof head && VG_(memcmp)(start.bytes, ELFMAG, SELFMAG) == 0
                    && start.bytes[EI_CLASS] == ELFCLASS64;
    if (is_known) {
        VG_(memcpy)(&head, start.bytes, sizeof head);
        Piece sections = part_of(file, head.e_shoff, head.e_shnum * sizeof(Elf64_Shdr));
        const Elf64_Shdr *all = (const Elf64_Shdr *)sections.bytes;
        if (head.e_shstrndx < head.e_shnum && sections.size == head.e_shnum * sizeof(Elf64_Shdr)) {
            Piece names = part_of(file, all[head.e_shstrndx].sh_offset, all[head.e_shstrndx].sh_size);
            if (names.size) ((HChar *)names.bytes)[names.size - 1] = 0;
            read_sections(object, file, &head, all, names);
            release(names);
        }
        release(sections);
    }
    release(start);
    VG_(close)(file);
}

static Bool find(const Extents *extents, Addr offset, Addr *begin, const HChar **name) {
    UWord low = 0, high = extents->count;
    while (low < high) {
        UWord middle = (low + high) / 2;
        if (extents->all[middle].end <= offset) low = middle + 1;
        else high = middle;
    }
    if (low == extents->count || extents->all[low].begin > offset) return False;
    *begin = extents->all[low].begin;
    *name = extents->all[low].name;
    return True;
}

/* Whether the tables of a file say where the function begins that contains an address. Go's has its name as well. */
Bool begin_of(Object *object, Addr offset, Addr *begin, const HChar **name) {
    if (!object->path) return False;
    if (!object->has_extents) read_extents(object);
    return find(&object->go, offset, begin, name) || find(&object->unwinding, offset, begin, name);
}
