// One operand in the pre-pass. Its vectors are the rows of A or the columns of B, each of K elements; they run along the
// stored rows (ALONG) or across them. Both parts are stored as the operand is, in rows of `parts_pitch` halves.

constexpr int THREADS = 512, WARPS = THREADS / 32;
constexpr int WARP_COLUMNS = 128;  // a quad for each lane
constexpr int ROW = ROW_WARPS * ROW_QUADS * WARP_COLUMNS;  // elements of a row that its warps hold in registers
constexpr int AT_ONCE = UNIT_ROWS < 8 ? UNIT_ROWS : 8;     // outstanding loads of a lane

template <bool ALONG, bool QUADS, bool IS_A> struct Operand {
    static constexpr bool along = ALONG;
    const float* from;
    int vectors, K, pitch, parts_pitch;
    unsigned short* parts;
    size_t low;             // elements from a high part to its low part
    float* roots;           // of each vector, as stored_root returns them
    unsigned* maxima;       // across: magnitudes of each vector, zero at first
    unsigned* maxima_after; // across: the same after equilibration
    unsigned* along_k;      // largest scaled magnitude of each k, zero at first
    const unsigned *in_a, *in_b;  // along_k of both operands

    __device__ int rows() const { return ALONG ? vectors : K; }
    __device__ int columns() const { return ALONG ? K : vectors; }
    __device__ const float* at(int row, int column) const { return from + size_t(row) * pitch + column; }

    // Items of 16 warps, each with UNIT_ROWS rows of the same 128 columns.
    __device__ int groups() const { return (columns() + WARP_COLUMNS - 1) / WARP_COLUMNS; }
    __device__ int tile_items() const { return groups() * ((rows() + WARPS * UNIT_ROWS - 1) / (WARPS * UNIT_ROWS)); }
    __device__ int row_items() const { return (vectors + WARPS / ROW_WARPS - 1) / (WARPS / ROW_WARPS); }

    __device__ float root(int vector) const { return ALONG ? roots[vector] : stored_root(maxima[vector]); }

    // What equilibration multiplies the elements of a k by. Not inlined, for the sake of the usual case.
    __device__ __noinline__ float factor_along_k(int k) const
    {
        const int shift = shift_along_k(in_a[k], in_b[k]);
        return power_of_two(IS_A ? shift : -shift);
    }

    // Call with the first row of a warp's unit and its lane's first column, unless that is beyond the last.
    template <typename Work> __device__ void for_unit(int item, Work work) const
    {
        const int column = item % groups() * WARP_COLUMNS + threadIdx.x % 32 * 4;
        const int row = (item / groups() * WARPS + threadIdx.x / 32) * UNIT_ROWS;
        if (row < rows()) work(row, column, columns() - column);
    }
    __device__ void load_rows(Quad (&x)[AT_ONCE], int row, int column, int left) const
    {
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) x[i] = load<QUADS>(at(row + i, column), row + i < rows() ? left : 0);
    }

    // Along: scale and split rows, each by ROW_WARPS warps that hold it in registers between maximum and split.
    template <bool EQUILIBRATED> __device__ void split_rows(int item, Control* control) const
    {
        __shared__ unsigned largest_of_warps[WARPS];
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, first = warp / ROW_WARPS * ROW_WARPS;
        const int row = item * (WARPS / ROW_WARPS) + warp / ROW_WARPS;
        const bool inside = row < vectors;
        const float before = EQUILIBRATED && inside ? roots[row] : 1.0f, inverse_before = inverse_of(before);
        Quad x[ROW_QUADS];
        const auto load_part = [&](int begin) {
#pragma unroll
            for (int i = 0; i < ROW_QUADS; ++i) {
                const int k = begin + ((warp - first) * ROW_QUADS + i) * WARP_COLUMNS + lane * 4;
                x[i] = load<QUADS>(at(row, k), inside ? K - k : 0);
                if (EQUILIBRATED)
#pragma unroll
                    for (int q = 0; q < 4; ++q) {
                        const float factor = inside && k + q < K ? factor_along_k(k + q) : 0.0f;
                        x[i].x[q] = x[i].x[q] * inverse_before * inverse_before * factor;
                    }
            }
        };
        unsigned largest = 0;
        for (int begin = 0; begin < K; begin += ROW) {
            load_part(begin);
#pragma unroll
            for (int i = 0; i < ROW_QUADS; ++i)
#pragma unroll
                for (int q = 0; q < 4; ++q) largest = max(largest, magnitude(x[i].x[q]));
        }
        largest = __reduce_max_sync(0xffffffff, largest);
        if (ROW_WARPS > 1) {
            if (lane == 0) largest_of_warps[warp] = largest;
            __syncthreads();
#pragma unroll
            for (int i = 0; i < ROW_WARPS; ++i) largest = max(largest, largest_of_warps[first + i]);
        }
        if (!inside) return;
        if (warp == first && lane == 0) {
            roots[row] = before * stored_root(largest);
            if (largest >= INFINITE) control->special = 1;
        }
        const float inverse = power_of_two(-root_exponent(largest));
        for (int begin = 0; begin < K; begin += ROW) {
            if (K > ROW) load_part(begin);
#pragma unroll
            for (int i = 0; i < ROW_QUADS; ++i) {
                const int k = begin + ((warp - first) * ROW_QUADS + i) * WARP_COLUMNS + lane * 4;
#pragma unroll
                for (int q = 0; q < 4; ++q) x[i].x[q] = x[i].x[q] * inverse * inverse;
                if (k < K) store_parts(x[i], parts + size_t(row) * parts_pitch + k, low);
            }
        }
    }

    template <bool EQUILIBRATED> __device__ void first_pass(int item, Control* control) const
    {
        if constexpr (ALONG)
            split_rows<EQUILIBRATED>(item, control);
        else
            find_maxima<EQUILIBRATED>(item);
    }

    // Across: the largest magnitude of each column, in the block first.
    template <bool EQUILIBRATED> __device__ void find_maxima(int item) const
    {
        __shared__ unsigned of_block[WARP_COLUMNS];
        if (threadIdx.x < WARP_COLUMNS) of_block[threadIdx.x] = 0;
        __syncthreads();
        for_unit(item, [&](int row, int column, int left) {
            float inverse[4];
            unsigned largest[4] = {};
#pragma unroll
            for (int q = 0; q < 4; ++q) inverse[q] = EQUILIBRATED && q < left ? inverse_of(root(column + q)) : 1.0f;
            for (int r = row; r < row + UNIT_ROWS; r += AT_ONCE) {
                Quad x[AT_ONCE];
                load_rows(x, r, column, left);
#pragma unroll
                for (int i = 0; i < AT_ONCE; ++i) {
                    const float factor = EQUILIBRATED && r + i < K ? factor_along_k(r + i) : 1.0f;
#pragma unroll
                    for (int q = 0; q < 4; ++q)
                        largest[q] = max(largest[q], magnitude(EQUILIBRATED ? x[i].x[q] * inverse[q] * inverse[q] * factor : x[i].x[q]));
                }
            }
#pragma unroll
            for (int q = 0; q < 4; ++q) atomicMax(of_block + column % WARP_COLUMNS + q, largest[q]);
        });
        __syncthreads();
        const int column = item % groups() * WARP_COLUMNS + threadIdx.x;
        if (threadIdx.x < WARP_COLUMNS && column < vectors)
            atomicMax((EQUILIBRATED ? maxima_after : maxima) + column, of_block[threadIdx.x]);
    }

    // Across: scale by columns and split.
    template <bool EQUILIBRATED> __device__ void split_columns(int item, Control* control) const
    {
        for_unit(item, [&](int row, int column, int left) {
            float inverse_before[4], inverse[4];
#pragma unroll
            for (int q = 0; q < 4; ++q) {
                inverse_before[q] = inverse[q] = 1.0f;
                if (q >= left) continue;
                const float before = EQUILIBRATED ? root(column + q) : 1.0f;
                inverse_before[q] = inverse_of(before);
                const unsigned largest = (EQUILIBRATED ? maxima_after : maxima)[column + q];
                inverse[q] = power_of_two(-root_exponent(largest));
                if (row > 0) continue;
                roots[column + q] = before * stored_root(largest);
                if (largest >= INFINITE) control->special = 1;
            }
            for (int r = row; r < row + UNIT_ROWS; r += AT_ONCE) {
                Quad x[AT_ONCE];
                load_rows(x, r, column, left);
#pragma unroll
                for (int i = 0; i < AT_ONCE; ++i) {
                    if (r + i >= K || left <= 0) continue;
                    const float factor = EQUILIBRATED ? factor_along_k(r + i) : 1.0f;
#pragma unroll
                    for (int q = 0; q < 4; ++q) {
                        float& one = x[i].x[q];
                        if (EQUILIBRATED) one = one * inverse_before[q] * inverse_before[q] * factor;
                        one = one * inverse[q] * inverse[q];
                    }
                    store_parts(x[i], parts + size_t(r + i) * parts_pitch + column, low);
                }
            }
        });
    }

    // The largest scaled magnitude of each k, without vectors that have Inf or NaN.
    __device__ void find_maxima_along_k(int item) const
    {
        __shared__ unsigned of_block[WARP_COLUMNS];
        if (ALONG && threadIdx.x < WARP_COLUMNS) of_block[threadIdx.x] = 0;
        if (ALONG) __syncthreads();
        for_unit(item, [&](int row, int column, int left) {
            const auto scaled = [](float x, float root) {
                const float inverse = inverse_of(root);
                return root == root ? magnitude(x * inverse * inverse) : 0;
            };
            float of_columns[4];
#pragma unroll
            for (int q = 0; q < 4; ++q) of_columns[q] = !ALONG && q < left ? root(column + q) : 1.0f;
            unsigned largest[4] = {};
            for (int r = row; r < row + UNIT_ROWS; r += AT_ONCE) {
                Quad x[AT_ONCE];
                load_rows(x, r, column, left);
                float of_rows[AT_ONCE];
#pragma unroll
                for (int i = 0; i < AT_ONCE; ++i) of_rows[i] = ALONG && r + i < rows() ? root(r + i) : 1.0f;
#pragma unroll
                for (int i = 0; i < AT_ONCE; ++i) {
                    unsigned of_row = 0;
#pragma unroll
                    for (int q = 0; q < 4; ++q) {
                        const unsigned found = scaled(x[i].x[q], ALONG ? of_rows[i] : of_columns[q]);
                        largest[q] = max(largest[q], found), of_row = max(of_row, found);
                    }
                    if (!ALONG) {
                        of_row = __reduce_max_sync(0xffffffff, of_row);
                        if (threadIdx.x % 32 == 0 && r + i < rows()) atomicMax(along_k + r + i, of_row);
                    }
                }
            }
#pragma unroll
            for (int q = 0; q < 4; ++q)
                if (ALONG) atomicMax(of_block + column % WARP_COLUMNS + q, largest[q]);
        });
        if (!ALONG) return;
        __syncthreads();
        const int k = item % groups() * WARP_COLUMNS + threadIdx.x;
        if (threadIdx.x < WARP_COLUMNS && k < K) atomicMax(along_k + k, of_block[threadIdx.x]);
    }
};
