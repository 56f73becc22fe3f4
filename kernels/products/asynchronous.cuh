// Copies of tiles of BK x X floats to shared memory, [k][x], zeros beyond the edges.

__device__ void copy_float(float* to, const float* from, bool inside)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
                 :: "r"(unsigned(__cvta_generic_to_shared(to))), "l"(from), "r"(inside ? 4 : 0) : "memory");
}
__device__ void copy_quad(float* to, const float* from, int floats)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"(unsigned(__cvta_generic_to_shared(to))), "l"(from), "r"(4 * floats) : "memory");
}

__device__ constexpr int most_lanes(int n) { return n % 32 == 0 ? 32 : n % 16 == 0 ? 16 : n % 8 == 0 ? 8 : 4; }

// One operand: X rows of A or columns of B, from `first_x` of `most_x`, and k from `first_k` on. Phases are copied in their
// order. The first one may be short; the others are whole, so that only it asks for each k. A thread copies all that it
// has of a stored row by one address.
template <bool ALONG_K, bool QUADS, int X>
struct Copier {
    // ALONG_K: a warp copies 8 k of 4 rows at a time, so that it stores to 32 banks.
    static constexpr int WIDTH = !ALONG_K && QUADS ? 4 : 1;
    static constexpr int LANES = ALONG_K ? 8 : most_lanes(X / WIDTH);  // of a stored row
    static constexpr int AT_ONCE_K = ALONG_K ? LANES : THREADS / LANES, AT_ONCE_X = ALONG_K ? THREADS / LANES : LANES * WIDTH;
    static constexpr int PASSES_K = BK / AT_ONCE_K, PASSES_X = X / AT_ONCE_X;
    static_assert(BK % AT_ONCE_K == 0 && X % AT_ONCE_X == 0, "every pass over the tile is full");

    const float* from;  // the thread's first float of the next phase
    long long step;     // floats from one of the thread's stored rows to the next
    int x, k, left_x;

    __device__ Copier(const float* matrix, int pitch, int first_x, int most_x, int first_k)
    {
        const int t = threadIdx.x;
        x = ALONG_K ? t / LANES : t % LANES * WIDTH;
        k = ALONG_K ? t % LANES : t / LANES;
        from = ALONG_K ? matrix + size_t(first_x + x) * pitch + first_k + k
                       : matrix + size_t(first_k + k) * pitch + first_x + x;
        step = (long long)(ALONG_K ? AT_ONCE_X : AT_ONCE_K) * pitch;
        left_x = most_x - first_x - x;
    }

    // A phase of `depth` of k, of BK if it is WHOLE.
    template <bool WHOLE>
    __device__ void start(float (*to)[X + PAD], int depth)
    {
        const float* here = from;
        from += ALONG_K ? (WHOLE ? BK : depth) : (WHOLE ? PASSES_K * step : step / AT_ONCE_K * depth);
#pragma unroll
        for (int row = 0; row < (ALONG_K ? PASSES_X : PASSES_K); ++row, here += step) {
            asm volatile("" : "+l"(here));  // else the compiler computes an address for each copy
#pragma unroll
            for (int within = 0; within < (ALONG_K ? PASSES_K : PASSES_X); ++within) {
                const int dx = (ALONG_K ? row : within) * AT_ONCE_X, dk = (ALONG_K ? within : row) * AT_ONCE_K;
                const bool inside_k = WHOLE || k + dk < depth;
                float* const place = &to[k + dk][x + dx];
                const float* const one = here + (ALONG_K ? dk : dx);
                if (WIDTH == 4)
                    copy_quad(place, one, inside_k ? max(min(left_x - dx, 4), 0) : 0);
                else
                    copy_float(place, one, inside_k && dx < left_x);
            }
        }
    }
};
