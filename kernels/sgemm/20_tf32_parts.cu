// Rung 20, TF32 parts: three products on tensor cores that are as accurate as one in float32.
//
//   C = alpha * A * B + beta * C     A: M x K, B: K x N, C: M x N, float32, row-major
//
// Idea      A tensor core reads 11 bits of a significand. So a float is split into two numbers of 11
//           bits, a = big + small, which leaves an error of 2^-23 of it at most, and
//           a * b = big * big + big * small + small * big, without small * small, which is at most
//           2^-22 of it. TF32 has the exponents of float32: no number needs a scale. Tensor cores
//           cut off the low bits of their sums, which would cost more than the parts do, so
//           each phase of 32 k begins with sums of zero, and is added to float32 registers.
// Mapping   block tile 128 x 128 in phases of depth 32, warp tiles of 64 x 32 of 4 x 4 products
//           m16n8k8. ldmatrix brings fragments of A, as pairs of 16-bit elements; float4 those of B:
//           column 4c + j of a product's n = c is that of product j, so that a thread has four
//           neighbouring columns of B and of C. 16-byte pieces of rows change places, by the row for
//           A, by k for B. Copies as in rung 11, A by 16 bytes too.
// Traffic   at STAGES = 3, multiples of 128:
//           per element of C: K/64 global loads in K/256, that end in shared memory; 1 global store
//                             in 1/4; 3K/64 shared loads in 3K/256
//           intensity:        32 FLOP per byte loaded
// Warp      A: 16 sectors per request (4 rows of 128 bytes); B: 16; C: 16 (8 rows of 64 bytes)
//           shared: no bank conflict; A 4 wavefronts per read, B 4
// Limit     Tensor cores: 48 products per 8 k and warp, at 6 clocks each 288; beside them 96
//           instructions split 24 values. TF32 has half the rate of FP16.
//           Inf, NaN and numbers next to the largest float are not kept. NaN from 0x7ffff000 on, such as
//           0x7fffffff, which GPUs compute, counts as 0. Inf gives Inf and NaN mixed in its row or column of
//           C. Numbers from 0x7f7ff000 (3.402e38) on are rounded to Inf, and give NaN.
// Source    Markidis et al., "NVIDIA Tensor Core Programmability, Performance & Precision" (2018); Ootomo and
//           Yokota, "Recovering single precision accuracy from Tensor Cores" (2022); CUTLASS, 3xTF32.

#ifndef STAGES
#define STAGES 3
#endif

constexpr int BM = 128, BN = 128, BK = 32;
constexpr int WM = 64, WN = 32;  // of a warp
constexpr int THREADS = BM / WM * (BN / WN) * 32;
constexpr int DOWN = WM / 16, ACROSS = WN / 8;  // products of a warp tile
static_assert(ACROSS == 4, "a float4 of B has a column of each product");
static_assert(BK % 32 == 0, "eight pieces of a row of A change places");

struct Stage {
    float a[BM][BK];  // pieces of 16 bytes swizzled by the row
    float b[BK][BN];  // and by k
};

#include "copy_floats.cuh"
#include "in_quads.cuh"
#include "tf32.cuh"

// Copy a tile of A of so many rows and columns; `from` is its first element.
template <bool WHOLE, int WIDTH>
__device__ void copy_a(Stage& to, const float* from, int rows, int columns, int K)
{
    constexpr int PER_ROW = BK / WIDTH, ROWS_PER_PASS = THREADS / PER_ROW;
    static_assert(ROWS_PER_PASS % 8 == 0, "all rows of a thread are swizzled alike");
    const int row = threadIdx.x / PER_ROW, k = threadIdx.x % PER_ROW * WIDTH;
    const int left = k < columns ? rows - row : 0;
    from += size_t(row) * K + k;
#pragma unroll
    for (int pass = 0; pass < BM; pass += ROWS_PER_PASS)
        copy<WHOLE, WIDTH>(&to.a[row + pass][k ^ row % 8 * 4], from + size_t(pass) * K, pass, left);
}

// Copy a tile of B of so many rows and columns; `from` as above.
template <bool WHOLE, int WIDTH>
__device__ void copy_b(Stage& to, const float* from, int rows, int columns, int N)
{
    constexpr int PER_ROW = BN / WIDTH, ROWS_PER_PASS = THREADS / PER_ROW;
    const int k = threadIdx.x / PER_ROW, across = threadIdx.x % PER_ROW * WIDTH;
    const int left = across < columns ? rows - k : 0;
    from += size_t(k) * N + across;
#pragma unroll
    for (int pass = 0; pass < BK; pass += ROWS_PER_PASS)
        copy<WHOLE, WIDTH>(&to.b[k + pass][across ^ (k + pass) % 4 * 4], from + size_t(pass) * N, pass, left);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
sgemm_tf32_parts(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C,
                 int M, int N, int K, float alpha, float beta)
{
    extern __shared__ __align__(128) char shared[];
    Stage* const stages = reinterpret_cast<Stage*>(shared);

#include "block_tile.cuh"

    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int warp_row = warp / (BN / WN) * WM, warp_col = warp % (BN / WN) * WN;
    const bool quads_a = in_quads(A, K), quads_b = in_quads(B, N), quads_c = in_quads(C, N);
    const bool whole = first_row + BM <= M && first_col + BN <= N && quads_a && quads_b;
    const float* from_a = A + size_t(first_row) * K;
    const float* from_b = B + first_col;

    // start the copies of the next phase, if there is one; a group of copies either way
    const auto start = [&](Stage& to, int phase) {
        const int left = K - phase;
        if (whole && left >= BK) {
            copy_a<true, 4>(to, from_a, BM, BK, K);
            copy_b<true, 4>(to, from_b, BK, BN, N);
        } else if (left > 0) {
            if (quads_a)
                copy_a<false, 4>(to, from_a, M - first_row, left, K);
            else
                copy_a<false, 1>(to, from_a, M - first_row, left, K);
            if (quads_b)
                copy_b<false, 4>(to, from_b, left, N - first_col, N);
            else
                copy_b<false, 1>(to, from_b, left, N - first_col, N);
        }
        from_a += BK;
        from_b += size_t(BK) * N;
        asm volatile("cp.async.commit_group;" ::: "memory");
    };

    // row and piece of A that ldmatrix reads for this lane; k and columns of B that the lane reads
    const int a_row = warp_row + lane % 16, a_piece = lane / 16;
    const int group = lane / 4, member = lane % 4;
    const int b_col = warp_col + (group / 2 + group % 2 * 4) * 4 ^ member * 4;

    float sum[DOWN][ACROSS][4] = {};
#pragma unroll
    for (int stage = 0; stage < STAGES - 1; ++stage) start(stages[stage], stage * BK);
    int current = 0, free = STAGES - 1;
    for (int phase = 0; phase < K; phase += BK) {
        asm volatile("cp.async.wait_group %0;" :: "n"(STAGES - 2) : "memory");
        __syncthreads();  // this phase's tiles are complete, and the last one's are not read any more
        start(stages[free], phase + (STAGES - 1) * BK);
        const Stage& tiles = stages[current];
        float part[DOWN][ACROSS][4] = {};
#pragma unroll
        for (int k = 0; k < BK; k += 8) {
            unsigned a[2][DOWN][4], b[2][ACROSS][2];  // big parts and small ones
#pragma unroll
            for (int i = 0; i < DOWN; ++i) {
                unsigned whole_a[4];
                load_matrices(whole_a, &tiles.a[a_row + 16 * i][k + a_piece * 4 ^ lane % 8 * 4]);
#pragma unroll
                for (int q = 0; q < 4; ++q) split(__uint_as_float(whole_a[q]), a[0][i][q], a[1][i][q]);
            }
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const float4 four = *reinterpret_cast<const float4*>(&tiles.b[k + half * 4 + member][b_col]);
                split(four.x, b[0][0][half], b[1][0][half]);
                split(four.y, b[0][1][half], b[1][1][half]);
                split(four.z, b[0][2][half], b[1][2][half]);
                split(four.w, b[0][3][half], b[1][3][half]);
            }
            // the small products first: less of them is cut off
#pragma unroll
            for (int product = 2; product >= 0; --product)
#pragma unroll
                for (int i = 0; i < DOWN; ++i)
#pragma unroll
                    for (int j = 0; j < ACROSS; ++j)
                        multiply(part[i][j], a[product == 2][i], b[product == 1][j]);
        }
#pragma unroll
        for (int i = 0; i < DOWN; ++i)
#pragma unroll
            for (int j = 0; j < ACROSS; ++j)
#pragma unroll
                for (int q = 0; q < 4; ++q) sum[i][j][q] += part[i][j][q];
        current = current + 1 < STAGES ? current + 1 : 0;
        free = free + 1 < STAGES ? free + 1 : 0;
    }

    // C = alpha * sum + beta * C; by floats where rows do not begin on 16 bytes
#pragma unroll
    for (int i = 0; i < DOWN; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int row = first_row + warp_row + 16 * i + 8 * half + group;
            if (row >= M) break;
#pragma unroll
            for (int right = 0; right < 2; ++right) {
                const int col = first_col + warp_col + 16 * right + member * 4, q = 2 * half + right;
                float* const c = C + size_t(row) * N + col;
                if (quads_c) {
                    if (col >= N) break;
                    float4* const quad = reinterpret_cast<float4*>(c);
                    const float4 old = beta == 0.0f ? make_float4(0.0f, 0.0f, 0.0f, 0.0f) : *quad;
                    *quad = make_float4(alpha * sum[i][0][q] + beta * old.x, alpha * sum[i][1][q] + beta * old.y,
                                        alpha * sum[i][2][q] + beta * old.z, alpha * sum[i][3][q] + beta * old.w);
                } else {
#pragma unroll
                    for (int j = 0; j < ACROSS; ++j)
                        if (col + j < N)
                            c[j] = beta == 0.0f ? alpha * sum[i][j][q] : alpha * sum[i][j][q] + beta * c[j];
                }
            }
        }
}
