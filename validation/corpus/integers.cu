// Integers of 32 and 64 bits: division, products, shifts, comparisons, carries.

extern "C" __global__ void divide_signed(int* out, const int* a, const int* b, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[6 * i] = a[i] / b[i];
    out[6 * i + 1] = a[i] % b[i];
    out[6 * i + 2] = a[i] / 7;
    out[6 * i + 3] = a[i] % 10;
    out[6 * i + 4] = a[i] / -16;
    out[6 * i + 5] = a[i] % 32;
}

extern "C" __global__ void divide_unsigned(unsigned* out, const unsigned* a, const unsigned* b, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[4 * i] = a[i] / b[i];
    out[4 * i + 1] = a[i] % b[i];
    out[4 * i + 2] = a[i] / 1000;
    out[4 * i + 3] = a[i] % 641;
}

extern "C" __global__ void divide_wide(
    long long* s, unsigned long long* u, const long long* a, const long long* b, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const unsigned long long x = a[i], y = b[i];
    s[2 * i] = a[i] / b[i];
    s[2 * i + 1] = a[i] % b[i];
    u[3 * i] = x / y;
    u[3 * i + 1] = x % y;
    u[3 * i + 2] = x / 1000000007ull;
}

extern "C" __global__ void high_products(int* s, unsigned* u, long long* l, unsigned long long* v,
    const int* a, const int* b, const long long* c, const long long* d, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    s[3 * i] = __mulhi(a[i], b[i]);
    s[3 * i + 1] = __mul24(a[i], b[i]);
    s[3 * i + 2] = a[i] * b[i] + 5;
    u[2 * i] = __umulhi(a[i], b[i]);
    u[2 * i + 1] = __umul24(a[i], b[i]);
    l[3 * i] = __mul64hi(c[i], d[i]);
    l[3 * i + 1] = c[i] * d[i];
    l[3 * i + 2] = (long long)a[i] * b[i] + c[i];
    v[2 * i] = __umul64hi(c[i], d[i]);
    v[2 * i + 1] = (unsigned long long)(unsigned)a[i] * (unsigned)b[i] + d[i];
}

extern "C" __global__ void wide_integers(
    long long* out, const long long* a, const long long* b, const int* shift, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const long long x = a[i], y = b[i];
    const int k = shift[i];
    long long* mine = out + 12 * i;
    mine[0] = x + y;
    mine[1] = x - y;
    mine[2] = x << k;
    mine[3] = x >> k;
    mine[4] = (unsigned long long)x >> k;
    mine[5] = x ^ (y & ~x);
    mine[6] = x < y ? x : y;
    mine[7] = (unsigned long long)x > (unsigned long long)y ? x : y;
    mine[8] = (x < y) + 2 * (x <= y) + 4 * (x == y) + 8 * ((unsigned long long)x >= (unsigned long long)y);
    mine[9] = -x;
    mine[10] = x < 0 ? -x : x;
    mine[11] = x * 10 + 7;
}

extern "C" __global__ void wide_bits(int* out, const unsigned long long* in, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const unsigned long long x = in[i], r = __brevll(x);
    out[5 * i] = __clzll(x);
    out[5 * i + 1] = __ffsll(x);
    out[5 * i + 2] = __popcll(x);
    out[5 * i + 3] = (int)r;
    out[5 * i + 4] = (int)(r >> 32);
}

// 128-bit sums and products from carries.
extern "C" __global__ void carries(unsigned* out, const unsigned* a, const unsigned* b, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const unsigned *x = a + 4 * i, *y = b + 4 * i;
    unsigned *sum = out + 8 * i, *difference = sum + 4;
    asm("add.cc.u32 %0, %4, %8; addc.cc.u32 %1, %5, %9; addc.cc.u32 %2, %6, %10; addc.u32 %3, %7, %11;"
        : "=r"(sum[0]), "=r"(sum[1]), "=r"(sum[2]), "=r"(sum[3])
        : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]), "r"(y[2]), "r"(y[3]));
    asm("sub.cc.u32 %0, %4, %8; subc.cc.u32 %1, %5, %9; subc.cc.u32 %2, %6, %10; subc.u32 %3, %7, %11;"
        : "=r"(difference[0]), "=r"(difference[1]), "=r"(difference[2]), "=r"(difference[3])
        : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]), "r"(y[2]), "r"(y[3]));
}

extern "C" __global__ void wide_products(unsigned* out, const unsigned* a, const unsigned* b, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const unsigned *x = a + 2 * i, *y = b + 2 * i;
    unsigned r0, r1, r2, r3;
    asm("mul.lo.u32 %0, %4, %6; mul.hi.u32 %1, %4, %6; mad.lo.cc.u32 %1, %5, %6, %1; madc.hi.u32 %2, %5, %6, "
        "0;"
        "mad.lo.cc.u32 %1, %4, %7, %1; madc.hi.cc.u32 %2, %4, %7, %2; addc.u32 %3, 0, 0;"
        "mad.lo.cc.u32 %2, %5, %7, %2; madc.hi.u32 %3, %5, %7, %3;"
        : "=&r"(r0), "=&r"(r1), "=&r"(r2), "=&r"(r3)
        : "r"(x[0]), "r"(x[1]), "r"(y[0]), "r"(y[1]));
    out[4 * i] = r0;
    out[4 * i + 1] = r1;
    out[4 * i + 2] = r2;
    out[4 * i + 3] = r3;
}

// FNV-1a and xorshift: multiplications, shifts and rotations that must not lose a bit.
extern "C" __global__ void hashes(unsigned* out, const unsigned* in, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned hash = 2166136261u, x = in[i] | 1;
    for (int k = 0; k < 4; ++k) hash = (hash ^ (in[i] >> 8 * k & 255)) * 16777619u;
    for (int k = 0; k < 3; ++k) x ^= x << 13, x ^= x >> 17, x ^= x << 5;
    out[2 * i] = hash;
    out[2 * i + 1] = (x << 7 | x >> 25) + hash;
}
