// Bug       none: shuffles in a warp, a barrier between warps
// Launch    -g 2 -b 64 -a f32[128] -a f32[2]=unwritten
// Expected  nothing
// NVIDIA    none

extern "C" __global__ void planted(const float* in, float* out)
{
    __shared__ float sums[2];
    float x = in[blockIdx.x * 64 + threadIdx.x];
    for (int half = 16; half > 0; half /= 2) x += __shfl_down_sync(0xffffffffu, x, half);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = x;
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = sums[0] + sums[1];
}
