// Rung 16, stream-K: the tiles that fill no whole turn are dealt out by phases, not by tiles.
//
//   C = alpha * A * B + beta * C     A: M x K, B: K x N, C: M x N, float32, row-major
//
// Idea      As many blocks as run at a time, the workers, share the tiles that would make up the last,
//           partial turn: each gets the same number of phases, and may begin or end within a tile. Who
//           ends a tile adds the sums that others left in memory, and stores it. Blocks with a tile of
//           their own follow.
// Mapping   as rung 13: block tile 128 x 128 in phases of depth 32, 8 x 16 elements per thread; bands
//           are BAND tiles high.
// Traffic   at STAGES = 3, BAND = 8, WORKERS = 264, multiples of 128, sums for others left out:
//           per element of C: K/64 global loads, that end in shared memory; 1 global store in 1/4;
//                             3K/16 shared loads in 3K/64
//           intensity:        32 FLOP per byte loaded
// Warp      C: 16 sectors per request (8 rows of 64 bytes)
//           shared: no bank conflict; A 2 wavefronts per read, B 2
// Limit     As rung 14. Sums left for others cost 64 KiB written and read per worker, which small
//           products feel. WORKERS is what fits on 132 SMs; others only lose by an uneven end.
// Source    "Stream-K: Work-centric Parallel Decomposition for Dense Matrix-Matrix Multiplication on the
//           GPU" (Osama et al., 2023).

#ifndef STAGES
#define STAGES 3
#endif
#ifndef BAND
#define BAND 8
#endif
#ifndef WORKERS
#define WORKERS 264
#endif

constexpr int BM = 128, BN = 128, BK = 32;
constexpr int WM = 64, WN = 64;  // of a warp
constexpr int TM = 8, TN = 16;   // of a thread
constexpr bool FENCED = true, TURNED = false;  // rungs 14, 18
constexpr int COPIERS = 0; constexpr bool ROWS_ANYWHERE = false;  // rung 19

#include "bulk.cuh"

// What workers leave for each other: a flag each, then the sums each, in the order of threads.
constexpr int FLAGS_BYTES = (WORKERS * 4 + 127) / 128 * 128;

// two blocks per SM, and therefore at most 255 registers
extern "C" __global__ void __launch_bounds__(THREADS, 2)
sgemm_stream_k(const __grid_constant__ TensorMap A, const __grid_constant__ TensorMap B, float* __restrict__ C,
               int M, int N, int K, float alpha, float beta, char* __restrict__ workspace)
{
#include "workers.cuh"
    const int block = blockIdx.x, pitch_c = N; const bool by_quads = N % 4 == 0;  // rows of C are without gaps
#include "stream_k.cuh"
}
