// Rung 14, fenced: the multiply-adds stay in the order in which they are written.
//
//   C = alpha * A * B + beta * C     A: M x K, B: K x N, C: M x N, float32, row-major
//
// Idea      The order of rungs 12 and 13 reads two operands per multiply-add where there were three:
//           to and fro along the rows of the thread's tile, a value of A stays 16 times (.reuse), a
//           value of B at each turn, and the two that are read come from both register banks. The
//           compiler undoes it by mixing steps in k. An instruction that it moves nothing across
//           ends each step: pmevent, which triggers a profiler's event and does nothing else.
// Mapping   as rung 13: block tile 128 x 128 in phases of depth 32, 8 x 16 elements per thread.
// Traffic   at STAGES = 3, multiples of 128:
//           per element of C: K/64 global loads, that end in shared memory; 1 global store in 1/4;
//                             3K/16 shared loads in 3K/64
//           intensity:        32 FLOP per byte loaded
// Warp      C: 16 sectors per request (8 rows of 64 bytes)
//           shared: no bank conflict; A 2 wavefronts per read, B 2
// Limit     The issue of instructions, and reads of shared memory, whose results take turns with those
//           of multiply-adds on the way to the registers. N and K must be multiples of 4.
// Source    Scott Gray, maxas, "SGEMM"; "Dissecting the Volta architecture" (Jia et al., 2018) on register
//           banks and reuse; PTX ISA, "pmevent".

#ifndef STAGES
#define STAGES 3
#endif

constexpr int BM = 128, BN = 128, BK = 32;
constexpr int WM = 64, WN = 64;  // of a warp
constexpr int TM = 8, TN = 16;   // of a thread
constexpr int THREADS = (BM / TM) * (BN / TN), WARPS = THREADS / 32;
constexpr int LANES_M = WM / TM, LANES_N = WN / TN;
constexpr unsigned FLOAT = 4, QUAD = 16;  // bytes
constexpr unsigned A_ROW = BK * FLOAT, B_ROW = BN * FLOAT, A_BYTES = BM * A_ROW, STAGE_BYTES = A_BYTES + BK * B_ROW;
static_assert(LANES_M == 8 && A_ROW == 128, "the row of A within 8 is the lane's: one swizzle for all rows of a thread");

struct __align__(64) TensorMap { char opaque[128]; };

// Barriers in shared memory, by their address there.
__device__ void init(unsigned barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(arrivals) : "memory");
}
__device__ void arrive(unsigned barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(barrier) : "memory");
}
__device__ void wait(unsigned barrier, unsigned parity)
{
    asm volatile("{ .reg .pred done;"
                 "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;"
                 "@!done bra again; }" :: "r"(barrier), "r"(parity) : "memory");
}

// The tiles of A and B at (row, k) and (k, column) go to `stage`; `barrier` counts their bytes.
__device__ void copy(unsigned stage, unsigned barrier, const TensorMap& a, const TensorMap& b, int row, int column, int k)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(barrier), "r"(STAGE_BYTES) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 :: "r"(stage), "l"(&a), "r"(k), "r"(row), "r"(barrier) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 :: "r"(stage + A_BYTES), "l"(&b), "r"(column), "r"(k), "r"(barrier) : "memory");
}

__device__ float4 read(unsigned address)
{
    float4 quad;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(quad.x), "=f"(quad.y), "=f"(quad.z), "=f"(quad.w) : "r"(address));
    return quad;
}

// two blocks per SM, and therefore at most 255 registers
extern "C" __global__ void __launch_bounds__(THREADS, 2)
sgemm_fenced(const __grid_constant__ TensorMap A, const __grid_constant__ TensorMap B, float* __restrict__ C,
             int M, int N, int K, float alpha, float beta)
{
    extern __shared__ __align__(1024) char ring_of_tiles[];
    __shared__ __align__(8) unsigned long long full_barriers[STAGES], empty_barriers[STAGES];
    unsigned ring = __cvta_generic_to_shared(ring_of_tiles);
    unsigned full = __cvta_generic_to_shared(full_barriers), empty = __cvta_generic_to_shared(empty_barriers);
    asm volatile("" : "+r"(ring), "+r"(full), "+r"(empty));  // computed here, once

    // gridDim.y ends at 65,535: blockIdx.z carries on where it does
    const int first_row = (blockIdx.z * gridDim.y + blockIdx.y) * BM, first_col = blockIdx.x * BN;
    if (first_row >= M) return;  // the whole block: no barrier is left waiting

    const int t = threadIdx.x, warp = t / 32;
    const int lane_m = t >> 1 & 1 | t >> 2 & 6, lane_n = t & 1 | t >> 1 & 2;
    const int c_row = warp / (BN / WN) * WM + lane_m;
    const int c_col = warp % (BN / WN) * WN + lane_n * 4;

    const int phases = (K + BK - 1) / BK;
    const auto start = [&](int phase) {
        const int stage = phase % STAGES;
        copy(ring + stage * STAGE_BYTES, full + 8 * stage, A, B, first_row, first_col, phase * BK);
    };
    if (t == 0) {
        for (int stage = 0; stage < STAGES; ++stage) init(full + 8 * stage, 1), init(empty + 8 * stage, WARPS);
        asm volatile("fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;" ::: "memory");
        for (int phase = 0; phase < STAGES - 1 && phase < phases; ++phase) start(phase);
    }
    __syncthreads();  // the barriers are there

    float sum[TM][TN] = {};
    float4 a[TM];       // 4 values of k
    float b[2][TN];     // this k and the next
    unsigned from_a = ring + c_row * A_ROW, from_b = ring + A_BYTES + c_col * FLOAT;
    const auto read_a = [&](int i, unsigned row, int quad) {
        a[i] = read(row + i * LANES_M * A_ROW + (quad ^ lane_m) * QUAD);
    };
    const auto read_b = [&](float (&to)[TN], unsigned row) {
#pragma unroll
        for (int j = 0; j < TN; j += 4)
            *reinterpret_cast<float4*>(&to[j]) = read(row + j * LANES_N * FLOAT);
    };
    // 4 steps in k; then `next_a` and `next_b` are where to read on, at piece `quad` of A's rows
    const auto compute = [&](unsigned next_a, int quad, unsigned next_b) {
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            read_b(b[(k + 1) % 2], k < 3 ? from_b + (k + 1) * B_ROW : next_b);
#pragma unroll
            for (int i = 0; i < TM; ++i) {
                const float value = k == 0 ? a[i].x : k == 1 ? a[i].y : k == 2 ? a[i].z : a[i].w;
#pragma unroll
                for (int step = 0; step < TN; ++step) {
                    const int j = i % 2 ? TN - 1 - step : step;  // to and fro
                    sum[i][j] += value * b[k % 2][j];
                }
                if (k == 3) read_a(i, next_a, quad);
            }
            asm volatile("pmevent 0;");  // a fence to the compiler's scheduler, nothing to the kernel
        }
        from_a = next_a;
        from_b = next_b;
    };

    int stage = 0;
    unsigned parity = 0;  // of the ring's turn
    wait(full, 0);
#pragma unroll
    for (int i = 0; i < TM; ++i) read_a(i, from_a, 0);
    read_b(b[0], from_b);
    for (int phase = 0; phase < phases; ++phase) {
#pragma unroll 1
        for (int quad = 1; quad < BK / 4; ++quad) compute(from_a, quad, from_b + 4 * B_ROW);
        if (t == 0 && phase + STAGES - 1 < phases) {
            if (phase > 0) wait(empty + 8 * ((phase - 1) % STAGES), (phase - 1) / STAGES & 1);
            start(phase + STAGES - 1);  // where the phase before this one was
        }
        const unsigned drained = empty + 8 * stage;
        if (++stage == STAGES) stage = 0, parity ^= 1;
        if (phase + 1 < phases) wait(full + 8 * stage, parity);
        const unsigned next = ring + stage * STAGE_BYTES;
        compute(next + c_row * A_ROW, 0, next + A_BYTES + c_col * FLOAT);
        __syncwarp();  // all lanes have read
        if (t % 32 == 0) arrive(drained);
    }

#pragma unroll
    for (int i = 0; i < TM; ++i) {
        const int row = first_row + c_row + i * LANES_M;
        if (row >= M) break;
#pragma unroll
        for (int j = 0; j < TN; j += 4) {
            const int col = first_col + c_col + j * LANES_N;
            if (col < N) {  // N is a multiple of 4: a float4 is inside or outside, never half
                float4* const quad = reinterpret_cast<float4*>(C + size_t(row) * N + col);
                const float4 old = beta == 0.0f ? make_float4(0.0f, 0.0f, 0.0f, 0.0f) : *quad;
                *quad = make_float4(alpha * sum[i][j] + beta * old.x, alpha * sum[i][j + 1] + beta * old.y,
                                    alpha * sum[i][j + 2] + beta * old.z, alpha * sum[i][j + 3] + beta * old.w);
            }
        }
    }
}
