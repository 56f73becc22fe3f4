// Bug       two barriers, each in a branch that part of a warp takes
// Launch    -g 1 -b 64 -a f32[64] -a f32[64]=zeros
// Expected  synccheck divergent thread(s) in warp
// NVIDIA    synccheck

extern "C" __global__ void planted(const float* in, float* out)
{
    __shared__ float copy[64];
    const int t = threadIdx.x;
    copy[t] = in[t];
    if (t < 50) {
        __syncthreads();  // <-
        out[t] = copy[49 - t];
    } else {
        __syncthreads();  // <-
        out[t] = 2.0f * copy[63 - t];
    }
}
