// Bytes, bits, strings and structures that are no power of two wide.

#define EXPORT extern "C" __global__ void

EXPORT map_bytes(unsigned char* out, const unsigned char* in, const unsigned char* table, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = table[in[i]];
}

EXPORT upper_case(uchar4* text, int quads)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= quads) return;
    uchar4 c = text[i];
    c.x -= c.x >= 'a' && c.x <= 'z' ? 32 : 0, c.y -= c.y >= 'a' && c.y <= 'z' ? 32 : 0;
    c.z -= c.z >= 'a' && c.z <= 'z' ? 32 : 0, c.w -= c.w >= 'a' && c.w <= 'z' ? 32 : 0;
    text[i] = c;
}

EXPORT count_lines(unsigned* counts, const uint4* text, int n)  // newlines of 16 bytes a thread
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    int found = 0;
    if (i < n) {
        const uint4 v = text[i];
        const unsigned words[4] = {v.x, v.y, v.z, v.w};
        for (int j = 0; j < 4; ++j) found += __popc(__vcmpeq4(words[j], 0x0A0A0A0Au)) / 8;
    }
    for (int step = 16; step; step /= 2) found += __shfl_down_sync(~0u, found, step);
    if (threadIdx.x % 32 == 0) counts[i / 32] = found;
}

EXPORT checksums(unsigned* sums, const unsigned char* in, const unsigned* table, int length, int n)
{
    __shared__ unsigned entries[256];
    entries[threadIdx.x] = table[threadIdx.x];
    __syncthreads();
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n) return;
    unsigned crc = ~0u;
    for (int k = 0; k < length; ++k) crc = entries[(crc ^ in[i * length + k]) & 255] ^ crc >> 8;
    sums[i] = ~crc;
}

EXPORT bits_of_signs(unsigned* bits, const float* in, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned votes = __ballot_sync(~0u, i < n && in[i] < 0.0f);
    if (threadIdx.x % 32 == 0 && i < n) bits[i / 32] = votes;
}

EXPORT bytes_of_bits(unsigned char* out, const unsigned* bits, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = bits[i / 32] >> i % 32 & 1;
}

EXPORT encode_sixes(uchar4* out, const unsigned char* in, const unsigned char* letters, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;  // 3 bytes to 4 letters
    if (i >= n) return;
    const unsigned bits = in[3 * i] << 16 | in[3 * i + 1] << 8 | in[3 * i + 2];
    out[i] = make_uchar4(letters[bits >> 18], letters[bits >> 12 & 63], letters[bits >> 6 & 63],
                         letters[bits & 63]);
}

struct Point {
    float x, y, z;
};

EXPORT move_points(Point* points, const Point* speeds, float step, int n)  // 12 bytes each
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Point p = points[i];
    const Point v = speeds[i];
    p.x += step * v.x, p.y += step * v.y, p.z += step * v.z;
    points[i] = p;
}

struct Body {
    float x, y, mass;
    int kind, age;
};

EXPORT age_bodies(Body* out, const Body* in, float factor, int n)  // 20 bytes each
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Body b = in[i];
    b.x *= factor, b.y *= factor, b.mass += 1.0f, b.age += b.kind;
    out[i] = b;
}

EXPORT split_bodies(float* x, float* y, float* mass, const Body* in, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        x[i] = in[i].x, y[i] = in[i].y, mass[i] = in[i].mass;
}

EXPORT luma_of_pixels(unsigned char* out, const unsigned char* in, int n)  // in place of 3, 3 bytes
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const int r = in[3 * i], g = in[3 * i + 1], b = in[3 * i + 2];
    out[3 * i] = (77 * r + 150 * g + 29 * b) >> 8;
    out[3 * i + 1] = ((128 * b - 43 * r - 85 * g) >> 8) + 128;
    out[3 * i + 2] = ((128 * r - 107 * g - 21 * b) >> 8) + 128;
}

EXPORT bit_distances(int* out, const uint4* codes, const uint4* query, int n)  // 512 bits
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int sum = 0;
    for (int j = 0; j < 4; ++j) {
        const uint4 a = codes[i * 4 + j], b = query[j];
        sum += __popc(a.x ^ b.x) + __popc(a.y ^ b.y) + __popc(a.z ^ b.z) + __popc(a.w ^ b.w);
    }
    out[i] = sum;
}

EXPORT edit_distances(int* out, const unsigned char* words, const unsigned char* query, int n)
{
    __shared__ unsigned char other[12];
    if (threadIdx.x < 12) other[threadIdx.x] = query[threadIdx.x];
    __syncthreads();
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int row[13];
#pragma unroll
    for (int j = 0; j < 13; ++j) row[j] = j;
    for (int k = 0; k < 12; ++k) {  // character k of word i is at k * n + i
        const unsigned char c = words[k * n + i];
        int diagonal = row[0];
        row[0] = k + 1;
#pragma unroll
        for (int j = 1; j < 13; ++j) {
            const int kept = row[j];
            row[j] = min(min(row[j], row[j - 1]) + 1, diagonal + (other[j - 1] != c));
            diagonal = kept;
        }
    }
    out[i] = row[12];
}

EXPORT mix_rounds(uint2* out, const uint2* in, int rounds, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned a = in[i].x, b = in[i].y;
    for (int k = 0; k < rounds; ++k) {
        a += b, b = b << 13 | b >> 19, b ^= a;
        a = a << 7 | a >> 25, a ^= 0x9E3779B9u * k;
    }
    out[i] = make_uint2(a, b);
}
