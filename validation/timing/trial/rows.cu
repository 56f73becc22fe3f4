// Pieces of neural networks: normalized rows, losses, activations, embeddings, attention.

#define EXPORT extern "C" __global__ void

static __device__ float warp_sum(float x)
{
    for (int step = 16; step; step /= 2) x += __shfl_xor_sync(~0u, x, step);
    return x;
}

static __device__ float block_sum_of(float x, float* shared)
{
    x = warp_sum(x);
    __syncthreads();
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = x;
    __syncthreads();
    float sum = 0.0f;
    for (int w = 0; w < blockDim.x / 32; ++w) sum += shared[w];
    return sum;
}

EXPORT softmax_online(float* out, const float* in, int rows, int columns)  // warp per row
{
    const int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    float most = -3.0e38f, sum = 0.0f;
    for (int i = threadIdx.x; i < columns; i += 32) {
        const float x = in[row * columns + i], higher = fmaxf(most, x);
        sum = sum * __expf(most - higher) + __expf(x - higher);
        most = higher;
    }
    for (int step = 16; step; step /= 2) {
        const float other = __shfl_xor_sync(~0u, most, step), higher = fmaxf(most, other);
        const float others = __shfl_xor_sync(~0u, sum, step);
        sum = sum * __expf(most - higher) + others * __expf(other - higher);
        most = higher;
    }
    for (int i = threadIdx.x; i < columns; i += 32)
        out[row * columns + i] = __expf(in[row * columns + i] - most) / sum;
}

EXPORT log_softmax(float4* out, const float4* in, int quads)  // block per row, kept in registers
{
    __shared__ float shared[8];
    const float4* row = in + size_t(blockIdx.x) * quads;
    float4 x[4];
    float sum = 0.0f;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        const int i = threadIdx.x + 256 * j;
        x[j] = i < quads ? row[i] : make_float4(-100, -100, -100, -100);
        sum += expf(x[j].x) + expf(x[j].y) + expf(x[j].z) + expf(x[j].w);
    }
    const float shift = logf(block_sum_of(sum, shared));
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        const int i = threadIdx.x + 256 * j;
        const float4 v = make_float4(x[j].x - shift, x[j].y - shift, x[j].z - shift, x[j].w - shift);
        if (i < quads) out[size_t(blockIdx.x) * quads + i] = v;
    }
}

EXPORT cross_entropy(float* losses, const float* in, const int* targets, int columns)
{
    __shared__ float shared[8];
    const float* row = in + size_t(blockIdx.x) * columns;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += __expf(row[i]);
    sum = block_sum_of(sum, shared);
    if (threadIdx.x == 0) losses[blockIdx.x] = __logf(sum) - row[targets[blockIdx.x]];
}

EXPORT layer_norm(float* out, const float* in, const float* gain, const float* bias, int columns)
{
    __shared__ float shared[8];
    const size_t first = size_t(blockIdx.x) * columns;
    float sum = 0.0f, squares = 0.0f;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += in[first + i];
    const float mean = block_sum_of(sum, shared) / columns;
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        squares += (in[first + i] - mean) * (in[first + i] - mean);
    const float scale = rsqrtf(block_sum_of(squares, shared) / columns + 1e-5f);
    for (int i = threadIdx.x; i < columns; i += blockDim.x)
        out[first + i] = (in[first + i] - mean) * scale * gain[i] + bias[i];
}

EXPORT rms_norm(float* out, const float* in, const float* gain, int rows, int columns)
{
    const int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    float squares = 0.0f;
    for (int i = threadIdx.x; i < columns; i += 32) {
        const float x = in[row * columns + i];
        squares += x * x;
    }
    const float scale = rsqrtf(warp_sum(squares) / columns + 1e-6f);
    for (int i = threadIdx.x; i < columns; i += 32)
        out[row * columns + i] = in[row * columns + i] * scale * gain[i];
}

EXPORT batch_norm(float* out, const float* in, const float4* scales, int channels, int plane)
{
    const int channel = blockIdx.y % channels;
    const float4 s = scales[channel];  // mean, 1 / deviation, gain, bias
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const size_t at = size_t(blockIdx.y) * plane + i;
    if (i < plane) out[at] = (in[at] - s.x) * s.y * s.z + s.w;
}

EXPORT gelu_bias(float* out, const float* in, const float* bias, int columns, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float x = in[i] + bias[i % columns];
    out[i] = 0.5f * x * (1.0f + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));
}

EXPORT drop_some(float* out, unsigned char* kept, const float* in, unsigned seed, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        unsigned h = i * 0x9E3779B9u ^ seed;
        h ^= h >> 16, h *= 0x85EBCA6Bu, h ^= h >> 13, h *= 0xC2B2AE35u, h ^= h >> 16;
        const bool keep = h >> 30;  // three of four
        kept[i] = keep;
        out[i] = keep ? in[i] * (4.0f / 3.0f) : 0.0f;
    }
}

EXPORT first_two(float2* out, const float* in, int rows, int columns)  // two largest of a row
{
    const int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    float first = -3.0e38f, second = -3.0e38f;
    for (int i = threadIdx.x; i < columns; i += 32) {
        const float x = in[row * columns + i];
        if (x > first) second = first, first = x;
        else if (x > second) second = x;
    }
    for (int step = 16; step; step /= 2) {
        const float a = __shfl_xor_sync(~0u, first, step), b = __shfl_xor_sync(~0u, second, step);
        second = fmaxf(fminf(first, a), fmaxf(second, b));
        first = fmaxf(first, a);
    }
    if (threadIdx.x == 0) out[row] = make_float2(first, second);
}

EXPORT embed_tokens(float* out, const float* table, const int* tokens, int width)  // block per token
{
    const float* from = table + size_t(tokens[blockIdx.x]) * width;
    for (int i = threadIdx.x; i < width; i += blockDim.x)
        out[size_t(blockIdx.x) * width + i] = from[i];
}

EXPORT embed_backward(float* table, const float* grads, const int* tokens, int width)
{
    float* into = table + size_t(tokens[blockIdx.x]) * width;
    for (int i = threadIdx.x; i < width; i += blockDim.x)
        atomicAdd(into + i, grads[size_t(blockIdx.x) * width + i]);
}

EXPORT rotate_pairs(float2* x, const float2* turns, int heads, int pairs, int n)  // rotary positions
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float2 v = x[i], t = turns[i / (heads * pairs) * pairs + i % pairs];
    x[i] = make_float2(v.x * t.x - v.y * t.y, v.x * t.y + v.y * t.x);
}

// A warp per query, a lane per two of 64 components; keys and values stay in L1 and L2.
EXPORT attend(float2* out, const float2* q, const float2* k, const float2* v, int queries, int keys)
{
    const int query = blockIdx.x * blockDim.y + threadIdx.y, lane = threadIdx.x;
    if (query >= queries) return;
    const float2 mine = q[query * 32 + lane];
    float most = -3.0e38f, sum = 0.0f;
    float2 found = make_float2(0.0f, 0.0f);
    for (int j = 0; j < keys; ++j) {
        const float2 key = k[j * 32 + lane], value = v[j * 32 + lane];
        const float score = warp_sum(mine.x * key.x + mine.y * key.y) * 0.125f;
        const float higher = fmaxf(most, score);
        const float old = __expf(most - higher), now = __expf(score - higher);
        sum = sum * old + now;
        found = make_float2(found.x * old + value.x * now, found.y * old + value.y * now);
        most = higher;
    }
    out[query * 32 + lane] = make_float2(found.x / sum, found.y / sum);
}
