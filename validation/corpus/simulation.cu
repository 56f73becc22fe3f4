// Small programs of several kinds: n-body, random numbers, cellular automata, strings, sparse rows.

extern "C" __global__ void nbody(float4* acceleration, const float4* body, int n)
{
    __shared__ float4 tile[64];
    const int i = blockIdx.x * 64 + threadIdx.x;
    const float4 me = body[min(i, n - 1)];
    float3 sum = make_float3(0, 0, 0);
    for (int start = 0; start < n; start += 64) {
        __syncthreads();
        if (start + threadIdx.x < n) tile[threadIdx.x] = body[start + threadIdx.x];
        __syncthreads();
        for (int j = 0; j < min(64, n - start); ++j) {
            const float dx = tile[j].x - me.x, dy = tile[j].y - me.y, dz = tile[j].z - me.z;
            const float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f),
                        strength = tile[j].w * inverse * inverse * inverse;
            sum.x += dx * strength, sum.y += dy * strength, sum.z += dz * strength;
        }
    }
    if (i < n) acceleration[i] = make_float4(sum.x, sum.y, sum.z, 0);
}

extern "C" __global__ void monte_carlo_hits(unsigned* hits, unsigned long long seed, int tries)
{
    unsigned long long state = seed + (blockIdx.x * blockDim.x + threadIdx.x) * 0x9e3779b97f4a7c15ull;
    unsigned count = 0;
    for (int i = 0; i < tries; ++i) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        const long long x = state >> 48, y = state >> 32 & 0xffff;
        count += x * x + y * y < 1ll << 32;
    }
    hits[blockIdx.x * blockDim.x + threadIdx.x] = count;
}

extern "C" __global__ void game_of_life(unsigned char* out, const unsigned char* in, int width, int height)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    int neighbours = 0;
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx)
            if (dx || dy) neighbours += in[(y + dy + height) % height * width + (x + dx + width) % width];
    out[y * width + x] = neighbours == 3 || (neighbours == 2 && in[y * width + x]);
}

extern "C" __global__ void sparse_rows(
    float* y, const int* starts, const int* columns, const float* values, const float* x, int rows)
{
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0;
    for (int i = starts[row]; i < starts[row + 1]; ++i) sum += values[i] * x[columns[i]];
    y[row] = sum;
}

// Where `pattern` (closed by a zero) occurs in `text`.
extern "C" __global__ void find_pattern(int* found, const char* text, int n, const char* pattern)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int j = 0;
    while (pattern[j] && i + j < n && text[i + j] == pattern[j]) ++j;
    found[i] = !pattern[j];
}

// A linked list per thread.
extern "C" __global__ void follow_links(int* out, const int* next, const int* value, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int sum = 0, hops = 0;
    for (int at = i; at >= 0 && hops < 64; at = next[at], ++hops) sum += value[at];
    out[i] = sum * 64 + hops % 64;
}

extern "C" __global__ void odd_even_rounds(int* values, int n)
{
    extern __shared__ int s[];
    for (int i = threadIdx.x; i < n; i += blockDim.x) s[i] = values[i];
    for (int round = 0; round < n; ++round) {
        __syncthreads();
        for (int i = 2 * threadIdx.x + (round & 1); i + 1 < n; i += 2 * blockDim.x)
            if (s[i] > s[i + 1]) {
                const int t = s[i];
                s[i] = s[i + 1], s[i + 1] = t;
            }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) values[i] = s[i];
}
