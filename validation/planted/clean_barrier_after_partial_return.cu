// Bug       none: a barrier waits only for threads of a warp that have not left the kernel
// Launch    -g 1 -b 64 -a f32[64] -a f32[64]=zeros
// Expected  nothing
// NVIDIA    none

extern "C" __global__ void planted(const float* in, float* out)
{
    __shared__ float copy[64];
    const int t = threadIdx.x;
    if (t >= 50) return;
    copy[t] = in[t];
    __syncthreads();
    out[t] = copy[49 - t];
}
