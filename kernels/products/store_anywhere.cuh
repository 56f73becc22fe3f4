                // Where rows of C do not begin on 16 bytes, two quads of 8 rows go through `stage`, so that lanes
                // store neighbours.
                float (&own)[LANES_M][STAGE_ROW] = staging[warp];
#pragma unroll
                for (int i = 0; i < TM; ++i) {
                    const int row = first_row + c_row + i * LANES_M;
                    if (by_quads) {
                        if (row >= M) break;
#pragma unroll
                        for (int j = 0; j < TN; j += 4) {
                            const int col = first_col + c_col + j * LANES_N;
                            if (col < N) store_quad(C + size_t(row) * pitch_c + col, &sum[i][j], alpha, beta);
                        }
                        continue;
                    }
#pragma unroll
                    for (int j = 0; j < TN; j += 8) {
                        __syncwarp();  // the last quads are stored
#pragma unroll
                        for (int p = 0; p < 8; p += 4)
                            *reinterpret_cast<float4*>(&own[lane_m][lane_n * 4 + p * LANES_N]) =
                                make_float4(sum[i][j + p], sum[i][j + p + 1], sum[i][j + p + 2], sum[i][j + p + 3]);
                        __syncwarp();
                        const int col = first_col + c_col - lane_n * 4 + j * LANES_N + t % 32;
                        const int first = first_row + c_row - lane_m + i * LANES_M;
#pragma unroll
                        for (int r = 0; r < LANES_M; ++r) {
                            if (first + r >= M || col >= N) continue;
                            float* const c = C + size_t(first + r) * pitch_c + col;
                            *c = beta == 0.0f ? alpha * own[r][t % 32] : alpha * own[r][t % 32] + beta * *c;
                        }
                    }
                }
