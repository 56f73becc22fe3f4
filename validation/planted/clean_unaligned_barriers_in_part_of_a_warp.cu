// Bug       none: a barrier that is not aligned may be another instruction for each thread of a warp
// Launch    -g 1 -b 64 -a f32[64] -a f32[64]=zeros
// Expected  nothing
// NVIDIA    none

extern "C" __global__ void planted(const float* in, float* out)
{
    __shared__ float copy[64];
    const int t = threadIdx.x;
    copy[t] = in[t];
    if (t < 50) {
        asm volatile("barrier.sync 0;" ::: "memory");
        out[t] = copy[49 - t];
    } else {
        asm volatile("barrier.sync 0;" ::: "memory");
        out[t] = 2.0f * copy[63 - t];
    }
}
