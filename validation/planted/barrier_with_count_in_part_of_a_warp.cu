// Bug       a barrier that counts, in a loop, which part of a warp skips
// Launch    -g 1 -b 64 -a f32[64] -a f32[64]=zeros
// Expected  synccheck divergent thread(s) in warp
// NVIDIA    none

extern "C" __global__ void planted(const float* in, float* out)
{
    const int t = threadIdx.x;
    float sum = 0.0f;
    for (int k = 0; k < 4; ++k) {
        if (t < 60 - 4 * k) sum += __syncthreads_count(in[t] > 0.1f * k);  // <-
        sum += in[(t + k) % 64];
    }
    out[t] = sum;
}
