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
//
// The copies of a thread that lie in one row of the matrix have one address, and constant distances to it. Rows of A or
// columns of B beyond the edge add to elements of C that are not stored: any row inside the matrix will do for them.
template <bool ALONG_K, bool QUADS, int X>
struct Copier {
    // ALONG_K: a warp copies 8 k of 4 rows at a time, so that it stores to 32 banks. Else it copies neighbours along x.
    static constexpr bool WIDE = !ALONG_K && QUADS;
    static constexpr int WIDTH = WIDE ? 4 : 1;
    static constexpr int LANES = ALONG_K ? 8 : X / WIDTH < 32 ? X / WIDTH : 32;  // of a warp, in a row of the matrix
    static constexpr int COPIES = (ALONG_K ? BK : X) / (LANES * WIDTH);          // of a thread, in a row
    static constexpr int ROWS = ALONG_K ? X : BK;
    static constexpr int DOWN = 32 / LANES * WARPS;  // from a thread's row to its next
    static constexpr int PASSES = (ROWS + DOWN - 1) / DOWN;
    static_assert(ROWS % DOWN == 0 || PASSES == 1, "every pass over the tile is full, or there is one");

    const char* from;  // the first row of the tile, at the thread's first column
    unsigned pitch_bytes;
    int row, column, left_x, left_k;

    __device__ Copier(const float* matrix, int pitch, int first_x, int most_x, int first_k, int most_k)
    {
        row = threadIdx.x / LANES, column = threadIdx.x % LANES * WIDTH;
        from = reinterpret_cast<const char*>(matrix + size_t(ALONG_K ? first_x : first_k) * pitch + (ALONG_K ? first_k : first_x) + column);
        pitch_bytes = 4u * pitch;
        left_x = most_x - first_x, left_k = most_k - first_k;
    }

    // Starts the copies of a phase: call it for each of them in turn.
    __device__ void start(float (*to)[X + PAD])
    {
        if (left_k >= BK) copy<true>(to);
        else copy<false>(to);
        from += ALONG_K ? 4 * BK : BK * size_t(pitch_bytes);
        left_k -= BK;
    }

    template <bool WHOLE>
    __device__ void copy(float (*to)[X + PAD]) const
    {
#pragma unroll
        for (int pass = 0; pass < PASSES; ++pass) {
            const int down = row + pass * DOWN;
            if (DOWN > ROWS && down >= ROWS) return;
            const unsigned inside = ALONG_K ? min(down, left_x - 1) : WHOLE ? down : min(down, left_k - 1);
            const float* const one = reinterpret_cast<const float*>(from + size_t(inside) * pitch_bytes);
#pragma unroll
            for (int n = 0; n < COPIES; ++n) {
                const int d = n * LANES * WIDTH;
                const bool is_k = WHOLE || (ALONG_K ? column + d : down) < left_k;
                float* const place = ALONG_K ? &to[column + d][down] : &to[down][column + d];
                if (WIDE)
                    copy_quad(place, one + d, is_k ? max(min(left_x - column - d, 4), 0) : 0);
                else
                    copy_float(place, one + d, is_k && (ALONG_K || column + d < left_x));
            }
        }
    }
};
