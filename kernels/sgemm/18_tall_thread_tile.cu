// Rung 18, tall thread tile: ten rows of C per thread, which reads fewer floats for each multiply-add.
//
//   C = alpha * A * B + beta * C     A: M x K, B: K x N, C: M x N, float32, row-major
//
// Idea      Every float that is read from shared memory takes an issue slot when it is written to its
//           register. 8 + 16 of them for 128 multiply-adds are one for 5.3; 10 + 16 for 160 are one
//           for 6.2, and 160 sums are what 255 registers have room for. Rows of a thread's tile are
//           walked to and fro, and turned at a column whose sum and the new row's value of A lie in
//           different banks of the register file: even columns where k is even, odd where it is odd.
// Mapping   as rung 16, but for the rows: block tile 160 x 128 in phases of depth 32, 10 x 16 elements
//           per thread, warp tiles of 80 x 64
// Traffic   at STAGES = 3, BAND = 8, WORKERS = 264, multiples of the tiles, sums for others left out:
//           per element of C: 9K/640 global loads, that end in shared memory; 1 global store in 1/4;
//                             13K/80 shared loads in 13K/320
//           intensity:        35.6 FLOP per byte loaded
// Warp      C: 16 sectors per request (8 rows of 64 bytes)
//           shared: no bank conflict; A 2 wavefronts per read, B 2
// Limit     Issue slots still: the floats read, and 6% of instructions that multiply nothing. Tiles are
//           less often full: 4096 rows are 25.6 of them.
// Source    The model of an SM (docs/timing.md), which had it 3% ahead before it was run.

#ifndef STAGES
#define STAGES 3
#endif
#ifndef BAND
#define BAND 8
#endif
#ifndef WORKERS
#define WORKERS 264
#endif

constexpr int BM = 160, BN = 128, BK = 32;
constexpr int WM = 80, WN = 64;  // of a warp
constexpr int TM = 10, TN = 16;  // of a thread
constexpr bool FENCED = true, TURNED = true;  // rungs 14, 18
constexpr int COPIERS = 0; constexpr bool ROWS_ANYWHERE = false;  // rung 19

#include "bulk.cuh"

// What workers leave for each other: a flag each, then the sums each, in the order of threads.
constexpr int FLAGS_BYTES = (WORKERS * 4 + 127) / 128 * 128;

// two blocks per SM, and therefore at most 255 registers
extern "C" __global__ void __launch_bounds__(THREADS, 2)
sgemm_tall_thread_tile(const __grid_constant__ TensorMap A, const __grid_constant__ TensorMap B, float* __restrict__ C,
               int M, int N, int K, float alpha, float beta, char* __restrict__ workspace)
{
#include "workers.cuh"
    const int block = blockIdx.x, pitch_c = N; const bool by_quads = N % 4 == 0;  // rows of C are without gaps
#include "stream_k.cuh"
}
