// Warp-level functions: votes, matches, shuffles of every mode and width, partial masks.

extern "C" __global__ void votes(unsigned* out, const int* in)
{
    const int lane = threadIdx.x, value = in[blockIdx.x * 32 + lane];
    unsigned* mine = out + (blockIdx.x * 32 + lane) * 6;
    mine[0] = __all_sync(~0u, value > -50);
    mine[1] = __any_sync(~0u, value > 45);
    mine[2] = __ballot_sync(~0u, value & 1);
    mine[3] = __match_any_sync(~0u, value / 10);
    int same;
    mine[4] = __match_all_sync(~0u, value >> 31, &same);
    mine[5] = same << 8;
}

extern "C" __global__ void partial_masks(unsigned* out, const int* in)
{
    __shared__ int staged[32];
    const int lane = threadIdx.x;
    unsigned result = 0;
    if (lane < 12) {
        result = __ballot_sync(0xfff, in[lane] > 0);
        result += __shfl_sync(0xfff, in[lane], (lane + 5) % 12) & 0xff;
        __syncwarp(0xfff);
    } else if (lane & 1) {
        result = __activemask();
        staged[lane] = in[lane];
        __syncwarp(0xaaaaa000);
        result ^= staged[lane == 31 ? 13 : lane + 2];
    } else {
        result = __any_sync(0x55555000, in[lane] > 40) + 7;
    }
    __syncwarp();
    out[lane] = result + __shfl_xor_sync(~0u, result, 1);
}

extern "C" __global__ void shuffles(int* out, const int* in)
{
    const int lane = threadIdx.x, value = in[lane];
    int* mine = out + 9 * lane;
    mine[0] = __shfl_sync(~0u, value, 7);
    mine[1] = __shfl_sync(~0u, value, value & 63, 16);
    mine[2] = __shfl_up_sync(~0u, value, 3);
    mine[3] = __shfl_up_sync(~0u, value, 2, 8);
    mine[4] = __shfl_down_sync(~0u, value, 5);
    mine[5] = __shfl_down_sync(~0u, value, 1, 4);
    mine[6] = __shfl_xor_sync(~0u, value, 9);
    mine[7] = __shfl_xor_sync(~0u, value, 4, 8);
    const long long wide = __shfl_sync(~0u, (long long)value << 16 | lane, 31 - lane);
    mine[8] = (int)(wide >> 16) + (int)(wide & 31);
}

// Predicate of a shuffle: whether the source lane is in range.
extern "C" __global__ void shuffle_predicate(int* out, const int* in)
{
    int value, inside;
    asm("{ .reg .pred p; shfl.sync.down.b32 %0|p, %2, 6, 0x1f, -1; selp.s32 %1, 1, 0, p; }"
        : "=r"(value), "=r"(inside)
        : "r"(in[threadIdx.x]));
    out[2 * threadIdx.x] = value, out[2 * threadIdx.x + 1] = inside;
}

// 4x4 matrices, one element per lane, two matrices per warp: products by shuffles.
extern "C" __global__ void matrix_by_shuffles(float* c, const float* a, const float* b)
{
    const int lane = threadIdx.x & 15, row = lane / 4, column = lane % 4,
              i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
#pragma unroll
    for (int k = 0; k < 4; ++k)
        sum += __shfl_sync(~0u, a[i], row * 4 + k, 16) * __shfl_sync(~0u, b[i], k * 4 + column, 16);
    c[i] = sum;
}

// Lanes with the same key elect a leader, which adds for all.
extern "C" __global__ void aggregated_atomics(int* counts, const int* keys, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const unsigned peers = __match_any_sync(__activemask(), keys[i]);
    const int leader = __ffs(peers) - 1;
    if ((threadIdx.x & 31) == leader) atomicAdd(&counts[keys[i]], __popc(peers));
}

extern "C" __global__ void lane_registers(unsigned* out)
{
    unsigned lane, lt, le, gt, ge, eq;
    asm volatile(
        "mov.u32 %0, %%laneid; mov.u32 %1, %%lanemask_lt; mov.u32 %2, %%lanemask_le;"
        "mov.u32 %3, %%lanemask_gt; mov.u32 %4, %%lanemask_ge; mov.u32 %5, %%lanemask_eq;"
        : "=r"(lane), "=r"(lt), "=r"(le), "=r"(gt), "=r"(ge), "=r"(eq));
    unsigned* mine = out + 6 * (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z));
    mine[0] = lane;
    mine[1] = lt;
    mine[2] = le;
    mine[3] = gt;
    mine[4] = ge;
    mine[5] = eq;
}
