// Bug       a named barrier of more threads than there are
// Launch    -g 1 -b 64 -a f32[64] -a f32[64]=unwritten
// Expected  synccheck deadlock
// NVIDIA    none

extern "C" __global__ void planted(const float* in, float* out)
{
    const int t = threadIdx.x;
    asm volatile("bar.sync 1, 128;" ::: "memory");  // <-
    out[t] = in[t];
}
