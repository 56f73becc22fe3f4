// Two parts of FP16 for each element: high = half(x), low = half(x - high), for x scaled to less than 2^15. Together
// they keep 22 bits of x and more, down to 2^-39 of the largest element of its row.

struct Quad { float x[4]; };

// Four neighbours of a row; 0 in place of those that are beyond its end. QUADS: rows begin on 16 bytes.
template <bool QUADS> __device__ Quad load(const float* from, int left)
{
    Quad quad;
    if (QUADS && left >= 4) {
        const float4 all = __ldg(reinterpret_cast<const float4*>(from));
        quad.x[0] = all.x, quad.x[1] = all.y, quad.x[2] = all.z, quad.x[3] = all.w;
    } else {
#pragma unroll
        for (int i = 0; i < 4; ++i) quad.x[i] = i < left ? __ldg(from + i) : 0.0f;
    }
    return quad;
}

__device__ unsigned two_halves(float first, float second)
{
    unsigned both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(second), "f"(first));
    return both;
}
__device__ float as_float(unsigned short half)
{
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(half));
    return x;
}

// Store both parts of a scaled quad; the low parts are `low` elements behind the high ones.
__device__ void store_parts(const Quad& quad, unsigned short* to, size_t low)
{
    unsigned of_high[2], of_low[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const float first = quad.x[2 * i], second = quad.x[2 * i + 1];
        of_high[i] = two_halves(first, second);
        of_low[i] = two_halves(first - as_float(of_high[i] & 0xffff), second - as_float(of_high[i] >> 16));
    }
    *reinterpret_cast<uint2*>(to) = make_uint2(of_high[0], of_high[1]);
    *reinterpret_cast<uint2*>(to + low) = make_uint2(of_low[0], of_low[1]);
}
