// Bug       blocks overwrite what their neighbours read
// Launch    -g 2 -b 64 -a f32[128]
// Expected  racecheck WAR
// NVIDIA    none

extern "C" __global__ void planted(float* x)
{
    const int i = blockIdx.x * 64 + threadIdx.x;
    const float right = i < 127 ? x[i + 1] : 0.0f;  // <-
    __syncthreads();
    x[i] = right;  // <-
}
