/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Adds code to the program's: it counts, and calls the shadow stack where functions begin and end. */
#include "calltree.h"

#include "pub_tool_guest.h"

#include <stddef.h>

#define LONGEST 512

Bool total_only;
UInt heap_hooks;
Int sp_register, ip_register;

#if defined(VGA_amd64)
const Int result_register = offsetof(VexGuestAMD64State, guest_RAX);
static const Int parameters[3] = {offsetof(VexGuestAMD64State, guest_RDI), offsetof(VexGuestAMD64State, guest_RSI),
                                  offsetof(VexGuestAMD64State, guest_RDX)};
static const Int frame_register = offsetof(VexGuestAMD64State, guest_RBP);
static const Int goroutine_register = offsetof(VexGuestAMD64State, guest_R14);
static const UInt bytes_of_call = sizeof(Addr); /* that a call puts on the stack */
#elif defined(VGA_arm64)
const Int result_register = offsetof(VexGuestARM64State, guest_X0);
static const Int parameters[3] = {offsetof(VexGuestARM64State, guest_X0), offsetof(VexGuestARM64State, guest_X1),
                                  offsetof(VexGuestARM64State, guest_X2)};
static const Int frame_register = offsetof(VexGuestARM64State, guest_X29);
static const Int goroutine_register = offsetof(VexGuestARM64State, guest_X28);
static const UInt bytes_of_call = 0;
#else
#error "where arguments and results are passed is known for amd64 and arm64 only"
#endif

#if defined(VGA_amd64)
/* Whether the bytes before an address can be an instruction that calls. */
static Bool may_follow_call(Addr address) {
    const UChar *end = (const UChar *)address;
    /* What is on the page before may not be readable. */
    if (address % VKI_PAGE_SIZE < 8 || end[-5] == 0xe8) return True;
    for (Int length = 2; length <= 7; length++)
        if (end[-length] == 0xff && (end[1 - length] >> 3 & 7) == 2) return True;
    return False;
}
#else
static Bool may_follow_call(Addr address) {
    if (address % VKI_PAGE_SIZE < 4) return True;
    UInt before = *(const UInt *)(address - 4);
    return (before & 0xfc000000) == 0x94000000 || (before & 0xfefff000) == 0xd63f0000;
}
#endif

static IRExpr *value_of(IRSB *out, IRType type, IRExpr *expression) {
    IRTemp value = newIRTemp(out->tyenv, type);
    addStmtToIRSB(out, IRStmt_WrTmp(value, expression));
    return IRExpr_RdTmp(value);
}

static IRExpr *guest(IRSB *out, Int offset) {
    return value_of(out, Ity_I64, IRExpr_Get(offset, Ity_I64));
}

/* The address of a counter. It is a distance where that is small, because such code is shorter. Each use needs an
 * address of its own, which the translator then makes a part of the instruction. */
static IRExpr *place(IRSB *out, IRExpr *base, const void *counter) {
    UWord distance = (UWord)counter - (UWord)&shared;
    if (distance >= sizeof shared) return mkIRExpr_HWord((HWord)counter);
    return value_of(out, Ity_I64, IRExpr_Binop(Iop_Add64, base, IRExpr_Const(IRConst_U64(distance))));
}

static IRExpr *load(IRSB *out, IRExpr *base, const void *counter) {
    return value_of(out, Ity_I64, IRExpr_Load(Iend_LE, Ity_I64, place(out, base, counter)));
}

/* Adds to a counter, whose value is `value` or, if that is NULL, is loaded. Returns the new value. */
static IRExpr *add(IRSB *out, IRExpr *base, ULong *counter, IRExpr *value, UInt amount) {
    if (!value) value = load(out, base, counter);
    IRExpr *sum = value_of(out, Ity_I64, IRExpr_Binop(Iop_Add64, value, IRExpr_Const(IRConst_U64(amount))));
    addStmtToIRSB(out, IRStmt_Store(Iend_LE, place(out, base, counter), sum));
    return sum;
}

#define CALL(out, helper, arguments) addStmtToIRSB(out, IRStmt_Dirty(dirty(#helper, (void *)helper, arguments)))

static IRDirty *dirty(const HChar *name, void *helper, IRExpr **arguments) {
    Int registers = 0;
    while (arguments[registers]) registers++;
    return unsafeIRDirty_0_N(registers, name, VG_(fnptr_to_fnentry)(helper), arguments);
}

/* A helper that reads the guest's registers, because their values would be determined even if it is not called. */
static IRDirty *reads_registers(const VexGuestLayout *layout, IRDirty *call) {
    sp_register = layout->offset_SP;
    ip_register = layout->offset_IP;
    call->nFxState = 2;
    VG_(memset)(call->fxState, 0, sizeof call->fxState);
    call->fxState[0].fx = call->fxState[1].fx = Ifx_Read;
    call->fxState[0].offset = sp_register;
    call->fxState[1].offset = ip_register;
    call->fxState[0].size = call->fxState[1].size = sizeof(Addr);
    return call;
}

static CallSite *place_in(Function *function) {
    CallSite *place = take(sizeof *place);
    place->function = function;
    return place;
}

/* Calls a helper if this block is not in the shadow stack's current function. */
static void check(IRSB *out, IRExpr *base, const VexGuestLayout *layout, Function *function, Bool is_entry, ULong key) {
    IRExpr *present = load(out, base, &now.key);
    IRExpr *differs = value_of(out, Ity_I1, IRExpr_Binop(Iop_CmpNE64, IRExpr_Const(IRConst_U64(key)), present));
    IRDirty *call =
        is_entry ? dirty("on_entry", on_entry, mkIRExprVec_2(mkIRExpr_HWord((HWord)place_in(function)), IRExpr_GSPTR()))
                 : dirty("on_other_function", on_other_function, mkIRExprVec_1(IRExpr_GSPTR()));
    call->guard = differs;
    addStmtToIRSB(out, IRStmt_Dirty(reads_registers(layout, call)));
}

#define TARGETS 65536

/* The addresses to which a function jumps in itself. An entry may be overwritten: that costs a check. */
static struct {
    Addr address;
    const Function *function;
} targets[TARGETS];

static UWord target_slot(Addr address) {
    return (address ^ (address >> 16)) % TARGETS;
}

/* Whether the block at an address is entered only from its own function, so that it needs no check: the function jumps
 * there itself, no call returns there, and it is no place at which another function continues. Those are functions'
 * beginnings, landing pads of exceptions, which no other code of the function jumps to, and all blocks of GHC and Go. */
static Bool is_inner(Addr block, const Function *function) {
    UWord slot = target_slot(block);
    Bool continues_elsewhere = function->object->is_ghc || function->object->is_go;
    return targets[slot].address == block && targets[slot].function == function && !continues_elsewhere
           && !may_follow_call(block);
}

/* Notes a jump to a fixed address. If that is in the middle of another function, whose block may have no check, a helper
 * is called if the jump is made. `guard` is NULL if it is always made. */
static void note_jump(IRSB *out, const VexGuestLayout *layout, const Function *from, Addr target, IRExpr *guard) {
    Function *function;
    Object *object;
    Bool is_entry;
    if (code_at(target, &function, &is_entry, &object) != CODE_KNOWN || is_entry) return;
    if (function == from) {
        UWord slot = target_slot(target);
        targets[slot].address = target;
        targets[slot].function = function;
        return;
    }
    IRDirty *call =
        dirty("on_jump_inside", on_jump_inside, mkIRExprVec_2(mkIRExpr_HWord((HWord)place_in(function)), IRExpr_GSPTR()));
    if (guard) call->guard = guard;
    addStmtToIRSB(out, IRStmt_Dirty(reads_registers(layout, call)));
}

static void report_call(IRSB *out, const VexGuestLayout *layout, IRExpr *target, Addr after) {
    CallSite *site = take(sizeof *site);
    site->after = after;
    IRExpr *where = mkIRExpr_HWord((HWord)site), *sp = guest(out, layout->offset_SP);
    if (target->tag != Iex_Const) {
        CALL(out, on_call_by_address, mkIRExprVec_3(where, sp, target));
        return;
    }
    Addr address = (Addr)target->Iex.Const.con->Ico.U64;
    Bool is_entry;
    site->function = function_at(address, &is_entry);
    if (site->function) site->function = called_from(site->function, after);
    if (!site->function) site->slot = slot_of_stub(address, &site->in_stub);
    if (site->slot) CALL(out, on_call_of_stub, mkIRExprVec_2(where, sp));
    else CALL(out, on_call, mkIRExprVec_2(where, sp));
}

/* `pushed` is the number of bytes that the last instruction has put on the stack. */
/* Reports that the stack pointer, which was `before`, was set to an address that may be on another stack. `pushed` are
 * the bytes that were pushed since then. */
static void report_stack(IRSB *out, const VexGuestLayout *layout, Bool is_go, const Function *function, IRExpr *before,
                         UInt pushed) {
    IRExpr *sp = guest(out, layout->offset_SP);
    if (pushed) sp = value_of(out, Ity_I64, IRExpr_Binop(Iop_Add64, sp, IRExpr_Const(IRConst_U64(pushed))));
    if (is_go) {
        IRExpr *returns = mkIRExpr_HWord(function && function->role == GO_CALLED);
        CALL(out, on_other_stack, mkIRExprVec_3(sp, guest(out, goroutine_register), returns));
        return;
    }
    CALL(out, on_switch, mkIRExprVec_2(before, sp));
}

static void watch_heap(IRSB *out, const Function *function) {
    Int second = function->heap == HEAP_SIZE_THIRD ? 2 : 1;
    IRExpr **arguments = mkIRExprVec_3(mkIRExpr_HWord(function->heap), guest(out, parameters[0]),
                                       guest(out, parameters[second]));
    heap_hooks++;
    CALL(out, on_heap, arguments);
}

/* Counts a run. `sum` are the instructions that are not yet in a context, or NULL at the start of a block. Returns the new
 * sum: within a block it stays in a register, because helpers are called only before the first run, after the last, and
 * where the block is left. */
static IRExpr *count(IRSB *out, IRExpr *base, IRExpr *sum, Function *function, Addr address, UInt instructions,
                     const UChar *lengths) {
    if (!instructions) return sum;
    /* The course of live bytes needs the number at any time, and not where the instructions are. */
    if (find_sites) return add(out, base, &now.executed, sum, instructions);
    if (!total_only) add(out, base, run_at(address, function, instructions, lengths)->count, NULL, 1);
    return add(out, base, &now.instructions, sum, instructions);
}

/* Whether the instruction pointer that this statement writes is overwritten before anything may read it. The translator
 * keeps such writes before each exit. */
static Bool is_overwritten(const IRSB *in, Int at, Int ip) {
    const IRStmt *write = in->stmts[at];
    if (write->tag != Ist_Put || write->Ist.Put.offset != ip) return False;
    for (Int i = at + 1; i < in->stmts_used; i++) {
        const IRStmt *statement = in->stmts[i];
        switch (statement->tag) {
            case Ist_NoOp: case Ist_IMark: case Ist_AbiHint: break;
            case Ist_Put: if (statement->Ist.Put.offset == ip) return True; break;
            case Ist_WrTmp: {
                const IRExpr *value = statement->Ist.WrTmp.data;
                if (value->tag == Iex_Load || (value->tag == Iex_Get && value->Iex.Get.offset == ip)) return False;
                break;
            }
            case Ist_Exit: return True;
            default: return False;
        }
    }
    return True;
}

/* Whether a value is an address on the current stack: it was computed from the stack pointer or the frame pointer. */
static Bool is_on_stack(const IRSB *in, Int before, const IRExpr *value, Int sp) {
    for (Int i = before - 1; i >= 0 && value->tag == Iex_RdTmp; i--) {
        const IRStmt *statement = in->stmts[i];
        if (statement->tag != Ist_WrTmp || statement->Ist.WrTmp.tmp != value->Iex.RdTmp.tmp) continue;
        value = statement->Ist.WrTmp.data;
        if (value->tag == Iex_Get) return value->Iex.Get.offset == sp || value->Iex.Get.offset == frame_register;
        if (value->tag == Iex_Load) return False;
        if (value->tag != Iex_Binop) return True;
        value = value->Iex.Binop.arg1;
    }
    return value->tag != Iex_Const;
}

/* Whether a statement sets the stack pointer to an address that may be on another stack. */
static Bool is_other_stack(const IRSB *in, Int at, Int sp) {
    const IRStmt *statement = in->stmts[at];
    return statement->tag == Ist_Put && statement->Ist.Put.offset == sp
           && !is_on_stack(in, at, statement->Ist.Put.data, sp);
}

IRSB *translate(VgCallbackClosure *closure, IRSB *in, const VexGuestLayout *layout, const VexGuestExtents *extents,
                const VexArchInfo *host, IRType guest_word, IRType host_word) {
    IRSB *out = deepCopyIRSBExceptStmts(in);
    UChar lengths[LONGEST];
    Addr block = extents->base[0], first = 0;
    Function *function = NULL;
    IRExpr *base = NULL, *sum = NULL, *before_switch = NULL;
    Bool is_entry = False, begun = False;
    Object *object = NULL;
    CodeKind kind = CODE_STUB;
    UInt instructions = 0;
    Addr after = 0;
    Int i = 0;
    if (!total_only) kind = code_at(block, &function, &is_entry, &object);
    Bool is_go = object && object->is_go;
    /* GHC's code has a stack of its own, and what a compiler makes at run time switches none. */
    Bool may_switch = is_go || ((kind == CODE_KNOWN || kind == CODE_NAMELESS) && !object->is_ghc);
    Bool is_checked = kind != CODE_STUB && !(kind == CODE_KNOWN && !is_entry && is_inner(block, function));
    for (; i < in->stmts_used; i++) {
        IRStmt *statement = in->stmts[i];
        if (!statement || statement->tag == Ist_NoOp || is_overwritten(in, i, layout->offset_IP)) continue;
        if (before_switch && (statement->tag == Ist_IMark || statement->tag == Ist_Exit)) {
            count(out, base, sum, function, first, instructions, lengths);
            report_stack(out, layout, is_go, function, before_switch, 0);
            sum = before_switch = NULL;
            instructions = 0;
        }
        if (statement->tag == Ist_IMark) {
            if (!begun) base = guest(out, layout->total_sizeB);
            if (!begun && is_checked) {
                check(out, base, layout, function, is_entry, function ? function->key : NAMELESS_KEY(object));
                if (is_entry && function->heap != HEAP_NONE) watch_heap(out, function);
            }
            begun = True;
            if (!instructions) first = statement->Ist.IMark.addr;
            after = statement->Ist.IMark.addr + statement->Ist.IMark.len;
            tl_assert(instructions < LONGEST);
            lengths[instructions++] = statement->Ist.IMark.len;
        }
        if (statement->tag == Ist_Exit) {
            sum = count(out, base, sum, function, first, instructions, lengths);
            instructions = 0;
            if (!total_only && statement->Ist.Exit.jk == Ijk_Boring)
                note_jump(out, layout, function, statement->Ist.Exit.dst->Ico.U64, statement->Ist.Exit.guard);
        }
        if (may_switch && !before_switch && is_other_stack(in, i, layout->offset_SP))
            before_switch = guest(out, layout->offset_SP);
        addStmtToIRSB(out, statement);
    }
    count(out, base, sum, function, first, instructions, lengths);
    if (total_only) return out;
    if (before_switch)
        report_stack(out, layout, is_go, function, before_switch, in->jumpkind == Ijk_Call ? bytes_of_call : 0);
    if (in->jumpkind == Ijk_Ret && function && function->role == GO_MAKES)
        CALL(out, on_new_goroutine, mkIRExprVec_1(guest(out, result_register)));
    if (in->jumpkind == Ijk_Boring && in->next->tag == Iex_Const)
        note_jump(out, layout, function, in->next->Iex.Const.con->Ico.U64, NULL);
    if (in->jumpkind == Ijk_Call) report_call(out, layout, in->next, after);
    if (in->jumpkind == Ijk_Ret)
        CALL(out, on_return, mkIRExprVec_1(guest(out, layout->offset_SP)));
    return out;
}
