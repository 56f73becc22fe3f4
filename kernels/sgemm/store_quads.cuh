    // In the kernels of rungs 9 and 10: C = alpha * sum + beta * C.
#pragma unroll
    for (int i = 0; i < TM; ++i) {
        const int row = first_row + c_row + i / 4 * WM / 2 + i % 4;
        if (row >= M) break;
#pragma unroll
        for (int j = 0; j < TN; j += 4) {
            const int col = first_col + c_col + j / 4 * WN / 2;
            if (col < N) {
                float4* const quad = reinterpret_cast<float4*>(C + size_t(row) * N + col);
                const float4 old = beta == 0.0f ? zero : *quad;
                *quad = make_float4(alpha * sum[i][j] + beta * old.x, alpha * sum[i][j + 1] + beta * old.y,
                                    alpha * sum[i][j + 2] + beta * old.z, alpha * sum[i][j + 3] + beta * old.w);
            }
        }
    }
