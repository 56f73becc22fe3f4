// Bug       none: of a reduction by 16 lanes only lane 0 uses the result, which reads none but them
// Launch    -g 1 -b 64 -a f32[64] -a f32[64]=zeros
// Expected  nothing
// NVIDIA    none

extern "C" __global__ void planted(const float* in, float* out)
{
    const int t = threadIdx.x;
    float sum = in[t];
    if (t % 32 < 16) {
        for (int half = 8; half > 0; half /= 2) sum += __shfl_down_sync(0x0000ffff, sum, half);
        if (t % 32 == 0) out[t / 32] = sum;
    }
}
