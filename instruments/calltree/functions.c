/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Functions, their files, and the runs of instructions in them. */
#include "calltree.h"

/* All versions of Valgrind since 3.15 export these functions, but no header for tools declares them. */
extern Bool VG_(get_fnname_raw)(DiEpoch epoch, Addr address, const HChar **name);
extern Bool VG_(get_inst_offset_in_function)(DiEpoch epoch, Addr address, PtrdiffT *offset);

#define FUNCTION_BUCKETS 16384
#define RUN_BUCKETS 65536
#define CHUNK (256 * 1024)

static Object *objects;
static Function *functions, *function_buckets[FUNCTION_BUCKETS];
static Run *runs, *run_buckets[RUN_BUCKETS];
static UInt object_count, function_count;

/* Takes memory that is never freed. This is cheaper than one block for each of a million contexts. */
void *take(SizeT size) {
    static HChar *free;
    static SizeT left;
    size = (size + 7) & ~(SizeT)7;
    if (size > CHUNK / 8) return VG_(calloc)("calltree.large", 1, size);
    if (size > left) {
        free = VG_(calloc)("calltree.chunk", 1, CHUNK);
        left = CHUNK;
    }
    void *taken = free;
    free += size;
    left -= size;
    return taken;
}

static const HChar *copy_of(const HChar *text) {
    HChar *copy = take(VG_(strlen)(text) + 1);
    VG_(strcpy)(copy, text);
    return copy;
}

static Bool is_path(const Object *object, const HChar *path) {
    return path ? object->path && VG_(strcmp)(object->path, path) == 0 : !object->path;
}

static Object *object_of(const HChar *path) {
    static Object *recent;
    static const HChar *recent_path;
    static UInt recent_epoch;
    UInt epoch = VG_(current_DiEpoch)().n;
    if (recent && path == recent_path && epoch == recent_epoch) return recent;
    recent_path = path;
    recent_epoch = epoch;
    for (Object *object = objects; object; object = object->next)
        if (is_path(object, path)) return recent = object;
    Object *object = take(sizeof *object);
    object->path = path ? copy_of(path) : NULL;
    object->id = ++object_count;
    object->next = objects;
    objects = object;
    return recent = object;
}

static Bool is(const HChar *name, const HChar *const *names) {
    for (; *names; names++)
        if (VG_(strcmp)(name, *names) == 0) return True;
    return False;
}

static Bool begins(const HChar *name, const HChar *beginning) {
    return VG_(strncmp)(name, beginning, VG_(strlen)(beginning)) == 0;
}

static HeapKind heap_kind(const HChar *name, Object *object) {
    const HChar *path = object->path;
    static const HChar *const first[] = {"malloc", "__libc_malloc", "__malloc", "valloc", "__libc_valloc", "pvalloc",
                                         "__libc_pvalloc", NULL};
    static const HChar *const product[] = {"calloc", "__libc_calloc", "__calloc", NULL};
    static const HChar *const resize[] = {"realloc", "__libc_realloc", "__realloc", NULL};
    static const HChar *const second[] = {"memalign", "__libc_memalign", "aligned_alloc", NULL};
    static const HChar *const third[] = {"posix_memalign", "__posix_memalign", NULL};
    static const HChar *const releases[] = {"free", "__libc_free", "__free", "cfree", "free_sized",
                                            "free_aligned_sized", NULL};
    /* glibc's dynamic linker has its own allocator until the C library is loaded. */
    if (begins(VG_(basename)(path), "ld-linux") || begins(VG_(basename)(path), "ld64")) return HEAP_NONE;
    if (is(name, first)) return HEAP_SIZE_FIRST;
    if (is(name, product)) return HEAP_PRODUCT;
    if (is(name, resize)) return HEAP_RESIZE;
    if (is(name, second)) return HEAP_SIZE_SECOND;
    if (is(name, third)) return HEAP_SIZE_THIRD;
    if (is(name, releases)) return HEAP_FREE;
    /* What GHC's runtime allocates in its own heap for primitive operations. hs_init_ghc runs before them. */
    static const HChar *const words[] = {"allocateMightFail", "allocatePinned", NULL};
    if (VG_(strcmp)(name, "hs_init_ghc") == 0) object->is_ghc = True;
    if (object->is_ghc && is(name, words)) return HEAP_WORDS_SECOND;
    /* operator new and delete of the C++ libraries only; a program's own operators may return parts of blocks. */
    const HChar *file = VG_(basename)(path);
    if (!begins(file, "libstdc++") && !begins(file, "libc++")) return HEAP_NONE;
    if (begins(name, "_Znwm") || begins(name, "_Znam")) return HEAP_SIZE_FIRST;
    if (begins(name, "_ZdlPv") || begins(name, "_ZdaPv")) return HEAP_FREE;
    return HEAP_NONE;
}

static GoRole go_role(const HChar *name) {
    static const HChar *const starts[] = {"newproc", "newcoro", NULL};
    if (!begins(name, "runtime.")) return GO_NONE;
    name += sizeof "runtime." - 1;
    if (is(name, starts)) return GO_STARTS;
    if (VG_(strcmp)(name, "schedule") == 0) return GO_SCHEDULES;
    if (VG_(strcmp)(name, "newproc1") == 0) return GO_MAKES;
    return begins(name, "cgocallback") ? GO_CALLED : GO_RUNTIME;
}

/* The function that begins at an address in a file. `is_known` says that it does begin there, so that its blocks can be
 * distinguished from those of other functions. */
static Function *function_of(Object *object, Addr offset, const HChar *name, Bool is_known) {
    UWord hash = (offset ^ (offset >> 15) ^ ((UWord)object->id * 0x9e3779b1u)) % FUNCTION_BUCKETS;
    Function *function = function_buckets[hash];
    for (; function; function = function->in_bucket)
        if (function->offset == offset && function->object == object) return function;
    function = take(sizeof *function);
    function->object = object;
    function->offset = offset;
    function->name = name ? copy_of(name) : NULL;
    function->heap = name && object->path ? heap_kind(name, object) : HEAP_NONE;
    function->role = name && object->path ? go_role(name) : GO_NONE;
    if (function->role != GO_NONE) object->is_go = True;
    function->is_resolver = name && begins(name, "_dl_runtime_resolve");
    function->id = ++function_count;
    function->key = is_known ? function->id : NAMELESS_KEY(object);
    function->origin = function;
    function->in_bucket = function_buckets[hash];
    function_buckets[hash] = function;
    function->next = functions;
    functions = function;
    return function;
}

#if defined(VGA_amd64)
/* The place from which a stub takes the address that it jumps to. NULL if there is no stub. Linkers also place stubs
 * outside the PLT section. */
const Addr *slot_of_stub(Addr address, UInt *instructions) {
    const UChar *code = (const UChar *)address;
    Bool is_marked = code[0] == 0xf3 && code[1] == 0x0f && code[2] == 0x1e && code[3] == 0xfa;
    *instructions = is_marked ? 2 : 1;
    if (is_marked) code += 4;
    if (code[0] == 0xf2) code++;
    if (code[0] != 0xff || code[1] != 0x25) return NULL;
    Int distance;
    VG_(memcpy)(&distance, code + 2, sizeof distance);
    return (const Addr *)(code + 6 + distance);
}
#else
const Addr *slot_of_stub(Addr address, UInt *instructions) {
    return NULL;
}
#endif

/* The file that contains an address. Valgrind's core only knows the range of each file's main section. */
static DebugInfo *file_at(Addr address) {
    DiEpoch epoch = VG_(current_DiEpoch)();
    DebugInfo *file = VG_(find_DebugInfo)(epoch, address);
    const HChar *path;
    if (file || !VG_(get_objname)(epoch, address, &path)) return file;
    const DebugInfo *other = VG_(next_DebugInfo)(NULL);
    while (other && VG_(strcmp)(VG_(DebugInfo_get_filename)(other), path) != 0) other = VG_(next_DebugInfo)(other);
    return (DebugInfo *)other;
}

/* The address as the file numbers it. */
static Addr offset_in(DebugInfo *file, Addr address) {
    return file ? address - VG_(DebugInfo_get_text_bias)(file) : address;
}

/* The kind of code at an address. `function` is set only if it is known without the assumption that it begins at
 * the address. */
CodeKind code_at(Addr address, Function **function, Bool *is_entry, Object **object) {
    DiEpoch epoch = VG_(current_DiEpoch)();
    DebugInfo *file = file_at(address);
    *is_entry = False;
    *function = NULL;
    *object = object_of(file ? VG_(DebugInfo_get_filename)(file) : NULL);
    if (!file) {
        *function = function_of(*object, 0, NULL, False);
        return CODE_FILELESS;
    }
    const HChar *section, *name = NULL;
    UInt in_stub;
    if (VG_(DebugInfo_sect_kind)(&section, address) == Vg_SectPLT || slot_of_stub(address, &in_stub)) return CODE_STUB;
    Addr offset = offset_in(file, address), begin;
    PtrdiffT into = 0;
    if (VG_(get_fnname_raw)(epoch, address, &name) && name && name[0]) {
        if (!VG_(get_inst_offset_in_function)(epoch, address, &into)) into = 0;
        begin = offset - into;
    } else if (!begin_of(*object, offset, &begin, &name)) {
        return CODE_NAMELESS;
    }
    *function = function_of(*object, begin, name, True);
    *is_entry = begin == offset;
    return CODE_KNOWN;
}

/* The function that begins at an address or contains it. NULL for a stub, which has no context of its own. Code
 * without a known function is taken for an entry. */
Function *function_at(Addr address, Bool *is_entry) {
    Function *function;
    Object *object;
    switch (code_at(address, &function, is_entry, &object)) {
        case CODE_STUB: return NULL;
        case CODE_NAMELESS:
            *is_entry = True;
            return function_of(object, offset_in(file_at(address), address), NULL, False);
        default: return function;
    }
}

/* The entry of the calls of a function that return to an address: the function's own if sites are not wanted. */
Function *called_from(Function *function, Addr after) {
    static Function *buckets[FUNCTION_BUCKETS];
    if (!find_sites || !after) return function;
    DebugInfo *file = file_at(after);
    Object *caller = object_of(file ? VG_(DebugInfo_get_filename)(file) : NULL);
    Addr offset = offset_in(file, after);
    UWord hash = (offset ^ (offset >> 15) ^ ((UWord)function->id * 0x9e3779b1u)) % FUNCTION_BUCKETS;
    Function *entry = buckets[hash];
    for (; entry; entry = entry->in_bucket)
        if (entry->after == offset && entry->caller == caller && entry->origin == function) return entry;
    entry = take(sizeof *entry);
    *entry = *function;
    entry->id = ++function_count;
    entry->caller = caller;
    entry->after = offset;
    entry->in_bucket = buckets[hash];
    return buckets[hash] = entry;
}

/* The record of a run of instructions. It may exist already, because code may be translated several times. */
Run *run_at(Addr address, Function *function, UInt instructions, const UChar *lengths) {
    static const HChar digits[] = "0123456789abcdef";
    DebugInfo *file = file_at(address);
    Object *object = object_of(file ? VG_(DebugInfo_get_filename)(file) : NULL);
    Addr offset = offset_in(file, address);
    UWord hash = (offset ^ (offset >> 16) ^ ((UWord)object->id * 0x9e3779b1u) ^ instructions) % RUN_BUCKETS;
    Run *run = run_buckets[hash];
    for (; run; run = run->in_bucket)
        if (run->offset == offset && run->object == object && run->instructions == instructions
            && run->function == function)
            return run;
    HChar *text = take(instructions + 1);
    for (UInt i = 0; i < instructions; i++) text[i] = digits[lengths[i] & 15];
    run = take(sizeof *run);
    run->function = function;
    run->object = object;
    run->offset = offset;
    run->instructions = instructions;
    run->lengths = text;
    static UInt counters;
    run->count = counters < sizeof shared.counters / sizeof *shared.counters ? &shared.counters[counters++]
                                                                             : take(sizeof *run->count);
    run->in_bucket = run_buckets[hash];
    run_buckets[hash] = run;
    run->next = runs;
    runs = run;
    return run;
}

Object *all_objects(void) {
    return objects;
}

Function *all_functions(void) {
    return functions;
}

Run *all_runs(void) {
    return runs;
}
