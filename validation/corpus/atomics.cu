// Atomics on shared and global memory, with and without use of the old value.

extern "C" __global__ void histogram_shared(unsigned* bins, const unsigned char* in, int n)
{
    __shared__ unsigned local[256];
    for (int b = threadIdx.x; b < 256; b += blockDim.x) local[b] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&local[in[i]], 1);
    __syncthreads();
    for (int b = threadIdx.x; b < 256; b += blockDim.x)
        if (local[b]) atomicAdd(&bins[b], local[b]);
}

extern "C" __global__ void histogram_weighted(float* bins, const int* bin, const float* weight, int n)
{
    __shared__ float local[16];
    if (threadIdx.x < 16) local[threadIdx.x] = 0;
    __syncthreads();
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&local[bin[i]], weight[i]);
    __syncthreads();
    if (threadIdx.x < 16) atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}

// Results that do not depend on the order of threads, without use of the old value: RED.
extern "C" __global__ void global_reductions(
    int* s, unsigned* u, unsigned long long* l, double* d, const int* in, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const int x = in[i];
    atomicAdd(&s[0], x), atomicSub(&s[1], x), atomicMin(&s[2], x), atomicMax(&s[3], x);
    atomicAnd(&u[0], x | 0xffff), atomicOr(&u[1], x & 0x0f0f), atomicXor(&u[2], x), atomicMin(&u[3], x),
        atomicMax(&u[4], x);
    atomicInc(&u[5], 999), atomicDec(&u[6], 499);
    atomicAdd(&l[0], (unsigned long long)x << 20), atomicMax(&l[1], (unsigned long long)x << 8),
        atomicXor(&l[2], (long long)x * x);
    atomicAdd(&d[0], (double)x);
}

// The old values come in any order: numbers that are given out once, and a chain of exchanges.
extern "C" __global__ void tickets(unsigned* ticket, unsigned long long* wide, unsigned* swapped, int n)
{
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    ticket[i] = atomicAdd(&ticket[n], 1);
    wide[i] = atomicAdd(&wide[n], 3ull << 31);
    swapped[i] = atomicExch(&swapped[n], i);
}

extern "C" __global__ void shared_atomics(int* out, const int* in)
{
    __shared__ int s[8];
    __shared__ unsigned u[4];
    __shared__ unsigned long long l[2];
    if (threadIdx.x < 8) s[threadIdx.x] = 0;
    if (threadIdx.x < 4) u[threadIdx.x] = threadIdx.x ? 0 : ~0u;
    if (threadIdx.x < 2) l[threadIdx.x] = 0;
    __syncthreads();
    const int x = in[blockIdx.x * blockDim.x + threadIdx.x];
    atomicAdd(&s[0], x), atomicMin(&s[1], x), atomicMax(&s[2], x), atomicXor(&s[3], x);
    atomicAnd(&u[0], x | 0xff), atomicOr(&u[1], x), atomicInc(&u[2], 40);
    atomicAdd(&l[0], (long long)x * x), atomicMax(&l[1], (unsigned long long)(unsigned)x);
    if (atomicCAS(&s[4], 0, 1) == 0) atomicAdd(&s[5], 1);
    if (atomicExch(&s[6], 1) == 0) atomicAdd(&s[7], 1);
    __syncthreads();
    int* mine = out + 16 * blockIdx.x;
    if (threadIdx.x < 8) mine[threadIdx.x] = s[threadIdx.x];
    if (threadIdx.x < 4) mine[8 + threadIdx.x] = u[threadIdx.x];
    if (threadIdx.x < 2)
        mine[12 + 2 * threadIdx.x] = (int)l[threadIdx.x],
                      mine[13 + 2 * threadIdx.x] = (int)(l[threadIdx.x] >> 32);
}

// A product by compare-and-swap: threads of a warp retry until all are through.
extern "C" __global__ void cas_product(
    unsigned* product, unsigned long long* product_wide, const unsigned* odd, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned seen = product[0], expected;
    do {
        expected = seen;
        seen = atomicCAS(product, expected, expected * odd[i]);
    } while (seen != expected);
    unsigned long long wide = *product_wide, old;
    do {
        old = wide;
        wide = atomicCAS(product_wide, old, old * odd[i]);
    } while (wide != old);
}

// The last block to finish adds up what the others wrote.
extern "C" __global__ void last_block_sums(int* result, int* partial, unsigned* done, const int* in)
{
    __shared__ bool last;
    if (threadIdx.x == 0) partial[blockIdx.x] = 0;
    __syncthreads();
    atomicAdd(&partial[blockIdx.x], in[blockIdx.x * blockDim.x + threadIdx.x]);
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicInc(done, gridDim.x - 1) == gridDim.x - 1;
    __syncthreads();
    if (last && threadIdx.x == 0) {
        int sum = 0;
        for (int b = 0; b < gridDim.x; ++b) sum += ((volatile int*)partial)[b];
        *result = sum;
    }
}

// A lock taken by one thread of each warp.
extern "C" __global__ void spin_lock(int* lock, int* counter)
{
    if (threadIdx.x % 32 == 0) {
        while (atomicCAS(lock, 0, 1) != 0) __nanosleep(20);
        __threadfence();
        *(volatile int*)counter = *(volatile int*)counter + 1;
        __threadfence();
        atomicExch(lock, 0);
    }
}

// Vector and packed additions without the old value.
extern "C" __global__ void half_adds(unsigned* sums, const unsigned* in, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        asm volatile("red.global.add.noftz.f16x2 [%0], %1;" ::"l"(sums + i % 4), "r"(in[i]) : "memory");
}
