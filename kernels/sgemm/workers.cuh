    __shared__ volatile int piece[3];  // row, column and k at which it begins: the sums need the registers
#include "ring.cuh"
    const int t = threadIdx.x, warp = t / 32;  // rungs 16, 18 and 19: the start of a block
#include "place.cuh"
    if (t == 0) init_ring(full, empty);
    __syncthreads();  // the barriers are there
