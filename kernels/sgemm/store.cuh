    // In the kernels of rungs 13 to 18: C = alpha * sum + beta * C, for the tile at (first_row, first_col).
#pragma unroll
    for (int i = 0; i < TM; ++i) {
        const int row = first_row + c_row + i * LANES_M;
        if (row >= M) break;
#pragma unroll
        for (int j = 0; j < TN; j += 4) {
            const int col = first_col + c_col + j * LANES_N;
            if (col < N) {  // N is a multiple of 4: a float4 is inside or outside, never half
                store_quad(C + size_t(row) * N + col, &sum[i][j], alpha, beta);
            }
        }
    }
