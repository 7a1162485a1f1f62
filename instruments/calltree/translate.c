/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Adds code to the program's: counting, and calls of the shadow stack where functions begin and end. */
#include "calltree.h"

#include "pub_tool_guest.h"

#include <stddef.h>

#define LONGEST 512

Bool total_only;
UInt heap_hooks;

#if defined(VGA_amd64)
static const Int results = offsetof(VexGuestAMD64State, guest_RAX);
static const Int parameters[3] = {offsetof(VexGuestAMD64State, guest_RDI), offsetof(VexGuestAMD64State, guest_RSI),
                                  offsetof(VexGuestAMD64State, guest_RDX)};
#elif defined(VGA_arm64)
static const Int results = offsetof(VexGuestARM64State, guest_X0);
static const Int parameters[3] = {offsetof(VexGuestARM64State, guest_X0), offsetof(VexGuestARM64State, guest_X1),
                                  offsetof(VexGuestARM64State, guest_X2)};
#else
#error "where arguments and results are passed is known for amd64 and arm64 only"
#endif

static IRExpr *load(IRSB *out, const void *place) {
    IRTemp value = newIRTemp(out->tyenv, Ity_I64);
    addStmtToIRSB(out, IRStmt_WrTmp(value, IRExpr_Load(Iend_LE, Ity_I64, mkIRExpr_HWord((HWord)place))));
    return IRExpr_RdTmp(value);
}

static IRExpr *guest(IRSB *out, Int offset) {
    IRTemp value = newIRTemp(out->tyenv, Ity_I64);
    addStmtToIRSB(out, IRStmt_WrTmp(value, IRExpr_Get(offset, Ity_I64)));
    return IRExpr_RdTmp(value);
}

static void add(IRSB *out, ULong *counter, UInt amount) {
    IRTemp sum = newIRTemp(out->tyenv, Ity_I64);
    IRExpr *addition = IRExpr_Binop(Iop_Add64, load(out, counter), IRExpr_Const(IRConst_U64(amount)));
    addStmtToIRSB(out, IRStmt_WrTmp(sum, addition));
    addStmtToIRSB(out, IRStmt_Store(Iend_LE, mkIRExpr_HWord((HWord)counter), IRExpr_RdTmp(sum)));
}

#define CALL(out, helper, arguments) dirty(out, #helper, (void *)helper, arguments, NULL)

static void dirty(IRSB *out, const HChar *name, void *helper, IRExpr **arguments, IRExpr *condition) {
    Int registers = 0;
    while (arguments[registers]) registers++;
    IRDirty *call = unsafeIRDirty_0_N(registers, name, VG_(fnptr_to_fnentry)(helper), arguments);
    if (condition) call->guard = condition;
    addStmtToIRSB(out, IRStmt_Dirty(call));
}

/* Calls a helper if this block is not in the shadow stack's current function. */
static void check(IRSB *out, const VexGuestLayout *layout, Addr address, Function *function, Bool is_entry,
                  Object *nameless_in) {
    UInt *place = nameless_in ? &now.nameless_in : &now.function_id;
    IRTemp present = newIRTemp(out->tyenv, Ity_I32), differs = newIRTemp(out->tyenv, Ity_I1);
    addStmtToIRSB(out, IRStmt_WrTmp(present, IRExpr_Load(Iend_LE, Ity_I32, mkIRExpr_HWord((HWord)place))));
    IRExpr *expected = IRExpr_Const(IRConst_U32(nameless_in ? nameless_in->id : function->id));
    IRExpr *comparison = IRExpr_Binop(Iop_CmpNE32, IRExpr_RdTmp(present), expected);
    addStmtToIRSB(out, IRStmt_WrTmp(differs, comparison));
    IRExpr *what = mkIRExpr_HWord(nameless_in ? (HWord)address : (HWord)function);
    IRExpr **arguments = mkIRExprVec_2(what, guest(out, layout->offset_SP));
    IRExpr *condition = IRExpr_RdTmp(differs);
    if (nameless_in) dirty(out, "on_nameless", on_nameless, arguments, condition);
    else if (is_entry) dirty(out, "on_entry", on_entry, arguments, condition);
    else dirty(out, "on_jump", on_jump, arguments, condition);
}

static void report_call(IRSB *out, const VexGuestLayout *layout, IRExpr *target) {
    CallSite *site = take(sizeof *site);
    IRExpr *where = mkIRExpr_HWord((HWord)site), *sp = guest(out, layout->offset_SP);
    if (target->tag == Iex_Const) {
        site->function = function_at((Addr)target->Iex.Const.con->Ico.U64);
        CALL(out, on_call, mkIRExprVec_2(where, sp));
    } else {
        CALL(out, on_call_by_address, mkIRExprVec_3(where, sp, target));
    }
}

static void watch_heap(IRSB *out, const Function *function) {
    Int second = function->heap == HEAP_SIZE_THIRD ? 2 : 1;
    IRExpr **arguments = mkIRExprVec_3(mkIRExpr_HWord(function->heap), guest(out, parameters[0]),
                                       guest(out, parameters[second]));
    heap_hooks++;
    CALL(out, on_heap, arguments);
}

static void count(IRSB *out, Function *function, Addr address, UInt instructions, const UChar *lengths) {
    if (!instructions) return;
    add(out, &now.instructions, instructions);
    if (!total_only) add(out, &run_at(address, function, instructions, lengths)->count, 1);
}

IRSB *translate(VgCallbackClosure *closure, IRSB *in, const VexGuestLayout *layout, const VexGuestExtents *extents,
                const VexArchInfo *host, IRType guest_word, IRType host_word) {
    IRSB *out = deepCopyIRSBExceptStmts(in);
    UChar lengths[LONGEST];
    Addr block = extents->base[0], first = 0;
    Function *function = NULL;
    Bool is_entry = False, begun = False;
    Object *object = NULL;
    CodeKind kind = CODE_STUB;
    UInt instructions = 0;
    Int i = 0;
    if (!total_only) kind = code_at(block, &function, &is_entry, &object);
    for (; i < in->stmts_used; i++) {
        IRStmt *statement = in->stmts[i];
        if (!statement || statement->tag == Ist_NoOp) continue;
        if (statement->tag == Ist_IMark) {
            if (!begun && !total_only && kind != CODE_STUB) {
                check(out, layout, block, function, is_entry, kind == CODE_NAMELESS ? object : NULL);
                if (is_entry && function->heap != HEAP_NONE) watch_heap(out, function);
            }
            begun = True;
            if (!instructions) first = statement->Ist.IMark.addr;
            tl_assert(instructions < LONGEST);
            lengths[instructions++] = statement->Ist.IMark.len;
        }
        if (statement->tag == Ist_Exit) {
            count(out, function, first, instructions, lengths);
            instructions = 0;
        }
        addStmtToIRSB(out, statement);
    }
    count(out, function, first, instructions, lengths);
    if (total_only) return out;
    if (in->jumpkind == Ijk_Call) report_call(out, layout, in->next);
    if (in->jumpkind == Ijk_Ret)
        CALL(out, on_return, mkIRExprVec_2(guest(out, layout->offset_SP), guest(out, results)));
    return out;
}
