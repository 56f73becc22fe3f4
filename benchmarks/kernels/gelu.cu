#include <math.h>

// GELU by the approximation with tanh, four elements per thread.
extern "C" __global__ void gelu(float4 *out, const float4 *in) {
    const int i = blockIdx.x * 256 + threadIdx.x;
    float4 x = in[i];
    float *parts[] = {&x.x, &x.y, &x.z, &x.w};
    for (int k = 0; k < 4; ++k) {
        const float v = *parts[k];
        *parts[k] = 0.5f * v * (1 + tanhf(0.7978845608f * (v + 0.044715f * v * v * v)));
    }
    out[i] = x;
}
