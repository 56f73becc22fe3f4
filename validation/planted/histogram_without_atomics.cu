// Bug       threads add to a shared bin without an atomic operation
// Launch    -g 1 -b 64 -a u32[64] -a u32[8]=unwritten
// Expected  racecheck RAW
// NVIDIA    racecheck

extern "C" __global__ void planted(const unsigned* in, unsigned* out)
{
    __shared__ unsigned bins[8];
    const int t = threadIdx.x;
    if (t < 8) bins[t] = 0;
    __syncthreads();
    bins[in[t] % 8] += 1;  // <-
    __syncthreads();
    if (t < 8) out[t] = bins[t];
}
