// The tiles of A and B at (row, k) and (k, column) go to `stage`; `barrier` counts their bytes.
__device__ void copy(unsigned stage, unsigned barrier, const TensorMap& a, const TensorMap& b, int row, int column, int k)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(barrier), "r"(STAGE_BYTES) : "memory");
#pragma unroll
    for (int piece = 0; piece < BK / PIECE; ++piece) {
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                     :: "r"(stage + piece * A_PIECE), "l"(&a), "r"(k + piece * PIECE), "r"(row), "r"(barrier) : "memory");
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                     :: "r"(stage + A_BYTES + piece * B_PIECE), "l"(&b), "r"(column), "r"(k + piece * PIECE), "r"(barrier) : "memory");
    }
}
