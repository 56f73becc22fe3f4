// Bug       half of a warp takes the value of a lane of the other half
// Launch    -g 1 -b 32 -a f32[32] -a f32[32]=zeros
// Expected  synccheck undefined value
// NVIDIA    none

extern "C" __global__ void planted(const float* in, float* out)
{
    float value = in[threadIdx.x];
    if (threadIdx.x < 16) value += __shfl_sync(0x0000ffff, value, 20);  // <-
    out[threadIdx.x] = value;
}
