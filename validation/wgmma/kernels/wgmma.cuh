// Parts of the kernels of this folder: barriers, copies of tiles, descriptors, and m64n128 products.
// A row of a tile is 128 bytes, whatever its type: K is 4 products of 32 bytes deep.
#pragma once

struct alignas(64) TensorMap { char opaque[128]; };

#if defined(TYPE_F16)
#define OPCODE "m64n128k16.f32.f16.f16"
#define IMMEDIATES ", 1, 1, 0, 0"
#define IMMEDIATES_OF_REGISTERS ", 1, 1, 0"
constexpr int ELEMENT = 2;
#elif defined(TYPE_BF16)
#define OPCODE "m64n128k16.f32.bf16.bf16"
#define IMMEDIATES ", 1, 1, 0, 0"
constexpr int ELEMENT = 2;
#elif defined(TYPE_TF32)
#define OPCODE "m64n128k8.f32.tf32.tf32"
#define IMMEDIATES ", 1, 1"
constexpr int ELEMENT = 4;
#elif defined(TYPE_E4M3)
#define OPCODE "m64n128k32.f32.e4m3.e4m3"
#define IMMEDIATES ", 1, 1"
constexpr int ELEMENT = 1;
#elif defined(TYPE_S8)
#define OPCODE "m64n128k32.s32.s8.s8"
#define IMMEDIATES ""
#define SUM int
#define CONSTRAINT "+r"
constexpr int ELEMENT = 1;
#endif
#ifndef SUM
#define SUM float
#define CONSTRAINT "+f"
#endif

constexpr int ROW = 128;          // bytes of a row of a tile
constexpr int SUMS = 64;          // of a thread
constexpr int BK = ROW / ELEMENT; // of a stage

__device__ inline unsigned shared_address(const void *x) { return (unsigned)__cvta_generic_to_shared(x); }

__device__ inline void begin_barrier(unsigned barrier, unsigned arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(arrivals) : "memory");
}
__device__ inline void arrive(unsigned barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(barrier) : "memory");
}
__device__ inline void expect(unsigned barrier, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(barrier), "r"(bytes) : "memory");
}
__device__ inline void wait(unsigned barrier, unsigned parity) {
    asm volatile("{.reg .pred p; L: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra L;}" ::"r"(barrier),
                 "r"(parity) : "memory");
}
__device__ inline void copy(unsigned to, const TensorMap *map, int column, int row, unsigned barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 :: "r"(to), "l"(map), "r"(column), "r"(row), "r"(barrier) : "memory");
}

// K-major tile, rows of 128 bytes, swizzled by 128 bytes: groups of 8 rows are 1,024 bytes apart
__device__ inline unsigned long long descriptor(unsigned address) {
    return (unsigned long long)((address & 0x3ffff) >> 4) | 1ull << 16 | (1024ull >> 4) << 32 | 1ull << 62;
}

__device__ inline void fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int LEFT> __device__ inline void wait_for_groups() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" :: "n"(LEFT) : "memory");
}

#define EIGHT(x, i) \
    CONSTRAINT(x[i]), CONSTRAINT(x[i + 1]), CONSTRAINT(x[i + 2]), CONSTRAINT(x[i + 3]), CONSTRAINT(x[i + 4]), \
    CONSTRAINT(x[i + 5]), CONSTRAINT(x[i + 6]), CONSTRAINT(x[i + 7])
#define ALL(x) EIGHT(x, 0), EIGHT(x, 8), EIGHT(x, 16), EIGHT(x, 24), EIGHT(x, 32), EIGHT(x, 40), EIGHT(x, 48), EIGHT(x, 56)
#define LISTED \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, " \
    "%23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, " \
    "%45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}"

// x = A * B, or x + A * B where `counts`
__device__ inline void multiply(SUM (&x)[SUMS], unsigned long long a, unsigned long long b, int counts) {
    asm volatile("{.reg .pred p; setp.ne.b32 p, %66, 0; wgmma.mma_async.sync.aligned." OPCODE " " LISTED
                 ", %64, %65, p" IMMEDIATES ";}" : ALL(x) : "l"(a), "l"(b), "r"(counts));
}
#ifdef IMMEDIATES_OF_REGISTERS
__device__ inline void multiply(SUM (&x)[SUMS], const unsigned (&a)[4], unsigned long long b, int counts) {
    asm volatile("{.reg .pred p; setp.ne.b32 p, %69, 0; wgmma.mma_async.sync.aligned." OPCODE " " LISTED
                 ", {%64, %65, %66, %67}, %68, p" IMMEDIATES_OF_REGISTERS ";}"
                 : ALL(x) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(counts));
}
#endif

// the sums of a warpgroup's 64 x 128 to C at its row
__device__ inline void store(const SUM (&x)[SUMS], SUM *c, int row, int column, int n) {
    const int thread = threadIdx.x % 128;
    row += thread / 32 * 16 + thread % 32 / 4;
    column += thread % 4 * 2;
#pragma unroll
    for (int i = 0; i < SUMS; i += 2) {
        SUM *to = c + (size_t)(row + i / 2 % 2 * 8) * n + column + i / 4 * 8;
        to[0] = x[i], to[1] = x[i + 1];
    }
}
