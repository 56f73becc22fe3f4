// Bug       a double buffer of which only one half is used
// Launch    -g 1 -b 64 -a f32[256] -a f32[64]=unwritten
// Expected  racecheck WAR
// NVIDIA    racecheck

extern "C" __global__ void planted(const float* in, float* out)
{
    __shared__ float stage[2][64];
    const int t = threadIdx.x;
    float sum = 0.0f;
    stage[0][t] = in[t];
    __syncthreads();
    for (int step = 1; step < 4; ++step) {
        sum += stage[0][63 - t];  // <-
        stage[0][t] = in[64 * step + t];  // <-
        __syncthreads();
    }
    out[t] = sum + stage[0][63 - t];  // <-
}
