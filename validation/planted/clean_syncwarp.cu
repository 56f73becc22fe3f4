// Bug       none: a warp reads what it wrote itself
// Launch    -g 1 -b 64 -a f32[64] -a f32[64]=unwritten
// Expected  nothing
// NVIDIA    none

extern "C" __global__ void planted(const float* in, float* out)
{
    __shared__ float copy[64];
    const int t = threadIdx.x;
    copy[t] = in[t];
    __syncwarp();
    out[t] = copy[t ^ 31];
}
