// Asynchronous copies into shared memory, sm_80 and later: 4, 8 and 16 bytes, double buffered.

__device__ unsigned shared_address(const void* pointer)
{
    return (unsigned)__cvta_generic_to_shared(pointer);
}
template <int BYTES>
__device__ void copy(void* to, const void* from)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(shared_address(to)), "l"(from), "n"(BYTES)
        : "memory");
}
__device__ void copy16(void* to, const void* from, int source_bytes)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from),
        "r"(source_bytes)
        : "memory");
}
__device__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int PENDING>
__device__ void wait_for()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

extern "C" __global__ void async_widths(float* out, const float* in)
{
    __shared__ alignas(16) float a[128];
    __shared__ alignas(16) float b[256];
    __shared__ alignas(16) float c[512];
    const int t = threadIdx.x;
    copy<4>(a + t, in + t);
    commit();
    copy<8>(b + 2 * t, in + 128 + 2 * t);
    commit();
    copy16(c + 4 * t, in + 384 + 4 * t, t % 5 == 4 ? 8 : 16);  // the rest is filled with zeros
    commit();
    wait_for<0>();
    __syncthreads();
    out[t] = a[127 - t] + b[(t * 2 + 5) % 256] + c[(t * 4 + 6) % 512] + c[(t * 4 + 131) % 512];
}

// Tiles of 32x32, one phase ahead.
extern "C" __global__ void async_gemm(float* c, const float* a, const float* b, int n)
{
    __shared__ float tile_a[2][32][32], tile_b[2][32][32];
    const int x = threadIdx.x, y = threadIdx.y, column = blockIdx.x * 32 + x, row = blockIdx.y * 32;
    for (int i = y; i < 32; i += 8)
        copy<4>(&tile_a[0][i][x], &a[(row + i) * n + x]), copy<4>(&tile_b[0][i][x], &b[i * n + column]);
    commit();
    float sum[4] = {};
    for (int start = 0; start < n; start += 32) {
        const int now = start / 32 & 1;
        if (start + 32 < n)
            for (int i = y; i < 32; i += 8) {
                copy<4>(&tile_a[now ^ 1][i][x], &a[(row + i) * n + start + 32 + x]);
                copy<4>(&tile_b[now ^ 1][i][x], &b[(start + 32 + i) * n + column]);
            }
        commit();
        wait_for<1>();
        __syncthreads();
        for (int k = 0; k < 32; ++k)
            for (int j = 0; j < 4; ++j) sum[j] += tile_a[now][y + 8 * j][k] * tile_b[now][k][x];
        __syncthreads();
    }
    for (int j = 0; j < 4; ++j) c[(row + y + 8 * j) * n + column] = sum[j];
}
