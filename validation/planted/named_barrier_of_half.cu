// Bug       two barriers of half a block each, and reads across them
// Launch    -g 1 -b 128 -a f32[128] -a f32[128]=unwritten
// Expected  racecheck RAW
// NVIDIA    racecheck

extern "C" __global__ void planted(const float* in, float* out)
{
    __shared__ float copy[128];
    const int t = threadIdx.x;
    copy[t] = in[t];  // <-
    if (t < 64) asm volatile("bar.sync 1, 64;" ::: "memory");
    else asm volatile("bar.sync 2, 64;" ::: "memory");
    out[t] = copy[127 - t];  // <-
}
