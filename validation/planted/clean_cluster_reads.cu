// Bug       none: barriers of the cluster before the first read of another block and after the last
// Launch    -g 2 -b 64 -a f32[128] -a f32[128]=zeros
// Expected  nothing
// NVIDIA    none
// Needs     sm_90

extern "C" __global__ void __cluster_dims__(2) planted(const float* in, float* out)
{
    __shared__ float own[64];
    const int t = threadIdx.x, at = blockIdx.x * 64 + t;
    const unsigned rank = __clusterRelativeBlockRank();
    own[t] = in[at];
    __cluster_barrier_arrive();
    __cluster_barrier_wait();
    float* peer = (float*)__cluster_map_shared_rank(own, rank ^ 1);
    out[at] = peer[63 - t];
    __cluster_barrier_arrive();
    __cluster_barrier_wait();
}
