// Bug       none: a barrier inside the dot product, after threads outside of C have left the kernel
// Launch    -g 1 -b 8,8 -a f32[6,8] -a f32[8,6] -a f32[6,6]=unwritten
// Expected  nothing
// NVIDIA    none

extern "C" __global__ void planted(const float* a, const float* b, float* c)
{
    const int row = threadIdx.y, col = threadIdx.x;
    if (row >= 6 || col >= 6) return;
    float sum = 0.0f;
    for (int k = 0; k < 8; ++k) {
        sum += a[8 * row + k] * b[6 * k + col];
        __syncthreads();
    }
    c[6 * row + col] = sum;
}
