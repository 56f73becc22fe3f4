// C = A * B^T of MXFP4: elements of E2M1, two in a byte, and a scale of UE8M0 for each 32 of K. A: M x K, B: N x K,
// C: M x N, K a multiple of 256, M and N of 64. A block of four warps has a tile of 64 x 64, a warp one of 32 x 32.
// Needs sm_120a.

#include <cuda_pipeline.h>

constexpr int TILE = 64, DEPTH = 256, ROW_BYTES = DEPTH / 2, PITCH = ROW_BYTES + 16, THREADS = 128;

using Fragment = unsigned[4];

// Four matrices of 8 rows x 16 bytes, whose rows the lanes name.
__device__ void load(Fragment &x, const unsigned char *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"((unsigned)__cvta_generic_to_shared(row)));
}

// A step of 64 of K: its scales are two bytes from BYTE on. Lanes 2 ROWS and 2 ROWS + 1 of each four hold those of
// these 16 rows of A, lane COLUMNS those of these 8 columns.
template <int BYTE, int ROWS, int COLUMNS>
__device__ void multiply(float (&sum)[4], const Fragment &a, const unsigned *b, unsigned of_a, unsigned of_b)
{
    asm volatile("mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3}, {%10}, {%11, %12}, {%13}, {%14, %15};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]),
                   "r"(of_a), "n"(BYTE), "n"(ROWS), "r"(of_b), "n"(BYTE), "n"(COLUMNS));
}

template <int BYTE, int ROWS>
__device__ void multiply_row(float (&sums)[4][4], const Fragment &a, const Fragment (&b)[2], unsigned of_a,
                             unsigned of_b)
{
    multiply<BYTE, ROWS, 0>(sums[0], a, b[0], of_a, of_b);
    multiply<BYTE, ROWS, 1>(sums[1], a, b[0] + 2, of_a, of_b);
    multiply<BYTE, ROWS, 2>(sums[2], a, b[1], of_a, of_b);
    multiply<BYTE, ROWS, 3>(sums[3], a, b[1] + 2, of_a, of_b);
}

// `step`: of 64 of K within the tiles. `a` and `b` are rows of this lane.
template <int BYTE>
__device__ void multiply_step(float (&sums)[2][4][4], const unsigned char *a, const unsigned char *b, int step,
                              unsigned of_a, unsigned of_b)
{
    Fragment x[2], y[2];
    for (int half = 0; half < 2; ++half) {
        load(x[half], a + half * 16 * PITCH + 32 * step);
        load(y[half], b + half * 16 * PITCH + 32 * step);
    }
    multiply_row<BYTE, 0>(sums[0], x[0], y, of_a, of_b);
    multiply_row<BYTE, 1>(sums[1], x[1], y, of_a, of_b);
}

__device__ void copy_tile(unsigned char (&to)[TILE][PITCH], const unsigned char *from, int row_bytes)
{
    for (int i = threadIdx.x; i < TILE * ROW_BYTES / 16; i += THREADS) {
        const int row = i / (ROW_BYTES / 16), column = i % (ROW_BYTES / 16) * 16;
        __pipeline_memcpy_async(&to[row][column], from + (size_t)row * row_bytes + column, 16);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    mxfp4(const unsigned char *a, const unsigned char *b, const unsigned char *scales_of_a,
          const unsigned char *scales_of_b, float *c, int n, int k)
{
    __shared__ alignas(16) unsigned char tile_of_a[TILE][PITCH], tile_of_b[TILE][PITCH];
    const int row = TILE * blockIdx.y, column = TILE * blockIdx.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int first_row = warp / 2 * 32, first_column = warp % 2 * 32;
    // Of A: matrices of rows 0 to 7 and 8 to 15, then the next 16 bytes. Of B: two matrices side by side, then rows
    // 8 to 15.
    const unsigned char *const at_a = &tile_of_a[first_row + lane % 16][lane / 16 * 16];
    const unsigned char *const at_b = &tile_of_b[first_column + lane % 8 + lane / 16 * 8][lane / 8 % 2 * 16];
    const int scaled_row = row + first_row + lane % 4 * 8 + lane / 4, per_row = k / 32;
    const int scaled_column = column + first_column + lane % 4 * 8 + lane / 4;
    float sums[2][4][4] = {};
    for (int from = 0; from < k; from += DEPTH) {
        copy_tile(tile_of_a, a + ((size_t)row * k + from) / 2, k / 2);
        copy_tile(tile_of_b, b + ((size_t)column * k + from) / 2, k / 2);
        __pipeline_commit();
        __pipeline_wait_prior(0);
        __syncthreads();
        for (int pair = 0; pair < DEPTH / 128; ++pair) {
            const size_t at = from / 32 + 4 * pair;
            const unsigned of_a = *(const unsigned *)(scales_of_a + (size_t)scaled_row * per_row + at);
            const unsigned of_b = *(const unsigned *)(scales_of_b + (size_t)scaled_column * per_row + at);
            multiply_step<0>(sums, at_a, at_b, 2 * pair, of_a, of_b);
            multiply_step<2>(sums, at_a, at_b, 2 * pair + 1, of_a, of_b);
        }
        __syncthreads();
    }
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 4; ++j)
            for (int half = 0; half < 2; ++half) {
                const int at = row + first_row + 16 * i + 8 * half + lane / 4;
                float2 *const to = (float2 *)(c + (size_t)at * n + column + first_column + 8 * j + lane % 4 * 2);
                *to = make_float2(sums[i][j][2 * half], sums[i][j][2 * half + 1]);
            }
}
