// C = A·B with one thread per element of C, in blocks of 16 × 16.
extern "C" __global__ void one_thread_per_element(float *c, const float *a, const float *b, int n) {
    const int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < n; ++k) sum += a[(size_t)row * n + k] * b[(size_t)k * n + column];
    c[(size_t)row * n + column] = sum;
}
