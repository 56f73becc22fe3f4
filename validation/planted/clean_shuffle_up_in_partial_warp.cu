// Bug       none: a prefix sum, in a block whose last warp has 20 threads
// Launch    -g 1 -b 52 -a f32[52] -a f32[52]=zeros
// Expected  nothing
// NVIDIA    none

extern "C" __global__ void planted(const float* in, float* out)
{
    const int t = threadIdx.x;
    float sum = in[t];
    for (int distance = 1; distance < 32; distance *= 2) {
        const float other = __shfl_up_sync(0xffffffff, sum, distance);
        if (t % 32 >= distance) sum += other;
    }
    out[t] = sum;
}
