// Operands of 64 bits, divisions of floats, and launches that end with a store.
#define EACH _Pragma("unroll") for (int i = 0; i < OPERATIONS; i++)
#define KERNEL(name, type, setup, step, result)                                         \
    extern "C" __global__ void name(long long *clocks, type *sink, int rounds)          \
    {                                                                                   \
        setup;                                                                          \
        __syncthreads();                                                                \
        const long long start = clock64();                                              \
        _Pragma("unroll 1") for (int round = 0; round < rounds; round++) { step; }      \
        __syncthreads();                                                                \
        clocks[blockIdx.x] = clock64() - start;                                         \
        type sum = 0;                                                                   \
        EACH sum += result;                                                             \
        if (sum == 12345) *sink = sum;                                                  \
    }

KERNEL(dfma_three, double,
       double a[OPERATIONS]; double b[OPERATIONS]; double c[OPERATIONS];
       EACH { a[i] = threadIdx.x + i; b[i] = 1 + (threadIdx.x + i) * 1e-3; c[i] = i; },
       EACH c[i] = fma(a[i], b[i], c[i]), c[i])
// one operand is a number, in a uniform register
KERNEL(dfma_number, double,
       double a[OPERATIONS]; double c[OPERATIONS]; EACH { a[i] = threadIdx.x + i; c[i] = i; },
       EACH c[i] = fma(a[i], 1 + i * 1e-3, c[i]), c[i])
KERNEL(dfma_two, double,
       double b = threadIdx.x * 1e-3; double c[OPERATIONS]; EACH c[i] = i,
       EACH c[i] = fma(c[i], b, c[i]), c[i])
KERNEL(dadd_two, double,
       double a[OPERATIONS]; double c[OPERATIONS]; EACH { a[i] = threadIdx.x + i; c[i] = i; },
       EACH c[i] = c[i] + a[i], c[i])
KERNEL(division, float,
       float a[OPERATIONS]; float b[OPERATIONS];
       EACH { a[i] = 1 + threadIdx.x + i; b[i] = 1.5f + i + threadIdx.x * 0.01f; },
       EACH a[i] = a[i] / b[i] + 2, a[i])
// the same without the check whether the short way is exact
KERNEL(unchecked_division, float,
       float a[OPERATIONS]; float b[OPERATIONS];
       EACH { a[i] = 1 + threadIdx.x + i; b[i] = 1.5f + i + threadIdx.x * 0.01f; },
       EACH {
           float r;
           asm volatile("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(b[i]));
           r = fmaf(r, fmaf(-b[i], r, 1), r);
           const float q = a[i] * r;
           a[i] = fmaf(r, fmaf(-b[i], q, a[i]), q) + 2;
       }, a[i])

extern "C" __global__ void no_store(unsigned *out) {}
extern "C" __global__ void one_store(unsigned *out)
{
    out[blockIdx.x * blockDim.x + threadIdx.x] = 1;
}
