    // In the kernels of rungs 11 and 12: where a block and a thread begin, and how the copies of a phase start.
    extern __shared__ __align__(128) char shared[];
    Stage* const stages = reinterpret_cast<Stage*>(shared);

#include "warp_tile.cuh"
    const bool quads_b = in_quads(B, N), quads_c = in_quads(C, N);

    const bool whole = first_row + BM <= M && first_col + BN <= N && quads_b;
    const float* from_a = A + size_t(first_row + t / BK) * K + t % BK;
    const float* from_b = B + first_col + offset_in_b<4>(N);

    // start the copies of the next phase, if there is one; a group of copies either way
    const auto start = [&](Stage& to, int phase) {
        const int left = K - phase;
        if (whole && left >= BK) {
            copy_a<true>(to, from_a, BM, BK, K);
            copy_b<true, 4>(to, from_b, BK, BN, N);
        } else if (left > 0) {
            copy_a<false>(to, from_a, M - first_row, left, K);
            if (quads_b)
                copy_b<false, 4>(to, from_b, left, N - first_col, N);
            else
                copy_b<false, 1>(to, B + size_t(phase) * N + first_col + offset_in_b<1>(N), left, N - first_col, N);
        }
        from_a += BK;
        from_b += size_t(BK) * N;
        asm volatile("cp.async.commit_group;" ::: "memory");
    };
