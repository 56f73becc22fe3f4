// Bug       a block reads the shared memory of another one after a barrier of the block alone
// Launch    -g 2 -b 64 -a f32[128] -a f32[128]=zeros
// Expected  synccheck access before cluster barrier
// NVIDIA    racecheck
// Needs     sm_90

extern "C" __global__ void __cluster_dims__(2) planted(const float* in, float* out)
{
    __shared__ float own[64];
    const int t = threadIdx.x, at = blockIdx.x * 64 + t;
    const unsigned rank = __clusterRelativeBlockRank();
    own[t] = in[at];
    __syncthreads();
    float* peer = (float*)__cluster_map_shared_rank(own, rank ^ 1);
    out[at] = peer[63 - t];  // <-
    __cluster_barrier_arrive();
    __cluster_barrier_wait();
}
