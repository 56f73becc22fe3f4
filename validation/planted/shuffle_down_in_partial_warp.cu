// Bug       a reduction of a whole warp, in a block whose last warp has 20 threads
// Launch    -g 1 -b 52 -a f32[52] -a f32[52]=zeros
// Expected  synccheck undefined value
// NVIDIA    none

extern "C" __global__ void planted(const float* in, float* out)
{
    float sum = in[threadIdx.x];
    for (int half = 16; half > 0; half /= 2) sum += __shfl_down_sync(0xffffffff, sum, half);  // <-
    if (threadIdx.x % 32 == 0) out[threadIdx.x / 32] = sum;
}
