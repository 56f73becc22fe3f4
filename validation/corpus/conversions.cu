// Conversions between integers, float, double and half, with each rounding and with saturation.

extern "C" __global__ void float_to_integers(
    int* s, unsigned* u, long long* l, unsigned long long* v, const float* in, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float x = in[i];
    s[4 * i] = __float2int_rz(x);
    s[4 * i + 1] = __float2int_rn(x);
    s[4 * i + 2] = __float2int_ru(x);
    s[4 * i + 3] = __float2int_rd(x);
    u[4 * i] = __float2uint_rz(x);
    u[4 * i + 1] = __float2uint_rn(x);
    u[4 * i + 2] = __float2uint_ru(x);
    u[4 * i + 3] = __float2uint_rd(x);
    l[2 * i] = __float2ll_rz(x);
    l[2 * i + 1] = __float2ll_rn(x);
    v[2 * i] = __float2ull_rz(x);
    v[2 * i + 1] = __float2ull_ru(x);
}

extern "C" __global__ void double_to_others(
    int* s, unsigned* u, long long* l, float* f, const double* in, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const double x = in[i];
    s[2 * i] = (int)x;
    s[2 * i + 1] = __double2int_rn(x);
    u[2 * i] = (unsigned)x;
    u[2 * i + 1] = __double2uint_rd(x);
    l[2 * i] = (long long)x;
    l[2 * i + 1] = __double2ll_ru(x);
    f[4 * i] = __double2float_rn(x);
    f[4 * i + 1] = __double2float_rz(x);
    f[4 * i + 2] = __double2float_ru(x);
    f[4 * i + 3] = __double2float_rd(x);
}

extern "C" __global__ void integers_to_float(float* f, double* d, const int* s, const unsigned* u,
    const long long* l, const unsigned long long* v, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float* mine = f + 8 * i;
    mine[0] = s[i];
    mine[1] = __int2float_rz(s[i]);
    mine[2] = __int2float_ru(s[i]);
    mine[3] = __int2float_rd(s[i]);
    mine[4] = u[i];
    mine[5] = __uint2float_rz(u[i]);
    mine[6] = l[i];
    mine[7] = v[i];
    d[4 * i] = s[i], d[4 * i + 1] = u[i], d[4 * i + 2] = l[i], d[4 * i + 3] = v[i];
}

extern "C" __global__ void small_integers(
    signed char* c, unsigned char* b, short* h, float* f, const float* in, const int* s, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int saturated;
    unsigned limited;
    asm("cvt.sat.s8.s32 %0, %1;" : "=r"(saturated) : "r"(s[i]));
    asm("cvt.rni.sat.u8.f32 %0, %1;" : "=r"(limited) : "f"(in[i]));
    c[i] = saturated, b[i] = limited;
    asm("{ .reg .s16 h; cvt.rzi.s16.f32 h, %1; cvt.s32.s16 %0, h; }" : "=r"(saturated) : "f"(in[i]));
    h[i] = saturated;
    f[3 * i] = (float)(signed char)s[i];
    f[3 * i + 1] = (float)(unsigned char)(s[i] >> 8);
    f[3 * i + 2] = (float)(unsigned short)s[i];
}

extern "C" __global__ void round_functions(float* out, const float* in, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const float x = in[i];
    float* mine = out + 6 * i;
    mine[0] = floorf(x);
    mine[1] = ceilf(x);
    mine[2] = truncf(x);
    mine[3] = rintf(x);
    mine[4] = roundf(x);
    mine[5] = (float)lrintf(x);
}

extern "C" __global__ void half_conversions(
    unsigned short* h, float* f, int* s, const float* in, const unsigned short* halves, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h[3 * i]) : "f"(in[i]));
    asm("cvt.rz.f16.f32 %0, %1;" : "=h"(h[3 * i + 1]) : "f"(in[i]));
    asm("cvt.rn.f16.s32 %0, %1;" : "=h"(h[3 * i + 2]) : "r"((int)in[i]));
    asm("cvt.f32.f16 %0, %1;" : "=f"(f[i]) : "h"(halves[i]));
    asm("cvt.rni.s32.f16 %0, %1;" : "=r"(s[i]) : "h"(halves[i]));
}
