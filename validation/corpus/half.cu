// half and half2 arithmetic by PTX: what cuda_fp16.h compiles to, without its header.

typedef unsigned halves;

__device__ halves fma2(halves a, halves b, halves c)
{
    halves d;
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
    return d;
}
__device__ halves add2(halves a, halves b)
{
    halves d;
    asm("add.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
    return d;
}
__device__ halves mul2(halves a, halves b)
{
    halves d;
    asm("mul.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
    return d;
}

extern "C" __global__ void half2_arithmetic(halves* out, const halves* a, const halves* b, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    halves difference, negated, absolute;
    asm("sub.f16x2 %0, %1, %2;" : "=r"(difference) : "r"(a[i]), "r"(b[i]));
    asm("neg.f16x2 %0, %1;" : "=r"(negated) : "r"(a[i]));
    asm("abs.f16x2 %0, %1;" : "=r"(absolute) : "r"(b[i]));
    out[5 * i] = add2(a[i], b[i]);
    out[5 * i + 1] = mul2(a[i], b[i]);
    out[5 * i + 2] = fma2(a[i], b[i], a[i]);
    out[5 * i + 3] = difference;
    out[5 * i + 4] = fma2(negated, absolute, 0x3c003c00);  // 1, 1
}

extern "C" __global__ void half2_saxpy(halves* y, const halves* x, halves a, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        y[i] = fma2(a, x[i], y[i]);
}

extern "C" __global__ void half2_compare(unsigned* out, const halves* a, const halves* b, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned bits, ones;
    asm("{ .reg .pred p, q; setp.lt.f16x2 p|q, %1, %2; selp.u32 %0, 1, 0, p; @q or.b32 %0, %0, 2; }"
        : "=r"(bits)
        : "r"(a[i]), "r"(b[i]));
    asm("set.ge.f16x2.f16x2 %0, %1, %2;" : "=r"(ones) : "r"(a[i]), "r"(b[i]));
    out[2 * i] = bits;
    out[2 * i + 1] = ones;
}

// sm_80 has minimum and maximum of halves; sm_75 goes through float.
extern "C" __global__ void half2_extremes(halves* out, const halves* a, const halves* b, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
#if __CUDA_ARCH__ >= 800
    asm("min.f16x2 %0, %1, %2;" : "=r"(out[2 * i]) : "r"(a[i]), "r"(b[i]));
    asm("max.f16x2 %0, %1, %2;" : "=r"(out[2 * i + 1]) : "r"(a[i]), "r"(b[i]));
#else
    float x, y, v, w;
    asm("{ .reg .b16 l, h; mov.b32 {l, h}, %2; cvt.f32.f16 %0, l; cvt.f32.f16 %1, h; }"
        : "=f"(x), "=f"(y)
        : "r"(a[i]));
    asm("{ .reg .b16 l, h; mov.b32 {l, h}, %2; cvt.f32.f16 %0, l; cvt.f32.f16 %1, h; }"
        : "=f"(v), "=f"(w)
        : "r"(b[i]));
    for (int k = 0; k < 2; ++k) {
        const float low = k ? fmaxf(x, v) : fminf(x, v), high = k ? fmaxf(y, w) : fminf(y, w);
        asm("{ .reg .b16 l, h; cvt.rn.f16.f32 l, %1; cvt.rn.f16.f32 h, %2; mov.b32 %0, {l, h}; }"
            : "=r"(out[2 * i + k])
            : "f"(low), "f"(high));
    }
#endif
}
