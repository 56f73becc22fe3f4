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

// One operand: X rows of A or columns of B, from `first_x` of `most_x`, and k from `first_k` to `most_k`.
template <bool ALONG_K, bool QUADS, int X>
struct Copier {
    // ALONG_K: a warp copies 8 k of 4 rows at a time, so that it stores to 32 banks.
    static constexpr int WIDTH = !ALONG_K && QUADS ? 4 : 1;
    static constexpr int WARPS_K = WARPS < BK / 8 ? WARPS : BK / 8;
    static constexpr int ROW = X / WIDTH;  // threads of a row of the tile, if these run along x
    static constexpr int AT_ONCE_K = ALONG_K ? 8 * WARPS_K : THREADS < ROW ? 1 : THREADS / ROW;
    static constexpr int AT_ONCE_X = ALONG_K ? 4 * (WARPS / WARPS_K) : THREADS < ROW ? THREADS * WIDTH : X;
    static constexpr bool IDLE = ALONG_K ? AT_ONCE_X > X : AT_ONCE_K > BK;  // some threads have nothing to copy
    static_assert(IDLE || BK % AT_ONCE_K == 0 && X % AT_ONCE_X == 0, "every pass over the tile is full");

    const float* from;
    int pitch, x, k, left_x, left_k;

    __device__ Copier(const float* matrix, int pitch, int first_x, int most_x, int first_k, int most_k) : pitch(pitch)
    {
        const int t = threadIdx.x, lane = t % 32, warp = t / 32;
        x = ALONG_K ? warp / WARPS_K * 4 + lane / 8 : t % ROW * WIDTH;
        k = ALONG_K ? warp % WARPS_K * 8 + lane % 8 : THREADS < ROW ? 0 : t / ROW;
        from = ALONG_K ? matrix + size_t(first_x + x) * pitch + first_k + k
                       : matrix + size_t(first_k + k) * pitch + first_x + x;
        left_x = most_x - first_x - x, left_k = most_k - first_k - k;
    }

    __device__ void start(float (*to)[X + PAD], int phase) const
    {
        if (IDLE && (x >= X || k >= BK)) return;
        const float* const here = from + size_t(phase * BK) * (ALONG_K ? 1 : pitch);
        const int left = left_k - phase * BK;
#pragma unroll
        for (int dk = 0; dk < BK; dk += AT_ONCE_K)
#pragma unroll
            for (int dx = 0; dx < X; dx += AT_ONCE_X) {
                const float* const one = ALONG_K ? here + size_t(unsigned(dx)) * unsigned(pitch) + dk
                                                 : here + size_t(unsigned(dk)) * unsigned(pitch) + dx;
                float* const place = &to[k + dk][x + dx];
                if (WIDTH == 4)
                    copy_quad(place, one, dk < left ? max(min(left_x - dx, 4), 0) : 0);
                else
                    copy_float(place, one, dk < left && dx < left_x);
            }
    }
};
