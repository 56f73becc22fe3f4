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
