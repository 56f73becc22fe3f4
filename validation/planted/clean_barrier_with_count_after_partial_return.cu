// Bug       none: so does a barrier that counts, or that votes
// Launch    -g 1 -b 64 -a f32[64] -a f32[64]=zeros
// Expected  nothing
// NVIDIA    none

extern "C" __global__ void planted(const float* in, float* out)
{
    const int t = threadIdx.x;
    if (t % 32 >= 20) return;
    const int count = __syncthreads_count(in[t] > 0.5f);
    out[t] = __syncthreads_or(in[t] > 0.9f) ? count : -count;
}
