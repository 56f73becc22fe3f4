// Bug       the last block adds up what others wrote, with no fence before their atomic
// Launch    -g 4 -b 32 -a f32[4] -a f32[4]=unwritten -a f32[1]=unwritten
// Expected  racecheck RAW
// NVIDIA    none

__device__ unsigned done;

extern "C" __global__ void planted(const float* in, float* parts, float* out)
{
    __shared__ bool is_last;
    if (threadIdx.x == 0) {
        parts[blockIdx.x] = in[blockIdx.x];  // <-
        is_last = atomicAdd(&done, 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!is_last || threadIdx.x) return;
    float sum = 0.0f;
    for (int i = 0; i < gridDim.x; ++i) sum += parts[i];  // <-
    *out = sum;
}
