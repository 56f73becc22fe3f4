// Bug       threads synchronise by a mask that does not name them
// Launch    -g 1 -b 32 -a f32[32] -a f32[32]=unwritten -a u32=0xffff
// Expected  synccheck invalid arguments
// NVIDIA    synccheck

extern "C" __global__ void planted(const float* in, float* out, unsigned mask)
{
    const int t = threadIdx.x;
    float x = in[t];
    if (t < 24) __syncwarp(mask);
    out[t] = x;
}
