// Bug       reads a neighbour's value that the neighbour's warp may already have overwritten
// Launch    -g 1 -b 64 -a f32[64] -a f32[64]=unwritten
// Expected  racecheck WAR
// NVIDIA    racecheck

extern "C" __global__ void planted(const float* in, float* out)
{
    __shared__ float copy[64];
    copy[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    const float other = copy[63 - threadIdx.x];  // <-
    copy[threadIdx.x] = 2 * other;  // <-
    __syncthreads();
    out[threadIdx.x] = copy[threadIdx.x];
}
