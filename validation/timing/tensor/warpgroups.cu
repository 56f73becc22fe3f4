// Products by wgmma: C (m x n) = A (m x k) times B (n x k) transposed, both K-major in shared memory with a
// swizzle of 128 bytes. Rows are counted in bytes: a wgmma takes 32 bytes of each row, whatever the type is.
// m, n and k are multiples of the tile.

typedef unsigned long long u64;
struct alignas(64) TensorMap { u64 opaque[16]; };  // CUtensorMap of cuda.h

#define EXPORT extern "C" __global__ void
enum { ROW = 128 };  // bytes of a row in a tile: four wgmma

#define NAMES_16(a, b) "%" a "0, %" a "1, %" a "2, %" a "3, %" a "4, %" a "5, %" a "6, %" a "7, %" a "8, %" a "9, "
#define OF_32 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, " TENS("1") TENS("2") "%30, %31}"
#define OF_64 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, " TENS("1") TENS("2") TENS("3") TENS("4") TENS("5") "%60, %61, %62, %63}"
#define OF_128                                                                                              \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, " TENS("1") TENS("2") TENS("3") TENS("4") TENS("5") TENS("6") \
        TENS("7") TENS("8") TENS("9") TENS("10") TENS("11") "%120, %121, %122, %123, %124, %125, %126, %127}"
#define TENS(a) NAMES_16(a, )
#define FOUR(l, i) "+" l(d[i]), "+" l(d[i + 1]), "+" l(d[i + 2]), "+" l(d[i + 3])
#define SIXTEEN(l, i) FOUR(l, i), FOUR(l, i + 4), FOUR(l, i + 8), FOUR(l, i + 12)
#define REGISTERS_32(l) SIXTEEN(l, 0), SIXTEEN(l, 16)
#define REGISTERS_64(l) SIXTEEN(l, 0), SIXTEEN(l, 16), SIXTEEN(l, 32), SIXTEEN(l, 48)
#define REGISTERS_128(l)                                                                                    \
    SIXTEEN(l, 0), SIXTEEN(l, 16), SIXTEEN(l, 32), SIXTEEN(l, 48), SIXTEEN(l, 64), SIXTEEN(l, 80), SIXTEEN(l, 96), \
        SIXTEEN(l, 112)

template <int N> struct Half;
template <int N> struct Brain;
template <int N> struct HalfSums;
template <int N> struct Tf32;
template <int N> struct Int8;
template <int N> struct E4m3;
// `after` follows the predicate: scales of the operands, and for 16-bit types what is transposed.
#define GMMA(Name, N, Sum, letter, types, COUNT, p, x, y, after)                                            \
    template <> struct Name<N> {                                                                            \
        using Result = Sum;                                                                                 \
        static constexpr int SUMS = COUNT;                                                                  \
        static __device__ void add(Sum* d, u64 a, u64 b, int keep)                                          \
        {                                                                                                   \
            asm volatile("{.reg .pred p; setp.ne.b32 p, %" p ", 0; wgmma.mma_async.sync.aligned." types     \
                         " " OF_##COUNT ", %" x ", %" y ", p" after ";}"                                    \
                : REGISTERS_##COUNT(letter)                                                                 \
                : "l"(a), "l"(b), "r"(keep));                                                               \
        }                                                                                                   \
    };
GMMA(Half, 64, float, "f", "m64n64k16.f32.f16.f16", 32, "34", "32", "33", ", 1, 1, 0, 0")
GMMA(Half, 128, float, "f", "m64n128k16.f32.f16.f16", 64, "66", "64", "65", ", 1, 1, 0, 0")
GMMA(Half, 256, float, "f", "m64n256k16.f32.f16.f16", 128, "130", "128", "129", ", 1, 1, 0, 0")
GMMA(Brain, 128, float, "f", "m64n128k16.f32.bf16.bf16", 64, "66", "64", "65", ", 1, 1, 0, 0")
GMMA(HalfSums, 128, unsigned, "r", "m64n128k16.f16.f16.f16", 32, "34", "32", "33", ", 1, 1, 0, 0")
GMMA(Tf32, 128, float, "f", "m64n128k8.f32.tf32.tf32", 64, "66", "64", "65", ", 1, 1")
GMMA(Int8, 128, int, "r", "m64n128k32.s32.s8.s8", 64, "66", "64", "65", "")
GMMA(E4m3, 128, float, "f", "m64n128k32.f32.e4m3.e4m3", 64, "66", "64", "65", ", 1, 1")
GMMA(E4m3, 64, float, "f", "m64n64k32.f32.e4m3.e4m3", 32, "34", "32", "33", ", 1, 1")

__device__ void add_from_registers(float* d, const unsigned* a, u64 b, int keep)
{
    asm volatile("{.reg .pred p; setp.ne.b32 p, %69, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " OF_64
                 ", {%64, %65, %66, %67}, %68, p, 1, 1, 0;}"
        : REGISTERS_64("f")
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(keep));
}

__device__ unsigned shared_address(const void* pointer) { return (unsigned)__cvta_generic_to_shared(pointer); }
__device__ u64 descriptor(unsigned address) { return (address & 0x3ffff) >> 4 | 1ull << 16 | 64ull << 32 | 1ull << 62; }
__device__ void begin_group() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ void end_group() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int LEFT> __device__ void wait_groups()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
}
__device__ void show_to_wgmma() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
__device__ void begin(u64* barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals));
}
__device__ void expect(u64* barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
        : "memory");
}
__device__ void arrive(u64* barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}
__device__ void wait_for(u64* barrier, unsigned parity)
{
    asm volatile("{.reg .pred p; AGAIN: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @p bra.uni DONE; "
                 "bra.uni AGAIN; DONE:}" ::"r"(shared_address(barrier)),
        "r"(parity)
        : "memory");
}
__device__ void load_tile(unsigned to, const TensorMap* map, int column, int row, u64* barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], "
                 "[%4];" ::"r"(to),
        "l"(map), "r"(column), "r"(row), "r"(shared_address(barrier))
        : "memory");
}

// Accumulators of 64 rows; a register holds one sum, or two of FP16.
template <class Op> __device__ void store(const typename Op::Result* d, typename Op::Result* c, int n, int row, int column, int width)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4, halves = width / 2 / Op::SUMS;
#pragma unroll
    for (int j = 0; j < width / 8; ++j)
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            const size_t place = size_t(row + 16 * warp + 8 * i + lane / 4) * n + column + 8 * j + lane % 4 * 2;
            if (halves == 2) c[place / 2] = d[2 * j + i];
            else *reinterpret_cast<uint2*>(c + place) = *reinterpret_cast<const uint2*>(d + 4 * j + 2 * i);
        }
}

// Copies by all threads. GROUPS warpgroups compute 64 rows each; STAGES - 1 tiles are on their way.
template <class Op, int N, int GROUPS, int STAGES, bool REGISTERS = false>
__device__ void by_all(const char* a, const char* b, typename Op::Result* c, int n, int row_bytes)
{
    extern __shared__ __align__(1024) char tiles[];
    constexpr int M = 64 * GROUPS, THREADS = 128 * GROUPS, STAGE = (M + N) * ROW, CHUNKS = (M + N) * ROW / 16 / THREADS;
    const int group = threadIdx.x / 128, lane = threadIdx.x % 32, steps = row_bytes / ROW;
    const unsigned base = shared_address(tiles) + 1023 & ~1023;
    a += size_t(blockIdx.y) * M * row_bytes;
    b += size_t(blockIdx.x) * N * row_bytes;
    typename Op::Result d[Op::SUMS];
    const auto fetch = [&](int step) {
        if (step < steps)
#pragma unroll
            for (int i = 0; i < CHUNKS; ++i) {
                const int chunk = threadIdx.x + i * THREADS, r = chunk / 8, at = chunk % 8;
                const char* from = (r < M ? a + size_t(r) * row_bytes : b + size_t(r - M) * row_bytes) + step * ROW + at * 16;
                asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                                 base + step % STAGES * STAGE + r * ROW + ((at ^ r & 7) << 4)),
                    "l"(from)
                    : "memory");
            }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
    for (int step = 0; step < STAGES - 1; ++step) fetch(step);
    for (int step = 0; step < steps; ++step) {
        if constexpr (STAGES == 1) fetch(step);
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES == 1 ? 0 : STAGES - 2) : "memory");
        show_to_wgmma();
        __syncthreads();
        const unsigned tile = base + step % STAGES * STAGE, of_a = tile + group * 64 * ROW, of_b = tile + M * ROW;
        if constexpr (REGISTERS) {
            unsigned fa[ROW / 32][4];
            const int row = threadIdx.x / 32 % 4 * 16 + lane % 16;
#pragma unroll
            for (int i = 0; i < ROW / 32; ++i)
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                    : "=r"(fa[i][0]), "=r"(fa[i][1]), "=r"(fa[i][2]), "=r"(fa[i][3])
                    : "r"(of_a + row * ROW + ((2 * i + lane / 16 ^ row & 7) << 4))
                    : "memory");
            begin_group();
#pragma unroll
            for (int i = 0; i < ROW / 32; ++i) add_from_registers(d, fa[i], descriptor(of_b + 32 * i), step || i);
        } else {
            begin_group();
#pragma unroll
            for (int i = 0; i < ROW / 32; ++i)
                Op::add(d, descriptor(of_a + 32 * i), descriptor(of_b + 32 * i), step || i);
        }
        end_group();
        if constexpr (STAGES < 3 || REGISTERS) wait_groups<0>();
        else wait_groups<1>();  // the stage before is free
        __syncthreads();
        if constexpr (STAGES > 1) fetch(step + STAGES - 1);
    }
    wait_groups<0>();
    store<Op>(d, c, n, blockIdx.y * M + 64 * group, blockIdx.x * N, N);
}

// Copies by tensor maps. With ROLES, a warp of its own copies, and GROUPS warpgroups compute; a block takes
// tile after tile. Without, thread 0 copies between its products.
template <class Op, int N, int GROUPS, int STAGES>
__device__ void by_roles(const TensorMap* of_a, const TensorMap* of_b, typename Op::Result* c, int m, int n, int steps, int elements)
{
    extern __shared__ __align__(1024) char tiles[];
    __shared__ u64 full[STAGES], empty[STAGES];
    constexpr int M = 64 * GROUPS, STAGE = (M + N) * ROW;
    const unsigned base = shared_address(tiles) + 1023 & ~1023;
    const int group = threadIdx.x / 128, across = n / N, all = m / M * across;
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; ++i) begin(full + i, 1), begin(empty + i, GROUPS);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    int turn = 0;
    if (group == GROUPS) {
        if (threadIdx.x % 128 == 0)
            for (int tile = blockIdx.x; tile < all; tile += gridDim.x)
                for (int step = 0; step < steps; ++step, ++turn) {
                    const int stage = turn % STAGES;
                    if (turn >= STAGES) wait_for(empty + stage, turn / STAGES + 1 & 1);
                    expect(full + stage, STAGE);
                    load_tile(base + stage * STAGE, of_a, step * elements, tile / across * M, full + stage);
                    load_tile(base + stage * STAGE + M * ROW, of_b, step * elements, tile % across * N, full + stage);
                }
        return;
    }
    for (int tile = blockIdx.x; tile < all; tile += gridDim.x) {
        typename Op::Result d[Op::SUMS];
        for (int step = 0; step < steps; ++step, ++turn) {
            const int stage = turn % STAGES;
            wait_for(full + stage, turn / STAGES & 1);
            begin_group();
#pragma unroll
            for (int i = 0; i < ROW / 32; ++i)
                Op::add(d, descriptor(base + stage * STAGE + group * 64 * ROW + 32 * i),
                    descriptor(base + stage * STAGE + M * ROW + 32 * i), step || i);
            end_group();
            if (step) {
                wait_groups<1>();
                if (threadIdx.x % 128 == 0) arrive(empty + (turn + STAGES - 1) % STAGES);
            }
        }
        wait_groups<0>();
        if (threadIdx.x % 128 == 0) arrive(empty + (turn + STAGES - 1) % STAGES);
        store<Op>(d, c, n, tile / across * M + 64 * group, tile % across * N, N);
    }
}
template <class Op, int N, int GROUPS, int STAGES>
__device__ void by_thread_0(const TensorMap* of_a, const TensorMap* of_b, typename Op::Result* c, int n, int steps, int elements)
{
    extern __shared__ __align__(1024) char tiles[];
    __shared__ u64 full[STAGES];
    constexpr int M = 64 * GROUPS, STAGE = (M + N) * ROW;
    const unsigned base = shared_address(tiles) + 1023 & ~1023;
    const int group = threadIdx.x / 128;
    const auto fetch = [&](int step) {
        const int stage = step % STAGES;
        expect(full + stage, STAGE);
        load_tile(base + stage * STAGE, of_a, step * elements, blockIdx.y * M, full + stage);
        load_tile(base + stage * STAGE + M * ROW, of_b, step * elements, blockIdx.x * N, full + stage);
    };
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; ++i) begin(full + i, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        for (int step = 0; step < STAGES && step < steps; ++step) fetch(step);
    }
    __syncthreads();
    typename Op::Result d[Op::SUMS];
    for (int step = 0; step < steps; ++step) {
        const int stage = step % STAGES;
        wait_for(full + stage, step / STAGES & 1);
        begin_group();
#pragma unroll
        for (int i = 0; i < ROW / 32; ++i)
            Op::add(d, descriptor(base + stage * STAGE + group * 64 * ROW + 32 * i),
                descriptor(base + stage * STAGE + M * ROW + 32 * i), step || i);
        end_group();
        wait_groups<0>();
        __syncthreads();
        if (threadIdx.x == 0 && step + STAGES < steps) fetch(step + STAGES);
    }
    store<Op>(d, c, n, blockIdx.y * M + 64 * group, blockIdx.x * N, N);
}

#define BY_ALL(name, Op, N, GROUPS, STAGES, ...)                                                            \
    EXPORT __launch_bounds__(128 * GROUPS) name(const char* a, const char* b, Op<N>::Result* c, int n, int row_bytes) \
    {                                                                                                       \
        by_all<Op<N>, N, GROUPS, STAGES __VA_OPT__(, ) __VA_ARGS__>(a, b, c, n, row_bytes);                 \
    }
#define BY_THREAD_0(name, Op, N, GROUPS, STAGES, ELEMENTS)                                                  \
    EXPORT __launch_bounds__(128 * GROUPS) name(const __grid_constant__ TensorMap a,                        \
        const __grid_constant__ TensorMap b, Op<N>::Result* c, int n, int steps)                            \
    {                                                                                                       \
        by_thread_0<Op<N>, N, GROUPS, STAGES>(&a, &b, c, n, steps, ELEMENTS);                               \
    }
#define BY_ROLES(name, Op, N, GROUPS, STAGES, ELEMENTS)                                                     \
    EXPORT __launch_bounds__(128 * (GROUPS + 1)) name(const __grid_constant__ TensorMap a,                  \
        const __grid_constant__ TensorMap b, Op<N>::Result* c, int m, int n, int steps)                     \
    {                                                                                                       \
        by_roles<Op<N>, N, GROUPS, STAGES>(&a, &b, c, m, n, steps, ELEMENTS);                               \
    }
BY_ALL(group_unstaged, Half, 64, 1, 1)
BY_ALL(group_two_stages, Half, 128, 1, 2)
BY_ALL(group_copies, Half, 128, 2, 4)
BY_ALL(group_registers, Half, 128, 2, 4, true)
BY_ALL(group_copies_int8, Int8, 128, 2, 4)
BY_ALL(group_copies_e4m3, E4m3, 64, 2, 4)
BY_THREAD_0(group_maps, Half, 128, 2, 4, 64)
BY_THREAD_0(group_maps_small, Half, 64, 1, 4, 64)
BY_THREAD_0(group_maps_tf32, Tf32, 128, 1, 4, 32)
BY_ROLES(group_roles, Half, 128, 2, 4, 64)
BY_ROLES(group_roles_wide, Half, 256, 2, 4, 64)
BY_ROLES(group_roles_brain, Brain, 128, 1, 4, 64)
BY_ROLES(group_roles_half_sums, HalfSums, 128, 2, 5, 64)
BY_ROLES(group_roles_tf32, Tf32, 128, 2, 4, 32)
BY_ROLES(group_roles_int8, Int8, 128, 2, 4, 128)
BY_ROLES(group_roles_e4m3, E4m3, 128, 2, 4, 128)
