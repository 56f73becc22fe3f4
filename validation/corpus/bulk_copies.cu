// Barriers in shared memory and bulk copies, sm_90 and later: tiles through tensor maps, runs of bytes.

typedef unsigned long long u64;
struct alignas(64) TensorMap { u64 opaque[16]; };  // CUtensorMap of cuda.h

__device__ unsigned shared_address(const void* pointer)
{
    return (unsigned)__cvta_generic_to_shared(pointer);
}
__device__ void begin(u64* barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals));
}
__device__ void publish() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
__device__ void expect(u64* barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
        "r"(bytes)
        : "memory");
}
__device__ u64 arrive(u64* barrier)
{
    u64 state;
    asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];"
        : "=l"(state)
        : "r"(shared_address(barrier))
        : "memory");
    return state;
}
__device__ bool is_over(u64* barrier, unsigned parity)
{
    unsigned over;
    asm volatile("{.reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;"
                 "selp.u32 %0, 1, 0, p;}"
        : "=r"(over)
        : "r"(shared_address(barrier)), "r"(parity)
        : "memory");
    return over;
}
__device__ void wait_for(u64* barrier, unsigned parity)
{
    unsigned over;
    do
        asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;"
                     "selp.u32 %0, 1, 0, p;}"
            : "=r"(over)
            : "r"(shared_address(barrier)), "r"(parity)
            : "memory");
    while (!over);
}
__device__ bool elected()
{
    unsigned is_leader;
    asm volatile("{.reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p;}" : "=r"(is_leader));
    return is_leader;
}
__device__ void load_tile(void* to, const TensorMap* map, int column, int row, u64* barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%2, %3}], [%4];" ::"r"(shared_address(to)),
        "l"(map), "r"(column), "r"(row), "r"(shared_address(barrier))
        : "memory");
}
__device__ void store_tile(const TensorMap* map, int column, int row, const void* from)
{
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map),
        "r"(column), "r"(row), "r"(shared_address(from))
        : "memory");
}
__device__ void add_tile(const TensorMap* map, int column, int row, const void* from)
{
    asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%0, {%1, %2}], [%3];" ::"l"(
                     map),
        "r"(column), "r"(row), "r"(shared_address(from))
        : "memory");
}
__device__ void stores_end()
{
    asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
}
__device__ void show_to_copies() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// One tile of 32 rows as it lies in shared memory.
template <int COLUMNS>
__device__ void one_tile(const TensorMap* map, float* out, int column, int row)
{
    __shared__ alignas(1024) float tile[32 * 32];
    __shared__ u64 barrier;
    for (int i = threadIdx.x; i < 32 * 32; i += blockDim.x) tile[i] = -1;
    if (threadIdx.x == 0) begin(&barrier, 1), publish();
    show_to_copies();
    __syncthreads();
    if (threadIdx.x == 0) {
        expect(&barrier, 32 * COLUMNS * 4);
        load_tile(tile, map, column, row, &barrier);
    }
    wait_for(&barrier, 0);
    for (int i = threadIdx.x; i < 32 * 32; i += blockDim.x) out[i] = tile[i];
}
extern "C" __global__ void tile_of_32(const __grid_constant__ TensorMap map, float* out, int column, int row)
{
    one_tile<32>(&map, out, column, row);
}
extern "C" __global__ void tile_of_16(const __grid_constant__ TensorMap map, float* out, int column, int row)
{
    one_tile<16>(&map, out, column, row);
}
extern "C" __global__ void tile_of_8(const __grid_constant__ TensorMap map, float* out, int column, int row)
{
    one_tile<8>(&map, out, column, row);
}

// C = A·B with tiles of 32x32: a warp loads two phases ahead, four others compute.
extern "C" __global__ void tiled_product(const __grid_constant__ TensorMap a, const __grid_constant__ TensorMap b,
    float* c, int n, int k)
{
    __shared__ alignas(1024) float tile_a[2][32][32], tile_b[2][32][32];
    __shared__ u64 full[2], empty[2];
    const int row = blockIdx.y * 32, column = blockIdx.x * 32;
    if (threadIdx.x == 0) {
        for (int s = 0; s < 2; ++s) begin(&full[s], 1), begin(&empty[s], 4);
        publish();
    }
    __syncthreads();
    if (threadIdx.x >= 128) {
        if (elected())
            for (int t = 0; t < k / 32; ++t) {
                const int s = t % 2;
                wait_for(&empty[s], t / 2 & 1 ^ 1);
                expect(&full[s], sizeof tile_a[s] + sizeof tile_b[s]);
                load_tile(tile_a[s], &a, 32 * t, row, &full[s]);
                load_tile(tile_b[s], &b, column, 32 * t, &full[s]);
            }
        return;
    }
    const int x = threadIdx.x % 32, y = threadIdx.x / 32;
    float sum[8] = {};
    for (int t = 0; t < k / 32; ++t) {
        const int s = t % 2;
        wait_for(&full[s], t / 2 & 1);
        for (int i = 0; i < 32; ++i)
            for (int j = 0; j < 8; ++j) sum[j] += tile_a[s][y + 4 * j][i] * tile_b[s][i][x];
        __syncwarp();
        if (x == 0) arrive(&empty[s]);
    }
    for (int j = 0; j < 8; ++j) c[(row + y + 4 * j) * n + column + x] = sum[j];
}

// Twice a tile, stored and added.
extern "C" __global__ void twice_a_tile(const __grid_constant__ TensorMap in, const __grid_constant__ TensorMap out,
    const __grid_constant__ TensorMap sums, int column, int row)
{
    __shared__ alignas(128) float tile[32 * 32];
    __shared__ u64 barrier;
    if (threadIdx.x == 0) begin(&barrier, 1), publish();
    __syncthreads();
    if (threadIdx.x == 0) {
        expect(&barrier, sizeof tile);
        load_tile(tile, &in, column, row, &barrier);
    }
    wait_for(&barrier, 0);
    for (int i = threadIdx.x; i < 32 * 32; i += blockDim.x) tile[i] *= 2;
    show_to_copies();
    __syncthreads();
    if (threadIdx.x == 0) {
        store_tile(&out, column, row, tile);
        add_tile(&sums, column, row, tile);
        stores_end();
    }
}

// Runs of bytes there and back.
extern "C" __global__ void runs_of_bytes(float* out, const float* in, int bytes)
{
    __shared__ alignas(16) float room[1024];
    __shared__ u64 barrier;
    if (threadIdx.x == 0) {
        begin(&barrier, 1), publish();
        expect(&barrier, bytes);
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                         shared_address(room)),
            "l"(in), "r"(bytes), "r"(shared_address(&barrier))
            : "memory");
    }
    __syncthreads();
    wait_for(&barrier, 0);
    for (int i = threadIdx.x; i < bytes / 4; i += blockDim.x) room[i] += 1;
    show_to_copies();
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(out),
            "r"(shared_address(room)), "r"(bytes)
            : "memory");
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(
                         out + bytes / 4),
            "r"(shared_address(room)), "r"(bytes)
            : "memory");
        stores_end();
    }
}

// What a barrier tells: whether phases are over, and arrivals that lack before each arrival.
extern "C" __global__ void phases(unsigned* out, unsigned* lacking)
{
    __shared__ u64 barrier;
    if (threadIdx.x == 0) begin(&barrier, 32);
    __syncthreads();
    unsigned lack;
    const bool first = is_over(&barrier, 0), before = is_over(&barrier, 1);
    const u64 state = arrive(&barrier);
    asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(lack) : "l"(state));
    wait_for(&barrier, 0);
    const bool over = is_over(&barrier, 0), next = is_over(&barrier, 1);
    __syncwarp();
    arrive(&barrier);
    wait_for(&barrier, 1);
    out[threadIdx.x] = first | before << 1 | over << 2 | next << 3;
    lacking[threadIdx.x] = lack;
}

// Copies of each thread arrive at a barrier, which counts them as one that it knew of or did not.
extern "C" __global__ void threads_copy(float* out, const float* in)
{
    __shared__ alignas(16) float room[128];
    __shared__ u64 known, more;
    if (threadIdx.x == 0) begin(&known, 32), begin(&more, 32);
    __syncthreads();
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(room + 4 * threadIdx.x)),
        "l"(in + 4 * threadIdx.x)
        : "memory");
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(&known)) : "memory");
    asm volatile("cp.async.mbarrier.arrive.shared::cta.b64 [%0];" ::"r"(shared_address(&more)) : "memory");
    arrive(&more);
    wait_for(&known, 0);
    wait_for(&more, 0);
    for (int i = 0; i < 4; ++i) out[32 * i + threadIdx.x] = room[127 - 32 * i - threadIdx.x];
}
