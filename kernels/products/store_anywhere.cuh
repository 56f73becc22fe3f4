                // Where rows of C do not begin on 16 bytes, two quads of 8 rows go through `staging`, so that lanes store
                // neighbours. All loads of old C of a row come before its stores.
                float (&own)[LANES_M][STAGE_ROW] = staging[warp];
#pragma unroll
                for (int i = 0; i < TM; ++i) {
                    if (by_quads) {
                        const int row = first_row + c_row + i * LANES_M;
                        if (row >= M) break;
                        float* const c = C + size_t(row) * pitch_c + first_col + c_col;
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
                    const int first = first_row + c_row - lane_m + i * LANES_M, col = first_col + c_col - lane_n * 4 + t % 32;
                    float* const c = C + size_t(first) * pitch_c + col;
                    float old[TN / 8][LANES_M] = {};
                    if (beta != 0.0f)
#pragma unroll
                        for (int j = 0; j < TN; j += 8)
#pragma unroll
                            for (int r = 0; r < LANES_M; ++r)
                                if (first + r < M && col + j * LANES_N < N) old[j / 8][r] = c[size_t(r) * pitch_c + j * LANES_N];
#pragma unroll
                    for (int j = 0; j < TN; j += 8) {
                        __syncwarp();  // the last quads are stored
#pragma unroll
                        for (int p = 0; p < 8; p += 4)
                            *reinterpret_cast<float4*>(&own[lane_m][lane_n * 4 + p * LANES_N]) =
                                make_float4(sum[i][j + p], sum[i][j + p + 1], sum[i][j + p + 2], sum[i][j + p + 3]);
                        __syncwarp();
#pragma unroll
                        for (int r = 0; r < LANES_M; ++r)
                            if (first + r < M && col + j * LANES_N < N)
                                c[size_t(r) * pitch_c + j * LANES_N] = alpha * own[r][t % 32] + beta * old[j / 8][r];
                    }
                }
