// Bug       reads what another warp has not written yet: no barrier between
// Launch    -g 1 -b 64 -a f32[64] -a f32[64]=unwritten
// Expected  racecheck RAW
// NVIDIA    racecheck

extern "C" __global__ void planted(const float* in, float* out)
{
    __shared__ float copy[64];
    const int t = threadIdx.x;
    copy[t] = in[t];  // <-
    out[t] = copy[63 - t];  // <-
}
