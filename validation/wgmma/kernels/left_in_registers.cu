// C = A * B^T of FP16, a tile of 64 x 128 a block, A in registers: ldmatrix takes it from a tile that the block's
// threads stored, B is stored too, both without copies past registers. A: M x K, B: N x K, C: M x N.
#define TYPE_F16
#include "wgmma.cuh"

extern "C" __global__ void __launch_bounds__(128)
left_in_registers(const uint4 *A, const uint4 *B, float *C, int N, int K) {
    __shared__ __align__(1024) unsigned char a[64 * ROW], b[128 * ROW];
    const int row = blockIdx.y * 64, column = blockIdx.x * 128, pieces = K / 8;
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float x[SUMS];
    for (int k = 0; k < K / BK; k++) {
        // a piece of 16 bytes changes places within its row, by the row
        for (int i = threadIdx.x; i < 64 * 8; i += 128)
            *(uint4 *)(a + i / 8 * ROW + (i % 8 ^ i / 8 % 8) * 16) = A[(size_t)(row + i / 8) * pieces + k * 8 + i % 8];
        for (int i = threadIdx.x; i < 128 * 8; i += 128)
            *(uint4 *)(b + i / 8 * ROW + (i % 8 ^ i / 8 % 8) * 16) = B[(size_t)(column + i / 8) * pieces + k * 8 + i % 8];
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        unsigned of_a[4][4];
        for (int i = 0; i < 4; i++) {
            const unsigned r = warp * 16 + lane % 16, piece = 2 * i + lane / 16;
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                         : "=r"(of_a[i][0]), "=r"(of_a[i][1]), "=r"(of_a[i][2]), "=r"(of_a[i][3])
                         : "r"(shared_address(a) + r * ROW + (piece ^ r % 8) * 16));
        }
        fence();
#pragma unroll
        for (int i = 0; i < 4; i++) multiply(x, of_a[i], descriptor(shared_address(b) + 32 * i), k + i > 0);
        commit();
        wait_for_groups<0>();
        __syncthreads();
    }
    store(x, C, row, column, N);
}
