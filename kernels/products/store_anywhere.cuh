                // Where rows of C do not begin on 16 bytes, quads of 8 rows go through `staging`, so that lanes store
                // neighbours; times alpha, so that the sums themselves need not lie in quads of registers, as those of
                // rung 16. All loads of old C of a row come before its stores.
                float (&own)[LANES_M][4 * LANES_N] = staging[warp];
                const int matrix = first_row < rows_in_tiles ? 0 : first_row / rows_in_tiles;
                float* const C_of_matrix = C + matrix * stride_c;
                first_row -= matrix * rows_in_tiles;
#pragma unroll
                for (int i = 0; i < TM; ++i) {
                    if (by_quads) {
                        const int row = first_row + c_row + i * LANES_M;
                        if (row >= rows) break;
                        float* const c = C_of_matrix + size_t(row) * pitch_c + first_col + c_col;
                        float4 old[TN / 4] = {};
                        if (beta != 0.0f)
#pragma unroll
                            for (int j = 0; j < TN; j += 4)
                                if (first_col + c_col + j * LANES_N < N) old[j / 4] = *reinterpret_cast<float4*>(c + j * LANES_N);
#pragma unroll
                        for (int j = 0; j < TN; j += 4)
                            if (first_col + c_col + j * LANES_N < N)
                                *reinterpret_cast<float4*>(c + j * LANES_N) =
                                    make_float4(alpha * sum[i][j] + beta * old[j / 4].x, alpha * sum[i][j + 1] + beta * old[j / 4].y,
                                                alpha * sum[i][j + 2] + beta * old[j / 4].z, alpha * sum[i][j + 3] + beta * old[j / 4].w);
                        continue;
                    }
                    // lanes have 2 rows of 16 columns, r and r + 1 of the 8
                    const int r = t % 32 / 16, first = first_row + c_row - lane_m + i * LANES_M + r;
                    const int col = first_col + c_col - lane_n * 4 + t % 16;
                    float* const c = C_of_matrix + size_t(first) * pitch_c + col;
                    float old[TN / 4][LANES_M / 2] = {};
                    if (beta != 0.0f)
#pragma unroll
                        for (int j = 0; j < TN; j += 4)
#pragma unroll
                            for (int down = 0; down < LANES_M; down += 2)
                                if (first + down < rows && col + j * LANES_N < N)
                                    old[j / 4][down / 2] = c[size_t(down) * pitch_c + j * LANES_N];
#pragma unroll
                    for (int j = 0; j < TN; j += 4) {
                        __syncwarp();  // the last quad is stored
                        *reinterpret_cast<float4*>(&own[lane_m][lane_n * 4]) =
                            make_float4(alpha * sum[i][j], alpha * sum[i][j + 1], alpha * sum[i][j + 2], alpha * sum[i][j + 3]);
                        __syncwarp();
#pragma unroll
                        for (int down = 0; down < LANES_M; down += 2)
                            if (first + down < rows && col + j * LANES_N < N)
                                c[size_t(down) * pitch_c + j * LANES_N] = own[down + r][t % 16] + beta * old[j / 4][down / 2];
                    }
                }
