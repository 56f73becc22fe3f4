// C = A·B for one block of 64 threads: 32 rows, 32 columns, K a multiple of 4; 4×4 of C per thread.
extern "C" __global__ void __launch_bounds__(64) product(const float *A, const float *B, float *C, int K)
{
    __shared__ __align__(16) float a[4][32], b[4][32];
    const int t = threadIdx.x, row = t / 8 * 4, column = t % 8 * 4;
    float sum[4][4] = {};
    for (int k = 0; k < K; k += 4) {
        for (int n = t; n < 128; n += 64) {
            a[n / 32][n % 32] = A[n % 32 * K + k + n / 32];
            b[n / 32][n % 32] = B[(k + n / 32) * 32 + n % 32];
        }
        __syncthreads();
#pragma unroll
        for (int step = 0; step < 4; ++step) {
            const float4 x = *reinterpret_cast<float4 *>(&a[step][row]);
            const float4 y = *reinterpret_cast<float4 *>(&b[step][column]);
            const float xs[4] = {x.x, x.y, x.z, x.w}, ys[4] = {y.x, y.y, y.z, y.w};
#pragma unroll
            for (int i = 0; i < 4; ++i)
#pragma unroll
                for (int j = 0; j < 4; ++j) sum[i][j] += xs[i] * ys[j];
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) C[(row + i) * 32 + column + j] = sum[i][j];
}
