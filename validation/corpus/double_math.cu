// Double precision: operators, division, roots, functions, rounding.

extern "C" __global__ void double_binary(double* out, const double* a, const double* b, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const double x = a[i], y = b[i];
    double* mine = out + 10 * i;
    mine[0] = x + y;
    mine[1] = x - y;
    mine[2] = x * y;
    mine[3] = x / y;
    mine[4] = fma(x, y, -x);
    mine[5] = fmin(x, y);
    mine[6] = fmax(x, y);
    mine[7] = sqrt(fabs(x));
    mine[8] = 1 / y;
    mine[9] = x < 0 ? -y : y;
}

extern "C" __global__ void double_functions(double* out, const double* in, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const double x = in[i];
    double* mine = out + 6 * i;
    mine[0] = exp(x);
    mine[1] = log(fabs(x));
    mine[2] = sin(x);
    mine[3] = rsqrt(fabs(x));
    mine[4] = floor(x);
    mine[5] = rint(x);
}

extern "C" __global__ void double_directed(double* out, const double* a, const double* b, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const double x = a[i], y = b[i];
    double* mine = out + 8 * i;
    mine[0] = __dadd_rz(x, y);
    mine[1] = __dadd_ru(x, y);
    mine[2] = __dadd_rd(x, y);
    mine[3] = __dmul_rz(x, y);
    mine[4] = __dmul_ru(x, y);
    mine[5] = __dmul_rd(x, y);
    mine[6] = __fma_rz(x, y, 0.1);
    mine[7] = __fma_ru(x, y, 0.1);
}
