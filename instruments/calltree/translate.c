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

static IRExpr *value_of(IRSB *out, IRType type, IRExpr *expression) {
    IRTemp value = newIRTemp(out->tyenv, type);
    addStmtToIRSB(out, IRStmt_WrTmp(value, expression));
    return IRExpr_RdTmp(value);
}

static IRExpr *guest(IRSB *out, Int offset) {
    return value_of(out, Ity_I64, IRExpr_Get(offset, Ity_I64));
}

/* The address of a counter, as a distance where it is small: that is less code. Each use needs an address of its own,
 * which the translator then makes a part of the instruction. */
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

/* Calls a helper if this block is not in the shadow stack's current function. The helper's arguments cost little,
 * because they are constants and the place of the registers: values would be determined even if it is not called. */
static void check(IRSB *out, IRExpr *base, const VexGuestLayout *layout, Function *function, Bool is_entry, ULong key) {
    IRExpr *present = load(out, base, &now.key);
    IRExpr *differs = value_of(out, Ity_I1, IRExpr_Binop(Iop_CmpNE64, IRExpr_Const(IRConst_U64(key)), present));
    IRDirty *call;
    if (is_entry) {
        CallSite *entry = take(sizeof *entry);
        entry->function = function;
        call = dirty("on_entry", on_entry, mkIRExprVec_2(mkIRExpr_HWord((HWord)entry), IRExpr_GSPTR()));
    } else {
        call = dirty("on_other_function", on_other_function, mkIRExprVec_1(IRExpr_GSPTR()));
    }
    sp_register = layout->offset_SP;
    ip_register = layout->offset_IP;
    call->guard = differs;
    call->nFxState = 2;
    VG_(memset)(call->fxState, 0, sizeof call->fxState);
    call->fxState[0].fx = call->fxState[1].fx = Ifx_Read;
    call->fxState[0].offset = sp_register;
    call->fxState[1].offset = ip_register;
    call->fxState[0].size = call->fxState[1].size = sizeof(Addr);
    addStmtToIRSB(out, IRStmt_Dirty(call));
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
static void report_stack(IRSB *out, const VexGuestLayout *layout, const Function *function, UInt pushed) {
    IRExpr *returns = mkIRExpr_HWord(function && function->role == GO_CALLED), *sp = guest(out, layout->offset_SP);
    if (pushed) sp = value_of(out, Ity_I64, IRExpr_Binop(Iop_Add64, sp, IRExpr_Const(IRConst_U64(pushed))));
    CALL(out, on_other_stack, mkIRExprVec_3(sp, guest(out, goroutine_register), returns));
}

static void watch_heap(IRSB *out, const Function *function) {
    Int second = function->heap == HEAP_SIZE_THIRD ? 2 : 1;
    IRExpr **arguments = mkIRExprVec_3(mkIRExpr_HWord(function->heap), guest(out, parameters[0]),
                                       guest(out, parameters[second]));
    heap_hooks++;
    CALL(out, on_heap, arguments);
}

/* Counts a run. `sum` are the instructions that are not yet in a context, or NULL at the start of a block. Returns the new
 * sum: within a block it stays in a register, because helpers are called only before the first and after the last run. */
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
    IRExpr *base = NULL, *sum = NULL;
    Bool is_entry = False, begun = False, switches = False;
    Object *object = NULL;
    CodeKind kind = CODE_STUB;
    UInt instructions = 0;
    Addr after = 0;
    Int i = 0;
    if (!total_only) kind = code_at(block, &function, &is_entry, &object);
    for (; i < in->stmts_used; i++) {
        IRStmt *statement = in->stmts[i];
        if (!statement || statement->tag == Ist_NoOp || is_overwritten(in, i, layout->offset_IP)) continue;
        if (switches && (statement->tag == Ist_IMark || statement->tag == Ist_Exit)) {
            count(out, base, sum, function, first, instructions, lengths);
            report_stack(out, layout, function, 0);
            sum = NULL;
            instructions = 0;
            switches = False;
        }
        if (statement->tag == Ist_IMark) {
            if (!begun) base = guest(out, layout->total_sizeB);
            if (!begun && !total_only && kind != CODE_STUB) {
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
        }
        if (object && object->is_go) switches |= is_other_stack(in, i, layout->offset_SP);
        addStmtToIRSB(out, statement);
    }
    count(out, base, sum, function, first, instructions, lengths);
    if (total_only) return out;
    if (switches) report_stack(out, layout, function, in->jumpkind == Ijk_Call ? bytes_of_call : 0);
    if (in->jumpkind == Ijk_Ret && function && function->role == GO_MAKES)
        CALL(out, on_new_goroutine, mkIRExprVec_1(guest(out, result_register)));
    if (in->jumpkind == Ijk_Call) report_call(out, layout, in->next, after);
    if (in->jumpkind == Ijk_Ret)
        CALL(out, on_return, mkIRExprVec_1(guest(out, layout->offset_SP)));
    return out;
}
