// Bug       a shuffle reads lanes that have left the kernel
// Launch    -g 1 -b 64 -a f32[64] -a f32[64]=zeros
// Expected  synccheck undefined value
// NVIDIA    none

extern "C" __global__ void planted(const float* in, float* out)
{
    const int t = threadIdx.x;
    const float value = in[t];
    if (t % 32 < 8) return;
    out[t] = value + __shfl_up_sync(0xffffffff, value, 4);  // <-
}
