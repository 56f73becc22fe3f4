// Bug       none: values go round four blocks, with a barrier of the cluster on both sides of each step
// Launch    -g 8 -b 64 -a f32[512] -a f32[512]=zeros
// Expected  nothing
// NVIDIA    none
// Needs     sm_90

extern "C" __global__ void __cluster_dims__(4) planted(const float* in, float* out)
{
    __shared__ float own[2][64];
    const int t = threadIdx.x, at = blockIdx.x * 64 + t;
    const unsigned next = (__clusterRelativeBlockRank() + 1) % 4;
    own[0][t] = in[at];
    __cluster_barrier_arrive();
    __cluster_barrier_wait();
    for (int step = 0; step < 3; ++step) {
        float* to = (float*)__cluster_map_shared_rank(own[1 - step % 2], next);
        to[t] = own[step % 2][63 - t] + 1.0f;
        __cluster_barrier_arrive();
        __cluster_barrier_wait();
    }
    out[at] = own[1][t];
}
