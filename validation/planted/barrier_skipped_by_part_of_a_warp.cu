// Bug       a barrier that part of a warp skips, and goes on
// Launch    -g 1 -b 64 -a f32[64] -a f32[64]=zeros
// Expected  synccheck divergent thread(s) in warp
// NVIDIA    synccheck

extern "C" __global__ void planted(const float* in, float* out)
{
    __shared__ float copy[64];
    const int t = threadIdx.x;
    float other = 0.0f;
    if (t < 50) {
        copy[t] = in[t];
        __syncthreads();  // <-
        other = copy[49 - t];
    }
    out[t] = other + in[t];
}
