// Before a product on tensor cores: FP16 parts of A and B, and the scales of rows of A and of columns of B.
//
//   A[i][k] = (high + low) * root_a[i]^2 * 2^-t[k]     B[k][j] = (high + low) * root_b[j]^2 * 2^t[k]     t = 0 as a rule
//
// Idea      Where the vectors that have a scale (rows of A, columns of B) run along stored rows, warps hold a row in
//           registers between its maximum and its split: one pass. Where they run across, one phase finds the
//           maxima, the next one splits. Then a few vectors are looked at: if the largest products of their
//           elements lie far below what the scales allow, the exact maxima along K decide about equilibration, and
//           phases are repeated with it. No decision is the host's. Parts have rows of their own pitch, so that
//           tensor maps take any layout of A and B.
// Mapping   512 threads, two blocks on an SM, items by ticket: rows by ROW_WARPS warps each, or tiles of
//           UNIT_ROWS rows x 128 columns a warp, a quad a lane.
// Traffic   A, B: read once along, twice across (once more from L2 if it is there); parts: as many bytes as A and B
// Limit     DRAM; launches and waits between phases for small sizes
// Source    Ootomo and Yokota, "Recovering single precision accuracy from Tensor Cores" (2022), for the parts.

#ifndef A_ALONG
#define A_ALONG 1  // A is stored M x K, else K x M
#endif
#ifndef B_ALONG
#define B_ALONG 0  // B is stored N x K, else K x N
#endif
#ifndef A_QUADS
#define A_QUADS 0  // rows of A begin on 16 bytes
#endif
#ifndef B_QUADS
#define B_QUADS 0
#endif
#ifndef ROW_WARPS
#define ROW_WARPS 1
#endif
#ifndef ROW_QUADS
#define ROW_QUADS 8
#endif
#ifndef UNIT_ROWS
#define UNIT_ROWS 8
#endif
#ifndef CONTROL_BYTES
#define CONTROL_BYTES 256
#endif

#include "roots.cuh"
#include "halves.cuh"
#include "places.cuh"
#include "phases.cuh"
#include "equilibrium.cuh"
#include "operand.cuh"

constexpr int MOST_STEPS = 4;  // of K that the sample reads, each of THREADS / SAMPLES

template <typename A, typename B> __device__ bool samples_suffice(const A& a, const B& b)
{
    constexpr int DEPTH = THREADS / SAMPLES;
    const int steps = min(MOST_STEPS, (a.K + DEPTH - 1) / DEPTH);
    for (int step = 0; step < steps; ++step) {
        const int k = step * DEPTH + threadIdx.x / SAMPLES, sample = threadIdx.x % SAMPLES;
        int in_a = a.sampled_exponent(sample, k), in_b = b.sampled_exponent(sample, k);
#pragma unroll
        for (int other = SAMPLES / 2; other; other /= 2) {
            in_a = max(in_a, __shfl_xor_sync(0xffffffff, in_a, other));
            in_b = max(in_b, __shfl_xor_sync(0xffffffff, in_b, other));
        }
        if (__syncthreads_or(in_a + in_b >= LEAST_EXPONENT)) return true;
    }
    return false;
}

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

// Rows along, or maxima across.
template <bool EQUILIBRATED, bool ALONG, typename One> __device__ void first_pass(const One& one, unsigned item, Control* control)
{
    if constexpr (ALONG)
        one.template split_rows<EQUILIBRATED>(item, control);
    else
        one.template find_maxima<EQUILIBRATED>(item);
}

// Both passes over both operands, as phases `phase` and `phase` + 1.
template <bool EQUILIBRATED, typename A, typename B> __device__ void first_phase(const A& a, const B& b, Control* control, int phase)
{
    const unsigned of_a = A_ALONG ? a.row_items() : a.tile_items(), of_b = B_ALONG ? b.row_items() : b.tile_items();
    run_phase(control, phase, of_a + of_b, [&](unsigned item) {
        if (item < of_a)
            first_pass<EQUILIBRATED, A_ALONG>(a, item, control);
        else
            first_pass<EQUILIBRATED, B_ALONG>(b, item - of_a, control);
    });
}
template <bool EQUILIBRATED, typename A, typename B> __device__ void second_phase(const A& a, const B& b, Control* control, int phase)
{
    const unsigned of_a = A_ALONG ? 0 : a.tile_items(), of_b = B_ALONG ? 0 : b.tile_items();
    run_phase(control, phase, of_a + of_b, [&](unsigned item) {
        // the rows that the first phase read last are still in L2
        item = of_a + of_b - 1 - item;
        if (int(item) < int(of_a))
            a.template split_columns<EQUILIBRATED>(item, control);
        else
            b.template split_columns<EQUILIBRATED>(item - of_a, control);
    });
}

// Find the exact maxima along K, and repeat the phases with equilibration if these ask for it. A function of its own, so
// that it takes no registers from the usual case.
template <typename A, typename B> __device__ __noinline__ bool equilibrated(const A& a, const B& b, Control* control)
{
    const unsigned of_a = a.tile_items(), of_b = b.tile_items();
    run_phase(control, 1, of_a + of_b, [&](unsigned item) {
        if (item < of_a)
            a.find_maxima_along_k(item);
        else
            b.find_maxima_along_k(item - of_a);
    });
    if (!needs_equilibration(a.along_k, b.along_k, a.K)) return false;
    first_phase<true>(a, b, control, 2);
    second_phase<true>(a, b, control, 3);
    return true;
}

extern "C" __global__ void __launch_bounds__(THREADS, 2)
split_prepare(const float* A, const float* B, int M, int N, int K, int lda, int ldb, char* workspace, long long zero_bytes,
              long long begin_a, long long begin_b, int pitch_a, int pitch_b)
{
    const Places places(workspace, zero_bytes, M);
    Control* const control = places.control;
    unsigned* const maxima_b = places.maxima + 2 * size_t(M);
    unsigned *const in_a = maxima_b + 2 * size_t(N), *const in_b = in_a + K;
    const Operand<A_ALONG, A_QUADS, true> a = {
        A, M, K, lda, pitch_a, reinterpret_cast<unsigned short*>(workspace + begin_a), size_t(A_ALONG ? M : K) * pitch_a,
        places.root_a, places.maxima, places.maxima + M, in_a, in_a, in_b};
    const Operand<B_ALONG, B_QUADS, false> b = {
        B, N, K, ldb, pitch_b, reinterpret_cast<unsigned short*>(workspace + begin_b), size_t(B_ALONG ? N : K) * pitch_b,
        places.root_b, maxima_b, maxima_b + N, in_b, in_a, in_b};
    let_next_launch_start();
    first_phase<false>(a, b, control, 0);
    if (!samples_suffice(a, b) && equilibrated(a, b, control)) return;
    second_phase<false>(a, b, control, 4);
}
