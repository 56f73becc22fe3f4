// Store the sums of a warpgroup's 64 rows: C = alpha * sum * (root_a * root_b)^2 + beta * C. A thread has two neighbours
// of row `row` and of row `row` + 8 in each 8 columns.

struct Output {
    float* C;
    const float *root_a, *root_b;
    int M, N, ldc;
    float alpha, beta;
    bool in_pairs;     // pairs of neighbours begin on 8 bytes
    bool has_special;  // some roots are NaN: their rows and columns stay as they are

    // Equilibrated rows and columns may have roots whose product is beyond the range of float.
    __device__ float scaled(float sum, float root) const
    {
        root = fminf(root, 0x1p126f);
        return alpha * (sum * root * root);
    }

    template <int N_SUMS> __device__ void store(const float (&sum)[N_SUMS], int row, int column) const
    {
        const bool whole = row / 64 * 64 + 64 <= M && column / 8 * 8 + N_SUMS * 2 <= N;
        if (whole && in_pairs && !has_special)
            store_whole(sum, row, column);
        else
            store_guarded(sum, row, column);
    }

private:
    // All loads come before the stores.
    template <int N_SUMS> __device__ void store_whole(const float (&sum)[N_SUMS], int row, int column) const
    {
        float2 of_columns[N_SUMS / 4];
#pragma unroll
        for (int i = 0; i < N_SUMS / 4; ++i) of_columns[i] = *reinterpret_cast<const float2*>(root_b + column + 8 * i);
#pragma unroll
        for (int down = 0; down < 2; ++down) {
            const float of_row = root_a[row + 8 * down];
            float* const c = C + size_t(row + 8 * down) * ldc + column;
            float2 old[N_SUMS / 4] = {};
            if (beta != 0.0f)
#pragma unroll
                for (int i = 0; i < N_SUMS / 4; ++i) old[i] = *reinterpret_cast<const float2*>(c + 8 * i);
#pragma unroll
            for (int i = 0; i < N_SUMS / 4; ++i) {
                float2 both = make_float2(scaled(sum[4 * i + 2 * down], of_row * of_columns[i].x),
                                          scaled(sum[4 * i + 2 * down + 1], of_row * of_columns[i].y));
                if (beta != 0.0f) both.x += beta * old[i].x, both.y += beta * old[i].y;
                *reinterpret_cast<float2*>(c + 8 * i) = both;
            }
        }
    }
    template <int N_SUMS> __device__ void store_guarded(const float (&sum)[N_SUMS], int row, int column) const
    {
        float of_columns[N_SUMS / 2];
#pragma unroll
        for (int i = 0; i < N_SUMS / 2; ++i) of_columns[i] = root_b[min(column + i / 2 * 8 + i % 2, N - 1)];
#pragma unroll
        for (int down = 0; down < 2; ++down) {
            const int here = row + 8 * down;
            if (here >= M) return;
            const float of_row = root_a[here];
            float* const c = C + size_t(here) * ldc + column;
            const auto stores = [&](int i) {
                const float root = of_row * of_columns[i];
                return column + i / 2 * 8 + i % 2 < N && root == root;
            };
            float old[N_SUMS / 2] = {};
            if (beta != 0.0f)
#pragma unroll
                for (int i = 0; i < N_SUMS / 2; ++i)
                    if (stores(i)) old[i] = c[i / 2 * 8 + i % 2];
#pragma unroll
            for (int i = 0; i < N_SUMS / 2; ++i) {
                float one = scaled(sum[i / 2 * 4 + 2 * down + i % 2], of_row * of_columns[i]);
                if (beta != 0.0f) one += beta * old[i];
                if (stores(i)) c[i / 2 * 8 + i % 2] = one;
            }
        }
    }
};
