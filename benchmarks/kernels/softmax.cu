#include "over_block.cuh"

// One block per row of n elements.
extern "C" __global__ void softmax(float *out, const float *in, int n) {
    const float *row = in + (size_t)blockIdx.x * n;
    float most = -INFINITY, sum = 0;
    for (int i = threadIdx.x; i < n; i += 256) most = fmaxf(most, row[i]);
    most = over_block(most, Max());
    for (int i = threadIdx.x; i < n; i += 256) sum += __expf(row[i] - most);
    sum = over_block(sum, Add());
    for (int i = threadIdx.x; i < n; i += 256)
        out[(size_t)blockIdx.x * n + i] = __expf(row[i] - most) / sum;
}
