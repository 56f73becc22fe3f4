// Images, grids and tensors: permuted, filtered, pooled, sampled.

#define EXPORT extern "C" __global__ void

EXPORT transpose_batch(float* out, const float* in, int width, int height)  // 16×16 tiles
{
    __shared__ float tile[16][17];
    const size_t plane = size_t(blockIdx.z) * width * height;
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    if (x < width && y < height) tile[threadIdx.y][threadIdx.x] = in[plane + y * width + x];
    __syncthreads();
    x = blockIdx.y * 16 + threadIdx.x, y = blockIdx.x * 16 + threadIdx.y;
    if (x < height && y < width) out[plane + y * height + x] = tile[threadIdx.x][threadIdx.y];
}

EXPORT transpose_bytes(unsigned char* out, const unsigned char* in, int width, int height)
{
    __shared__ unsigned char tile[32][36];
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32;
    for (int j = threadIdx.y; j < 32; j += 8)
        if (x < width && y + j < height) tile[j][threadIdx.x] = in[(y + j) * width + x];
    __syncthreads();
    for (int j = threadIdx.y; j < 32; j += 8)
        if (blockIdx.x * 32 + j < width && y + threadIdx.x < height)
            out[(blockIdx.x * 32 + j) * height + y + threadIdx.x] = tile[threadIdx.x][j];
}

EXPORT planar_from_pixels(float* out, const unsigned char* in, int pixels)  // 3 bytes of each
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= pixels) return;
    for (int c = 0; c < 3; ++c) out[size_t(c) * pixels + i] = in[3 * i + c] * (1.0f / 255.0f);
}

EXPORT blur_rows(float* out, const float* in, const float* weights, int width)  // radius 7
{
    __shared__ float line[256 + 14];
    const float* row = in + size_t(blockIdx.y) * width;
    const int first = blockIdx.x * 256 - 7;
    for (int j = threadIdx.x; j < 256 + 14; j += 256)
        line[j] = row[min(max(first + j, 0), width - 1)];
    __syncthreads();
    const int x = blockIdx.x * 256 + threadIdx.x;
    if (x >= width) return;
    float sum = 0.0f;
#pragma unroll
    for (int j = 0; j < 15; ++j) sum += weights[j] * line[threadIdx.x + j];
    out[size_t(blockIdx.y) * width + x] = sum;
}

EXPORT blur_columns(float* out, const float* in, const float* weights, int width, int height)
{
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    if (x >= width || y >= height) return;
    float sum = 0.0f;
    for (int j = 0; j < 15; ++j)
        sum += weights[j] * in[size_t(min(max(y + j - 7, 0), height - 1)) * width + x];
    out[size_t(y) * width + x] = sum;
}

EXPORT edges_of_bytes(unsigned char* out, const unsigned char* in, int width, int height)
{
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    if (x >= width || y >= height) return;
    int result = 0;
    if (x > 0 && y > 0 && x < width - 1 && y < height - 1) {
        const unsigned char *a = in + (y - 1) * width + x, *b = a + width, *c = b + width;
        const int gx = a[1] + 2 * b[1] + c[1] - a[-1] - 2 * b[-1] - c[-1];
        const int gy = c[-1] + 2 * c[0] + c[1] - a[-1] - 2 * a[0] - a[1];
        result = min(abs(gx) + abs(gy), 255);
    }
    out[y * width + x] = result;
}

EXPORT heat_double(double* out, const double* in, double rate, int width, int height)
{
    const int x = blockIdx.x * 64 + threadIdx.x, y = blockIdx.y * 4 + threadIdx.y;
    if (x >= width || y >= height) return;
    const size_t at = size_t(y) * width + x;
    double value = in[at];
    if (x > 0 && y > 0 && x < width - 1 && y < height - 1)
        value += rate * (in[at - 1] + in[at + 1] + in[at - width] + in[at + width] - 4.0 * value);
    out[at] = value;
}

EXPORT average_cube(float* out, const float* in, int side)  // 27 points; a block marches along z
{
    const int x = blockIdx.x * 32 + threadIdx.x + 1, y = blockIdx.y * 8 + threadIdx.y + 1;
    if (x >= side - 1 || y >= side - 1) return;
    const size_t plane = size_t(side) * side;
    const int first = 1 + blockIdx.z * 16, last = min(first + 16, side - 1);
    float sums[3] = {0, 0, 0};
    for (int z = first - 1; z <= last; ++z) {
        const float* center = in + z * plane + size_t(y) * side + x;
        float sum = 0.0f;
        for (int dy = -1; dy <= 1; ++dy)
            for (int dx = -1; dx <= 1; ++dx) sum += center[dy * side + dx];
        sums[0] = sums[1], sums[1] = sums[2], sums[2] = sum;
        if (z > first)
            out[(z - 1) * plane + size_t(y) * side + x] = (sums[0] + sums[1] + sums[2]) / 27.0f;
    }
}

EXPORT max_pool(float* out, const float* in, int width, int height)  // 2×2, stride 2
{
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    const int across = width / 2, down = height / 2;
    if (x >= across || y >= down) return;
    const float2* row = reinterpret_cast<const float2*>(in + size_t(blockIdx.z) * width * height);
    const float2 a = row[size_t(2 * y) * across + x], b = row[size_t(2 * y + 1) * across + x];
    out[(size_t(blockIdx.z) * down + y) * across + x] = fmaxf(fmaxf(a.x, a.y), fmaxf(b.x, b.y));
}

EXPORT mean_pool(float* out, const float* in, int width, int height)  // 3×3, stride 2
{
    const int across = (width - 1) / 2, down = (height - 1) / 2;
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= across * down) return;
    const int x = i % across, y = i / across;
    const float* at = in + (size_t(blockIdx.y) * height + 2 * y) * width + 2 * x;
    float sum = 0.0f;
    for (int dy = 0; dy < 3; ++dy)
        for (int dx = 0; dx < 3; ++dx) sum += at[dy * width + dx];
    out[size_t(blockIdx.y) * across * down + i] = sum * (1.0f / 9.0f);
}

// 16 channels to 8, 3×3 without a border; weights are in shared memory, a thread per pixel.
EXPORT convolve_channels(float* out, const float* in, const float* weights, int width, int height)
{
    __shared__ float w[16 * 9 * 8];
    for (int i = threadIdx.y * 32 + threadIdx.x; i < 16 * 9 * 8; i += 256) w[i] = weights[i];
    __syncthreads();
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    const int across = width - 2, down = height - 2;
    if (x >= across || y >= down) return;
    float sums[8] = {};
    for (int c = 0; c < 16; ++c) {
        const float* at = in + (size_t(c) * height + y) * width + x;
#pragma unroll
        for (int j = 0; j < 9; ++j) {
            const float value = at[j / 3 * width + j % 3];
#pragma unroll
            for (int o = 0; o < 8; ++o) sums[o] += value * w[(c * 9 + j) * 8 + o];
        }
    }
    for (int o = 0; o < 8; ++o) out[(size_t(o) * down + y) * across + x] = sums[o];
}

EXPORT convolve_depthwise(float* out, const float* in, const float* weights, int width, int height)
{
    __shared__ float tile[20][36];  // 32×16 and a border of 2
    const size_t plane = size_t(blockIdx.z) * width * height;
    const int left = blockIdx.x * 32 - 2, top = blockIdx.y * 16 - 2;
    for (int i = threadIdx.y * 32 + threadIdx.x; i < 20 * 36; i += 256) {
        const int x = left + i % 36, y = top + i / 36;
        const bool inside = x >= 0 && y >= 0 && x < width && y < height;
        tile[i / 36][i % 36] = inside ? in[plane + size_t(y) * width + x] : 0.0f;
    }
    __syncthreads();
    const float* w = weights + blockIdx.z * 25;
    const int x = left + 2 + threadIdx.x;
    for (int row = threadIdx.y; row < 16; row += 8) {
        float sum = 0.0f;
#pragma unroll
        for (int j = 0; j < 25; ++j) sum += w[j] * tile[row + j / 5][threadIdx.x + j % 5];
        if (x < width && top + 2 + row < height)
            out[plane + size_t(top + 2 + row) * width + x] = sum;
    }
}

EXPORT resize_bilinear(float* out, const float* in, int from, int to)  // squares
{
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    if (x >= to || y >= to) return;
    const float scale = float(from - 1) / float(to - 1), fx = x * scale, fy = y * scale;
    const int x0 = min(int(fx), from - 2), y0 = min(int(fy), from - 2);
    const float u = fx - x0, v = fy - y0;
    const float *a = in + size_t(y0) * from + x0, *b = a + from;
    const float upper = a[0] + u * (a[1] - a[0]), lower = b[0] + u * (b[1] - b[0]);
    out[size_t(y) * to + x] = upper + v * (lower - upper);
}

EXPORT turn_picture(unsigned* out, const unsigned* in, int cosine, int sine, int side)  // 16 bits
{
    const int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    if (x >= side || y >= side) return;
    const int dx = x - side / 2, dy = y - side / 2;
    const int fx = ((dx * cosine - dy * sine) >> 16) + side / 2;
    const int fy = ((dx * sine + dy * cosine) >> 16) + side / 2;
    const bool inside = fx >= 0 && fy >= 0 && fx < side && fy < side;
    out[y * side + x] = inside ? in[fy * side + fx] : 0u;
}

static __device__ void order(float& a, float& b)
{
    const float low = fminf(a, b);
    b = fmaxf(a, b), a = low;
}

EXPORT median_of_nine(float* out, const float* in, int width, int height)
{
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    if (x >= width || y >= height) return;
    float p[9];
#pragma unroll
    for (int j = 0; j < 9; ++j) {
        const int sx = min(max(x + j % 3 - 1, 0), width - 1);
        const int sy = min(max(y + j / 3 - 1, 0), height - 1);
        p[j] = in[size_t(sy) * width + sx];
    }
#pragma unroll
    for (int round = 0; round < 9; ++round)
#pragma unroll
        for (int j = round % 2; j + 1 < 9; j += 2) order(p[j], p[j + 1]);
    out[size_t(y) * width + x] = p[4];
}

EXPORT dilate_bits(unsigned* out, const unsigned* in, int words, int height)  // 32 pixels a word
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x >= words) return;
    unsigned result = 0;
    for (int dy = -1; dy <= 1; ++dy) {
        const int row = min(max(y + dy, 0), height - 1);
        const unsigned* at = in + row * words + x;
        const unsigned left = x ? at[-1] : 0, mid = at[0], right = x + 1 < words ? at[1] : 0;
        result |= mid | mid << 1 | mid >> 1 | left >> 31 | right << 31;
    }
    out[y * words + x] = result;
}
