// Bug       the tile of a thread is indexed with the stride of another matrix
// Launch    -g 1 -b 32 -a f32[64] -a f32[32]=unwritten -a i32=1024
// Expected  memcheck out of bounds
// NVIDIA    memcheck

extern "C" __global__ void planted(const float* in, float* out, int stride)
{
    float tile[2 * 4];
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 4; ++j) tile[i * stride + j] = in[threadIdx.x + i];  // <-
    float sum = 0.0f;
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 4; ++j) sum += tile[i * stride + j];
    out[threadIdx.x] = sum;
}
