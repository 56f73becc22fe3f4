// wgmma of FP16 parts: 64 rows of A and 64 * N columns of B, both from shared memory, sums in registers.

// Of a tile with the 128-byte swizzle, K-major (rows of 64 k) or not (rows of 64 elements, one of each k): 8 rows are 1,024
// bytes, and the next 64 columns of the matrix that is not K-major are PIECE bytes further. In a cluster the rank is in
// the upper bits of an address.
constexpr int PIECE = 64 * 64 * 2;  // bytes of 64 x 64 halves
__device__ unsigned long long descriptor(unsigned address)
{
    return (unsigned long long)((address & 0x3ffff) >> 4) | (unsigned long long)(PIECE >> 4) << 16 | (1024ull >> 4) << 32 | 1ull << 62;
}
// Bytes from 16 k to the next 16.
constexpr int A_STEP = A_ALONG ? 32 : 2048, B_STEP = B_ALONG ? 32 : 2048;

__device__ void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
__device__ void wait_for_products() { asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory"); }

#define EIGHT(i) "+f"(x[i]), "+f"(x[i + 1]), "+f"(x[i + 2]), "+f"(x[i + 3]), "+f"(x[i + 4]), "+f"(x[i + 5]), "+f"(x[i + 6]), "+f"(x[i + 7])
#define THIRTY_TWO(i) EIGHT(i), EIGHT(i + 8), EIGHT(i + 16), EIGHT(i + 24)

// x = A * B, or x + A * B if `counts`.
__device__ void multiply(float (&x)[32], unsigned long long a, unsigned long long b, int counts)
{
    asm volatile("{.reg .pred p; setp.ne.b32 p, %34, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, "
                 "%23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, p, 1, 1, %35, %36;}"
                 : THIRTY_TWO(0) : "l"(a), "l"(b), "r"(counts), "n"(!A_ALONG), "n"(!B_ALONG));
}
__device__ void multiply(float (&x)[64], unsigned long long a, unsigned long long b, int counts)
{
    asm volatile("{.reg .pred p; setp.ne.b32 p, %66, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, "
                 "%23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, "
                 "%44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
                 "%64, %65, p, 1, 1, %67, %68;}"
                 : THIRTY_TWO(0), THIRTY_TWO(32) : "l"(a), "l"(b), "r"(counts), "n"(!A_ALONG), "n"(!B_ALONG));
}

// Keep additions of the sums behind the wait.
template <int N> __device__ void pin(float (&x)[N])
{
#pragma unroll
    for (int i = 0; i < N; ++i) asm volatile("" : "+f"(x[i])::"memory");
}
