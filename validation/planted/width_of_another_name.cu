// Bug       WIDTH, a macro, where width, the parameter, is meant
// Launch    -g 2,2 -b 32,32 -a f32[48,48] -a f32[48,48]=unwritten -a i32=48
// Expected  memcheck out of bounds
// NVIDIA    initcheck

#define WIDTH 64

extern "C" __global__ void planted(const float* in, float* out, int width)
{
    const int row = blockIdx.y * 32 + threadIdx.y, col = blockIdx.x * 32 + threadIdx.x;
    if (row < width && col < width) out[col * width + row] = in[row * WIDTH + col];  // <-
}
