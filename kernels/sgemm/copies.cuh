// Rungs 11 and 12: asynchronous copies of a pair of tiles, with zeros beyond the edges.

constexpr int THREADS = (BM / TM) * (BN / TN);
static_assert(WM * WN == 32 * TM * TN && BM % WM == 0 && BN % WN == 0, "lanes fill warp tiles, these the block's");
static_assert(BK >= 8 && 32 % BK == 0 && THREADS % BK == 0 && BM * BK % THREADS == 0, "every pass over the tile of A is full");
static_assert(BK * BN % (THREADS * 4) == 0, "every pass over the tile of B is full");

struct Stage {
    float a[BK][BM];  // transposed and swizzled
    float b[BK][BN];
};

// A warp stores 32 / BK rows of A at a time, transposed: for every k in another bank. By k the float4
// of a row of the tile change places, and so do the floats within them.
__device__ constexpr int quad_swizzle(int k) { return k % 8 * 4; }
__device__ constexpr int float_swizzle(int k) { return k / 8 * (32 / BK); }

// The thread's number, read anew: what follows from it is computed in each phase, where compilers
// would keep it in registers that the sums need.
__device__ unsigned thread()
{
    unsigned t;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(t));
    return t;
}

#include "copy_floats.cuh"
// Copy a tile of A of so many rows and columns, transposing it float by float. `from` is this
// thread's first element of it.
template <bool WHOLE>
__device__ void copy_a(Stage& to, const float* from, int rows, int columns, int K)
{
    constexpr int ROWS_PER_PASS = THREADS / BK;
    const unsigned t = thread();
    const int row = t / BK, k = t % BK, swizzle = quad_swizzle(k) ^ float_swizzle(k);
    const int left = k < columns ? rows - row : 0;
#pragma unroll
    for (int pass = 0; pass < BM; pass += ROWS_PER_PASS)
        copy<WHOLE, 1>(&to.a[k][(row + pass % 32 ^ swizzle) + pass / 32 * 32], from + size_t(pass) * K, pass, left);
}

// Copy a tile of B of so many rows and columns; `from` as above.
template <bool WHOLE, int WIDTH>
__device__ void copy_b(Stage& to, const float* from, int rows, int columns, int N)
{
    constexpr int PER_PASS = THREADS * WIDTH;
    constexpr int ROWS_PER_PASS = PER_PASS < BN ? 1 : PER_PASS / BN;
    const unsigned t = thread();
    const int k = t * WIDTH / BN, across = t * WIDTH % BN;
#pragma unroll
    for (int pass = 0; pass < BK; pass += ROWS_PER_PASS)
#pragma unroll
        for (int right = 0; right < BN; right += PER_PASS) {  // once, where a pass takes whole rows
            const int left = across + right < columns ? rows - k : 0;
            copy<WHOLE, WIDTH>(&to.b[k + pass][across + right], from + size_t(pass) * N + right, pass, left);
        }
}

// Where a tile of B has this thread's first element.
template <int WIDTH>
__device__ size_t offset_in_b(int N)
{
    const unsigned first = thread() * WIDTH;
    return size_t(first / BN) * N + first % BN;
}

#include "in_quads.cuh"
