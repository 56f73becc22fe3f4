// Atomics on several values at once, sm_90 and later, with and without use of the old ones.

extern "C" __global__ void add_vectors(float4* sums, float2* pairs, float4* old, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    atomicAdd(&sums[i & 3], make_float4(1, 2, 3, i));
    atomicAdd(&pairs[i & 1], make_float2(i, 1));
    old[i] = atomicAdd(&old[n + i], make_float4(1, 2, 3, 4));
}

extern "C" __global__ void half_vectors(unsigned* sums, unsigned* extremes, const unsigned* in)
{
    const int t = threadIdx.x;
    const unsigned x = in[t];
    asm volatile("red.global.add.noftz.v4.f16x2 [%0], {%1, %1, %1, %1};" ::"l"(sums), "r"(x) : "memory");
    asm volatile("red.global.add.noftz.v2.bf16x2 [%0], {%1, %1};" ::"l"(sums + 4), "r"(0x3f80c000)
        : "memory");
    asm volatile("{ .reg .b16 a, b; mov.b32 {a, b}, %1; red.global.min.noftz.v2.f16 [%0], {a, b}; }" ::"l"(
                     extremes),
        "r"(x)
        : "memory");
    asm volatile("red.global.max.noftz.v2.f16x2 [%0], {%1, %1};" ::"l"(extremes + 2), "r"(x) : "memory");
}

// 16 bytes: exchanged, and replaced by those who know what stands there.
extern "C" __global__ void swap_quads(ulonglong2* out, ulonglong2* in, ulonglong2* place)
{
    const unsigned long long t = threadIdx.x;
    unsigned long long a, b;
    asm volatile(
        "{ .reg .b128 x, y; mov.b128 x, {%3, %4}; atom.global.exch.b128 y, [%2], x; mov.b128 {%0, %1}, y; }"
        : "=l"(a), "=l"(b)
        : "l"(in + t), "l"(7 * t), "l"(~t)
        : "memory");
    out[t] = make_ulonglong2(a, b);
    asm volatile(
        "{ .reg .b128 x, y, z; mov.b128 x, {%2, %3}; mov.b128 y, {%4, %5};"
        " atom.global.cas.b128 z, [%6], x, y; mov.b128 {%0, %1}, z; }"
        : "=l"(a), "=l"(b)
        : "l"(t), "l"(t << 40), "l"(t + 1), "l"((t + 1) << 40), "l"(place + t)
        : "memory");
    out[32 + t] = make_ulonglong2(a, b);
}
