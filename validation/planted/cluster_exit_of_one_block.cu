// Bug       three blocks add to the memory of the first one, which does not wait for them
// Launch    -g 4 -b 64 -a f32[256] -a f32[256]=zeros
// Expected  synccheck access after block exit
// NVIDIA    memcheck
// Needs     sm_90

extern "C" __global__ void __cluster_dims__(4) planted(const float* in, float* out)
{
    __shared__ float sum;
    const int t = threadIdx.x, at = blockIdx.x * 64 + t;
    if (t == 0) sum = 0.0f;
    __cluster_barrier_arrive();
    __cluster_barrier_wait();
    if (__clusterRelativeBlockRank() == 0) {
        out[at] = in[at];
        return;  // <-
    }
    atomicAdd((float*)__cluster_map_shared_rank(&sum, 0), in[at]);  // <-
    __cluster_barrier_arrive();
    __cluster_barrier_wait();
    out[at] = 1.0f;
}  // <-
