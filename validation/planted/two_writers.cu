// Bug       all threads write different values to one place
// Launch    -g 1 -b 64 -a f32[64] -a f32[64]=unwritten
// Expected  racecheck WAW
// NVIDIA    racecheck

extern "C" __global__ void planted(const float* in, float* out)
{
    __shared__ float last;
    const int t = threadIdx.x;
    last = in[t];  // <-
    __syncthreads();
    out[t] = last;
}
