    // In the kernels of rungs 13 to 15: the block computes the tile of C at (first_row, first_col).
    const int t = threadIdx.x, warp = t / 32;
#include "place.cuh"

    const int phases = (K + BK - 1) / BK;
    const auto start = [&](int phase) {
        const int stage = phase % STAGES;
        copy(ring + stage * STAGE_BYTES, full + 8 * stage, A, B, first_row, first_col, phase * BK);
    };
    if (t == 0) {
        init_ring(full, empty);
        for (int phase = 0; phase < STAGES - 1 && phase < phases; ++phase) start(phase);
    }
    __syncthreads();  // the barriers are there

    unsigned from_a = ring + c_row * A_ROW, from_b = ring + A_BYTES + c_col * FLOAT;
#include "multiply.cuh"

    int stage = 0;
    unsigned parity = 0;  // of the ring's turn
    wait(full, 0);
#pragma unroll
    for (int i = 0; i < TM; ++i) read_a(i, from_a, 0);
    read_b(b[0], from_b);
    for (int phase = 0; phase < phases; ++phase) {
#pragma unroll 1
        for (int quad = 1; quad < BK / 4; ++quad) compute(from_a, quad, from_b + 4 * B_ROW);
        if (t == 0 && phase + STAGES - 1 < phases) {
            if (phase > 0) wait(empty + 8 * ((phase - 1) % STAGES), (phase - 1) / STAGES & 1);
            start(phase + STAGES - 1);  // where the phase before this one was
        }
#include "end_phase.cuh"
    }

#include "store.cuh"
