// Bug       a block writes to the shared memory of another one, which may not have started
// Launch    -g 4 -b 64 -a f32[256] -a f32[256]=zeros
// Expected  synccheck access before cluster barrier
// NVIDIA    racecheck
// Needs     sm_90

extern "C" __global__ void __cluster_dims__(4) planted(const float* in, float* out)
{
    __shared__ float own[64];
    const int t = threadIdx.x, at = blockIdx.x * 64 + t;
    float* next = (float*)__cluster_map_shared_rank(own, (__clusterRelativeBlockRank() + 1) % 4);
    next[t] = in[at];  // <-
    __cluster_barrier_arrive();
    __cluster_barrier_wait();
    out[at] = own[63 - t];
}
