// Bug       none: a block arrives after its last read of another one, and waits before it leaves
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
    float* peer = (float*)__cluster_map_shared_rank(own, rank ^ 1);
    __cluster_barrier_wait();
    const float value = peer[63 - t];
    __cluster_barrier_arrive();
    out[at] = 2.0f * value + own[t];
    __cluster_barrier_wait();
}
