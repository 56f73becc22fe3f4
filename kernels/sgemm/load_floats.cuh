#pragma unroll  // rungs 5 and 6: the tiles of a phase go to shared memory, float by float
        for (int pass = 0; pass < BM; pass += A_ROWS_PER_PASS) {
            const int row = first_row + a_row + pass, col = phase + a_col;
            tile_a[a_row + pass][a_col] = row < M && col < K ? A[size_t(row) * K + col] : 0.0f;
        }
#pragma unroll
        for (int pass = 0; pass < BK; pass += B_ROWS_PER_PASS) {
            const int row = phase + b_row + pass, col = first_col + b_col;
            tile_b[b_row + pass][b_col] = row < K && col < N ? B[size_t(row) * N + col] : 0.0f;
        }
