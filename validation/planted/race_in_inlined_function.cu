// Bug       a race in a function that is called twice, once without a barrier after it
// Launch    -g 1 -b 64 -a f32[64] -a f32[64]=unwritten
// Expected  racecheck RAW
// NVIDIA    racecheck

__device__ __forceinline__ float other(const float* copy)
{
    return copy[63 - threadIdx.x];  // <-
}

extern "C" __global__ void planted(const float* in, float* out)
{
    __shared__ float copy[64];
    copy[threadIdx.x] = in[threadIdx.x];  // <-
    const float racing = other(copy);
    __syncthreads();
    out[threadIdx.x] = racing + other(copy);
}
