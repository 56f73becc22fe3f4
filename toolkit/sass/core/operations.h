/* All operations of the core, by number. The file of a group defines the operations of its list. */
#pragma once

#include "core.h"

typedef void Handler(Worker *core, Warp *w, const Ins *i, u32 m);

/* An operation of the core, op_NAME: what instruction i does in the lanes m of warp w. */
#define UNUSED __attribute__((unused))
#define OPERATION(NAME) \
    void op_##NAME(UNUSED Worker *core, UNUSED Warp *w, UNUSED const Ins *i, UNUSED u32 m)

#define INTEGER_OPS(OP)                                                                         \
    OP(MOV) OP(MOV64) OP(IADD3) OP(ADD64) OP(ADD_PACKED) OP(IMAD) OP(IMAD_WIDE) OP(DOT) \
    OP(SHIFT_LEFT) OP(SHIFT_RIGHT) OP(SHIFT_RIGHT_SIGNED) OP(FUNNEL) \
    OP(LEA) OP(LOP3) OP(PLOP3) OP(ISETP) OP(ISETP64) OP(MINMAX) OP(MINMAX64) OP(ABSDIFF)       \
    OP(IABS) OP(SEL) OP(SEL64) OP(PRMT) OP(POPC) OP(FLO) OP(BREV) OP(BMSK) OP(SGXT)            \
    OP(SATURATE) OP(SATURATE_PACK) OP(P2R) OP(R2P)

#define ARITHMETIC_OPS(OP, NAME) OP(NAME) OP(NAME##_FTZ) OP(NAME##_MODIFIED) OP(NAME##2)
#define FLOATING_OPS(OP)                                                                       \
    ARITHMETIC_OPS(OP, FADD) ARITHMETIC_OPS(OP, FMUL) ARITHMETIC_OPS(OP, FFMA)                 \
    OP(FMUL_SCALED) OP(FSETP) OP(FSET) OP(FMNMX) OP(FMNMX3) OP(FCHK)

#define DOUBLE_OPS(OP) OP(DADD) OP(DMUL) OP(DFMA) OP(DSETP) OP(DSETP_EXTREME)

#define HALF_OPS(OP)                                                                            \
    OP(HFMA2) OP(WIDEN_HALF) OP(FHFMA) OP(HSETP2) OP(HSET2) OP(HMNMX2)

#define CONVERT_OPS(OP)                                                   \
    OP(F2I) OP(I2F) OP(I2D) OP(I2H) OP(F64_TO_F32) OP(TO_F64) OP(TO_HALF) \
    OP(PACK_HALVES) OP(PACK_BYTES) OP(UNPACK_BYTES) OP(ROUND_TF32) OP(FRND)

#define SPECIAL_OPS(OP)                                                                        \
    OP(MUFU_RCP) OP(MUFU_RSQ) OP(MUFU_SQRT) OP(MUFU_EX2) OP(MUFU_SIN) OP(MUFU_COS)             \
    OP(MUFU_TANH) OP(MUFU_LG2) OP(MUFU_RCP64H) OP(MUFU_RSQ64H)

#define MEMORY_OPS(OP) OP(LOAD) OP(STORE) OP(LOAD_CONSTANT)

#define MATRIX_OPS(OP) OP(MATRIX_LOAD) OP(MATRIX_STORE) OP(MATRIX_TRANSPOSE) OP(MATRIX_WIDEN)

#define MMA_OPS(OP) OP(MMA) OP(MMA_INTEGER) OP(MMA_BITS) OP(MMA_DOUBLE) OP(MMA_QUADS) \
    OP(MMA_SCALED) OP(MMA_SCALED_FOURS)

#define GMMA_OPS(OP) OP(GMMA) OP(GMMA_ARRIVE) OP(GMMA_WAIT) OP(REGISTERS_TAKE) OP(REGISTERS_GIVE)

#define ATOMIC_OPS(OP) OP(ATOMIC) OP(IN_SPACE) OP(COPY_ASYNC)

#define MBARRIER_OPS(OP) \
    OP(MBARRIER_EXCHANGE) OP(MBARRIER_ARRIVE) OP(MBARRIER_CHECK) OP(MBARRIER_COUNT)

#define BULK_OPS(OP)                                                                         \
    OP(TENSOR_LOAD) OP(TENSOR_STORE) OP(BULK_LOAD) OP(BULK_STORE) OP(BULK_SHARED)            \
    OP(BULK_GROUP) OP(BULK_WAIT) OP(STORE_ASYNC) OP(SHARED_ZEROS)

#define WARP_OPS(OP)                                                                      \
    OP(SHFL) OP(VOTE) OP(ELECT) OP(MATCH) OP(REDUX) OP(R2UR) OP(READ_SPECIAL) OP(CLOCK64) \
    OP(BARRIER_READ) OP(BARRIER_WRITE) OP(BARRIER_MOVE) OP(BARRIER_RESULT)

#define TEXTURE_OPS(OP)                                                                  \
    OP(TEXTURE) OP(TEXTURE_QUERY) OP(SURFACE_LOAD) OP(SURFACE_STORE) OP(SURFACE_REDUCE)

#define CHECK_OPS(OP)                                                                     \
    OP(CHECK_LOAD) OP(CHECK_STORE) OP(CHECK_ATOMIC) OP(CHECK_COPY_ASYNC) OP(CHECK_COMMIT) \
    OP(CHECK_WAIT) OP(CHECK_FENCE) OP(CHECK_COLLECTIVE) OP(CHECK_MATRIX_LOAD)             \
    OP(CHECK_MATRIX_STORE) OP(CHECK_GMMA) OP(CHECK_GMMA_ARRIVE) OP(CHECK_GMMA_WAIT)       \
    OP(CHECK_PROXY_FENCE)

#define DATA_OPS(OP)                                                                           \
    INTEGER_OPS(OP) FLOATING_OPS(OP) DOUBLE_OPS(OP) HALF_OPS(OP) CONVERT_OPS(OP)               \
    SPECIAL_OPS(OP) MEMORY_OPS(OP) MATRIX_OPS(OP) MMA_OPS(OP) GMMA_OPS(OP) ATOMIC_OPS(OP)     \
    MBARRIER_OPS(OP) BULK_OPS(OP) WARP_OPS(OP) TEXTURE_OPS(OP) CHECK_OPS(OP)

/* Operations that decide where lanes go on; every other one goes on with the next instruction, and so
 * do those of the second list without a lane whose guard is true. */
#define WARP_CONTROL_OPS(OP)                                                                  \
    OP(BRANCH) OP(BRANCH_INDIRECT) OP(BRANCH_IF_SPLIT) OP(BRANCH_IF_WHOLE) OP(BSSY) OP(BREAK) \
    OP(YIELD)
#define LANE_CONTROL_OPS(OP)                                                             \
    OP(CALL_SYSTEM) OP(EXIT) OP(BSYNC) OP(WARPSYNC) OP(BARRIER) OP(TRAP) OP(CLUSTER_ARRIVE) \
    OP(CLUSTER_WAIT)
#define CONTROL_OPS(OP) WARP_CONTROL_OPS(OP) LANE_CONTROL_OPS(OP)

enum {
    OP_NOP,
#define NAME(x) OP_##x,
    DATA_OPS(NAME) FIRST_CONTROL,
    LAST_DATA = FIRST_CONTROL - 1,
    CONTROL_OPS(NAME) OPS_END
#undef NAME
};

/* Each operation that is no control flow is a function. */
#define DECLARED(x) Handler op_##x;
DECLARED(NOP) DATA_OPS(DECLARED)
#undef DECLARED

extern Handler *const handlers[];

static inline Handler *handler_of(u32 op) { return handlers[op]; }
