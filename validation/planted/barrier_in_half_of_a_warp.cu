// Bug       none: a barrier that half of a warp never reaches, as it has left the kernel
// Launch    -g 1 -b 64 -a f32[64] -a f32[64]=unwritten
// Expected  nothing
// NVIDIA    none

extern "C" __global__ void planted(const float* in, float* out)
{
    __shared__ float copy[64];
    const int t = threadIdx.x;
    if (t < 16) {
        copy[t] = in[t];
        __syncthreads();
        out[t] = copy[15 - t];
    }
}
