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
