// C = A * B^T by warpgroups: one copies tiles, two multiply 64 x 128 each. A: M x K, B: N x K, C: M x N.
// Tiles of 128 x 128; M and N are multiples of 128, K of 128 bytes. With fewer blocks than tiles, each block
// takes every gridDim.x-th tile.
#include "wgmma.cuh"

#ifndef STAGES
#define STAGES 4
#endif
constexpr int TILE = 128, STAGE = 2 * TILE * ROW;

extern "C" __global__ void __launch_bounds__(384, 1)
specialised(const __grid_constant__ TensorMap A, const __grid_constant__ TensorMap B, SUM *C, int M, int N, int K) {
    extern __shared__ __align__(1024) unsigned char tiles[];
    __shared__ __align__(8) unsigned long long barriers[2 * STAGES];
    const unsigned first = shared_address(tiles), full = shared_address(barriers), empty = full + 8 * STAGES;
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; s++) {
            begin_barrier(full + 8 * s, 1);
            begin_barrier(empty + 8 * s, 2);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    const int columns = N / TILE, all = M / TILE * columns, steps = K / BK;
    unsigned stage = 0, parity = 0;
    if (threadIdx.x < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 0) {
            for (int tile = blockIdx.x; tile < all; tile += gridDim.x)
                for (int k = 0; k < steps; k++) {
                    const unsigned to = first + stage * STAGE;
                    wait(empty + 8 * stage, parity ^ 1);
                    expect(full + 8 * stage, STAGE);
                    copy(to, &A, k * BK, tile / columns * TILE, full + 8 * stage);
                    copy(to + STAGE / 2, &B, k * BK, tile % columns * TILE, full + 8 * stage);
                    if (++stage == STAGES) stage = 0, parity ^= 1;
                }
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        const int half = threadIdx.x / 128 - 1;
        SUM x[SUMS];
        for (int tile = blockIdx.x; tile < all; tile += gridDim.x) {
            for (int k = 0; k < steps; k++) {
                const unsigned a = first + stage * STAGE + half * 64 * ROW, b = first + stage * STAGE + STAGE / 2;
                wait(full + 8 * stage, parity);
                fence();
#pragma unroll
                for (int i = 0; i < 4; i++) multiply(x, descriptor(a + 32 * i), descriptor(b + 32 * i), k + i > 0);
                commit();
                wait_for_groups<0>();
                if (threadIdx.x % 128 == 0) arrive(empty + 8 * stage);
                if (++stage == STAGES) stage = 0, parity ^= 1;
            }
            store(x, C, tile / columns * TILE + half * 64, tile % columns * TILE, N);
        }
    }
}
