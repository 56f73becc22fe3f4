    // Rungs 5 to 12: where the block's tile begins. gridDim.y ends at 65,535: blockIdx.z carries on where it does.
    const int block_row = blockIdx.z * gridDim.y + blockIdx.y;
    const int first_row = block_row * BM;
    const int first_col = blockIdx.x * BN;
    if (first_row >= M) return;  // the whole block: no barrier is left waiting
