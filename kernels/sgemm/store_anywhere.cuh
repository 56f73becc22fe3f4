                // by_quads: a float4 is inside of its row or outside, never half
#pragma unroll
                for (int i = 0; i < TM; ++i) {
                    const int row = first_row + c_row + i * LANES_M;
                    if (row >= M) break;
#pragma unroll
                    for (int j = 0; j < TN; j += 4) {
                        const int col = first_col + c_col + j * LANES_N;
                        float* const four = C + size_t(row) * pitch_c + col;
                        if (by_quads) {
                            if (col >= N) continue;
                            store_quad(four, &sum[i][j], alpha, beta);
                        } else {
#pragma unroll
                            for (int step = 0; step < 4; ++step)
                                if (col + step < N)
                                    four[step] = alpha * sum[i][j + step] + (beta == 0.0f ? 0.0f : beta * four[step]);
                        }
                    }
                }
