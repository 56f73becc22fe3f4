    const int all_phases = (K + BK - 1) / BK;
    const int begin = int((long long)all_phases * split / splits);
    const int phases = int((long long)all_phases * (split + 1) / splits) - begin;
    const auto start = [&](int phase) {
        const int stage = phase % STAGES;
        copy(ring + stage * STAGE_BYTES, full + 8 * stage, A, B, first_row, first_col, (begin + phase) * BK);
    };
    if (t == 0) {
        init_ring(full, empty);
        for (int phase = 0; phase < STAGES - 1 && phase < phases; ++phase) start(phase);
    }
    __syncthreads();  // the barriers are there

    const unsigned own_a = c_row * A_ROW, own_b = A_BYTES + c_col * FLOAT + slice * 4 * B_ROW;
    unsigned from_a = ring + own_a, from_b = ring + own_b;
#include "multiply.cuh"

    int stage = 0;
    unsigned parity = 0;  // of the ring's turn
    if (phases > 0) {
        wait(full, 0);
#pragma unroll
        for (int i = 0; i < TM; ++i) read_a(i, from_a, slice);
        read_b(b[0], from_b);
    }
    for (int phase = 0; phase < phases; ++phase) {
#pragma unroll
        for (int step = 1; step < STEPS; ++step) {
            const int quad = slice + step * SLICES % (PIECE / 4), piece = step * SLICES / (PIECE / 4);
            compute(ring + stage * STAGE_BYTES + own_a + piece * A_PIECE, quad, from_b + SLICES * 4 * B_ROW);
        }
        if (t == 0 && phase + STAGES - 1 < phases) {
            if (phase > 0) wait(empty + 8 * ((phase - 1) % STAGES), (phase - 1) / STAGES & 1);
            start(phase + STAGES - 1);  // where the phase before this one was
        }
        const unsigned drained = empty + 8 * stage;
        if (++stage == STAGES) stage = 0, parity ^= 1;
        if (phase + 1 < phases) wait(full + 8 * stage, parity);
        const unsigned next = ring + stage * STAGE_BYTES;
        compute(next + own_a, slice, next + own_b);
        __syncwarp();  // all lanes have read
        if (t % 32 == 0) arrive(drained);
    }
