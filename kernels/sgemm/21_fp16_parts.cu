// Rung 21, FP16 parts: half of the tensor instructions, for a scale of each row and column of a tile.
//
//   C = alpha * A * B + beta * C     A: M x K, B: K x N, C: M x N, float32, row-major
//
// Idea      FP16 has the 11 bits of TF32 and twice its rate, but only 5 bits of exponent. So each row of
//           a tile of A, and each column of one of B, is first multiplied by the power of two that
//           brings its largest element to 2^14 to 2^15, which is exact; sums of a phase are
//           multiplied by both inverses when they are added to those in registers. Parts are
//           made once for a block, on the way from registers to shared memory, where rung 20 splits
//           in every warp that reads.
// Mapping   block tile 128 x 128 in phases of depth 32, warp tiles of 64 x 32 of 4 x 4 products
//           m16n8k16. Rows of A are in 8 lanes, columns of B in 8 lanes of 4 passes: maxima need
//           shuffles alone. ldmatrix brings all fragments, transposed for B. Of 16 columns, the two
//           products of a pair have every other pair, so that a thread stores four neighbours.
//           Two stages: the next tiles are loaded into registers while this phase computes.
// Traffic   multiples of 128:
//           per element of C: K/64 global loads in K/256; 1 global store in 1/4; 5K/256 shared stores in
//                             29K/2048, 7K/128 shared loads in 7K/512, both with scales
//           intensity:        32 FLOP per byte loaded
// Warp      A: 16 sectors per request (4 rows of 128 bytes); B: 16 (8 rows of 64 bytes); C: 16
//           shared: no bank conflict; A 4 wavefronts per read, B 4; stores of A 2, stores of B 1
// Limit     Tensor cores: 96 products per phase and warp, at 6 clocks each 576; beside them about 400
//           other instructions. What is small beside the largest of its row and tile loses bits: below
//           2^-17 of it, an error of 2^-39 of the largest stays. Where the largest of a column of a tile of B
//           is above about 2^107, a sum may overflow although the result is finite: it is multiplied by the
//           inverse scale of B before that of A. Inf gives NaN in its row or column of C.
// Source    Ootomo and Yokota, "Recovering single precision accuracy from Tensor Cores" (2022), for the parts.

constexpr int BM = 128, BN = 128, BK = 32;
constexpr int WM = 64, WN = 32;  // of a warp
constexpr int THREADS = BM / WM * (BN / WN) * 32;
constexpr int DOWN = WM / 16, ACROSS = WN / 8;  // products of a warp tile
constexpr int PASSES = 4;                       // float4 of A, and of B, that a thread copies
static_assert(PASSES * THREADS * 4 == BM * BK && BM == BN, "each thread copies as much");

struct Stage {
    unsigned short a[2][BM][BK];  // high parts and low ones; pieces of 16 bytes swizzled by the row
    unsigned short b[2][BK][BN];  // and by k
    float scale_a[BM];            // inverse scales; the eight of a lane are neighbours
    float scale_b[BN];
};

#include "in_quads.cuh"
#include "fp16.cuh"

// Load four floats of a row that has `left` from here on; zeros beyond.
__device__ float4 load_four(const float* from, int left)
{
    return make_float4(left > 0 ? from[0] : 0.0f, left > 1 ? from[1] : 0.0f, left > 2 ? from[2] : 0.0f,
                       left > 3 ? from[3] : 0.0f);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
sgemm_fp16_parts(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C,
                 int M, int N, int K, float alpha, float beta)
{
    extern __shared__ __align__(128) char shared[];
    Stage* const stages = reinterpret_cast<Stage*>(shared);

#include "block_tile.cuh"

    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int warp_row = warp / (BN / WN) * WM, warp_col = warp % (BN / WN) * WN;
    const int group = lane / 4, member = lane % 4;
    const bool quads_c = in_quads(C, N);
    const bool whole = first_row + BM <= M && first_col + BN <= N && in_quads(A, K) && in_quads(B, N);

    // this thread's floats of the next tiles: of A rows `a_row` + 32 pass, of B rows `b_row` + 8 pass
    const int a_row = threadIdx.x / 8, a_quad = threadIdx.x % 8;
    const int b_row = group, b_col = warp * 16 + member * 4;
    float4 next_a[PASSES], next_b[PASSES];
    const float* from_a = A + size_t(first_row + a_row) * K + a_quad * 4;
    const float* from_b = B + size_t(b_row) * N + first_col + b_col;
    const auto load = [&](int phase) {
#pragma unroll
        for (int pass = 0; pass < PASSES; ++pass) {
            const float* const a = from_a + size_t(pass) * 32 * K;
            const float* const b = from_b + size_t(pass) * 8 * N;
            if (whole && phase + BK <= K) {
                next_a[pass] = *reinterpret_cast<const float4*>(a);
                next_b[pass] = *reinterpret_cast<const float4*>(b);
            } else {
                next_a[pass] = load_four(a, first_row + a_row + 32 * pass < M ? K - phase - a_quad * 4 : 0);
                next_b[pass] = load_four(b, phase + b_row + 8 * pass < K ? N - first_col - b_col : 0);
            }
        }
        from_a += BK;
        from_b += size_t(BK) * N;
    };
    // split them into a stage
    const auto store = [&](Stage& to) {
#pragma unroll
        for (int pass = 0; pass < PASSES; ++pass) {
            const int row = a_row + 32 * pass, at = (a_quad / 2 ^ row / 2 % 4) * 8 + a_quad % 2 * 4;
            const float4 x = next_a[pass];
            float most = fmaxf(fmaxf(fabsf(x.x), fabsf(x.y)), fmaxf(fabsf(x.z), fabsf(x.w)));
#pragma unroll
            for (int other = 1; other < 8; other *= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffff, most, other));
            const Scale scale(most);
            to.scale_a[row / 64 * 64 + row % 8 * 8 + row % 64 / 8] = scale.inverse();
            uint2 high, low;
            split(x.x * scale.factor(), x.y * scale.factor(), high.x, low.x);
            split(x.z * scale.factor(), x.w * scale.factor(), high.y, low.y);
            *reinterpret_cast<uint2*>(&to.a[0][row][at]) = high;
            *reinterpret_cast<uint2*>(&to.a[1][row][at]) = low;
        }
        float4 most = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
        for (int pass = 0; pass < PASSES; ++pass) {
            const float4 x = next_b[pass];
            most = make_float4(fmaxf(most.x, fabsf(x.x)), fmaxf(most.y, fabsf(x.y)), fmaxf(most.z, fabsf(x.z)),
                               fmaxf(most.w, fabsf(x.w)));
        }
#pragma unroll
        for (int other = 4; other < 32; other *= 2) {
            most.x = fmaxf(most.x, __shfl_xor_sync(0xffffffff, most.x, other));
            most.y = fmaxf(most.y, __shfl_xor_sync(0xffffffff, most.y, other));
            most.z = fmaxf(most.z, __shfl_xor_sync(0xffffffff, most.z, other));
            most.w = fmaxf(most.w, __shfl_xor_sync(0xffffffff, most.w, other));
        }
        const Scale x(most.x), y(most.y), z(most.z), w(most.w);
        *reinterpret_cast<float4*>(&to.scale_b[b_col]) = make_float4(x.inverse(), y.inverse(), z.inverse(), w.inverse());
#pragma unroll
        for (int pass = 0; pass < PASSES; ++pass) {
            const int k = b_row + 8 * pass;
            const float4 four = next_b[pass];
            unsigned high, low;
            split(four.x * x.factor(), four.y * y.factor(), high, low);
            unsigned short* const at = &to.b[0][k][(2 * warp ^ k % 8) * 8 + member * 2];
            *reinterpret_cast<unsigned*>(at) = high;
            *reinterpret_cast<unsigned*>(at + BK * BN) = low;
            split(four.z * z.factor(), four.w * w.factor(), high, low);
            unsigned short* const beside = &to.b[0][k][(2 * warp + 1 ^ k % 8) * 8 + member * 2];
            *reinterpret_cast<unsigned*>(beside) = high;
            *reinterpret_cast<unsigned*>(beside + BK * BN) = low;
        }
    };

    float sum[DOWN][ACROSS][4] = {};
    load(0);
    store(stages[0]);
    __syncthreads();
    for (int phase = 0, current = 0; phase < K; phase += BK, current ^= 1) {
        const bool goes_on = phase + BK < K;
        if (goes_on) load(phase + BK);
        const Stage& tiles = stages[current];
        float part[DOWN][ACROSS][4] = {};
#pragma unroll
        for (int step = 0; step < BK / 16; ++step) {
            unsigned b[2][ACROSS][2];
            const int k = step * 16 + lane % 16;
#pragma unroll
            for (int half = 0; half < 2; ++half)
#pragma unroll
                for (int j = 0; j < ACROSS; j += 2)
                    load_transposed(b[half][j], b[half][j + 1],
                                    &tiles.b[half][k][(warp_col / 8 + j + lane / 16 ^ k % 8) * 8]);
#pragma unroll
            for (int half = 1; half >= 0; --half) {  // of A: the small products first
#pragma unroll
                for (int i = 0; i < DOWN; ++i) {
                    const int row = warp_row + 16 * i + lane % 16;
                    unsigned a[4];
                    load_matrices(a, &tiles.a[half][row][(2 * step + lane / 16 ^ row / 2 % 4) * 8]);
#pragma unroll
                    for (int of_b = 1 - half; of_b >= 0; --of_b)
#pragma unroll
                        for (int j = 0; j < ACROSS; ++j) multiply(part[i][j], a, b[of_b][j]);
                }
            }
        }
        float down[2 * DOWN], across[ACROSS * 2];
#pragma unroll
        for (int i = 0; i < 2 * DOWN; i += 4)
            *reinterpret_cast<float4*>(&down[i]) = *reinterpret_cast<const float4*>(&tiles.scale_a[warp_row + group * 8 + i]);
#pragma unroll
        for (int j = 0; j < ACROSS * 2; j += 4)
            *reinterpret_cast<float4*>(&across[j]) =
                *reinterpret_cast<const float4*>(&tiles.scale_b[warp_col + j * 4 + member * 4]);
#pragma unroll
        for (int i = 0; i < DOWN; ++i)
#pragma unroll
            for (int j = 0; j < ACROSS; ++j)
#pragma unroll
                for (int q = 0; q < 4; ++q)
                    sum[i][j][q] = fmaf(part[i][j][q] * across[2 * j + q % 2], down[2 * i + q / 2], sum[i][j][q]);
        if (goes_on) store(stages[current ^ 1]);
        __syncthreads();
    }

    // C = alpha * sum + beta * C; by floats where rows do not begin on 16 bytes
#pragma unroll
    for (int i = 0; i < DOWN; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int row = first_row + warp_row + 16 * i + 8 * half + group;
            if (row >= M) break;
#pragma unroll
            for (int j = 0; j < ACROSS; j += 2) {
                const int col = first_col + warp_col + 8 * j + member * 4;
                float* const c = C + size_t(row) * N + col;
                const float four[4] = {sum[i][j][2 * half], sum[i][j][2 * half + 1], sum[i][j + 1][2 * half],
                                       sum[i][j + 1][2 * half + 1]};
                if (quads_c) {
                    if (col >= N) break;
                    float4* const quad = reinterpret_cast<float4*>(c);
                    const float4 old = beta == 0.0f ? make_float4(0.0f, 0.0f, 0.0f, 0.0f) : *quad;
                    *quad = make_float4(alpha * four[0] + beta * old.x, alpha * four[1] + beta * old.y,
                                        alpha * four[2] + beta * old.z, alpha * four[3] + beta * old.w);
                } else {
#pragma unroll
                    for (int q = 0; q < 4; ++q)
                        if (col + q < N) c[q] = beta == 0.0f ? alpha * four[q] : alpha * four[q] + beta * c[q];
                }
            }
        }
}
