// Asynchronous copies of fewer bytes than they write, sm_80 and later: the rest becomes zero.

__device__ unsigned shared_address(const void* pointer)
{
    return (unsigned)__cvta_generic_to_shared(pointer);
}
template <int BYTES>
__device__ void copy(void* to, const void* from, int source_bytes)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared_address(to)), "l"(from),
        "n"(BYTES), "r"(source_bytes)
        : "memory");
}

// The last copy ends with the buffer: what is not read need not be there.
extern "C" __global__ void partial_copies(unsigned char* out, const unsigned char* in)
{
    __shared__ alignas(16) unsigned char staged[3][32 * 16];
    const int t = threadIdx.x;
    copy<4>(&staged[0][4 * t], in + 4 * t, t % 5);
    copy<8>(&staged[1][8 * t], in + 8 * t, t % 9);
    copy<16>(&staged[2][16 * t], in + 16 * t, t % 17);
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    for (int i = t; i < 32 * 4; i += 32) out[i] = staged[0][i];
    for (int i = t; i < 32 * 8; i += 32) out[32 * 4 + i] = staged[1][i];
    for (int i = t; i < 32 * 16; i += 32) out[32 * 12 + i] = staged[2][i];
}

extern "C" __global__ void constant_sizes(float4* out, const float4* in)
{
    __shared__ float4 staged[4][32];
    const int t = threadIdx.x;
    copy<16>(&staged[0][t], in + t, 4);
    copy<16>(&staged[1][t], in + t, 8);
    copy<16>(&staged[2][t], in + t, 12);
    copy<16>(&staged[3][t], in + t, 0);
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    for (int k = 0; k < 4; ++k) out[32 * k + t] = staged[k][31 - t];
}
