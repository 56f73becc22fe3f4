// Rungs 13 to 19: barriers in shared memory, reads from there, and the order of multiply-adds.

#include "quads.cuh"

struct __align__(64) TensorMap { char opaque[128]; };

// Barriers in shared memory, by their address there.
__device__ void init(unsigned barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(barrier), "r"(arrivals) : "memory");
}
__device__ void arrive(unsigned barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(barrier) : "memory");
}
__device__ void wait(unsigned barrier, unsigned parity)
{
    asm volatile("{ .reg .pred done;"
                 "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;"
                 "@!done bra again; }" :: "r"(barrier), "r"(parity) : "memory");
}

__device__ float4 read(unsigned address)
{
    float4 quad;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(quad.x), "=f"(quad.y), "=f"(quad.z), "=f"(quad.w) : "r"(address));
    return quad;
}

// The column that comes at `step` in a row of the thread's tile: to and fro. With TURNED (rung 18), the
// column of k's parity is the last of one row and the first of the next, at both ends.
__device__ constexpr int column(int row, int k, int step)
{
    const int at = row % 2 ? TN - 1 - step : step;
    const int first_two = k % 2 ? 1 - at : at, last_two = k % 2 ? at : 2 * TN - 3 - at;
    return !TURNED ? at : at < 2 ? first_two : at >= TN - 2 ? last_two : at;
}

// The barriers of all stages: a stage is full after one arrival and its bytes, empty when every warp has read it.
__device__ void init_ring(unsigned full, unsigned empty)
{
    for (int stage = 0; stage < STAGES; ++stage) init(full + 8 * stage, 1), init(empty + 8 * stage, WARPS);
    asm volatile("fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;" ::: "memory");
}
