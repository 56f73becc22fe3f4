    // In the kernels of rungs 13 to 19: the multiply-adds of a thread. It reads at `from_a` and `from_b`.
    float sum[TM][TN] = {};
    float4 a[TM];       // 4 values of k
    float b[2][TN];     // this k and the next
    const auto read_a = [&](int i, unsigned row, int quad) {
        a[i] = read(row + i * LANES_M * A_ROW + (quad ^ lane_m) * QUAD);
    };
    const auto read_b = [&](float (&to)[TN], unsigned row) {
#pragma unroll
        for (int j = 0; j < TN; j += 4)
            *reinterpret_cast<float4*>(&to[j]) = read(row + j * LANES_N * FLOAT);
    };
    // 4 steps in k; then `next_a` and `next_b` are where to read on, at piece `quad` of A's rows
    const auto compute = [&](unsigned next_a, int quad, unsigned next_b) {
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            read_b(b[(k + 1) % 2], k < 3 ? from_b + (k + 1) * B_ROW : next_b);
#pragma unroll
            for (int i = 0; i < TM; ++i) {
                const float value = k == 0 ? a[i].x : k == 1 ? a[i].y : k == 2 ? a[i].z : a[i].w;
#pragma unroll
                for (int step = 0; step < TN; ++step) {
                    const int j = column(i, k, step);
                    sum[i][j] += value * b[k % 2][j];
                }
                if (k == 3) read_a(i, next_a, quad);
            }
            if (FENCED) asm volatile("pmevent 0;");  // a fence to the compiler's scheduler, nothing to the kernel
        }
        from_a = next_a;
        from_b = next_b;
    };
