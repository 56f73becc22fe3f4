    // In the kernels of rungs 16, 18 and 19: the block computes its share, but for the first COPIERS blocks.
    // The tiles that fill no whole turn come first: their phases, one tile after the other, are dealt
    // out evenly, to workers as far as there are such tiles. Then a block per tile.
    const int down = (M + BM - 1) / BM, across = (N + BN - 1) / BN, phases_of_tile = (K + BK - 1) / BK;
    const int shared_tiles = down * across % WORKERS, workers = shared_tiles ? WORKERS : 0;
    const auto first_phase = [&](int worker) { return int((long long)shared_tiles * phases_of_tile * worker / WORKERS); };
    const int self = block - COPIERS;
    const bool is_worker = self < workers;
    const int low = is_worker ? first_phase(self) : (self - workers) * phases_of_tile;
    int end = is_worker ? first_phase(self + 1) : low + phases_of_tile;

    unsigned used = 0;  // stages filled before
    // from the last tile to the first: others wait for the sums of its beginning
    while (low < end) {
        const int tile = (end - 1) / phases_of_tile, tile_begin = tile * phases_of_tile;
        const int begin = max(low, tile_begin), phases = end - begin;
        const int place = is_worker ? tile : tile + shared_tiles;
        const int band = place / (BAND * across), in_band = place % (BAND * across);
        const int height = min(BAND, down - band * BAND);
        int first_row = (band * BAND + in_band % height) * BM, first_col = in_band / height * BN;

        if (t == 0) piece[0] = first_row, piece[1] = first_col, piece[2] = (begin - tile_begin) * BK;
        const auto start = [&](int phase) {
            const unsigned turn = (used + phase) / STAGES, stage = (used + phase) % STAGES;
            if (turn > 0) wait(empty + 8 * stage, turn - 1 & 1);
            copy(ring + stage * STAGE_BYTES, full + 8 * stage, A, B, piece[0], piece[1], piece[2] + phase * BK);
        };
        if (t == 0)
            for (int phase = 0; phase < STAGES - 1 && phase < phases; ++phase) start(phase);

        unsigned stage = used % STAGES, parity = used / STAGES & 1;
        unsigned from_a = ring + stage * STAGE_BYTES + c_row * A_ROW;
        unsigned from_b = ring + stage * STAGE_BYTES + A_BYTES + c_col * FLOAT;
#include "multiply.cuh"

        wait(full + 8 * stage, parity);
#pragma unroll
        for (int i = 0; i < TM; ++i) read_a(i, from_a, 0);
        read_b(b[0], from_b);
        for (int phase = 0; phase < phases; ++phase) {
#pragma unroll 1
            for (int quad = 1; quad < BK / 4; ++quad) compute(from_a, quad, from_b + 4 * B_ROW);
            if (t == 0 && phase + STAGES - 1 < phases) start(phase + STAGES - 1);  // where the last phase was
#include "end_phase.cuh"
        }

        used += phases;

        // Float by float: quads of sums would have to begin in an even register, as those of B do, and
        // every multiply-add would read two registers of one bank.
        float* const sums = reinterpret_cast<float*>(workspace + FLAGS_BYTES) + t;
        int* const flags = reinterpret_cast<int*>(workspace);
        if (end < tile_begin + phases_of_tile) {  // a later worker ends this tile, and adds these sums
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int j = 0; j < TN; ++j) sums[((self * TM + i) * TN + j) * THREADS] = sum[i][j];
            __threadfence();
            __syncthreads();
            if (t == 0) asm volatile("st.release.gpu.global.s32 [%0], 1;" :: "l"(flags + self) : "memory");
        } else {
            // Earlier workers have the rest of it. Blocks start in the order of their numbers: whoever
            // waits, waits for blocks that run or are done.
            for (int peer = self - 1, from = begin; from > tile_begin; --peer) {
                from = first_phase(peer);
                if (from == first_phase(peer + 1)) continue;  // had nothing to do
                if (t == 0) {
                    int done;
                    do asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(done) : "l"(flags + peer) : "memory");
                    while (!done);
                    flags[peer] = 0;  // for the next launch
                }
                __syncthreads();
#pragma unroll
                for (int i = 0; i < TM; ++i)
#pragma unroll
                    for (int j = 0; j < TN; ++j) sum[i][j] += sums[((peer * TM + i) * TN + j) * THREADS];
            }
            first_row = piece[0], first_col = piece[1];
            if constexpr (ROWS_ANYWHERE) {
#include "store_anywhere.cuh"
            } else {
#include "store.cuh"
            }
        }
        end = begin;
    }
