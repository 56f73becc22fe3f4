// Launches: structures by value, dynamic shared memory, ragged blocks, clocks.

struct Affine {
    float a, b;
    int n;
    short step;
    double scale;
};

extern "C" __global__ void by_value(float* out, Affine f, const float* in)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < f.n) out[i] = (float)(f.scale * (f.a * in[i * f.step] + f.b));
}

struct Small {
    char a;
    short b;
    int c[5];
};

extern "C" __global__ void small_arguments(
    int* out, char a, unsigned char b, short c, long long d, double e, bool f, Small s, unsigned short g)
{
    const int values[10] = {
        a, b, c, (int)(d >> 32), (int)d, (int)(e * 4), f, s.a + s.b, s.c[threadIdx.x % 5], g};
    if (threadIdx.x < 10) out[threadIdx.x] = values[threadIdx.x];
}

// Two arrays in one dynamic allocation, of a size that only the launch knows.
extern "C" __global__ void dynamic_shared(float* out, const float* in, int n)
{
    extern __shared__ float room[];
    double* wide = (double*)(room + 2 * ((n + 1) / 2));
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        room[i] = in[blockIdx.x * n + i], wide[i] = in[blockIdx.x * n + i] * 2.0;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        out[blockIdx.x * n + i] = room[n - 1 - i] + (float)wide[(i * 7) % n];
}

// A block that is no multiple of 32: neighbours through shared memory and a barrier.
extern "C" __global__ void ragged_block(int* out, const int* in)
{
    __shared__ int staged[1024];
    const int n = blockDim.x * blockDim.y, t = threadIdx.y * blockDim.x + threadIdx.x;
    staged[t] = in[blockIdx.x * n + t];
    __syncthreads();
    out[blockIdx.x * n + t] = staged[n - 1 - t] * 3 + staged[(t + 1) % n];
}

extern "C" __global__ void nothing() {}

extern "C" __global__ void clocks(long long* out)
{
    const long long start = clock64();
    unsigned long long before, after;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(before));
    __nanosleep(100);
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(after));
    const int low = clock();
    out[threadIdx.x] = (clock64() >= start) + 2 * (after >= before) + 4 * (low == low);
}
