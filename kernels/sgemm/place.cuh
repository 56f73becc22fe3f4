    // In the kernels of rungs 13 to 19: where a thread begins in the block's tile, lanes as in rung 9.
    const int lane_m = t >> 1 & 1 | t >> 2 & 6, lane_n = t & 1 | t >> 1 & 2;
    const int c_row = warp / (BN / WN) * WM + lane_m;
    const int c_col = warp % (BN / WN) * WN + lane_n * 4;
