// Kernels that others timed, rebuilt from what their sources say of them: the tile of a block, who
// copies which element with which stride, the order of the loops, barriers, guards, the layout in
// shared memory. As there, no pointer is __restrict__, no loop is unrolled by hand, no shared array
// is aligned by hand, indices are 32 bits wide. All take the arguments of the ladder.
//
//   xgemm_*  github.com/tgautam03/xGeMM, on an RTX 3090. Every access is guarded, and C is read:
//            what is stored is 1 * sum + 0 * C, of which float arithmetic lets nobody drop a term.
//   notes_*  "An Optimization Procedure on Matrix Multiplication", on a T4. Nothing is guarded, and C
//            is not read. Its vectorized kernel is not shown.

#define ARGUMENTS float *A, float *B, float *C, int M, int N, int K, float alpha, float beta
#define OVER(c, sum) (c) = (sum) + 0.0f * (c)

// One element of C per thread, of a block of 32 x 32 threads.

__device__ __forceinline__ void one_element(float *A, float *B, float *C, int M, int N, int K,
                                            int row, int col)
{
    if (row < M && col < N) {
        float sum = 0.0f;
        for (int k = 0; k < K; k++) sum += A[row * K + k] * B[k * N + col];
        OVER(C[row * N + col], sum);
    }
}

extern "C" __global__ void xgemm_naive_uncoalesced(ARGUMENTS)
{
    one_element(A, B, C, M, N, K, blockDim.x * blockIdx.x + threadIdx.x,
                blockDim.y * blockIdx.y + threadIdx.y);
}

extern "C" __global__ void xgemm_naive_coalesced(ARGUMENTS)
{
    one_element(A, B, C, M, N, K, blockDim.y * blockIdx.y + threadIdx.y,
                blockDim.x * blockIdx.x + threadIdx.x);
}

extern "C" __global__ void notes_naive(ARGUMENTS)
{
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    const int col = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f;
    for (int k = 0; k < K; k++) sum += A[row * K + k] * B[k * N + col];
    C[row * N + col] = sum;
}

// Tiles of 32 x 32 in shared memory, one element of each and of C per thread.

extern "C" __global__ void xgemm_tiled(ARGUMENTS)
{
    __shared__ float tile_a[32][32];
    __shared__ float tile_b[32][32];
    const int x = threadIdx.x, y = threadIdx.y;
    const int row = 32 * blockIdx.y + y, col = 32 * blockIdx.x + x;
    const int phases = ceil((float)K / 32);
    float sum = 0.0f;
    for (int phase = 0; phase < phases; phase++) {
        tile_a[y][x] = row < M && phase * 32 + x < K ? A[row * K + phase * 32 + x] : 0.0f;
        tile_b[y][x] = phase * 32 + y < K && col < N ? B[(phase * 32 + y) * N + col] : 0.0f;
        __syncthreads();
        for (int k = 0; k < 32; k++) sum += tile_a[y][k] * tile_b[k][x];
        __syncthreads();
    }
    if (row < M && col < N) OVER(C[row * N + col], sum);
}

extern "C" __global__ void notes_tiled(ARGUMENTS)
{
    __shared__ float tile_a[32][32];
    __shared__ float tile_b[32][32];
    const unsigned x = threadIdx.x, y = threadIdx.y;
    A += blockIdx.y * 32 * K;
    B += blockIdx.x * 32;
    C += blockIdx.y * 32 * N + blockIdx.x * 32;
    float sum = 0.0f;
    for (int phase = 0; phase < K; phase += 32) {
        tile_a[y][x] = A[y * K + x];
        tile_b[y][x] = B[y * N + x];
        __syncthreads();
        A += 32;
        B += 32 * N;
        for (int k = 0; k < 32; k++) sum += tile_a[y][k] * tile_b[k][x];
        __syncthreads();
    }
    C[y * N + x] = sum;
}

// A column of 8 or 16 elements of C per thread, of a block's 64 x 64; each thread copies one element
// of A and one of B per phase.

extern "C" __global__ void xgemm_coarsened_1d(ARGUMENTS)
{
    __shared__ float tile_a[64][8];
    __shared__ float tile_b[8][64];
    const int t = threadIdx.x;
    const int a_row = t / 8, a_col = t % 8, b_row = t / 64, b_col = t % 64;
    const int first_row = 64 * blockIdx.y, first_col = 64 * blockIdx.x;
    const int phases = ceil((float)K / 8);
    float sum[8] = {};
    for (int phase = 0; phase < phases; phase++) {
        tile_a[a_row][a_col] = first_row + a_row < M && phase * 8 + a_col < K
            ? A[(first_row + a_row) * K + phase * 8 + a_col] : 0.0f;
        tile_b[b_row][b_col] = phase * 8 + b_row < K && first_col + b_col < N
            ? B[(phase * 8 + b_row) * N + first_col + b_col] : 0.0f;
        __syncthreads();
        for (int k = 0; k < 8; k++) {
            const float b = tile_b[k][b_col];
            for (int i = 0; i < 8; i++) sum[i] += tile_a[b_row * 8 + i][k] * b;
        }
        __syncthreads();
    }
    for (int i = 0; i < 8; i++) {
        const int row = first_row + 8 * b_row + i, col = first_col + b_col;
        if (row < M && col < N) OVER(C[row * N + col], sum[i]);
    }
}

extern "C" __global__ void notes_coarsened_1d(ARGUMENTS)
{
    __shared__ float tile_a[64 * 4];
    __shared__ float tile_b[4 * 64];
    const unsigned t = threadIdx.x;
    const unsigned a_row = t / 4, a_col = t % 4, b_row = t / 64, b_col = t % 64;
    A += blockIdx.y * 64 * K;
    B += blockIdx.x * 64;
    C += blockIdx.y * 64 * N + blockIdx.x * 64;
    float sum[16] = {};
    for (int phase = 0; phase < K; phase += 4) {
        tile_a[a_row * 4 + a_col] = A[a_row * K + a_col];
        tile_b[b_row * 64 + b_col] = B[b_row * N + b_col];
        __syncthreads();
        A += 4;
        B += 4 * N;
        for (int k = 0; k < 4; k++) {
            const float b = tile_b[k * 64 + b_col];
            for (int i = 0; i < 16; i++) sum[i] += tile_a[(b_row * 16 + i) * 4 + k] * b;
        }
        __syncthreads();
    }
    for (int i = 0; i < 16; i++) C[(b_row * 16 + i) * N + b_col] = sum[i];
}

// 8 x 8 elements of C per thread, of a block's 128 x 128.

__device__ __forceinline__ void store_8x8(float *C, int M, int N, int row, int col, float (*sum)[8])
{
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 8; j++)
            if (row + i < M && col + j < N) OVER(C[(row + i) * N + col + j], sum[i][j]);
}

extern "C" __global__ void xgemm_coarsened_2d(ARGUMENTS)
{
    __shared__ float tile_a[128][16];
    __shared__ float tile_b[16][128];
    const int t = threadIdx.x;
    const int a_row = t / 16, a_col = t % 16, b_row = t / 128, b_col = t % 128;
    const int row = 8 * (t / 16), col = 8 * (t % 16);
    const int first_row = 128 * blockIdx.y, first_col = 128 * blockIdx.x;
    const int phases = ceil((float)K / 16);
    float sum[8][8] = {}, a[8] = {}, b[8] = {};
    for (int phase = 0; phase < phases; phase++) {
        for (int pass = 0; pass < 128; pass += 16)
            tile_a[pass + a_row][a_col] = first_row + pass + a_row < M && phase * 16 + a_col < K
                ? A[(first_row + pass + a_row) * K + phase * 16 + a_col] : 0.0f;
        for (int pass = 0; pass < 16; pass += 2)
            tile_b[b_row + pass][b_col] = phase * 16 + b_row + pass < K && first_col + b_col < N
                ? B[(phase * 16 + b_row + pass) * N + first_col + b_col] : 0.0f;
        __syncthreads();
        for (int k = 0; k < 16; k++) {
            for (int i = 0; i < 8; i++) a[i] = tile_a[row + i][k];
            for (int j = 0; j < 8; j++) b[j] = tile_b[k][col + j];
            for (int i = 0; i < 8; i++)
                for (int j = 0; j < 8; j++) sum[i][j] += a[i] * b[j];
        }
        __syncthreads();
    }
    store_8x8(C, M, N, first_row + row, first_col + col, sum);
}

// A thread copies 4 neighbours at a time, those of A to a transposed tile.
extern "C" __global__ void xgemm_vectorized(ARGUMENTS)
{
    __shared__ float tile_a[16][128];
    __shared__ float tile_b[16][128];
    const int t = threadIdx.x;
    const int a_row = t / 4, a_col = t % 4 * 4, b_row = t / 32, b_col = t % 32 * 4;
    const int row = 8 * (t / 16), col = 8 * (t % 16);
    const int first_row = 128 * blockIdx.y, first_col = 128 * blockIdx.x;
    const int phases = ceil((float)K / 16);
    float sum[8][8] = {}, a[8] = {}, b[8] = {};
    for (int phase = 0; phase < phases; phase++) {
        for (int pass = 0; pass < 128; pass += 64)
            if (first_row + pass + a_row < M && phase * 16 + a_col < K) {
                const float4 four = *(float4 *)&A[(first_row + pass + a_row) * K + phase * 16 + a_col];
                tile_a[a_col + 0][pass + a_row] = four.x;
                tile_a[a_col + 1][pass + a_row] = four.y;
                tile_a[a_col + 2][pass + a_row] = four.z;
                tile_a[a_col + 3][pass + a_row] = four.w;
            }
        for (int pass = 0; pass < 16; pass += 8)
            if (phase * 16 + b_row + pass < K && first_col + b_col < N) {
                const float4 four = *(float4 *)&B[(phase * 16 + b_row + pass) * N + first_col + b_col];
                tile_b[b_row + pass][b_col + 0] = four.x;
                tile_b[b_row + pass][b_col + 1] = four.y;
                tile_b[b_row + pass][b_col + 2] = four.z;
                tile_b[b_row + pass][b_col + 3] = four.w;
            }
        __syncthreads();
        for (int k = 0; k < 16; k++) {
            for (int i = 0; i < 8; i++) a[i] = tile_a[k][row + i];
            for (int j = 0; j < 8; j++) b[j] = tile_b[k][col + j];
            for (int i = 0; i < 8; i++)
                for (int j = 0; j < 8; j++) sum[i][j] += a[i] * b[j];
        }
        __syncthreads();
    }
    store_8x8(C, M, N, first_row + row, first_col + col, sum);
}

// A barrier for each k, and the lanes of a warp take elements of B from as many rows: the index that
// is their column is taken for the row too. Where that leaves B, here it begins again at its top, for
// any K from 64 on.
extern "C" __global__ void notes_coarsened_2d(ARGUMENTS)
{
    __shared__ float tile_a[128 * 8];
    __shared__ float tile_b[8 * 128];
    const unsigned t = threadIdx.x;
    const unsigned a_row = t / 8, a_col = t % 8, b_row = t / 128, b_col = t % 128;
    const unsigned c_row = t / 16, c_col = t % 16;
    A += blockIdx.y * 128 * K;
    B += blockIdx.x * 128;
    C += blockIdx.y * 128 * N + blockIdx.x * 128;
    float sum[64] = {}, a[8] = {}, b[8] = {};
    for (int phase = 0; phase < K; phase += 8) {
        for (unsigned pass = 0; pass < 128; pass += 32)
            tile_a[(a_row + pass) * 8 + a_col] = A[(a_row + pass) * K + a_col];
        for (unsigned pass = 0; pass < 8; pass += 2) {
            const int row = b_col + pass, end = K - phase;
            const int inside = row < end ? row : row < end + K ? row - K : row - 2 * K;
            tile_b[(b_row + pass) * 128 + b_col] = B[inside * N + (int)b_col];
        }
        __syncthreads();
        A += 8;
        B += 8 * N;
        for (int k = 0; k < 8; k++) {
            for (int i = 0; i < 8; i++) a[i] = tile_a[(c_row * 8 + i) * 8 + k];
            for (int j = 0; j < 8; j++) b[j] = tile_b[k * 128 + c_col * 8 + j];
            for (unsigned i = 0; i < 8; i++)
                for (unsigned j = 0; j < 8; j++) sum[i * 8 + j] += a[i] * b[j];
            __syncthreads();
        }
    }
    for (unsigned i = 0; i < 8; i++)
        for (unsigned j = 0; j < 8; j++) C[(c_row * 8 + i) * N + c_col * 8 + j] = sum[i * 8 + j];
}
