        // In the kernels of rungs 13 to 16, 18 and 19: the last 4 steps of a phase, when the next has arrived.
        const unsigned drained = empty + 8 * stage;
        if (++stage == STAGES) stage = 0, parity ^= 1;
        if (phase + 1 < phases) wait(full + 8 * stage, parity);
        const unsigned next = ring + stage * STAGE_BYTES;
        compute(next + c_row * A_ROW, 0, next + A_BYTES + c_col * FLOAT);
        __syncwarp();  // all lanes have read
        if (t % 32 == 0) arrive(drained);
