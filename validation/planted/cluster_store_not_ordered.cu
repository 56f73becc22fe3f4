// Bug       blocks have started, but what the other one writes then is read without a barrier of the cluster
// Launch    -g 2 -b 64 -a f32[128] -a f32[128]=zeros
// Expected  racecheck RAW
// NVIDIA    none
// Needs     sm_90

extern "C" __global__ void __cluster_dims__(2) planted(const float* in, float* out)
{
    __shared__ float own[64];
    const int t = threadIdx.x, at = blockIdx.x * 64 + t;
    __cluster_barrier_arrive();
    __cluster_barrier_wait();
    own[t] = in[at];  // <-
    __syncthreads();
    float* peer = (float*)__cluster_map_shared_rank(own, __clusterRelativeBlockRank() ^ 1);
    out[at] = peer[63 - t];  // <-
    __cluster_barrier_arrive();
    __cluster_barrier_wait();
}
