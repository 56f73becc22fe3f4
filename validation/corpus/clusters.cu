// Clusters of blocks and blocks that wait for others, sm_90 and later.

typedef unsigned long long u64;
struct alignas(64) TensorMap { u64 opaque[16]; };  // CUtensorMap of cuda.h

__device__ unsigned shared_address(const void* pointer)
{
    return (unsigned)__cvta_generic_to_shared(pointer);
}
#define SPECIAL(name)                                  \
    __device__ unsigned name()                         \
    {                                                  \
        unsigned value;                                \
        asm volatile("mov.u32 %0, %%" #name ";" : "=r"(value)); \
        return value;                                  \
    }
#define SPECIAL_OF(name, axis)                                       \
    __device__ unsigned name##_##axis()                              \
    {                                                                \
        unsigned value;                                              \
        asm volatile("mov.u32 %0, %%" #name "." #axis ";" : "=r"(value)); \
        return value;                                                \
    }
SPECIAL(cluster_ctarank)
SPECIAL(cluster_nctarank)
SPECIAL_OF(clusterid, x)
SPECIAL_OF(clusterid, y)
SPECIAL_OF(nclusterid, x)
SPECIAL_OF(nclusterid, y)
SPECIAL_OF(cluster_ctaid, x)
SPECIAL_OF(cluster_ctaid, y)
SPECIAL_OF(cluster_nctaid, x)
SPECIAL_OF(cluster_nctaid, y)

__device__ void cluster_sync()
{
    asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
__device__ unsigned of_block(unsigned address, unsigned rank)
{
    unsigned there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
    return there;
}

// Where a block of a 3x2 cluster is.
extern "C" __global__ void __cluster_dims__(3, 2, 1) places(unsigned* out)
{
    unsigned* own = out + 10 * (blockIdx.x + gridDim.x * blockIdx.y);
    own[0] = cluster_ctarank(), own[1] = cluster_nctarank();
    own[2] = clusterid_x(), own[3] = clusterid_y(), own[4] = nclusterid_x(), own[5] = nclusterid_y();
    own[6] = cluster_ctaid_x(), own[7] = cluster_ctaid_y(), own[8] = cluster_nctaid_x(), own[9] = cluster_nctaid_y();
}

// Each block reads its neighbour's, writes the next one's and adds to the one after that.
extern "C" __global__ void __cluster_dims__(4, 1, 1) neighbours(unsigned* out, const unsigned* in)
{
    __shared__ unsigned own[64], written[64], added[64];
    const unsigned x = threadIdx.x, rank = cluster_ctarank();
    own[x] = in[blockIdx.x * 64 + x], added[x] = 100;
    cluster_sync();
    unsigned read;
    asm volatile("ld.shared::cluster.u32 %0, [%1];"
        : "=r"(read)
        : "r"(of_block(shared_address(own + 63 - x), (rank + 1) % 4))
        : "memory");
    asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(of_block(shared_address(written + x), (rank + 2) % 4)),
        "r"(10 * rank)
        : "memory");
    asm volatile("red.shared::cluster.add.u32 [%0], %1;" ::"r"(of_block(shared_address(added + x), (rank + 3) % 4)),
        "r"(rank)
        : "memory");
    cluster_sync();
    out[blockIdx.x * 64 + x] = read + 1000 * written[x] + 1000000 * added[x];
}

// One block of two loads a tile for both, after both have said that they wait for it.
extern "C" __global__ void __cluster_dims__(2, 1, 1) shared_tile(const __grid_constant__ TensorMap map, float* out)
{
    __shared__ alignas(128) float tile[8 * 32];
    __shared__ u64 barrier, ready;
    const unsigned rank = cluster_ctarank();
    const unsigned here = shared_address(&barrier);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(here));
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 2;" ::"r"(shared_address(&ready)));
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    cluster_sync();
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 1024;" ::"r"(here) : "memory");
        asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(
                         of_block(shared_address(&ready), 0))
            : "memory");
        if (rank == 0) {
            unsigned over;
            do
                asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;"
                             "selp.u32 %0, 1, 0, p;}"
                    : "=r"(over)
                    : "r"(shared_address(&ready))
                    : "memory");
            while (!over);
            asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
                         ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(shared_address(tile)),
                "l"(&map), "r"(0), "r"(8 * (int)(blockIdx.x / 2)), "r"(here), "h"((short)3)
                : "memory");
        }
    }
    unsigned over;
    do
        asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;"
                     "selp.u32 %0, 1, 0, p;}"
            : "=r"(over)
            : "r"(here)
            : "memory");
    while (!over);
    for (int i = threadIdx.x; i < 8 * 32; i += blockDim.x) out[blockIdx.x * 256 + i] = tile[i];
    cluster_sync();
}

__device__ unsigned acquired(const unsigned* flag)
{
    unsigned value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
    return value;
}
__device__ void release(unsigned* flag, unsigned value)
{
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}

// Prefix sums over blocks: each waits for the one before it, or, with a step of -1, for the one after it.
extern "C" __global__ void chained(unsigned* sums, unsigned* flags, int step)
{
    const int block = blockIdx.x, before = block - step;
    if (threadIdx.x == 0) {
        unsigned sum = block + 1;
        if (before >= 0 && before < (int)gridDim.x) {
            while (!acquired(flags + before)) {}
            sum += sums[before];
        }
        sums[block] = sum;
        release(flags + block, 1);
    }
}

// All blocks wait for all: twice.
extern "C" __global__ void grid_barriers(unsigned* out, unsigned* arrived, unsigned blocks)
{
    for (unsigned phase = 1; phase <= 2; ++phase) {
        if (threadIdx.x == 0) {
            asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(arrived) : "memory");
            while (acquired(arrived) < phase * blocks) {}
        }
        __syncthreads();
        if (phase == 1) out[blockIdx.x] = blockIdx.x + 1;
    }
    if (threadIdx.x == 0) out[gridDim.x + blockIdx.x] = out[(blockIdx.x + 1) % gridDim.x];
}
