// Bug       the last elements of a tile stay as they are
// Launch    -g 1 -b 64 -a f32[64] -a f32[64]=unwritten
// Expected  initcheck uninitialized read
// NVIDIA    none

extern "C" __global__ void planted(const float* in, float* out)
{
    __shared__ float copy[64];
    const int t = threadIdx.x;
    if (t < 60) copy[t] = in[t];
    __syncthreads();
    out[t] = copy[63 - t];  // <-
}
