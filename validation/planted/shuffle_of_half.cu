// Bug       half of a warp shuffles by a mask that names all of it
// Launch    -g 1 -b 64 -a f32[64] -a f32[64]=unwritten
// Expected  synccheck divergent thread(s) in warp
// NVIDIA    none

extern "C" __global__ void planted(const float* in, float* out)
{
    float value = in[threadIdx.x];
    if (threadIdx.x % 32 < 16) value += __shfl_xor_sync(0xffffffff, value, 8);  // <-
    out[threadIdx.x] = value;
}
