// Scans, compaction and sorting: shfl_up, ballots, shared memory.

extern "C" __global__ void scan_blocks(int* out, const int* in, int n)
{
    __shared__ int totals[32];
    const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int value = i < n ? in[i] : 0;
    for (int offset = 1; offset < 32; offset *= 2) {
        const int other = __shfl_up_sync(~0u, value, offset);
        if (lane >= offset) value += other;
    }
    if (lane == 31) totals[warp] = value;
    __syncthreads();
    if (warp == 0) {
        int total = lane < blockDim.x / 32 ? totals[lane] : 0;
        for (int offset = 1; offset < 32; offset *= 2) {
            const int other = __shfl_up_sync(~0u, total, offset);
            if (lane >= offset) total += other;
        }
        totals[lane] = total;
    }
    __syncthreads();
    if (i < n) out[i] = value + (warp ? totals[warp - 1] : 0);
}

// Each block keeps the positive elements of its part, in order.
extern "C" __global__ void compact(int* out, int* counts, const int* in)
{
    __shared__ int offsets[33];
    const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const bool keep = in[i] > 0;
    const unsigned votes = __ballot_sync(~0u, keep);
    if (lane == 0) offsets[warp + 1] = __popc(votes);
    if (threadIdx.x == 0) offsets[0] = 0;
    __syncthreads();
    if (threadIdx.x == 0)
        for (int w = 0; w < blockDim.x / 32; ++w) offsets[w + 1] += offsets[w];
    __syncthreads();
    if (keep) out[blockIdx.x * blockDim.x + offsets[warp] + __popc(votes & ((1u << lane) - 1))] = in[i];
    if (threadIdx.x == 0) counts[blockIdx.x] = offsets[blockDim.x / 32];
}

// Rank sort: every thread counts what is smaller.
extern "C" __global__ void rank_sort(float* sorted, const float* in, int n)
{
    __shared__ float part[64];
    const int i = blockIdx.x * 64 + threadIdx.x;
    const float mine = i < n ? in[i] : 0;
    int rank = 0;
    for (int start = 0; start < n; start += 64) {
        __syncthreads();
        if (start + threadIdx.x < n) part[threadIdx.x] = in[start + threadIdx.x];
        __syncthreads();
        for (int j = 0; j < min(64, n - start); ++j)
            rank += part[j] < mine || (part[j] == mine && start + j < i);
    }
    if (i < n) sorted[rank] = mine;
}
