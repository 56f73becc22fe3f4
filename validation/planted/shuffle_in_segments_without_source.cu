// Bug       a broadcast in segments of 8 lanes, from one that the mask leaves out
// Launch    -g 1 -b 32 -a f32[32] -a f32[32]=zeros
// Expected  synccheck undefined value
// NVIDIA    none

extern "C" __global__ void planted(const float* in, float* out)
{
    const int t = threadIdx.x;
    float value = in[t];
    if (t % 8 < 3) value = __shfl_sync(0x07070707, value, 5, 8);  // <-
    out[t] = value;
}
