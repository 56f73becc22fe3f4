// Bug       each half of a warp shuffles by its own mask, and reads the other half
// Launch    -g 1 -b 32 -a f32[32] -a f32[32]=zeros
// Expected  synccheck undefined value
// NVIDIA    none

extern "C" __global__ void planted(const float* in, float* out)
{
    const int t = threadIdx.x;
    const unsigned mask = t < 16 ? 0x0000ffff : 0xffff0000;
    float value = in[t];
    for (int half = 16; half > 0; half /= 2) value += __shfl_xor_sync(mask, value, half);  // <-
    out[t] = value;
}
