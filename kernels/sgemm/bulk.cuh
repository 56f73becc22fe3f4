// Rungs 13 to 16, 18 and 19: one thread has a pair of tiles copied, BM x BK of A and BK x BN of B.

constexpr int THREADS = (BM / TM) * (BN / TN), WARPS = THREADS / 32;
constexpr int LANES_M = WM / TM, LANES_N = WN / TN;
constexpr unsigned FLOAT = 4, QUAD = 16;  // bytes
constexpr unsigned A_ROW = BK * FLOAT, B_ROW = BN * FLOAT, A_BYTES = BM * A_ROW, STAGE_BYTES = A_BYTES + BK * B_ROW;
static_assert(LANES_M == 8 && A_ROW == 128, "the row of A within 8 is the lane's: one swizzle for all rows of a thread");

#include "barriers.cuh"

// The tiles of A and B at (row, k) and (k, column) go to `stage`; `barrier` counts their bytes.
__device__ void copy(unsigned stage, unsigned barrier, const TensorMap& a, const TensorMap& b, int row, int column, int k)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(barrier), "r"(STAGE_BYTES) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 :: "r"(stage), "l"(&a), "r"(k), "r"(row), "r"(barrier) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 :: "r"(stage + A_BYTES), "l"(&b), "r"(column), "r"(k), "r"(barrier) : "memory");
}
