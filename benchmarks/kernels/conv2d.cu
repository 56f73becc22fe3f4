// 5 × 5 weights, zeros beyond the borders; a block of 32 × 8 threads, one element per thread.
extern "C" __global__ void conv2d(float *out, const float *in, const float *weights, int n) {
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    float sum = 0;
    for (int dy = -2; dy <= 2; ++dy)
        for (int dx = -2; dx <= 2; ++dx)
            if (y + dy >= 0 && y + dy < n && x + dx >= 0 && x + dx < n)
                sum += in[(size_t)(y + dy) * n + x + dx] * weights[(dy + 2) * 5 + dx + 2];
    out[(size_t)y * n + x] = sum;
}
