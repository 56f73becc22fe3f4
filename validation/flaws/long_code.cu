// More code than the instruction caches hold, which takes long to compile, and a loop.

extern "C" __global__ void long_code(float *out, const float *in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float v = in[i], step = 0;
#pragma unroll 1
    for (int j = 0; j < n; j++)
#if FIXED
#pragma unroll 16
        for (int k = 0; k < 6144; k++, step += 0.125f) v = v * 0.999f + step;
#else
#pragma unroll
        for (int k = 0; k < 6144; k++) v = v * 0.999f + (0.125f * k + i);
#endif
    out[i] = v;
}
