// Transposes: uncoalesced writes, bank conflicts without padding, none with it.

extern "C" __global__ void transpose_naive(float* out, const float* in, int width, int height)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height) out[x * height + y] = in[y * width + x];
}

template <int PITCH>
__device__ void through_tile(float* out, const float* in, int width, int height)
{
    __shared__ float tile[32][PITCH];
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int i = 0; i < 32; i += 8)
        if (x < width && y + i < height) tile[threadIdx.y + i][threadIdx.x] = in[(y + i) * width + x];
    __syncthreads();
    const int column = blockIdx.y * 32 + threadIdx.x, row = blockIdx.x * 32 + threadIdx.y;
    for (int i = 0; i < 32; i += 8)
        if (column < height && row + i < width)
            out[(row + i) * height + column] = tile[threadIdx.x][threadIdx.y + i];
}

extern "C" __global__ void transpose_tiled(float* out, const float* in, int width, int height)
{
    through_tile<32>(out, in, width, height);
}

extern "C" __global__ void transpose_padded(float* out, const float* in, int width, int height)
{
    through_tile<33>(out, in, width, height);
}

extern "C" __global__ void copy_rows(float* out, const float* in, int width, int height)
{
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int i = 0; i < 32; i += 8)
        if (x < width && y + i < height) out[(y + i) * width + x] = in[(y + i) * width + x];
}
