// Control flow that depends on data: loops, searches, switches, nested breaks.

extern "C" __global__ void collatz(int* steps, const unsigned* start, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned x = start[i];
    int count = 0;
    while (x != 1) {
        if (x & 1) x = 3 * x + 1;
        else x >>= 1;
        ++count;
    }
    steps[i] = count;
}

extern "C" __global__ void mandelbrot(
    int* iterations, int width, int height, float left, float top, float step, int limit)
{
    const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    const float cr = __fadd_rn(left, __fmul_rn(x, step)), ci = __fadd_rn(top, __fmul_rn(y, step));
    float r = 0, i = 0;
    int count = 0;
    while (count < limit) {
        const float rr = __fmul_rn(r, r), ii = __fmul_rn(i, i);
        if (__fadd_rn(rr, ii) > 4) break;
        i = __fadd_rn(__fmul_rn(__fmul_rn(2, r), i), ci);
        r = __fadd_rn(__fadd_rn(rr, -ii), cr);
        ++count;
    }
    iterations[y * width + x] = count;
}

extern "C" __global__ void lower_bound(int* position, const int* sorted, int n, const int* wanted, int m)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= m) return;
    int low = 0, high = n;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (sorted[middle] < wanted[i]) low = middle + 1;
        else high = middle;
    }
    position[i] = low;
}

extern "C" __global__ void jump_table(int* out, const int* selector, const int* x, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int value = x[i];
    switch (selector[i]) {
    case 0: value += 17; break;
    case 1: value = value * value; break;
    case 2: value ^= 0x5a5a;  // falls through
    case 3: value -= 3; break;
    case 4: value = value << 3 | 5; break;
    case 5:
        for (int j = 0; j < 5; ++j) value = value * 3 + j;
        break;
    case 6: value = value / 7; break;
    case 7: value = -value; break;
    case 8: out[i] = 99; return;
    case 9: value = __popc(value); break;
    case 10: value = value % 11; break;
    case 11: value = ~value; break;
    default: value = 0;
    }
    out[i] = value;
}

extern "C" __global__ void nested_breaks(int* out, const int* in, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int total = 0;
    for (int j = 0; j < 12; ++j) {
        if ((in[i] + j) % 5 == 0) continue;
        for (int k = 0; k < 8; ++k) {
            if (k * j > (in[i] & 31)) break;
            if ((k ^ in[i]) & 4) continue;
            total += j * k + 1;
            if (total > 90) goto done;
        }
        if (total % 7 == 6) break;
        total += 2;
    }
done:
    out[i] = total;
}

// The barrier is reached by all threads as often as the block's longest count says.
extern "C" __global__ void uniform_barrier_loop(int* out, const int* counts)
{
    __shared__ int sum;
    const int mine = counts[blockIdx.x * blockDim.x + threadIdx.x];
    if (threadIdx.x == 0) sum = 0;
    int rounds = 0;
    do {
        __syncthreads();
        if (rounds < mine) atomicAdd(&sum, rounds + 1);
    } while (__syncthreads_or(++rounds < mine));
    const int all = __syncthreads_and(mine > 2), some = __syncthreads_count(mine > 4);
    if (threadIdx.x == 0)
        out[3 * blockIdx.x] = sum, out[3 * blockIdx.x + 1] = all, out[3 * blockIdx.x + 2] = some;
}

extern "C" __global__ void gcd(unsigned* out, const unsigned* a, const unsigned* b, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        unsigned x = a[i], y = b[i];
        while (y) {
            const unsigned rest = x % y;
            x = y, y = rest;
        }
        out[i] = x;
    }
}
