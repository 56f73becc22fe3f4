// Bug       threads shuffle by a mask that does not name them
// Launch    -g 1 -b 32 -a f32[32] -a f32[32]=unwritten -a u32=0xffff
// Expected  synccheck invalid arguments
// NVIDIA    none

extern "C" __global__ void planted(const float* in, float* out, unsigned mask)
{
    const int t = threadIdx.x;
    out[t] = __shfl_xor_sync(mask, in[t], 1);
}
