    // In the kernels of rungs 9 to 12: where the block's tile begins, and a thread within it.
#include "block_tile.cuh"

    const int t = threadIdx.x, warp = t / 32;
    const int lane_m = t >> 1 & 1 | t >> 2 & 6, lane_n = t & 1 | t >> 1 & 2;
    const int c_row = warp / (BN / WN) * WM + lane_m * 4;
    const int c_col = warp % (BN / WN) * WN + lane_n * 4;
