        // In the kernels of rungs 8 and 9: the tiles of a phase go to shared memory.
        // N and K are multiples of 4: a float4 is inside of a matrix or outside, never half
#pragma unroll
        for (int pass = 0; pass < BM; pass += A_ROWS_PER_PASS) {
            const int row = first_row + a_row + pass, col = phase + a_col;
            const float4 a = row < M && col < K
                ? *reinterpret_cast<const float4*>(A + size_t(row) * K + col) : zero;
            const int column = swizzled(a_col, a_row + pass);
            tile_a[a_col + 0][column] = a.x;
            tile_a[a_col + 1][column] = a.y;
            tile_a[a_col + 2][column] = a.z;
            tile_a[a_col + 3][column] = a.w;
        }
#pragma unroll
        for (int pass = 0; pass < BK; pass += B_ROWS_PER_PASS) {
            const int row = phase + b_row + pass, col = first_col + b_col;
            *reinterpret_cast<float4*>(&tile_b[b_row + pass][b_col]) = row < K && col < N
                ? *reinterpret_cast<const float4*>(B + size_t(row) * N + col) : zero;
        }
