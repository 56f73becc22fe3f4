// Bug       a named barrier that part of a warp skips, and goes on
// Launch    -g 1 -b 128 -a f32[128] -a f32[128]=zeros
// Expected  synccheck divergent thread(s) in warp
// NVIDIA    synccheck

extern "C" __global__ void planted(const float* in, float* out)
{
    __shared__ float copy[128];
    const int t = threadIdx.x;
    float other = 0.0f;
    copy[t] = in[t];
    if (t < 100) {
        asm volatile("bar.sync 1, 128;" ::: "memory");  // <-
        other = copy[99 - t];
    }
    out[t] = other + in[t];
}
