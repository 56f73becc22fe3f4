// Bug       counts on the lanes of a warp to run in step
// Launch    -g 1 -b 32 -a f32[32] -a f32[32]=unwritten
// Expected  racecheck RAW
// NVIDIA    racecheck

extern "C" __global__ void planted(const float* in, float* out)
{
    __shared__ float copy[32];
    const int t = threadIdx.x;
    copy[t] = in[t];  // <-
    out[t] = copy[31 - t];  // <-
}
