// Bug       none: all write the same value
// Launch    -g 1 -b 64 -a f32[64] -a f32[64]=unwritten
// Expected  nothing
// NVIDIA    none

extern "C" __global__ void planted(const float* in, float* out)
{
    __shared__ float largest;
    if (in[threadIdx.x] < 2.0f) largest = 2.0f;
    __syncthreads();
    out[threadIdx.x] = largest;
}
