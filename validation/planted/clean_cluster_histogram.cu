// Bug       none: atomic operations on the bins of all blocks, between two barriers of the cluster
// Launch    -g 2 -b 64 -a f32[128] -a f32[128]=zeros
// Expected  nothing
// NVIDIA    none
// Needs     sm_90

extern "C" __global__ void __cluster_dims__(2) planted(const float* in, float* out)
{
    __shared__ int bins[64];
    const int t = threadIdx.x, at = blockIdx.x * 64 + t;
    bins[t] = 0;
    __cluster_barrier_arrive();
    __cluster_barrier_wait();
    const int bin = (int)(127.0f * fabsf(in[at])) % 128;
    atomicAdd((int*)__cluster_map_shared_rank(bins, bin / 64) + bin % 64, 1);
    __cluster_barrier_arrive();
    __cluster_barrier_wait();
    out[at] = bins[t];
}
