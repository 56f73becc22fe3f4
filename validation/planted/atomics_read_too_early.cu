// Bug       reads a histogram that other warps still add to
// Launch    -g 1 -b 64 -a u32[64] -a u32[64]=unwritten
// Expected  racecheck RAW
// NVIDIA    none

extern "C" __global__ void planted(const unsigned* in, unsigned* out)
{
    __shared__ unsigned bins[8];
    const int t = threadIdx.x;
    if (t < 8) bins[t] = 0;
    __syncthreads();
    atomicAdd(&bins[in[t] % 8], 1);  // <-
    out[t] = bins[t % 8];  // <-
}
