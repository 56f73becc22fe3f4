// Bug       overwrites what another warp may not have read yet
// Launch    -g 1 -b 64 -a f32[64] -a f32[64]=unwritten
// Expected  racecheck WAR
// NVIDIA    racecheck

extern "C" __global__ void planted(const float* in, float* out)
{
    __shared__ float copy[64];
    const int t = threadIdx.x;
    copy[t] = in[t];
    __syncthreads();
    const float other = copy[63 - t];  // <-
    copy[t] = 2.0f * other;  // <-
    __syncthreads();
    out[t] = copy[t];
}
