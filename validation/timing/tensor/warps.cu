// Products and attention by mma.sync and wmma: C (m x n) = A (m x k) times B (n x k) transposed.
//
// Rows are counted in bytes, so that one template serves all types: an mma of 16 x 8 takes 32 bytes of
// each row of A and of B, whatever the type is. m, n and k are multiples of the tile.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

#define EXPORT extern "C" __global__ void
#define MMA(name, types, letter, Sum)                                                                       \
    struct name {                                                                                           \
        using Result = Sum;                                                                                 \
        static constexpr int SUMS = 4;                                                                      \
        static __device__ void add(Sum* d, const unsigned* a, const unsigned* b)                            \
        {                                                                                                   \
            asm volatile("mma.sync.aligned." types " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "        \
                         "{%0, %1, %2, %3};"                                                                \
                : "+" letter(d[0]), "+" letter(d[1]), "+" letter(d[2]), "+" letter(d[3])                    \
                : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));                        \
        }                                                                                                   \
    };
MMA(Half, "m16n8k16.row.col.f32.f16.f16.f32", "f", float)
MMA(Brain, "m16n8k16.row.col.f32.bf16.bf16.f32", "f", float)
MMA(Tf32, "m16n8k8.row.col.f32.tf32.tf32.f32", "f", float)
MMA(E4m3, "m16n8k32.row.col.f32.e4m3.e4m3.f32", "f", float)
MMA(Int8, "m16n8k32.row.col.s32.s8.s8.s32", "r", int)
MMA(Bits, "m16n8k256.row.col.s32.b1.b1.s32.and.popc", "r", int)
struct HalfSums {
    using Result = unsigned;  // two sums
    static constexpr int SUMS = 2;
    static __device__ void add(unsigned* d, const unsigned* a, const unsigned* b)
    {
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, "
                     "{%0, %1};"
            : "+r"(d[0]), "+r"(d[1])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    }
};

__device__ unsigned shared_address(const void* pointer) { return (unsigned)__cvta_generic_to_shared(pointer); }
__device__ void copy_async(unsigned to, const char* from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
__device__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int LEFT> __device__ void wait_groups() { asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory"); }
__device__ void load_matrices(unsigned* to, unsigned from)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
        : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
        : "r"(from)
        : "memory");
}
__device__ void load_transposed(unsigned* to, unsigned from)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
        : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
        : "r"(from)
        : "memory");
}

enum Layout { PLAIN, PADDED, SWIZZLED };
enum { ROW = 64 };  // bytes of a row in a tile: two mma

template <Layout L> struct Place {
    static constexpr int PITCH = L == PADDED ? ROW + 16 : ROW;
    static __device__ int of(int row, int byte)
    {
        return row * PITCH + (L == SWIZZLED ? byte ^ (row >> 1 & 3) << 4 : byte);
    }
};

// Fragments of A (16 rows) and of B (two of 8 rows) at a row and a byte of a tile.
template <Layout L, bool MATRICES> __device__ void fragment_of_a(unsigned* to, unsigned tile, int row, int byte)
{
    const int lane = threadIdx.x % 32;
    if constexpr (MATRICES) load_matrices(to, tile + Place<L>::of(row + lane % 16, byte + lane / 16 * 16));
    else
        for (int j = 0; j < 4; ++j)
            asm volatile("ld.shared.b32 %0, [%1];"
                : "=r"(to[j])
                : "r"(tile + Place<L>::of(row + lane / 4 + j % 2 * 8, byte + lane % 4 * 4 + j / 2 * 16)));
}
template <Layout L, bool MATRICES> __device__ void fragments_of_b(unsigned* to, unsigned tile, int row, int byte)
{
    const int lane = threadIdx.x % 32;
    if constexpr (MATRICES) {
        const int matrix = lane / 8;
        load_matrices(to, tile + Place<L>::of(row + matrix / 2 * 8 + lane % 8, byte + matrix % 2 * 16));
    } else
        for (int j = 0; j < 4; ++j)
            asm volatile("ld.shared.b32 %0, [%1];"
                : "=r"(to[j])
                : "r"(tile + Place<L>::of(row + j / 2 * 8 + lane / 4, byte + lane % 4 * 4 + j % 2 * 16)));
}

template <class Op, int M, int N> struct Sums {
    typename Op::Result at[M][N][Op::SUMS] = {};
    __device__ void store(typename Op::Result* c, int n, int row, int column) const
    {
        const int lane = threadIdx.x % 32;
        for (int i = 0; i < M; ++i)
            for (int j = 0; j < N; ++j)
                for (int half = 0; half < 2; ++half) {
                    const size_t place = size_t(row + 16 * i + 8 * half + lane / 4) * n + column + 8 * j + lane % 4 * 2;
                    const auto* from = &at[i][j][half * Op::SUMS / 2];
                    if constexpr (Op::SUMS == 2) c[place / 2] = *from;
                    else *reinterpret_cast<uint2*>(c + place) = *reinterpret_cast<const uint2*>(from);
                }
    }
};

// A block computes M x N of C with ACROSS x DOWN warps. STAGES tiles of A and B are in shared memory; with one
// of them, registers carry the next tile there.
template <class Op, int M, int N, int DOWN, int ACROSS, int STAGES, Layout L, bool MATRICES>
__device__ void product(const char* a, const char* b, typename Op::Result* c, int n, int row_bytes)
{
    extern __shared__ __align__(128) char tiles[];
    constexpr int THREADS = 32 * DOWN * ACROSS, PITCH = Place<L>::PITCH, STAGE = (M + N) * PITCH;
    constexpr int WM = M / DOWN / 16, WN = N / ACROSS / 8, CHUNKS = (M + N) * ROW / 16 / THREADS;
    const int warp = threadIdx.x / 32, row = warp / ACROSS * (M / DOWN), column = warp % ACROSS * (N / ACROSS);
    a += size_t(blockIdx.y) * M * row_bytes;
    b += size_t(blockIdx.x) * N * row_bytes;
    const unsigned base = shared_address(tiles);
    const int steps = row_bytes / ROW;
    Sums<Op, WM, WN> sums;
    const auto from = [&](int chunk, int step) {
        const int r = chunk / (ROW / 16), byte = chunk % (ROW / 16) * 16;
        return (r < M ? a + size_t(r) * row_bytes : b + size_t(r - M) * row_bytes) + step * ROW + byte;
    };
    const auto to = [&](int chunk, int stage) {
        const int r = chunk / (ROW / 16), byte = chunk % (ROW / 16) * 16;
        return stage * STAGE + (r < M ? Place<L>::of(r, byte) : M * PITCH + Place<L>::of(r - M, byte));
    };
    const auto multiply = [&](int stage) {
        const unsigned tile = base + stage * STAGE;
#pragma unroll
        for (int byte = 0; byte < ROW; byte += 32) {
            unsigned fa[WM][4], fb[WN / 2][4];
#pragma unroll
            for (int i = 0; i < WM; ++i) fragment_of_a<L, MATRICES>(fa[i], tile, row + 16 * i, byte);
#pragma unroll
            for (int j = 0; j < WN / 2; ++j) fragments_of_b<L, MATRICES>(fb[j], tile + M * PITCH, column + 16 * j, byte);
#pragma unroll
            for (int i = 0; i < WM; ++i)
#pragma unroll
                for (int j = 0; j < WN; ++j) Op::add(sums.at[i][j], fa[i], fb[j / 2] + j % 2 * 2);
        }
    };
    if constexpr (STAGES == 1) {
        for (int step = 0; step < steps; ++step) {
            uint4 chunk[CHUNKS];
#pragma unroll
            for (int i = 0; i < CHUNKS; ++i)
                chunk[i] = *reinterpret_cast<const uint4*>(from(threadIdx.x + i * THREADS, step));
            __syncthreads();
#pragma unroll
            for (int i = 0; i < CHUNKS; ++i)
                *reinterpret_cast<uint4*>(tiles + to(threadIdx.x + i * THREADS, 0)) = chunk[i];
            __syncthreads();
            multiply(0);
        }
    } else {
        const auto fetch = [&](int step) {
            if (step < steps)
#pragma unroll
                for (int i = 0; i < CHUNKS; ++i)
                    copy_async(base + to(threadIdx.x + i * THREADS, step % STAGES), from(threadIdx.x + i * THREADS, step));
            commit();
        };
        for (int step = 0; step < STAGES - 1; ++step) fetch(step);
        for (int step = 0; step < steps; ++step) {
            wait_groups<STAGES - 2>();
            __syncthreads();
            fetch(step + STAGES - 1);
            multiply(step % STAGES);
        }
    }
    sums.store(c, n, blockIdx.y * M + row, blockIdx.x * N + column);
}

#define PRODUCT(name, Op, M, N, DOWN, ACROSS, STAGES, LAYOUT, MATRICES)                                     \
    EXPORT __launch_bounds__(32 * DOWN * ACROSS)                                                            \
        name(const char* a, const char* b, Op::Result* c, int n, int row_bytes)                             \
    {                                                                                                       \
        product<Op, M, N, DOWN, ACROSS, STAGES, LAYOUT, MATRICES>(a, b, c, n, row_bytes);                   \
    }
PRODUCT(half_words, Half, 64, 64, 2, 2, 1, PLAIN, false)
PRODUCT(half_words_padded, Half, 128, 128, 2, 2, 1, PADDED, false)
PRODUCT(half_matrices, Half, 128, 128, 2, 2, 1, PLAIN, true)
PRODUCT(half_padded, Half, 128, 128, 2, 2, 1, PADDED, true)
PRODUCT(half_two_stages, Half, 128, 128, 2, 4, 2, SWIZZLED, true)
PRODUCT(half_four_stages, Half, 128, 128, 2, 2, 4, SWIZZLED, true)
PRODUCT(half_wide, Half, 128, 256, 2, 4, 3, SWIZZLED, true)
PRODUCT(half_small, Half, 64, 64, 2, 2, 3, SWIZZLED, true)
PRODUCT(half_conflicts, Half, 128, 128, 2, 4, 3, PLAIN, true)
PRODUCT(brain_three_stages, Brain, 128, 128, 4, 2, 3, SWIZZLED, true)
PRODUCT(half_sums_of_half, HalfSums, 128, 128, 2, 2, 3, SWIZZLED, true)
PRODUCT(tf32_padded, Tf32, 64, 128, 2, 2, 1, PADDED, true)
PRODUCT(tf32_three_stages, Tf32, 128, 128, 2, 4, 3, SWIZZLED, true)
PRODUCT(int8_padded, Int8, 64, 64, 2, 2, 1, PADDED, true)
PRODUCT(int8_three_stages, Int8, 128, 128, 2, 2, 3, SWIZZLED, true)
PRODUCT(bits_three_stages, Bits, 128, 128, 2, 4, 3, SWIZZLED, true)
PRODUCT(e4m3_warps, E4m3, 128, 128, 2, 4, 3, SWIZZLED, true)

// Fragments straight from global memory: a warp computes 32 x 32.
EXPORT __launch_bounds__(128) half_direct(const char* a, const char* b, float* c, int n, int row_bytes)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int row = blockIdx.y * 64 + warp / 2 * 32, column = blockIdx.x * 64 + warp % 2 * 32;
    Sums<Half, 2, 4> sums;
    for (int byte = 0; byte < row_bytes; byte += 32) {
        unsigned fa[2][4], fb[4][2];
        for (int i = 0; i < 2; ++i)
            for (int j = 0; j < 4; ++j)
                fa[i][j] = *reinterpret_cast<const unsigned*>(
                    a + size_t(row + 16 * i + lane / 4 + j % 2 * 8) * row_bytes + byte + lane % 4 * 4 + j / 2 * 16);
        for (int i = 0; i < 4; ++i)
            for (int j = 0; j < 2; ++j)
                fb[i][j] = *reinterpret_cast<const unsigned*>(
                    b + size_t(column + 8 * i + lane / 4) * row_bytes + byte + lane % 4 * 4 + j * 16);
        for (int i = 0; i < 2; ++i)
            for (int j = 0; j < 4; ++j) Half::add(sums.at[i][j], fa[i], fb[j]);
    }
    sums.store(c, n, row, column);
}

// FP64: a warp computes 16 x 8 blocks; tiles of 64 x 64 x 16 in shared memory, or none.
__device__ void multiply_doubles(double* d, const double* a, const double* b)
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7, %8, %9, %10, "
                 "%11}, {%12, %13, %14, %15}, {%0, %1, %2, %3};"
        : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
        : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]), "d"(a[6]), "d"(a[7]), "d"(b[0]), "d"(b[1]),
        "d"(b[2]), "d"(b[3]));
}
__device__ void multiply_small_doubles(double* d, double a, double b)
{
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
        : "+d"(d[0]), "+d"(d[1])
        : "d"(a), "d"(b));
}
EXPORT __launch_bounds__(128) double_tiles(const double* a, const double* b, double* c, int n, int k)
{
    __shared__ double ta[64][18], tb[64][18];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = warp / 2 * 32, column = warp % 2 * 32;
    double d[2][4][4] = {};
    for (int step = 0; step < k; step += 16) {
        __syncthreads();
        for (int i = threadIdx.x; i < 64 * 16; i += 128) {
            ta[i / 16][i % 16] = a[size_t(blockIdx.y * 64 + i / 16) * k + step + i % 16];
            tb[i / 16][i % 16] = b[size_t(blockIdx.x * 64 + i / 16) * k + step + i % 16];
        }
        __syncthreads();
        double fa[2][8], fb[4][4];
        for (int i = 0; i < 2; ++i)
            for (int j = 0; j < 8; ++j) fa[i][j] = ta[row + 16 * i + lane / 4 + j % 2 * 8][lane % 4 + j / 2 * 4];
        for (int i = 0; i < 4; ++i)
            for (int j = 0; j < 4; ++j) fb[i][j] = tb[column + 8 * i + lane / 4][lane % 4 + j * 4];
        for (int i = 0; i < 2; ++i)
            for (int j = 0; j < 4; ++j) multiply_doubles(d[i][j], fa[i], fb[j]);
    }
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 4; ++j)
            for (int half = 0; half < 2; ++half)
                *reinterpret_cast<double2*>(c + size_t(blockIdx.y * 64 + row + 16 * i + 8 * half + lane / 4) * n
                    + blockIdx.x * 64 + column + 8 * j + lane % 4 * 2) = make_double2(d[i][j][2 * half], d[i][j][2 * half + 1]);
}
EXPORT __launch_bounds__(128) double_direct(const double* a, const double* b, double* c, int n, int k)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int row = blockIdx.y * 32 + warp / 2 * 16, column = blockIdx.x * 32 + warp % 2 * 16;
    double d[2][2][2] = {};
    for (int step = lane % 4; step < k; step += 4) {
        double fa[2], fb[2];
        for (int i = 0; i < 2; ++i) fa[i] = a[size_t(row + 8 * i + lane / 4) * k + step];
        for (int i = 0; i < 2; ++i) fb[i] = b[size_t(column + 8 * i + lane / 4) * k + step];
        for (int i = 0; i < 2; ++i)
            for (int j = 0; j < 2; ++j) multiply_small_doubles(d[i][j], fa[i], fb[j]);
    }
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j)
            *reinterpret_cast<double2*>(c + size_t(row + 8 * i + lane / 4) * n + column + 8 * j + lane % 4 * 2)
                = make_double2(d[i][j][0], d[i][j][1]);
}

// wmma: each warp one tile of C from global memory, or a block of warps with tiles in shared memory.
template <class In, class Out, int K, class Held = In>
__device__ void wmma_of_a_warp(const In* a, const In* b, Out* c, int n, int k)
{
    const int row = (blockIdx.y * blockDim.y + threadIdx.y) * 16, column = (blockIdx.x * blockDim.x + threadIdx.x) / 32 * 16;
    wmma::fragment<wmma::matrix_a, 16, 16, K, Held, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, K, Held, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, K, Out> fc;
    wmma::fill_fragment(fc, Out(0));
    for (int step = 0; step < k; step += K) {
        wmma::load_matrix_sync(fa, a + size_t(row) * k + step, k);
        wmma::load_matrix_sync(fb, b + size_t(column) * k + step, k);
        wmma::mma_sync(fc, fa, fb, fc);
    }
    wmma::store_matrix_sync(c + size_t(row) * n + column, fc, n, wmma::mem_row_major);
}
EXPORT wmma_half(const half* a, const half* b, float* c, int n, int k) { wmma_of_a_warp<half, float, 16>(a, b, c, n, k); }
EXPORT wmma_int8(const signed char* a, const signed char* b, int* c, int n, int k)
{
    wmma_of_a_warp<signed char, int, 16>(a, b, c, n, k);
}
EXPORT wmma_tf32(const float* a, const float* b, float* c, int n, int k)
{
    wmma_of_a_warp<float, float, 8, wmma::precision::tf32>(a, b, c, n, k);
}
template <class In, int PAD> __device__ void wmma_of_tiles(const In* a, const In* b, float* c, int n, int k)
{
    __shared__ __align__(32) In ta[64][32 + PAD], tb[64][32 + PAD];
    const int warp = threadIdx.x / 32, row = warp / 2 * 32, column = warp % 2 * 32;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, In, wmma::row_major> fa[2];
    wmma::fragment<wmma::matrix_b, 16, 16, 16, In, wmma::col_major> fb[2];
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc[2][2];
    for (auto& of_row : fc)
        for (auto& one : of_row) wmma::fill_fragment(one, 0.0f);
    for (int step = 0; step < k; step += 32) {
        __syncthreads();
        for (int i = threadIdx.x; i < 64 * 4; i += 128) {
            const int r = i / 4, at = i % 4 * 8;
            *reinterpret_cast<uint4*>(&ta[r][at]) = *reinterpret_cast<const uint4*>(a + size_t(blockIdx.y * 64 + r) * k + step + at);
            *reinterpret_cast<uint4*>(&tb[r][at]) = *reinterpret_cast<const uint4*>(b + size_t(blockIdx.x * 64 + r) * k + step + at);
        }
        __syncthreads();
        for (int inner = 0; inner < 32; inner += 16) {
            for (int i = 0; i < 2; ++i) wmma::load_matrix_sync(fa[i], &ta[row + 16 * i][inner], 32 + PAD);
            for (int i = 0; i < 2; ++i) wmma::load_matrix_sync(fb[i], &tb[column + 16 * i][inner], 32 + PAD);
            for (int i = 0; i < 2; ++i)
                for (int j = 0; j < 2; ++j) wmma::mma_sync(fc[i][j], fa[i], fb[j], fc[i][j]);
        }
    }
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j)
            wmma::store_matrix_sync(c + size_t(blockIdx.y * 64 + row + 16 * i) * n + blockIdx.x * 64 + column + 16 * j,
                fc[i][j], n, wmma::mem_row_major);
}
EXPORT __launch_bounds__(128) wmma_tiles(const half* a, const half* b, float* c, int n, int k)
{
    wmma_of_tiles<half, 0>(a, b, c, n, k);
}
EXPORT __launch_bounds__(128) wmma_tiles_padded(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c, int n, int k)
{
    wmma_of_tiles<__nv_bfloat16, 8>(a, b, c, n, k);
}

// Attention of one head per blockIdx.y, 64 queries per block, 16 per warp; softmax online. Arrays are
// (heads, length, HEAD); `scale` includes log2(e).
template <int HEAD, bool CAUSAL, int STAGES>
__device__ void attend(const half* q, const half* k, const half* v, half* out, int length, float scale)
{
    extern __shared__ __align__(128) char tiles[];
    constexpr int KEYS = 64, PITCH = 2 * HEAD + 16, TILE = KEYS * PITCH, CHUNKS = KEYS * HEAD / 8 / 128;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, first = blockIdx.x * 64 + warp * 16;
    const size_t head = size_t(blockIdx.y) * length * HEAD;
    const unsigned base = shared_address(tiles);
    unsigned fq[HEAD / 16][4];
    for (int i = 0; i < HEAD / 16; ++i)
        for (int j = 0; j < 4; ++j)
            fq[i][j] = *reinterpret_cast<const unsigned*>(
                q + head + size_t(first + lane / 4 + j % 2 * 8) * HEAD + 16 * i + lane % 4 * 2 + j / 2 * 8);
    float sums[HEAD / 8][4] = {}, most[2] = {-1e30f, -1e30f}, weight[2] = {};
    const int turns = CAUSAL ? blockIdx.x + 1 : length / KEYS;
    const auto fetch = [&](int turn) {
        if (turn < turns)
#pragma unroll
            for (int i = 0; i < CHUNKS; ++i) {
                const int chunk = threadIdx.x + i * 128, row = chunk / (HEAD / 8), at = chunk % (HEAD / 8) * 8;
                const unsigned to = base + turn % STAGES * 2 * TILE + row * PITCH + at * 2;
                const size_t from = head + size_t(turn * KEYS + row) * HEAD + at;
                copy_async(to, reinterpret_cast<const char*>(k + from));
                copy_async(to + TILE, reinterpret_cast<const char*>(v + from));
            }
        commit();
    };
    for (int turn = 0; turn < STAGES - 1; ++turn) fetch(turn);
    for (int turn = 0; turn < turns; ++turn) {
        fetch(turn + STAGES - 1);
        wait_groups<STAGES - 1>();
        __syncthreads();
        const unsigned keys = base + turn % STAGES * 2 * TILE, values = keys + TILE;
        float s[KEYS / 8][4] = {};
#pragma unroll
        for (int i = 0; i < HEAD / 16; ++i)
#pragma unroll
            for (int j = 0; j < KEYS / 16; ++j) {
                unsigned fk[4];
                load_matrices(fk, keys + (16 * j + lane / 16 * 8 + lane % 8) * PITCH + i * 32 + lane / 8 % 2 * 16);
                Half::add(s[2 * j], fq[i], fk);
                Half::add(s[2 * j + 1], fq[i], fk + 2);
            }
        for (int half_row = 0; half_row < 2; ++half_row) {
            const int row = first + lane / 4 + 8 * half_row;
            float largest = most[half_row];
#pragma unroll
            for (int j = 0; j < KEYS / 8; ++j)
#pragma unroll
                for (int e = 0; e < 2; ++e) {
                    float& x = s[j][2 * half_row + e];
                    x *= scale;
                    if (CAUSAL && turn * KEYS + 8 * j + lane % 4 * 2 + e > row) x = -1e30f;
                    largest = fmaxf(largest, x);
                }
            largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 1));
            largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 2));
            const float factor = exp2f(most[half_row] - largest);
            most[half_row] = largest;
            weight[half_row] *= factor;
#pragma unroll
            for (int j = 0; j < HEAD / 8; ++j) sums[j][2 * half_row] *= factor, sums[j][2 * half_row + 1] *= factor;
#pragma unroll
            for (int j = 0; j < KEYS / 8; ++j)
#pragma unroll
                for (int e = 0; e < 2; ++e) weight[half_row] += s[j][2 * half_row + e] = exp2f(s[j][2 * half_row + e] - largest);
        }
#pragma unroll
        for (int i = 0; i < KEYS / 16; ++i) {
            unsigned fp[4];
            for (int j = 0; j < 4; ++j) {
                const half2 pair = __floats2half2_rn(s[2 * i + j / 2][j % 2 * 2], s[2 * i + j / 2][j % 2 * 2 + 1]);
                fp[j] = *reinterpret_cast<const unsigned*>(&pair);
            }
#pragma unroll
            for (int j = 0; j < HEAD / 16; ++j) {
                unsigned fv[4];
                load_transposed(fv, values + (16 * i + lane % 16) * PITCH + j * 32 + lane / 16 * 16);
                Half::add(sums[2 * j], fp, fv);
                Half::add(sums[2 * j + 1], fp, fv + 2);
            }
        }
        __syncthreads();
    }
    for (int half_row = 0; half_row < 2; ++half_row) {
        float all = weight[half_row];
        all += __shfl_xor_sync(~0u, all, 1);
        all += __shfl_xor_sync(~0u, all, 2);
        const float inverse = 1 / all;
        for (int j = 0; j < HEAD / 8; ++j)
            *reinterpret_cast<half2*>(out + head + size_t(first + lane / 4 + 8 * half_row) * HEAD + 8 * j + lane % 4 * 2)
                = __floats2half2_rn(sums[j][2 * half_row] * inverse, sums[j][2 * half_row + 1] * inverse);
    }
}
#define ATTENTION(name, HEAD, CAUSAL, STAGES)                                                               \
    EXPORT __launch_bounds__(128) name(const half* q, const half* k, const half* v, half* out, int length, float scale) \
    {                                                                                                       \
        attend<HEAD, CAUSAL, STAGES>(q, k, v, out, length, scale);                                          \
    }
ATTENTION(attention_64, 64, false, 2)
ATTENTION(attention_64_causal, 64, true, 2)
ATTENTION(attention_128, 128, false, 2)
ATTENTION(attention_64_unstaged, 64, false, 1)
