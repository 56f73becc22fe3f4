// Bug       multiplies the old C by beta where beta is 0: C may hold NaN
// Launch    -g 1 -b 8,8 -a f32[8,8] -a f32[8,8] -a f32[8,8]=unwritten -a f32=0
// Expected  initcheck uninitialized read
// NVIDIA    initcheck

extern "C" __global__ void planted(const float* a, const float* b, float* c, float beta)
{
    const int row = threadIdx.y, col = threadIdx.x;
    float sum = 0.0f;
    for (int k = 0; k < 8; ++k) sum += a[8 * row + k] * b[8 * k + col];
    c[8 * row + col] = sum + beta * c[8 * row + col];  // <-
}
