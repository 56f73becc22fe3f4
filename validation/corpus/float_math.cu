// Single precision: operators, functions of <cmath>, intrinsics, NaN, rounding, denormals.

#define UNARY(name, expression)                                         \
    extern "C" __global__ void name(float* out, const float* in, int n) \
    {                                                                   \
        const int i = blockIdx.x * blockDim.x + threadIdx.x;            \
        if (i >= n) return;                                             \
        const float x = in[i];                                          \
        out[i] = expression;                                            \
    }

UNARY(unary_sinf, sinf(x))
UNARY(unary_cosf, cosf(x))
UNARY(unary_expf, expf(x))
UNARY(unary_exp2f, exp2f(x))
UNARY(unary_logf, logf(x))
UNARY(unary_log2f, log2f(x))
UNARY(unary_tanhf, tanhf(x))
UNARY(unary_sqrtf, sqrtf(x))
UNARY(unary_rsqrtf, rsqrtf(x))
UNARY(unary_reciprocal, 1 / x)
UNARY(unary_erff, erff(x))
UNARY(unary_atanf, atanf(x))
UNARY(unary_cbrtf, cbrtf(x))
UNARY(fast_sin, __sinf(x))
UNARY(fast_cos, __cosf(x))
UNARY(fast_exp, __expf(x))
UNARY(fast_log, __logf(x))

extern "C" __global__ void float_binary(float* out, const float* a, const float* b, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float x = a[i], y = b[i];
    float* mine = out + 12 * i;
    mine[0] = x + y;
    mine[1] = x - y;
    mine[2] = x * y;
    mine[3] = x / y;
    mine[4] = fminf(x, y);
    mine[5] = fmaxf(x, y);
    mine[6] = fmaf(x, y, 1.5f);
    mine[7] = fabsf(x) - 2 * y;
    mine[8] = copysignf(x, y);
    mine[9] = x < y ? x : -y;
    mine[10] = fdimf(x, y);
    mine[11] = __saturatef(x);
}

extern "C" __global__ void float_functions(float* out, const float* a, const float* b, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[4 * i] = powf(a[i], b[i]);
    out[4 * i + 1] = fmodf(a[i], b[i]);
    out[4 * i + 2] = atan2f(a[i], b[i]);
    out[4 * i + 3] = hypotf(a[i], b[i]);
}

extern "C" __global__ void directed_rounding(float* out, const float* a, const float* b, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float x = a[i], y = b[i];
    float* mine = out + 12 * i;
    mine[0] = __fadd_rn(x, y);
    mine[1] = __fadd_rz(x, y);
    mine[2] = __fadd_ru(x, y);
    mine[3] = __fadd_rd(x, y);
    mine[4] = __fmul_rn(x, y);
    mine[5] = __fmul_rz(x, y);
    mine[6] = __fmul_ru(x, y);
    mine[7] = __fmul_rd(x, y);
    mine[8] = __fmaf_rn(x, y, x);
    mine[9] = __fmaf_rz(x, y, x);
    mine[10] = __fmaf_ru(x, y, x);
    mine[11] = __fmaf_rd(x, y, x);
}

extern "C" __global__ void flush_to_zero(float* out, const float* a, const float* b, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum, product, fused, smaller;
    asm("add.ftz.f32 %0, %4, %5; mul.ftz.f32 %1, %4, %5; fma.rn.ftz.f32 %2, %4, %5, %4; min.ftz.f32 %3, %4, "
        "%5;"
        : "=f"(sum), "=f"(product), "=f"(fused), "=f"(smaller)
        : "f"(a[i]), "f"(b[i]));
    out[4 * i] = sum;
    out[4 * i + 1] = product;
    out[4 * i + 2] = fused;
    out[4 * i + 3] = smaller;
}

extern "C" __global__ void comparisons(
    unsigned* out, const float* a, const float* b, const double* c, const double* d, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float x = a[i], y = b[i];
    const double v = c[i], w = d[i];
    unsigned bits = (x < y) | (x <= y) << 1 | (x > y) << 2 | (x >= y) << 3 | (x == y) << 4 | (x != y) << 5;
    bits |=
        !(x < y) << 6 | !(x >= y) << 7 | isnan(x) << 8 | isinf(x) << 9 | isfinite(y) << 10 | signbit(x) << 11;
    bits |=
        (v < w) << 12 | (v <= w) << 13 | (v == w) << 14 | (v != w) << 15 | !(v > w) << 16 | isnan(w) << 17;
    out[i] = bits;
}
