// Bug       the offset in C is a multiple of k where it should be one of n
// Launch    -g 2,2 -b 16,16 -a f32[32,64] -a f32[64,32] -a f32[32,32]=unwritten -a i32=32 -a i32=64
// Expected  memcheck out of bounds
// NVIDIA    memcheck

extern "C" __global__ void planted(const float* a, const float* b, float* c, int n, int k)
{
    const int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
    float sum = 0.0f;
    for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + col];
    c[row * k + col] = sum;  // <-
}
