    // In the kernels of rungs 11 and 12: C = alpha * sum + beta * C, by floats where rows do not begin on 16 bytes.
#pragma unroll
    for (int i = 0; i < TM; ++i) {
        const int row = first_row + c_row + i / 4 * WM / 2 + i % 4;
        if (row >= M) break;
#pragma unroll
        for (int j = 0; j < TN; j += 4) {
            const int col = first_col + c_col + j * WN / TN;
            float* const c = C + size_t(row) * N + col;
            if (quads_c) {
                if (col < N) {
                    float4* const quad = reinterpret_cast<float4*>(c);
                    const float4 old = beta == 0.0f ? make_float4(0.0f, 0.0f, 0.0f, 0.0f) : *quad;
                    *quad = make_float4(alpha * sum[i][j] + beta * old.x, alpha * sum[i][j + 1] + beta * old.y,
                                        alpha * sum[i][j + 2] + beta * old.z, alpha * sum[i][j + 3] + beta * old.w);
                }
            } else {
#pragma unroll
                for (int q = 0; q < 4; ++q)
                    if (col + q < N)
                        c[q] = beta == 0.0f ? alpha * sum[i][j + q] : alpha * sum[i][j + q] + beta * c[q];
            }
        }
    }
