// Calls that stay calls: noinline functions, recursion, pointers to local, shared or global memory.

__device__ __noinline__ float length_of(const float* v, int n)
{
    float sum = 0;
    for (int i = 0; i < n; ++i) sum += v[i] * v[i];
    return sqrtf(sum);
}
__device__ __noinline__ unsigned fibonacci(unsigned n)
{
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}
extern "C" __global__ void recursion(unsigned* out, const unsigned* in, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = fibonacci(in[i]);
}

// The pointer is shared for even threads, global for odd ones.
extern "C" __global__ void generic_pointer(float* out, float* global, const float* in)
{
    __shared__ float shared[128 + 4];
    const int t = threadIdx.x;
    shared[t] = in[t];
    if (t < 4) shared[128 + t] = 1;
    __syncthreads();
    float* where = t & 1 ? global + t : shared + t;
    out[t] = length_of(where, 4);
    __syncthreads();
    *where = -1;
    if (t % 4 == 1) atomicAdd(where, 0.5f);
    __syncthreads();
    out[128 + t] = shared[t] + global[t];
}
