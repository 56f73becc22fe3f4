// What the decode snapshots are made from: many kinds of operands in few instructions.

__device__ int visits;
__constant__ float weights[16];

// A call with its way back, a NaN whose payload matters, shuffles, a vote, a barrier, shared memory.
extern "C" __global__ void calls(float* x, double* y, char scale) {
    __shared__ float tile[64];
    extern __shared__ float rest[];
    float root = sqrtf(x[threadIdx.x]);
    tile[threadIdx.x ^ 1] = root > 2.0f ? root : __int_as_float(0x7fffffff);
#if __CUDA_ARCH__ >= 800
    unsigned to = (unsigned)__cvta_generic_to_shared(rest + threadIdx.x);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(x + 64));
    asm volatile("cp.async.wait_all;");
#endif
    __syncthreads();
    float sum = tile[threadIdx.x] + __shfl_xor_sync(~0u, rest[threadIdx.x], 4);
    y[threadIdx.x] = 1.5 * y[threadIdx.x] + scale;
    if (__any_sync(~0u, sum > 1e30f)) atomicAdd(&visits, 1);
    x[threadIdx.x] = fabsf(sum) - weights[threadIdx.x & 15];
}

// A jump table, halves of a register, local memory.
extern "C" __global__ void jumps(unsigned* h, int which) {
    unsigned local[8], a = h[0], b = h[1];
    for (int i = 0; i < 8; i++) local[i] = h[i];
    switch (which) {
        case 0: asm("fma.rn.f16x2 %0, %1, %2, %0;" : "+r"(a) : "r"(b), "r"(0x3c003e00)); break;
        case 1: a = __popc(b) - a; break;
        case 2: a = local[b & 7]; break;
        case 3: a = min((int)a, (int)b) * 7; break;
        case 4: a = __brev(a | b); break;
        case 5: a = __clz(a) + b; break;
    }
    h[2] = a;
}
