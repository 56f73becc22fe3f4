// Rows of A and columns of B with Inf or NaN, whose roots are NaN. Scales and parts mean nothing there, and all of their
// products are Inf or NaN: the sum of those terms that have a factor which is Inf or NaN says which. The warps that
// neither copy nor multiply compute it from A and B themselves.

constexpr int SPECIAL_WARPS = 3;

// One side of the product: rows of A, or columns of B.
struct Side {
    const float *from, *roots;
    int lines, of_line, of_k;  // and the distance of elements
    size_t of_c;               // distance in C
    __device__ bool is_special(int line) const { return line < lines && roots[line] != roots[line]; }
    __device__ float at(int line, int k) const { return from[size_t(line) * of_line + size_t(k) * of_k]; }
};
__device__ bool is_finite(float x) { return magnitude(x) < INFINITE; }

// Elements of C in special lines of `one`, from line `first` on, with `others` of the other side; without special lines of
// the other side unless `with_special`.
__device__ __forceinline__ void store_special(const Side one, const Side other, int first, int lines, int first_other, int others,
                                           bool with_special, int K, float* C, float alpha, float beta)
{
    const int lane = threadIdx.x % 32;
    for (int line = first + threadIdx.x / 32 - 1; line < first + lines; line += SPECIAL_WARPS) {
        if (!one.is_special(line)) continue;
        for (int j = first_other + lane; j - lane < first_other + others; j += 32) {
            const bool inside = j < other.lines, both = other.is_special(j);
            float sum = 0.0f;
            for (int begin = 0; begin < K; begin += 32) {
                const float mine = begin + lane < K ? one.at(line, begin + lane) : 0.0f;
                for (unsigned left = __ballot_sync(0xffffffff, !is_finite(mine)); left; left &= left - 1) {
                    const int source = __ffs(left) - 1;
                    const float factor = __shfl_sync(0xffffffff, mine, source);
                    if (inside) sum += factor * other.at(j, begin + source);
                }
            }
            for (int k = 0; both && k < K; ++k)
                if (const float factor = other.at(j, k); !is_finite(factor)) sum += factor * one.at(line, k);
            if (!inside || (both && !with_special)) continue;
            float* const c = C + line * one.of_c + j * other.of_c;
            *c = beta != 0.0f ? alpha * sum + beta * *c : alpha * sum;
        }
    }
}
