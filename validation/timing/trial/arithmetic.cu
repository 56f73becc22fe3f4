// Formulas, integrators, transforms and small matrices of each thread or warp.

#define EXPORT extern "C" __global__ void

EXPORT logistic_double(double* out, const double* in, int steps, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double x = in[i];
    for (int k = 0; k < steps; ++k) x = 3.5 * x * (1.0 - x);
    out[i] = x;
}

EXPORT hypot_double(double* out, const double* x, const double* y, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = sqrt(x[i] * x[i] + y[i] * y[i]) / (1.0 + x[i]);
}

static __device__ float normal_below(float d)
{
    return 0.5f * erfcf(-d * 0.70710678f);
}

EXPORT option_prices(float* calls, float* puts, const float* spot, const float* strike,
                     const float* years, float rate, float spread, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float s = spot[i], k = strike[i], t = years[i], deviation = spread * sqrtf(t);
    const float d1 = (logf(s / k) + (rate + 0.5f * spread * spread) * t) / deviation;
    const float d2 = d1 - deviation, discounted = k * expf(-rate * t);
    const float call = s * normal_below(d1) - discounted * normal_below(d2);
    calls[i] = call;
    puts[i] = call - s + discounted;
}

EXPORT throw_darts(unsigned* hits, unsigned seed, int throws)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned x = i * 747796405u + seed | 1u, count = 0;
    for (int k = 0; k < throws; ++k) {
        x ^= x << 13, x ^= x >> 17, x ^= x << 5;
        const unsigned a = x & 0xFFFF, b = x >> 16;
        count += a * a + b * b < a * a;  // wraps around where both are large
    }
    hits[i] = count;
}

EXPORT lorenz_steps(float4* state, float dt, int steps, int n)  // Euler's method, three equations
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 s = state[i];
    for (int k = 0; k < steps; ++k) {
        const float dx = 10.0f * (s.y - s.x), dy = s.x * (28.0f - s.z) - s.y;
        const float dz = s.x * s.y - 2.6666667f * s.z;
        s.x += dt * dx, s.y += dt * dy, s.z += dt * dz;
    }
    state[i] = s;
}

EXPORT pair_forces(float4* forces, const float4* atoms, const int* pairs, int each, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float4 a = atoms[i];
    float fx = 0.0f, fy = 0.0f, fz = 0.0f;
    for (int j = 0; j < each; ++j) {  // neighbour j of atom i is at j * n + i
        const float4 b = atoms[pairs[j * n + i]];
        const float dx = a.x - b.x, dy = a.y - b.y, dz = a.z - b.z;
        const float r2 = 1.0f / (dx * dx + dy * dy + dz * dz + 0.5f), r6 = r2 * r2 * r2;
        const float f = r2 * r6 * (2.0f * r6 - 1.0f);
        fx += f * dx, fy += f * dy, fz += f * dz;
    }
    forces[i] = make_float4(fx, fy, fz, 0.0f);
}

EXPORT butterflies(float2* data, int half, int n)  // one stage of radix 2, factors computed
{
    const int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n / 2) return;
    const int k = t % half, i = 2 * half * (t / half) + k, j = i + half;
    float s, c;
    sincospif(-float(k) / half, &s, &c);
    const float2 a = data[i], b = data[j];
    const float2 turned = make_float2(b.x * c - b.y * s, b.x * s + b.y * c);
    data[i] = make_float2(0.5f * (a.x + turned.x), 0.5f * (a.y + turned.y));
    data[j] = make_float2(0.5f * (a.x - turned.x), 0.5f * (a.y - turned.y));
}

EXPORT hadamard_rows(float* out, const float* in)  // 512 of a block, in shared memory
{
    __shared__ float line[512];
    const size_t first = size_t(blockIdx.x) * 512;
    line[threadIdx.x] = in[first + threadIdx.x];
    line[threadIdx.x + 256] = in[first + threadIdx.x + 256];
    for (int half = 1; half < 512; half *= 2) {
        __syncthreads();
        const int i = 2 * half * (threadIdx.x / half) + threadIdx.x % half;
        const float a = line[i], b = line[i + half];
        line[i] = a + b, line[i + half] = a - b;
    }
    __syncthreads();
    out[first + threadIdx.x] = line[threadIdx.x];
    out[first + threadIdx.x + 256] = line[threadIdx.x + 256];
}

EXPORT roots_by_newton(float* out, const float* in, int steps, int n)  // divisions
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float a = in[i] + 1.0f;
    float x = a;
    for (int k = 0; k < steps; ++k) x = 0.5f * (x + a / x);
    out[i] = x;
}

EXPORT invert_threes(float* out, const float* in, int n)  // 3×3, entry e of matrix i at e * n + i
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float m[9], c[9];
#pragma unroll
    for (int e = 0; e < 9; ++e) m[e] = in[e * n + i];
#pragma unroll
    for (int e = 0; e < 9; ++e) {
        const int r = e % 3, s = e / 3, r1 = (r + 1) % 3, r2 = (r + 2) % 3;
        const int s1 = (s + 1) % 3, s2 = (s + 2) % 3;
        c[e] = m[3 * r1 + s1] * m[3 * r2 + s2] - m[3 * r1 + s2] * m[3 * r2 + s1];
    }
    const float inverse = 1.0f / (m[0] * c[0] + m[1] * c[3] + m[2] * c[6]);
#pragma unroll
    for (int e = 0; e < 9; ++e) out[e * n + i] = c[e] * inverse;
}

EXPORT factor_fours(float4* out, const float4* in, int n)  // LU without pivots; rows are float4
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float m[4][4];
#pragma unroll
    for (int r = 0; r < 4; ++r) {
        const float4 v = in[4 * i + r];
        m[r][0] = v.x, m[r][1] = v.y, m[r][2] = v.z, m[r][3] = v.w;
    }
#pragma unroll
    for (int k = 0; k < 4; ++k)
#pragma unroll
        for (int r = k + 1; r < 4; ++r) {
            m[r][k] /= m[k][k];
#pragma unroll
            for (int c = k + 1; c < 4; ++c) m[r][c] -= m[r][k] * m[k][c];
        }
#pragma unroll
    for (int r = 0; r < 4; ++r)
        out[4 * i + r] = make_float4(m[r][0], m[r][1], m[r][2], m[r][3]);
}

EXPORT solve_tridiagonal(float* x, float* scratch, const float* low, const float* mid,
                         const float* high, int length, int n)  // system i strided by n
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float c = 0.0f, d = 0.0f;
    for (int k = 0; k < length; ++k) {
        const int at = k * n + i;
        const float scale = 1.0f / (mid[at] - low[at] * c);
        c = high[at] * scale, d = (1.0f - low[at] * d) * scale;
        scratch[at] = c, x[at] = d;
    }
    for (int k = length - 2; k >= 0; --k) x[k * n + i] = d = x[k * n + i] - scratch[k * n + i] * d;
}

EXPORT eliminate_by_warps(float* matrices, int n)  // 16×17, a warp each, pivots in order
{
    __shared__ float all[4][16][17];
    const int which = blockIdx.x * 4 + threadIdx.y;
    if (which >= n) return;
    float(*m)[17] = all[threadIdx.y];
    for (int e = threadIdx.x; e < 272; e += 32) m[e / 17][e % 17] = matrices[which * 272 + e];
    __syncwarp();
    for (int k = 0; k < 16; ++k) {
        const float scale = 1.0f / m[k][k];
        __syncwarp();
        if (threadIdx.x < 17) m[k][threadIdx.x] *= scale;
        __syncwarp();
        for (int r = 0; r < 16; ++r) {
            const float factor = m[r][k];
            __syncwarp();
            if (r != k && threadIdx.x < 17) m[r][threadIdx.x] -= factor * m[k][threadIdx.x];
        }
        __syncwarp();
    }
    for (int e = threadIdx.x; e < 272; e += 32) matrices[which * 272 + e] = m[e / 17][e % 17];
}

EXPORT rotate_by_quaternions(float3* out, const float3* in, const float4* turns, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float3 v = in[i];
    const float4 q = turns[i];
    const float tx = 2 * (q.y * v.z - q.z * v.y), ty = 2 * (q.z * v.x - q.x * v.z);
    const float tz = 2 * (q.x * v.y - q.y * v.x);
    out[i] = make_float3(v.x + q.w * tx + q.y * tz - q.z * ty, v.y + q.w * ty + q.z * tx - q.x * tz,
                         v.z + q.w * tz + q.x * ty - q.y * tx);
}
