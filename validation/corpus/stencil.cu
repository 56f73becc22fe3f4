// Stencils with edges: clamped and zero borders, a shared tile with a halo, three dimensions.

extern "C" __global__ void stencil_clamped(float* out, const float* in, int width, int height)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    const float up = in[max(y - 1, 0) * width + x], down = in[min(y + 1, height - 1) * width + x];
    const float left = in[y * width + max(x - 1, 0)], right = in[y * width + min(x + 1, width - 1)];
    out[y * width + x] = 0.5f * in[y * width + x] + 0.125f * (up + down + left + right);
}

extern "C" __global__ void stencil_zero_edges(float* out, const float* in, int width, int height)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    float sum = 0;
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx)
            if (x + dx >= 0 && x + dx < width && y + dy >= 0 && y + dy < height)
                sum += in[(y + dy) * width + x + dx];
    out[y * width + x] = sum;
}

// Radius 4 along x; blockDim.x is 128.
extern "C" __global__ void convolve_halo(float* out, const float* in, const float* weights, int n)
{
    __shared__ float tile[128 + 8];
    const int i = blockIdx.x * 128 + threadIdx.x;
    tile[threadIdx.x + 4] = i < n ? in[i] : 0;
    if (threadIdx.x < 4) {
        tile[threadIdx.x] = i >= 4 && i - 4 < n ? in[i - 4] : 0;
        tile[threadIdx.x + 132] = i + 128 < n ? in[i + 128] : 0;
    }
    __syncthreads();
    float sum = 0;
#pragma unroll
    for (int j = 0; j < 9; ++j) sum += weights[j] * tile[threadIdx.x + j];
    if (i < n) out[i] = sum;
}

extern "C" __global__ void laplacian_3d(float* out, const float* in, int nx, int ny, int nz)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    const int z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x >= nx || y >= ny || z >= nz) return;
    const int i = (z * ny + y) * nx + x;
    const bool inside = x > 0 && x < nx - 1 && y > 0 && y < ny - 1 && z > 0 && z < nz - 1;
    out[i] = inside ? in[i - 1] + in[i + 1] + in[i - nx] + in[i + nx] + in[i - nx * ny] + in[i + nx * ny] -
                          6 * in[i]
                    : in[i];
}
