// Division by constants: compilers multiply by an inverse, in as many words as it takes.

extern "C" __global__ void divide_by_constants(double* d, float* f, const double* a, const float* b, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    d[4 * i] = a[i] / 0.1;
    d[4 * i + 1] = a[i] / 3;
    d[4 * i + 2] = a[i] / -1e300;
    d[4 * i + 3] = 2.5 / sqrt(a[i] * a[i] + 1e-3);
    f[3 * i] = b[i] / 0.1f;
    f[3 * i + 1] = b[i] / 7;
    f[3 * i + 2] = __fdiv_rn(b[i], -3e-38f);
}

extern "C" __global__ void divide_wide_by_constants(
    unsigned long long* u, long long* s, const unsigned long long* a, const long long* b, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    u[4 * i] = a[i] / 641;
    u[4 * i + 1] = a[i] % 1000000007;
    u[4 * i + 2] = a[i] / 1266510471046261789ull;
    u[4 * i + 3] = (unsigned)(a[i] / 4294967311ull);  // only the upper words of the product are left
    s[3 * i] = b[i] / 641;
    s[3 * i + 1] = b[i] % -1000000007;
    s[3 * i + 2] = b[i] / 1266510471046261789ll;
}
