constexpr int LANES_M = 8, LANES_N = 4;
constexpr int WM = TM * LANES_M, WN = TN * LANES_N;  // of a warp
constexpr int SLICE = (BM / TM) * (BN / TN), THREADS = SLICE * SLICES, WARPS = THREADS / 32;
constexpr unsigned FLOAT = 4, QUAD = 16;  // bytes
constexpr int BK = 64, PIECE = 32;        // depth of a phase, and of one copy: rows of A of 128 bytes are swizzled
constexpr unsigned A_ROW = PIECE * FLOAT, B_ROW = BN * FLOAT, A_PIECE = BM * A_ROW, B_PIECE = PIECE * B_ROW;
constexpr unsigned A_BYTES = BK / PIECE * A_PIECE, STAGE_BYTES = A_BYTES + BK / PIECE * B_PIECE;
constexpr int STEPS = BK / 4 / SLICES;    // of 4 k each, of a slice in a phase
constexpr int QUADS = TM * TN / 4;
constexpr bool FENCED = true, TURNED = false;  // rungs 14, 18
static_assert(BM % WM == 0 && BN % WN == 0 && BK % PIECE == 0, "warps fill the tile, copies the phase");
static_assert(STEPS * SLICES * 4 == BK && PIECE / 4 % SLICES == 0, "slices share a phase evenly");

#include "barriers.cuh"
