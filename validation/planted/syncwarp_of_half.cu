// Bug       synchronises each half of a warp and reads the other half
// Launch    -g 1 -b 32 -a f32[32] -a f32[32]=unwritten
// Expected  racecheck RAW
// NVIDIA    racecheck

extern "C" __global__ void planted(const float* in, float* out)
{
    __shared__ float copy[32];
    const int t = threadIdx.x;
    copy[t] = in[t];  // <-
    __syncwarp(t < 16 ? 0x0000ffffu : 0xffff0000u);
    out[t] = copy[31 - t];  // <-
}
