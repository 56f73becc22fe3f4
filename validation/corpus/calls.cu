// Calls that stay calls: noinline functions, recursion, pointers to local, shared or global memory.

__device__ __noinline__ int mix(int a, int b) { return (a ^ b) * 31 + (a >> 3); }
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
__device__ __noinline__ void sort3(int* v)
{
    if (v[0] > v[1]) {
        const int t = v[0];
        v[0] = v[1], v[1] = t;
    }
    if (v[1] > v[2]) {
        const int t = v[1];
        v[1] = v[2], v[2] = t;
    }
    if (v[0] > v[1]) {
        const int t = v[0];
        v[0] = v[1], v[1] = t;
    }
}

extern "C" __global__ void calls(int* out, const int* in, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int value = mix(in[i], i);
    if (value & 1) value = mix(value, mix(in[i], 7));  // in a part of the warp
    out[i] = value;
}

extern "C" __global__ void recursion(unsigned* out, const unsigned* in, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = fibonacci(in[i]);
}

extern "C" __global__ void local_pointer(int* out, const int* in, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int v[3] = {in[i], in[(i + 1) % n], in[(i + 2) % n]};
    sort3(v);
    out[i] = v[1];
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

typedef int (*Operation)(int, int);
__device__ __noinline__ int add(int a, int b) { return a + b; }
__device__ __noinline__ int subtract(int a, int b) { return a - b; }

extern "C" __global__ void function_pointers(int* out, const int* a, const int* b, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const Operation operation = a[i] & 1 ? add : subtract;
    out[i] = operation(a[i], b[i]);
}
