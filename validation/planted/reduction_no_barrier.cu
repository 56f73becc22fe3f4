// Bug       the steps of a tree reduction without barriers between them
// Launch    -g 1 -b 128 -a f32[128] -a f32[1]=unwritten
// Expected  racecheck RAW
// NVIDIA    racecheck

extern "C" __global__ void planted(const float* in, float* out)
{
    __shared__ float sum[128];
    const int t = threadIdx.x;
    sum[t] = in[t];
    __syncthreads();
    for (int half = 64; half > 0; half /= 2)
        if (t < half) sum[t] += sum[t + half];  // <-
    __syncthreads();
    if (t == 0) *out = sum[0];
}
