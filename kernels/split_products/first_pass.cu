// First launch of a product on tensor cores: scales, and the FP16 parts of operands whose vectors run along stored rows.
//
//   A[i][k] = (high + low) * root_a[i]^2,   B[k][j] = (high + low) * root_b[j]^2
//
// Idea      The vectors that have a scale are rows of A and columns of B. Where they run along stored rows, warps hold a row in
//           registers between its maximum and its split: one pass. Where they run across, this pass finds maxima, and
//           second_pass.cu splits. Two blocks more look at a few vectors: for equilibration, and for how sums are made.
// Mapping   512 threads, an item a block: rows by ROW_WARPS warps each, or tiles of UNIT_ROWS rows x 128 columns a warp
// Traffic   A and B once, parts of what runs along: as many bytes as it has
// Limit     DRAM, or L2 if the operands are there; for small sizes the launch
// Source    Ootomo and Yokota, "Recovering single precision accuracy from Tensor Cores" (2022), for the parts

#include "passes_over_operands.cuh"
#include "samples.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, 2)
split_first_pass(const float* A, const float* B, int M, int N, int K, int lda, int ldb, char* workspace, long long zero_bytes,
                 long long begin_a, long long begin_b, int pitch_a, int pitch_b)
{
    const Operands operands({A, B, M, N, K, lda, ldb, workspace, zero_bytes, begin_a, begin_b, pitch_a, pitch_b});
    let_next_launch_start();
    if (blockIdx.x > 1)
        operands.first_pass<false>(blockIdx.x - 2);
    else if (blockIdx.x == 1)
        find_terms(operands.a, operands.b, operands.terms);
    else if (!samples_suffice(operands.a, operands.b) && threadIdx.x == 0)
        operands.control->suspect = 1;
}
