// C = A * B^T, a tile of 128 x 128 a block: two warpgroups multiply, their first thread has tiles copied a stage
// ahead, and one group of products stays in flight. A: M x K, B: N x K, C: M x N.
#include "wgmma.cuh"

#ifndef STAGES
#define STAGES 3
#endif
constexpr int TILE = 128, STAGE = 2 * TILE * ROW;

extern "C" __global__ void __launch_bounds__(256, 1)
plain(const __grid_constant__ TensorMap A, const __grid_constant__ TensorMap B, SUM *C, int M, int N, int K) {
    extern __shared__ __align__(1024) unsigned char tiles[];
    __shared__ __align__(8) unsigned long long barriers[STAGES];
    const unsigned first = shared_address(tiles), full = shared_address(barriers);
    const int row = blockIdx.y * TILE, column = blockIdx.x * TILE, steps = K / BK;
    auto fetch = [&](int k) {
        const unsigned to = first + k % STAGES * STAGE, barrier = full + 8 * (k % STAGES);
        expect(barrier, STAGE);
        copy(to, &A, k * BK, row, barrier);
        copy(to + STAGE / 2, &B, k * BK, column, barrier);
    };
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; s++) begin_barrier(full + 8 * s, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x == 0)
        for (int k = 0; k < STAGES - 1 && k < steps; k++) fetch(k);
    SUM x[SUMS];
    for (int k = 0; k < steps; k++) {
        const unsigned stage = first + k % STAGES * STAGE, a = stage + threadIdx.x / 128 * 64 * ROW, b = stage + STAGE / 2;
        wait(full + 8 * (k % STAGES), k / STAGES % 2);
        fence();
#pragma unroll
        for (int i = 0; i < 4; i++) multiply(x, descriptor(a + 32 * i), descriptor(b + 32 * i), k + i > 0);
        commit();
        wait_for_groups<1>();
        __syncthreads();  // the stage before this one is read
        if (threadIdx.x == 0 && k + STAGES - 1 < steps) fetch(k + STAGES - 1);
    }
    wait_for_groups<0>();
    store(x, C, row + threadIdx.x / 128 * 64, column, N);
}
