// Second launch of a product on tensor cores: FP16 parts of operands whose vectors run across stored rows, and
// equilibration along K where it is needed.
//
//   A[i][k] = (high + low) * root_a[i]^2 * 2^-t[k],   B[k][j] = (high + low) * root_b[j]^2 * 2^t[k],   t = 0 as a rule
//
// Idea      first_pass.cu found the maxima. If its samples do not rule out that operands need equilibration, blocks find
//           the largest scaled elements of each k first, and do both passes again with t if these ask for it: phases
//           of this launch, so that no decision is the host's.
// Mapping   512 threads, an item a block: tiles of UNIT_ROWS rows x 128 columns a warp. In phases, items by ticket.
// Traffic   what runs across once more, from L2 if it is there; its parts
// Limit     DRAM; for small sizes, and where nothing runs across, the launch
// Source    as first_pass.cu

#include "passes_over_operands.cuh"
#include "phases.cuh"
#include "terms.cuh"

// Whether no product of the largest elements of a k is as large as it should be.
__device__ bool needs_equilibration(const unsigned* in_a, const unsigned* in_b, int K)
{
    for (int begin = 0; begin < K; begin += THREADS) {
        const int k = begin + threadIdx.x;
        const bool is_large = k < K && exponent_of(in_a[k]) + exponent_of(in_b[k]) >= LEAST_EXPONENT;
        if (__syncthreads_or(is_large)) return false;
    }
    return true;
}

// Look at all elements, and repeat both passes with equilibration if it is needed. A function of its own, so that it takes
// no registers from the usual case.
__device__ __noinline__ bool equilibrated(Arguments arguments)
{
    const Operands all(arguments);
    const int of_a = all.a.tile_items(), of_b = all.b.tile_items();
    run_phase(all.control, 0, of_a + of_b, false, [&](int item) {
        if (item < of_a)
            all.a.find_maxima_along_k(item);
        else
            all.b.find_maxima_along_k(item - of_a);
    });
    if (!needs_equilibration(all.a.along_k, all.b.along_k, all.a.K)) return false;
    run_phase(all.control, 1, all.first_items(), false, [&](int item) { all.first_pass<true>(item); });
    run_phase(all.control, 2, all.second_items(), true, [&](int item) { all.second_pass<true>(item); });
    return true;
}

extern "C" __global__ void __launch_bounds__(THREADS, 2)
split_second_pass(const float* A, const float* B, int M, int N, int K, int lda, int ldb, char* workspace, long long zero_bytes,
                  long long begin_a, long long begin_b, int pitch_a, int pitch_b)
{
    const Arguments arguments = {A, B, M, N, K, lda, ldb, workspace, zero_bytes, begin_a, begin_b, pitch_a, pitch_b};
    const Operands operands(arguments);
    let_next_launch_start();
    wait_for_last_launch();
    if (operands.control->suspect) {
        if (blockIdx.x == 0 && threadIdx.x == 0) *operands.terms = SOME;  // equilibration changes the spread
        if (equilibrated(arguments)) return;
    }
    // the rows that the first pass read last are still in L2
    const int item = operands.second_items() - 1 - int(blockIdx.x);
    if (item >= 0) operands.second_pass<false>(item);
}
