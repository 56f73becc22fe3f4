// Bug       none: a shuffle waits only for threads that have not left the kernel
// Launch    -g 1 -b 64 -a f32[64] -a f32[64]=zeros
// Expected  nothing
// NVIDIA    none

extern "C" __global__ void planted(const float* in, float* out)
{
    float value = in[threadIdx.x];
    if (threadIdx.x % 32 >= 16) return;
    value += __shfl_xor_sync(0xffffffff, value, 8);
    out[threadIdx.x] = value;
}
